"""A person changes the arguments of a call before it may run, and it runs with these or not at all."""

from __future__ import annotations

from dragoman import Answer, allow_once
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage, until
from tests.crash.stories.story import Story, made


class EditedArguments(Story):
    """An answer belongs to the arguments that it approved (P3, P6)."""

    def script(self, request: Request, stage: Stage) -> Line:
        if not made(request):
            return calls("approved", n=1) + calls("approved", n=2)
        return says("Done")

    def answer(self, kind: str, stage: Stage) -> Answer | None:
        return allow_once({"n": 10}) if kind == "approve" else super().answer(kind, stage)

    async def play(self, stage: Stage) -> None:
        turn = await stage.runtime.send("go", (await stage.conversation()).id)
        await until(turn, ("call.asked", "{'n': 1}"), ("call.asked", "{'n': 2}"))
        stage.clock.wind()
        await stage.over(stage.promised(turn))

    async def check(self, stage: Stage) -> None:
        for line in stage.work.lines():
            assert line["n"] == 10, "it ran with what nobody allowed"
        for message in await (await stage.conversation()).messages():
            for call in message.calls:
                assert call.arguments == {"n": 10}
                assert call.result is not None
                if call.state is CallState.COMPLETED:
                    assert "changed the arguments" in str(call.result.note), "the model is told"
