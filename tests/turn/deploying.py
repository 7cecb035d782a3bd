"""A tool that deploys, a plugin that is careful about it, and a turn that waits."""

from __future__ import annotations

from typing import Any

from dragoman import (
    Plugin,
    Runtime,
    TurnView,
    tool,
)
from dragoman.messages.questions import Question
from dragoman.tools.tool import Tool
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.plugin import PlannedCall


def deployer(ran: list[str]) -> Tool:
    @tool(pattern="where")
    async def deploy(where: str) -> str:
        """Deploy."""
        ran.append(where)
        return f"deployed to {where}"

    return deploy


class Careful(Plugin):
    """Wants a person to look before anything goes to production, and refuses the moon."""

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if call.arguments.get("where") == "production":
            call.ask("This is PRODUCTION. Really?")
        if call.arguments.get("where") == "moon":
            call.refuse("not to the moon")


async def waiting(runtime: Runtime, text: str = "go", **options: Any) -> TurnHandle:
    turn: TurnHandle = await runtime.send(text, **options)
    assert await turn.reached("waiting")
    return turn


def by_place(turn: TurnHandle) -> dict[Any, Question]:
    return {question.arguments["where"]: question for question in turn.questions}
