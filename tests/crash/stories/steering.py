"""A person says more while a turn runs: while a tool works, and while the last reply comes."""

from __future__ import annotations

from collections import Counter

from dragoman.errors import TurnEnded
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage, texts, until
from tests.crash.stories.story import Story, heard, made

_SAID = ("also this", "and that", "one thing more")


class Steering(Story):
    """Each accepted message is in a request of this turn, once (T13)."""

    def script(self, request: Request, stage: Stage) -> Line:
        if not made(request):
            return calls("waits", n=1) + calls("writes", n=2)
        return says(f"Heard {len(heard(request))}")

    async def play(self, stage: Stage) -> None:
        turn = await stage.send(await stage.conversation(), "go")
        await until(turn, ("call.start", "waits"), ("call.end", "writes 2 done"))
        stage.clock.wind()
        await _steer(stage, turn, _SAID[0])
        await _steer(stage, turn, _SAID[1])
        stage.gate.set()
        await until(turn, ("text.delta", "Heard 3"))
        try:
            await _steer(stage, turn, _SAID[2])
        except TurnEnded:
            pass  # the caller received no promise
        await stage.over(turn)

    async def check(self, stage: Stage) -> None:
        path = texts(await (await stage.conversation()).messages())
        said = Counter(text for text in path if text in _SAID)
        assert set(stage.promises.all("steered")) <= set(said), "what was taken is lost"
        assert all(count == 1 for count in said.values()), "it was said twice"
        assert path[-1] == f"Heard {1 + len(said)}", "the last answer knows all that was said"


async def _steer(stage: Stage, turn: TurnHandle, said: str) -> None:
    await turn.steer(said)
    stage.promises.note(steered=said)
