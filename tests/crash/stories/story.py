"""Define what every story has: the model's script, the caller's part, and a check of the end."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import Agent, Answer, Plugin, allow_once, reject, release
from dragoman.messages.message import Text, ToolCall
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line
from tests.crash.stage import Stage


class Story:
    def script(self, request: Request, stage: Stage) -> Line:
        """Return the model's next line for these messages: the same after a crash as before."""
        raise NotImplementedError

    async def play(self, stage: Stage) -> None:
        """Play the caller's part. Wind the clockwork when the interesting part starts."""
        raise NotImplementedError

    async def check(self, stage: Stage) -> None:
        """Check what must hold after the restart in addition to the checks of every story."""

    def answer(self, kind: str, stage: Stage) -> Answer | None:
        """Return the caller's answer to a question of this kind, or None to leave it open."""
        return {"review": release(), "interrupted": reject("leave it")}.get(kind, allow_once())

    def groups(self) -> Sequence[str]:
        """Return tool groups in addition to those of the stage."""
        return ()

    def plugins(self) -> Sequence[Plugin]:
        return ()

    def agents(self) -> Sequence[Agent]:
        return ()


def made(request: Request) -> list[ToolCall]:
    """Return the calls in the messages that the model received."""
    return [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]


def heard(request: Request) -> list[str]:
    """Return the user's and plugins' messages to the model."""
    users = (message for message in request.messages if message.role == "user")
    return [part.text for message in users for part in message.parts if isinstance(part, Text)]
