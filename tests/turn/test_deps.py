"""Dependencies of tools and plugins: given by a caller, never stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman import Agent, Plugin, ToolContext, TurnView, allow_once, tool
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnResult
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import model_of, only_call, runtime_with


@dataclass
class Account:
    """An object that the store cannot serialize."""

    name: str
    secret: object = object()


@tool
async def who(context: ToolContext[Account]) -> str:
    """Whose account it is."""
    return context.deps.name


@tool
def who_in_thread(context: ToolContext[Account] | None = None) -> str:
    """The same, in a thread."""
    return context.deps.name if context is not None else "nobody"


class Names(Plugin):
    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.system = f"You work for {turn.deps.name}."


def _said(result: TurnResult) -> str:
    answered = only_call(result).result
    assert answered is not None
    return answered.text


@pytest.mark.parametrize("name", ["who", "who_in_thread"])
async def test_tools_and_plugins_get_what_was_sent(tmp_path: Path, name: str) -> None:
    """A send's own go before the runtime's."""
    script = [calls(name), says("1"), calls(name), says("2")]
    options = {"tools": [who, who_in_thread], "plugins": [Names()], "deps": Account("Ada")}
    async with runtime_with(tmp_path, script, **options) as runtime:  # type: ignore[arg-type]
        chat = await runtime.conversation()
        first = await (await chat.send("go")).result()
        second = await (await chat.send("go", deps=Account("Bob"))).result()
        assert [_said(first), _said(second)] == ["Ada", "Bob"]
        assert model_of(runtime).requests[-1].system == "You work for Bob."
        assert not runtime.services.inputs


async def test_a_turn_taken_up_gets_them_from_the_factory(tmp_path: Path) -> None:
    """A resumed turn gets its dependencies from the factory, because those of the send died with the process
    (S1)."""
    script = [calls("who"), says("1")]
    async with runtime_with(tmp_path, script, tools=[who], allow=[]) as runtime:
        chat = await runtime.conversation(user="ada@example.org")
        turn = await chat.send("go", deps=Account("Ada"))
        assert await turn.reached("waiting")
        question = turn.question

    async def make(view: TurnView) -> Account:
        return Account(f"{view.conversation.user} again")

    async with runtime_with(tmp_path, [says("1")], tools=[who], allow=[], make_deps=make) as runtime:
        again = runtime.turn(turn.id)
        await again.answer(question, allow_once())
        assert _said(await again.result()) == "ada@example.org again"


async def test_a_factory_that_fails_fails_the_turn(tmp_path: Path) -> None:
    def make(_: TurnView) -> Account:
        raise LookupError("no such account")

    async with runtime_with(tmp_path, [], make_deps=make) as runtime:
        with pytest.raises(LookupError):
            await (await runtime.send("go")).result()


async def test_a_subagent_works_with_the_same_ones(tmp_path: Path) -> None:
    """The dependencies of a send also apply to the tasks of its turn."""

    def script(request: Request) -> Line:
        if any(spec.name == "task" for spec in request.tools) and len(request.messages) == 1:
            return calls("task", agent="helper", request="who?")
        return calls("who") if len(request.messages) == 1 else says("done")

    helper = Agent(name="helper", tools=("tools",))
    async with runtime_with(tmp_path, script, tools=[who], agents=[helper]) as runtime:
        await (await runtime.send("go", deps=Account("Ada"))).result()
        said = [str(part) for one in model_of(runtime).requests for m in one.messages for part in m.parts]
        assert any("Ada" in text for text in said)
