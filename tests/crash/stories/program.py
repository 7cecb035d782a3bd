"""A program makes calls, one after the other and several at the same time, some of which ask."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage
from tests.crash.stories.story import Story, made

CODE = """\
import asyncio
from typing import Any
done: list[Any] = []
async def attempt(call: Any):
    try:
        done.append(await call)
    except (RuntimeError, PermissionError):
        done.append(None)
await attempt(reads(n=1))
await asyncio.gather(attempt(writes(n=2)), attempt(approved(n=3)), attempt(careful(n=4)))
await attempt(reviewed(n=5))
await asyncio.gather(*[attempt(reads(n=n)) for n in (6, 7)])
len(done)
"""


class Program(Story):
    """The program resumes from its recorded results, and ends with all of them (G3)."""

    def groups(self) -> Sequence[str]:
        return ("programs",)

    def script(self, request: Request, stage: Stage) -> Line:
        return says("Done") if made(request) else calls("run_program", code=CODE)

    async def play(self, stage: Stage) -> None:
        stage.clock.wind()
        turn = await stage.runtime.send("go", (await stage.conversation()).id)
        await stage.over(stage.promised(turn))

    async def check(self, stage: Stage) -> None:
        for message in await (await stage.conversation()).messages():
            for call in message.calls:
                assert call.result is not None
                assert (call.state, call.result.text) == (CallState.COMPLETED, "7")
                places = [one.made_in.number for one in message.inner if one.made_in is not None]
                assert places == [*range(7)], "each call was made once"
                assert [one.arguments["n"] for one in message.inner] == [1, 2, 3, 4, 5, 6, 7]
