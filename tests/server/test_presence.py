"""Who has a shared conversation open, or is typing, is known for as long as it is true (V3)."""

from __future__ import annotations

import time
from pathlib import Path

from dragoman.conversation.sharing import Member
from dragoman.server.event_stream import OpenStreams
from dragoman.server.presence import Presence
from dragoman.server.shapes import PresentUser
from tests.runtimes import runtime_with


async def test_typing_and_presence_end_after_a_while(tmp_path: Path) -> None:
    now = began = time.time()  # of the present, since the store removes old notes
    told: list[str] = []
    async with runtime_with(tmp_path, []) as runtime:
        id = (await runtime.conversation()).id
        await runtime.store.set_member(id, Member("ada", "reads"))
        presence = Presence(runtime.store, OpenStreams(), lambda: now, lambda one, _: told.append(one))

        async def seen() -> list[PresentUser]:
            return (await presence.of([id]))[id]

        assert await seen() == []
        await presence.typing(id, "ada", on=True)
        for at, shown in ((5.9, [True]), (6.1, [False]), (24.9, [False]), (25.1, [])):
            now = began + at
            assert await seen() == [PresentUser("ada", typing) for typing in shown]
        await presence.typing(id, "ada", on=True)
        now += 0.9
        await presence.typing(id, "ada", on=True)  # stored once in a second
        now += 5.2
        assert await seen() == [PresentUser("ada", False)]
        await presence.typing(id, "ada", on=True)
        assert await seen() == [PresentUser("ada", True)]
        await presence.typing(id, "ada", on=False)
        assert await seen() == [PresentUser("ada", False)]
    assert told == []  # Nobody reads it here.
