"""Tests for every store and every blob store.

The folder imports only Dragoman and itself. For a store in another repository, copy it into your tests.
Subclass them in your tests, and define how to make a store and how to damage a row in it:

    class TestMine(StoreConformance):
        async def make(self, folder: Path) -> Store:
            return MyStore(folder / "memory")

        async def damage(self, folder: Path, noun: Noun, id: str) -> None:
            ...

Two stores made for the same folder share their data, as two processes would. The tests are
coroutines that take pytest's `tmp_path`; run them with pytest-asyncio in its `auto` mode.
"""

from __future__ import annotations

from .blobs import BlobConformance
from .conversations import ConversationConformance
from .damage import DamageConformance
from .deletion import DeletionConformance
from .events import EventConformance
from .facts import FactConformance
from .lists import ListConformance
from .people import PeopleConformance
from .questions import QuestionConformance
from .search import SearchConformance
from .sharing import SharingConformance
from .suite import Noun
from .transfer import TransferConformance
from .turns import TurnConformance

__all__ = ["BlobConformance", "Noun", "StoreConformance"]


class StoreConformance(
    ConversationConformance,
    DeletionConformance,
    TurnConformance,
    FactConformance,
    EventConformance,
    ListConformance,
    QuestionConformance,
    PeopleConformance,
    SearchConformance,
    SharingConformance,
    TransferConformance,
    DamageConformance,
):
    """Each method is one promise of the protocols of `store/`."""
