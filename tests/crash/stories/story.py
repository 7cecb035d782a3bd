"""What every story has: a model's part, a caller's part, and what must have come of it in the end."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import Agent, Answer, Plugin, allow_once, reject, release
from dragoman.messages.message import Text, ToolCall
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line
from tests.crash.stage import Stage


class Story:
    def script(self, request: Request, stage: Stage) -> Line:
        """What the model says next, by what it has been shown: the same after a crash as before."""
        raise NotImplementedError

    async def play(self, stage: Stage) -> None:
        """What the caller does. The clock is wound up when it gets interesting."""
        raise NotImplementedError

    async def check(self, stage: Stage) -> None:
        """After the restart everything is over: what must hold beside what holds in every story?"""

    def answer(self, kind: str, stage: Stage) -> Answer | None:
        """What the caller answers to a question of this kind; None where he leaves it open."""
        return {"review": release(), "interrupted": reject("leave it")}.get(kind, allow_once())

    def groups(self) -> Sequence[str]:
        """Of tools, beside those of the stage."""
        return ()

    def plugins(self) -> Sequence[Plugin]:
        return ()

    def agents(self) -> Sequence[Agent]:
        return ()


def made(request: Request) -> list[ToolCall]:
    """The calls that a model is shown."""
    return [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]


def heard(request: Request) -> list[str]:
    """What people, and plugins, have said to it."""
    users = (message for message in request.messages if message.role == "user")
    return [part.text for message in users for part in message.parts if isinstance(part, Text)]
