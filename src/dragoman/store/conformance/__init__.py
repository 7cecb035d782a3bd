"""The tests that any store, and any place for blobs, must pass.

Subclass them among your tests, and say how a store is made, and how a row in it is damaged:

    class TestMine(StoreConformance):
        async def make(self, folder: Path) -> Store:
            return MyStore(folder / "memory")

        async def damage(self, folder: Path, noun: Noun, id: str) -> None:
            ...

Two stores that were made for the same folder share what they store, as two processes would. The tests are
coroutines that take pytest's `tmp_path`; run them with pytest-asyncio in its `auto` mode.
"""

from __future__ import annotations

from dragoman.store.conformance.blobs import BlobConformance
from dragoman.store.conformance.conversations import ConversationConformance
from dragoman.store.conformance.damage import DamageConformance
from dragoman.store.conformance.deletion import DeletionConformance
from dragoman.store.conformance.events import EventConformance
from dragoman.store.conformance.facts import FactConformance
from dragoman.store.conformance.lists import ListConformance
from dragoman.store.conformance.people import PeopleConformance
from dragoman.store.conformance.questions import QuestionConformance
from dragoman.store.conformance.search import SearchConformance
from dragoman.store.conformance.suite import Noun
from dragoman.store.conformance.transfer import TransferConformance
from dragoman.store.conformance.turns import TurnConformance

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
    TransferConformance,
    DamageConformance,
):
    """Each method is one promise of the protocols of `store/`."""
