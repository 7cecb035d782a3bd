"""Check every way to make a tool, and which tools are refused: C6, C8."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field, JsonValue

from dragoman import ConfigError, Rule, ToolContext, ToolOutput, client_tool, tool
from dragoman.messages.message import CallState
from dragoman.tools.tool import Tool
from tests.tools.bench import Bench, run, text_of


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


# ── what a tool can be made of ────────────────────────────────────────────────────────────────────


async def test_a_function_becomes_a_tool() -> None:
    """C6"""
    assert (add.name, add.description, add.permission) == ("add", "Add two numbers.", "add")
    assert (await run(add, a=2)).result.value == 3


async def test_a_synchronous_tool_runs_in_a_thread_and_an_asynchronous_one_does_not() -> None:
    """C6"""

    @tool
    def there() -> int:
        """Which thread."""
        return threading.get_ident()

    @tool
    async def here() -> int:
        """Which thread."""
        return threading.get_ident()

    assert (await run(there)).result.value != threading.get_ident()
    assert (await run(here)).result.value == threading.get_ident()


async def test_what_a_generator_yields_is_progress_and_the_last_of_it_the_result() -> None:
    """C6"""

    @tool
    def count() -> Iterator[int]:
        """Count."""
        yield 1
        yield 2

    @tool
    def count_up() -> Generator[int, None, str]:
        """Count, then say so."""
        yield 1
        yield 2
        return "two"

    @tool
    async def count_slowly() -> AsyncIterator[int | ToolOutput]:
        """Count."""
        yield 1
        await asyncio.sleep(0)
        yield 2
        yield ToolOutput("two", title="counted")

    for made, text in ((count, "2"), (count_up, "two"), (count_slowly, "two")):
        bench = Bench()
        assert (await bench.run(made)).result.text == text
        assert bench.progress == [1, 2]


async def test_a_generator_that_yields_nothing_is_done() -> None:
    """C6"""

    @tool
    def nothing() -> Iterator[int]:
        """Nothing."""
        yield from ()

    assert await text_of(nothing) == "done"


async def test_an_object_that_can_be_called_becomes_a_tool() -> None:
    """C6: named after its class, described by what it does when called."""

    class RollDice:
        async def __call__(self, sides: int, context: ToolContext) -> str:
            """Roll a die.

            Args:
                sides: how many it has
            """
            return f"{context.call}: {sides}"

    made = tool(RollDice())
    assert (made.name, made.description) == ("roll_dice", "Roll a die.")
    assert made.parameters.schema["properties"] == {
        "sides": {"type": "integer", "description": "how many it has"}
    }
    assert await text_of(made, sides=6) == "call_1: 6"


async def test_a_method_becomes_a_tool() -> None:
    """C6"""

    class Counter:
        def __init__(self) -> None:
            self.value = 0

        def increase(self, by: int) -> int:
            """Count on."""
            self.value += by
            return self.value

    counter = Counter()
    made = tool(counter.increase)
    await run(made, by=2)
    assert (await run(made, by=3)).result.value == 5


async def test_a_model_with_a_run_method_becomes_a_tool() -> None:
    """C6"""

    class SendMail(BaseModel):
        """Send a mail."""

        to: str = Field(description="the address")
        copies: int = 1

        async def run(self, context: ToolContext) -> str:
            return f"{self.to} × {self.copies} ({context.conversation})"

    made = tool(SendMail)
    assert (made.name, made.description) == ("send_mail", "Send a mail.")
    assert await text_of(made, to="ada@example.org") == "ada@example.org × 1 (conv_1)"


def test_a_model_without_a_docstring_does_not_inherit_pydantics() -> None:
    """C6"""

    class Quiet(BaseModel):
        def run(self) -> str:
            return "…"

    assert tool(Quiet).description == ""
    assert tool(description="Says nothing.")(Quiet).description == "Says nothing."


async def test_a_decorated_function_is_seen_through() -> None:
    """C6"""

    def shouting(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(**arguments: Any) -> Any:
            return function(**arguments).upper()

        return wrapper

    @tool
    @shouting
    def greet(name: str) -> str:
        """Greet."""
        return f"hello {name}"

    assert await text_of(greet, name="ada") == "HELLO ADA"


async def test_a_function_that_only_returns_something_to_await_is_awaited() -> None:
    """C6"""

    async def later(word: str) -> str:
        return word

    def soon(word: str) -> Awaitable[str]:
        """Not now."""
        return later(word)

    assert await text_of(tool(soon), word="later") == "later"


def test_a_clients_tool_has_nothing_to_run_here() -> None:
    """C6"""

    class Script(BaseModel):
        code: str

    made = client_tool("browser_js_eval", "Run a script.", Script, timeout=5)
    assert (made.client, made.timeout, made.spec().parameters["required"]) == (True, 5, ["code"])
    assert not add.client


# ── the context ───────────────────────────────────────────────────────────────────────────────────


async def test_the_context_is_taken_wherever_it_stands_and_never_shown_to_the_model() -> None:
    """C8"""

    def first(context: ToolContext, a: int) -> str:
        """First."""
        return f"{a} {context.call}"

    def last(a: int, *, within: ToolContext) -> str:
        """Last."""
        return f"{a} {within.call}"

    def maybe(a: int, context: ToolContext | None = None) -> str:
        """Perhaps."""
        return f"{a} {context and context.call}"

    def none(a: int) -> str:
        """None at all."""
        return f"{a} call_1"

    for function in (first, last, maybe, none):
        made = tool(function)
        assert made.parameters.names == ["a"]
        assert await text_of(made, a=7) == "7 call_1"


async def test_the_context_says_where_a_call_is_and_names_it_the_same_when_it_is_run_again() -> None:
    """C8"""

    @tool
    def where(context: ToolContext) -> list[str]:
        """Where am I?"""
        return [context.conversation, context.message, context.call, context.idempotency_key]

    assert (await run(where)).result.value == ["conv_1", "msg_1", "call_1", "turn_1:call_1"]


async def test_both_kinds_of_tool_can_ask_and_report() -> None:
    """C8"""

    @tool
    async def polite(context: ToolContext) -> str:
        """Asks."""
        context.progress("asking")
        return f"they said {await context.ask('Really?', choices=['yes', 'no'])}"

    @tool
    def blunt(context: ToolContext) -> str:
        """Asks too, from its thread."""
        context.progress("asking")
        return f"they said {context.ask('Really?', ['yes', 'no'])}"

    for made in (polite, blunt):
        bench = Bench(answers=["yes"])
        assert (await bench.run(made)).result.text == "they said yes"
        assert bench.questions == [("Really?", ("yes", "no"))]
        assert bench.progress == ["asking"]


# ── patterns and the rules they make ──────────────────────────────────────────────────────────────


def pattern_tool(pattern: str | Callable[[dict[str, JsonValue]], list[str]] | None) -> Tool:
    def touch(path: str = "notes.txt", others: list[str] = [], depth: int | None = None) -> str:  # noqa: B006
        """Touch files."""
        return path

    return tool(pattern=pattern)(touch)


@pytest.mark.parametrize(
    ("pattern", "arguments", "seen"),
    [
        ("path", {"path": "a.txt"}, ["a.txt"]),
        ("path", {}, ["notes.txt"]),
        ("others", {"others": ["a", "b"]}, ["a", "b"]),
        ("others", {"others": []}, [""]),
        ("depth", {"depth": 3}, ["3"]),
        ("depth", {}, [""]),
        (lambda arguments: [f"{arguments['path']}!"], {"path": "a"}, ["a!"]),
    ],
)
def test_rules_look_at_what_the_tool_will_get(
    pattern: str, arguments: dict[str, JsonValue], seen: list[str]
) -> None:
    """A missing parameter counts as its default, and each item of a list is checked separately (P1)."""
    assert list(pattern_tool(pattern).patterns(arguments)) == seen


def test_always_means_this_and_not_what_it_could_match() -> None:
    """A star in an argument is literal, so allowing `rm *` does not allow `rm anything` (P3)."""
    made = pattern_tool("path")
    assert made.always({"path": "*.txt"}) == (Rule("touch", "[*].txt", "allow"),)
    assert pattern_tool(None).always({}) == (Rule("touch", "*", "allow"),)


# ── what is refused when a tool is made ───────────────────────────────────────────────────────────


def named(**options: Any) -> Tool:
    return tool(**options)(lambda: "ok")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Invalid tool name '<lambda>'"),
        ({"name": "two words"}, "Invalid tool name 'two words'"),
        ({"name": "x" * 65}, "Use 1 to 64"),
        ({"name": "files.read"}, "Invalid tool name"),
        ({"name": "t", "timeout": "10"}, "Tool 't': timeout must be a number above 0, not '10'"),
        ({"name": "t", "timeout": 0}, "Tool 't': timeout must be a number above 0, not 0"),
        ({"name": "t", "timeout": -1}, "timeout"),
        ({"name": "t", "timeout": float("nan")}, "timeout"),
        ({"name": "t", "pattern": "path"}, "Tool 't': pattern names 'path'"),
        (
            {"name": "t", "replay": "sometimes"},
            "Tool 't': replay must be one of never, ask, safe, not 'sometimes'",
        ),
        ({"name": "t", "review": "maybe"}, "Tool 't': review must be one of never, on_error, always"),
        ({"name": "t", "max_lines": 0}, "Tool 't': max_lines must be a number above 0"),
        ({"name": "t", "max_bytes": -1}, "Tool 't': max_bytes must be a number above 0"),
    ],
)
def test_a_tool_that_is_made_wrong_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        named(**options)


def test_a_class_that_cannot_be_a_tool_is_refused() -> None:
    class Plain:
        def run(self) -> str:
            return "x"

    class NoRun(BaseModel):
        a: int

    class Wants(BaseModel):
        a: int

        def run(self, b: int) -> str:
            return str(self.a + b)

    for made, message in (
        (Plain, "Tool 'plain': a class must be a pydantic model"),
        (NoRun, "Tool 'no_run': a class must be"),
        (Wants, "Tool 'wants': its run method can take only a ToolContext, not 'b'"),
    ):
        with pytest.raises(ConfigError, match=message):
            tool(made)


async def test_infinity_means_no_timeout() -> None:
    """C7"""
    assert (await run(named(name="patient", timeout=float("inf")))).state is CallState.COMPLETED
