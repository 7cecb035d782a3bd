"""Checked by mypy and by pyright, never run: mistakes that a type checker finds before anybody runs them.

Each function has the right line first and the wrong one after it. A line with `type: ignore` is one that both
must complain about: `tests/test_typing.py` compares what they find with these comments.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman import (
    Agent,
    Limits,
    OpenAICompatible,
    Output,
    Plugin,
    Rule,
    Runtime,
    ScriptedModel,
    SyncRuntime,
    ToolContext,
    TurnView,
    allow_for_conversation,
    allow_once,
    run_sync,
    tool,
)
from dragoman.messages.message import ToolCall, ToolResult
from dragoman.testing import expect
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import says


@dataclass
class City:
    name: str
    people: int


@dataclass
class Shop:
    customer: str


def is_large(city: City) -> bool:
    return city.people > 1000


def is_long(text: str) -> bool:
    return len(text) > 10


# ── answers of a type ─────────────────────────────────────────────────────────────────────────────


async def the_output_has_the_fields_of_its_type(runtime: Runtime) -> None:
    result = await (await runtime.send("Name a city.", output_type=City)).result()
    print(result.output.people)
    print(result.output.inhabitants)  # type: ignore[attr-defined]


async def without_a_type_the_output_is_text(runtime: Runtime) -> None:
    result = await (await runtime.send("How many?")).result()
    _: str = result.output
    number: int = result.output  # type: ignore[assignment]
    print(number)


def the_type_of_a_synchronous_answer_is_known() -> None:
    answer = run_sync("How many?", model="ollama/qwen3", output_type=int).output
    print(answer + 1)
    print(answer.upper())  # type: ignore[attr-defined]


def a_check_takes_what_is_asked_for() -> None:
    Output(City, checks=[is_large])
    Output(City, checks=[is_long])  # type: ignore[list-item]


async def partial_values_are_of_the_type(runtime: Runtime) -> None:
    turn = await runtime.send("Name a city.", output_type=City)
    async for city in turn.partial_outputs():
        print(city.name.upper())
        print(city + 1)  # type: ignore[operator]


async def a_stored_turn_is_read_as_its_type(runtime: Runtime) -> None:
    cities = (await runtime.turn("turn_1", list[City]).result()).output
    print(cities[0].name)
    print(cities.name)  # type: ignore[attr-defined]


# ── tools and what they need ──────────────────────────────────────────────────────────────────────


@tool
def orders(context: ToolContext[Shop]) -> str:
    """Dependencies are of the type that the context names."""
    print(context.deps.customer)
    return context.deps.custommer  # type: ignore[attr-defined, no-any-return]


@tool(permission="files.write", replay="safe")
def right_options(path: str) -> str:
    return path


@tool(permision="files.write")  # type: ignore[call-overload, untyped-decorator]
def an_option_of_a_tool_is_misspelled(path: str) -> str:
    return path


def a_tool_is_run_again_safely_or_never() -> None:
    tool(replay="never")
    tool(replay="sometimes")  # type: ignore[call-overload]


def dependencies_are_made_for_a_turn() -> None:
    def of_turn(turn: TurnView) -> Shop:
        return Shop(turn.conversation.user or "")

    def of_text(name: str) -> Shop:
        return Shop(name)

    Runtime("chat.db", make_deps=of_turn)
    Runtime("chat.db", make_deps=of_text)  # type: ignore[arg-type]


def tools_are_functions_or_tools() -> None:
    Runtime("chat.db", tools=[orders, is_large, "files"])
    Runtime("chat.db", tools=[orders, 3])  # type: ignore[list-item]


# ── sending and answering ─────────────────────────────────────────────────────────────────────────


async def an_option_of_a_send_is_misspelled(runtime: Runtime) -> None:
    await runtime.send("hi", max_rounds=3)
    await runtime.send("hi", max_round=3)  # type: ignore[call-overload]


async def an_option_of_a_send_has_a_type(runtime: Runtime) -> None:
    await runtime.send("hi", mode="manual")
    await runtime.send("hi", mode="manuall")  # type: ignore[call-overload]


async def a_setting_of_a_conversation_is_misspelled(runtime: Runtime) -> None:
    await runtime.conversation(system="Be brief.")
    await runtime.conversation(sytem="Be brief.")  # type: ignore[call-arg]


async def a_send_is_awaited(runtime: Runtime) -> None:
    await (await runtime.send("hi")).cancel()
    await runtime.send("hi").cancel()  # type: ignore[attr-defined]


async def an_answer_is_made_by_the_functions_for_it(runtime: Runtime) -> None:
    await runtime.answer("question_1", allow_once())
    await runtime.answer("question_1", True)  # type: ignore[arg-type]


def what_is_allowed_for_long_is_a_rule() -> None:
    allow_for_conversation(Rule("files.read", "*", "allow"))
    allow_for_conversation("files.read")  # type: ignore[arg-type]


def a_synchronous_runtime_is_not_awaited() -> None:
    with SyncRuntime("chat.db") as runtime:
        print(runtime.send("hi").result().text)
        print(runtime.send("hi").result().txt)  # type: ignore[attr-defined]


async def an_event_has_the_fields_of_its_type(runtime: Runtime) -> None:
    async for event in (await runtime.send("hi")).events():
        if event.type == "text.delta":
            print(event.text)
            print(event.question)  # type: ignore[attr-defined]


# ── what a runtime is made of ─────────────────────────────────────────────────────────────────────


def an_agent_has_rules_and_no_texts() -> None:
    Agent(name="clerk", rules=(Rule("notes.write", "*", "allow"),))
    Agent(name="clerk", rules=("notes.write",))  # type: ignore[arg-type]


def a_limit_is_misspelled() -> None:
    Limits(max_rounds=3)
    Limits(rounds=3)  # type: ignore[call-arg]


def an_address_has_a_model() -> None:
    OpenAICompatible("http://localhost:8000/v1", model="qwen3")
    OpenAICompatible("http://localhost:8000/v1")  # type: ignore[call-arg]


def a_script_is_made_of_replies() -> None:
    ScriptedModel([says("hi")])
    ScriptedModel([3])  # type: ignore[list-item]


class RightHooks(Plugin):
    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None: ...

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult | None: ...


class WrongHooks(Plugin):
    async def before_tool(self, call: str, turn: TurnView) -> None: ...  # type: ignore[override]

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> str:  # type: ignore[override]
        return result.text


async def an_expectation_is_of_a_result(runtime: Runtime) -> None:
    turn = await runtime.send("hi")
    expect(await turn.result()).answered("hi")
    expect(turn).answered("hi")  # type: ignore[arg-type]
