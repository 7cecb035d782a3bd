"""A turn with every feature: reasoning, five kinds of calls, two questions, messages of a plugin."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import Plugin, TurnView
from dragoman.messages.message import CallState, Message
from dragoman.messages.request import Request
from dragoman.turn.machine import State
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import Line, calls, says, thinks
from tests.crash.stage import Stage, texts
from tests.crash.stories.story import Story, heard, made

_PATH = ["go", "First ", "said at once", "said later", "Then ", "Almost", "and now the end", "The end"]
_CALLS = [
    ("reads", 1),
    ("writes", 2),
    ("careful", 3),
    ("approved", 4),
    ("reviewed", 5),
    ("writes", 6),
    ("reads", 7),
]


class Appends(Plugin):
    """Appends one message immediately and one deferred after the first reply, and requests a step after the
    last."""

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if turn.turn.step == 1:
            await append("said at once")
            await append("said later", deferred=True)
        if reply.text.startswith("Almost"):
            await append.and_request("and now the end", deferred=True)


class WholeTurn(Story):
    def script(self, request: Request, stage: Stage) -> Line:
        match len(made(request)):
            case 0:
                first = thinks("many things to do") + says("First ")
                return sum((calls(tool, n=n) for tool, n in _CALLS[:5]), first)
            case 5:
                return sum((calls(tool, n=n) for tool, n in _CALLS[5:]), says("Then "))
        return says("The end" if "and now the end" in heard(request) else "Almost")

    def plugins(self) -> Sequence[Plugin]:
        return (Appends(),)

    async def play(self, stage: Stage) -> None:
        stage.clock.wind()
        await stage.over(await stage.send(await stage.conversation(), "go"))

    async def check(self, stage: Stage) -> None:
        chat = await stage.conversation()
        path, tree = await chat.messages(), await chat.tree()
        if not path:
            return  # killed before the first message
        turn = stage.runtime.turn(str(path[0].turn))
        assert (await turn.turn()).state is State.COMPLETED
        assert texts(path) == _PATH
        assert len(tree) == len(path), "something hangs beside the path"
        made = [call for message in path for call in message.calls]
        assert [(call.tool, call.arguments["n"]) for call in made] == _CALLS
        for call in made:
            if call.tool == "reads":
                assert call.state is CallState.COMPLETED
            assert call.state in (CallState.COMPLETED, CallState.INTERRUPTED)
