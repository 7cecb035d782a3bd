"""A store in, a verdict out: the suite that any store must pass.

Subclass it among your tests, and say how a store is made:

    class TestMine(StoreConformance):
        async def make(self, folder: Path) -> Store:
            return MyStore(folder / "memory")

Two stores that were made for the same folder share one memory, as two processes would. The tests are
coroutines that take pytest's `tmp_path`; run them with pytest-asyncio in its `auto` mode.
"""

from __future__ import annotations

from dragoman.store.conformance.conversations import Conversations
from dragoman.store.conformance.facts import Facts
from dragoman.store.conformance.people import People
from dragoman.store.conformance.questions import Questions
from dragoman.store.conformance.search import Search
from dragoman.store.conformance.transfer import Transfer
from dragoman.store.conformance.turns import Turns


class StoreConformance(Conversations, Turns, Facts, Questions, People, Search, Transfer):
    """Each method is one promise of the protocol in `store.py`."""
