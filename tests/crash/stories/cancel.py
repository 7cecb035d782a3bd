"""A user cancels a turn while one call runs and another waits for approval, and in the middle of a reply."""

from __future__ import annotations

from dragoman import Answer
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.machine import State
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage, until
from tests.crash.stories.story import Story, made


class CancelledCalls(Story):
    def script(self, request: Request, stage: Stage) -> Line:
        if made(request):
            return says("It was not cancelled")
        return calls("writes", n=1) + calls("waits", n=2) + calls("approved", n=3)

    def answer(self, kind: str, stage: Stage) -> Answer | None:
        return super().answer(kind, stage) if stage.again else None

    async def play(self, stage: Stage) -> None:
        turn = await stage.send(await stage.conversation(), "go")
        await until(turn, ("call.end", "writes 1 done"), ("call.start", "waits"), ("call.asked", "approved"))
        await _cancel(stage, turn)

    async def check(self, stage: Stage) -> None:
        await _check(stage)
        (turn,) = stage.promises.all("turn")
        path = await (await stage.conversation()).messages()
        ended = [call.state for message in path for call in message.calls]
        assert ended[0] is CallState.COMPLETED, "what was done before stays done"
        if turn in stage.promises.all("cancelled"):
            assert ended[1:] == [CallState.CANCELLED] * 2
            assert "It was not cancelled" not in [message.text for message in path]


class CancelledReply(Story):
    def script(self, request: Request, stage: Stage) -> Line:
        return says("And on and on. " * 200, waits=0.0 if stage.again else 0.05)

    async def play(self, stage: Stage) -> None:
        turn = await stage.send(await stage.conversation(), "go")
        await until(turn, ("text.delta", "And on"))
        await _cancel(stage, turn)

    async def check(self, stage: Stage) -> None:
        await _check(stage)
        if stage.promises.all("cancelled") and stage.again:
            assert not stage.model.requests, "a cancelled turn asks the model nothing more"


async def _cancel(stage: Stage, turn: TurnHandle) -> None:
    stage.clock.wind()
    if await turn.cancel("enough"):
        stage.promises.note(cancelled=turn.id)
    await stage.over(turn)


async def _check(stage: Stage) -> None:
    for turn in stage.promises.all("cancelled"):
        assert (await stage.runtime.turn(turn).turn()).state is State.CANCELLED
