"""One reply gives two tasks, and each agent has work to do."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import Agent
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage
from tests.crash.stories.story import Story, heard, made

_NAMES = ("left", "right")


class ParallelTasks(Story):
    """Each agent has one conversation with one turn, and both together form one answer (S3)."""

    def agents(self) -> Sequence[Agent]:
        return [Agent(name=name, prompt=f"You are {name}.") for name in _NAMES]

    def script(self, request: Request, stage: Stage) -> Line:
        done = len(made(request))
        for n, name in enumerate(_NAMES, 1):
            if f"You are {name}." in request.system:
                return says(f"{name} is done") if done else calls("writes", n=n)
        if not done:
            left, right = (calls("task", agent=name, request="do it") for name in _NAMES)
            return left + right
        return says(f"Answer {len(heard(request))}")

    async def play(self, stage: Stage) -> None:
        chat = await stage.conversation()
        stage.clock.wind()
        await stage.over(await stage.send(chat, "go"))

    async def check(self, stage: Stage) -> None:
        chat = await stage.conversation()
        path = await chat.messages()
        for call in [call for message in path for call in message.calls]:
            assert call.state is CallState.COMPLETED
            assert call.result is not None
            assert call.result.text in {f"{name} is done" for name in _NAMES}
        inner = [one for one in await stage.runtime.conversations() if one.parent == chat.id]
        assert len(inner) == (2 if path else 0)
        for one in inner:
            assert len(await stage.runtime.store.turns(one.id)) == 1
