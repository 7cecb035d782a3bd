"""A valid typed answer is a value, and an invalid one goes back to the model, within limits (R8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, field_validator
from typing_extensions import TypedDict

from dragoman import (
    Output,
    OutputInvalid,
    Plugin,
    Runtime,
    ScriptedModel,
    TurnView,
    allow_once,
    run_sync,
)
from dragoman.errors import BadRequest, ConfigError, StoreUnavailable
from dragoman.messages.events import TextDelta
from dragoman.messages.message import Message
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Change
from dragoman.turn.output import SchemaOutput, Unfit, spec_of_schema
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import add, model_of, runtime_with


class Invoice(BaseModel):
    number: str
    total: float

    @field_validator("total")
    @classmethod
    def _is_owed(cls, total: float) -> float:
        if total < 0:
            raise ValueError("a total is not below 0")
        return total


@dataclass
class Place:
    name: str
    people: int = 0


class City(TypedDict):
    name: str


GOOD = '{"number": "A-1", "total": 12.5}'


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (Invoice, GOOD, Invoice(number="A-1", total=12.5)),
        (Invoice, f"```json\n{GOOD}\n```", Invoice(number="A-1", total=12.5)),
        (Invoice, f"Here {{you}} are:\n\n{GOOD}\n\nAnything else?", Invoice(number="A-1", total=12.5)),
        (Place, '{"name": "Rome"}', Place("Rome")),
        (list[City], '{"value": [{"name": "Rome"}]}', [{"name": "Rome"}]),
        (list[City], '[{"name": "Rome"}, {"name": "Oslo"}]', [{"name": "Rome"}, {"name": "Oslo"}]),
        (int, '{"value": 3}', 3),
        (int, "3", 3),
        (bool, "true", True),
        (dict[str, int], '{"value": 3}', {"value": 3}),
        (int | None, '{"value": null}', None),
        (Place | Invoice, f'{{"value": {GOOD}}}', Invoice(number="A-1", total=12.5)),
        (str, GOOD, GOOD),
    ],
)
async def test_an_answer_is_a_value_of_its_type(tmp_path: Path, type: Any, text: str, value: Any) -> None:
    """A model class, dataclass, TypedDict, union or plain type parses, also with prose around the JSON
    (R8)."""
    async with runtime_with(tmp_path, [says(text)]) as runtime:
        turn = await runtime.send("go", output_type=type)
        assert (await turn.result()).output == value


async def test_what_does_not_fit_goes_back_to_the_model(tmp_path: Path) -> None:
    """R8"""
    script = [says("twelve"), says('{"number": "A-1", "total": -1}'), says(GOOD)]
    async with runtime_with(tmp_path, script) as runtime:
        turn = await runtime.send("go", output_type=Invoice)
        assert (await turn.result()).output.total == 12.5
        first, second, third = (str(request.messages[-1].parts) for request in model_of(runtime).requests)
        assert "JSON" not in first
        assert "no JSON value" in second
        assert "total: Value error, a total is not below 0, got -1" in third
        assert (await turn.result()).text == GOOD


async def test_a_model_that_never_fits_fails_the_turn(tmp_path: Path) -> None:
    """R8: within the limits, and told as what it is, here and after a restart."""
    async with runtime_with(tmp_path, lambda _: says("no")) as runtime:
        turn = await runtime.send("go", output_type=Output(Invoice, retries=1))
        with pytest.raises(OutputInvalid, match="in 2 attempts"):
            await turn.result()
        assert len(model_of(runtime).requests) == 2
    async with runtime_with(tmp_path, []) as runtime:
        with pytest.raises(OutputInvalid, match="in 2 attempts"):
            await runtime.turn(turn.id, Invoice).result()


async def test_checks_of_ones_own_send_the_model_back(tmp_path: Path) -> None:
    """R8"""

    def is_known(place: Place) -> None:
        if place.name != "Rome":
            raise ValueError(f"there is no {place.name}")

    async def is_large(place: Place) -> None:
        if place.people < 10:
            raise ValueError("too small")

    script = [says('{"name": "Roma"}'), says('{"name": "Rome"}'), says('{"name": "Rome", "people": 20}')]
    async with runtime_with(tmp_path, script) as runtime:
        turn = await runtime.send("go", output_type=Output(Place, checks=[is_known, is_large]))
        assert (await turn.result()).output == Place("Rome", 20)
        told = [str(request.messages[-1].parts) for request in model_of(runtime).requests]
        assert "there is no Roma" in told[1]
        assert "too small" in told[2]


async def test_tools_come_before_the_answer(tmp_path: Path) -> None:
    """A reply with calls is not an answer, whatever its text (R8, T7)."""
    script = [says("let me see") + calls("add", a=1, b=2), says('{"value": 3}')]
    async with runtime_with(tmp_path, script, tools=[add]) as runtime:
        turn = await runtime.send("go", output_type=int)
        assert (await turn.result()).output == 3


async def test_the_answer_at_the_round_limit_is_of_the_type(tmp_path: Path) -> None:
    """R8 and T7"""

    def script(request: Any) -> Line:
        return calls("add", a=1, b=2) if request.tools else says('{"value": 3}')

    async with runtime_with(tmp_path, script, tools=[add], max_rounds=2) as runtime:
        turn = await runtime.send("go", output_type=int)
        assert (await turn.result()).output == 3


async def test_a_refusal_is_not_asked_again(tmp_path: Path) -> None:
    """After a model's refusal Dragoman does not ask again, and the result reports no value (R8)."""
    async with runtime_with(tmp_path, [says("I cannot.", finish="refusal")]) as runtime:
        result = await (await runtime.send("go", output_type=Invoice)).result()
        with pytest.raises(OutputInvalid, match="refusal"):
            _ = result.output


async def test_a_continued_answer_is_read_as_one(tmp_path: Path) -> None:
    """Text that the length limit cut off is half a value, and not an invalid one (R8, T12)."""
    script = [says(GOOD[:10], finish="length"), says(GOOD[10:])]
    async with runtime_with(tmp_path, script) as runtime:
        assert (await (await runtime.send("go", output_type=Invoice)).result()).output.number == "A-1"


async def test_the_schema_is_kept_with_the_turn(tmp_path: Path) -> None:
    """A process that has only the stored schema still checks the answer, and a caller can pass the type again
    (R8, S1)."""
    script = [calls("add", a=1, b=2), says("three")]
    async with runtime_with(tmp_path, script, tools=[add], allow=[]) as runtime:
        turn = await runtime.send("go", output_type=Place)
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("three"), says('{"name": "Rome"}')], tools=[add]) as runtime:
        again = runtime.turn(turn.id, Place)
        await again.answer(question, allow_once())
        assert (await again.result()).output == Place("Rome")
        assert model_of(runtime).requests[0].output is not None


async def test_a_repeated_send_is_held_to_the_same_schema(tmp_path: Path) -> None:
    """R8 and T14"""
    async with runtime_with(tmp_path, [says("3"), says("x"), says("4")]) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("go", output_type=int)).result()
        again = await chat.rerun(result.messages[-1].id, output_type=int)
        assert (await again.result()).output == 4


async def test_partial_values_are_told_as_they_come(tmp_path: Path) -> None:
    """R8"""
    text = '{"value": [{"name": "Rome"}, {"name": "Oslo"}]}'
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([says(text)], piece=4)) as runtime:
        turn = await runtime.send("go", output_type=list[City])
        seen = [value async for value in turn.partial_outputs()]
    assert seen[-1] == [{"name": "Rome"}, {"name": "Oslo"}]
    assert [{"name": "Rome"}] in seen
    assert [len(value) for value in seen] == sorted(len(value) for value in seen)


class Node(BaseModel):
    name: str
    below: list[Node] = []


@pytest.mark.parametrize("text", ['{"name": "a", "below": [{"name": "b"}]}', '{"value": {"name": "a"}}'])
async def test_a_value_that_is_asked_for_in_an_object_grows_with_it_and_without(
    tmp_path: Path, text: str
) -> None:
    """A recursive type is requested under a field name that the model can omit (R8)."""
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([says(text)], piece=4)) as runtime:
        turn = await runtime.send("go", output_type=Node)
        seen = [value async for value in turn.partial_outputs()]
    assert seen[0] != seen[-1]
    assert seen[-1].name == "a"


async def test_partial_values_begin_anew_with_the_next_attempt(tmp_path: Path) -> None:
    """R8"""
    async with runtime_with(tmp_path, [says("[1, 2, -3]"), says("[4]")]) as runtime:

        def all_positive(values: list[int]) -> None:
            if min(values) < 0:
                raise ValueError("below 0")

        turn = await runtime.send("go", output_type=Output(list[int], checks=[all_positive]))
        assert [value async for value in turn.partial_outputs()] == [[1, 2], [1, 2, -3], [4]]
        with pytest.raises(BadRequest, match="output_type"):
            await anext(runtime.turn(turn.id).partial_outputs())


async def test_the_last_partial_value_may_be_none(tmp_path: Path) -> None:
    """R8"""
    wanted: Any = int | None
    async with runtime_with(tmp_path, [says('{"value": null}')]) as runtime:
        turn = await runtime.send("go", output_type=wanted)
        assert [value async for value in turn.partial_outputs()] == [None]


async def test_a_cancelled_turn_has_no_value(tmp_path: Path) -> None:
    """R8 and T9"""
    async with runtime_with(tmp_path, [says(GOOD * 50, waits=0.05)]) as runtime:
        turn = await runtime.send("go", output_type=Invoice)
        async for event in turn.events():
            if isinstance(event, TextDelta):
                await turn.cancel()
        result = await turn.result()
        with pytest.raises(OutputInvalid, match="cancelled"):
            _ = result.output


async def test_a_limit_comes_before_another_attempt(tmp_path: Path) -> None:
    """An invalid answer gets no repetition above the budget and gives no value (R8, T12)."""
    async with runtime_with(tmp_path, lambda _: says("{}"), max_tokens=1) as runtime:
        turn = await runtime.send("go", output_type=Place)
        result = await turn.result()
        assert len(model_of(runtime).requests) == 1
        with pytest.raises(OutputInvalid):
            _ = result.output


class Notes(Plugin):
    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        await append("for the record", deferred=True)


@pytest.mark.parametrize("plugins", [(), (Notes(),)])
async def test_what_a_check_refused_at_a_limit_is_no_value(tmp_path: Path, plugins: Sequence[Plugin]) -> None:
    """A refused answer would parse but gives no value, whatever a plugin adds later (R8, T12)."""

    def never(place: Place) -> bool:
        return False

    rome = [says('{"name": "Rome"}')]
    async with runtime_with(tmp_path, rome, max_tokens=1, plugins=plugins) as runtime:
        result = await (await runtime.send("go", output_type=Output(Place, checks=[never]))).result()
        with pytest.raises(OutputInvalid, match="not accepted"):
            _ = result.output


async def test_an_attempt_that_was_not_made_does_not_count(tmp_path: Path) -> None:
    """The process dies after asking the model to try again, and the hook runs again for the same reply (R8,
    S1)."""

    class Slow(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            if not turn.resumed:
                await asyncio.sleep(60)

    async with runtime_with(tmp_path, [says("no")], plugins=[Slow()]) as runtime:
        turn = await runtime.send("go", output_type=Output(Place, retries=1))
        async for event in turn.events():
            if event.type == "message.added" and event.message.author == "typed_output":
                break
    async with runtime_with(tmp_path, [says('{"name": "Rome"}')], plugins=[Slow()]) as runtime:
        assert (await runtime.turn(turn.id, Place).result()).output == Place("Rome")


class TakesSteering(SqliteStore):
    """Stores what a person said to a turn, and nothing after that."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gone = asyncio.Event()

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        if self.gone.is_set():
            refused = asyncio.get_running_loop().create_future()
            refused.set_exception(StoreUnavailable("the store", "it is gone"))
            return refused
        if any("steered" in fact for fact in change.facts):
            self.gone.set()
        return super().append(turn, epoch, seq, change, sync=sync)


async def test_what_is_said_after_an_answer_does_not_make_it_unfit(tmp_path: Path) -> None:
    """A user steers the turn at its end and the process dies. The hook runs again for the answer (R8, T13,
    S3)."""

    class Steers(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            await runtime.turn(turn.id).steer("in Norway")

    rome, store = [says('{"name": "Rome"}')], TakesSteering(tmp_path / "chat.db")
    async with runtime_with(tmp_path, rome, plugins=[Steers()], store=store) as runtime:
        turn = await runtime.send("go", output_type=Output(Place, retries=0))
        await store.gone.wait()
    async with runtime_with(tmp_path, [says('{"name": "Oslo"}')]) as runtime:
        assert (await runtime.turn(turn.id, Place).result()).output == Place("Oslo")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    pair: tuple[int, str]


def test_a_strict_type_takes_what_json_can_say() -> None:
    """R8"""
    value = Output(Strict).parse('{"day": "2026-11-15", "pair": [1, "a"]}')
    assert value == Strict(day=date(2026, 11, 15), pair=(1, "a"))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_a_number_that_json_cannot_say_does_not_fit(number: str) -> None:
    """R8: a client would get an answer that it cannot read."""
    schema = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    for output in (Output(Invoice), SchemaOutput(spec_of_schema(schema))):
        with pytest.raises(Unfit, match="JSON"):
            output.parse(f'Here: {{"number": "A-1", "total": {number}}}')


def test_a_long_answer_is_read_in_no_time() -> None:
    """The parser searches a long answer once, and not once for each brace (R8)."""
    rows = [{"name": f"Place {number}", "people": number} for number in range(5000)]
    text = json.dumps(rows, indent=2)
    output = Output(list[Place])
    assert len(output.parse(text)) == 5000
    for cut in range(0, len(text), len(text) // 20):
        output.parse_partial(text[:cut])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"value":' * 5_000, '{"a": ' + "[" * 900 + "]" * 900 + "}"])
@pytest.mark.parametrize(
    "output", [Output(int), Output(dict), SchemaOutput(spec_of_schema({"type": "array"}))]
)
def test_a_value_without_a_bottom_does_not_fit(text: str, output: Output[Any]) -> None:
    """A model that nests too deeply receives an error that its answer is invalid (R8, T6)."""
    output.parse_partial(text)
    with suppress(Unfit):
        output.parse(text)


@pytest.mark.parametrize("name", ["max_round", "sytem", "output"])
async def test_an_option_nobody_knows_is_refused(tmp_path: Path, name: str) -> None:
    """Every entry point of the library refuses an unknown option and suggests the nearest name, before it
    stores anything (R9)."""
    options: Any = {name: 3}
    async with runtime_with(tmp_path, []) as runtime:
        with pytest.raises(BadRequest, match=f"Unknown option '{name}'"):
            await runtime.send("go", **options)
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match=f"Unknown option '{name}'"):
            await chat.send("go", **options)
        assert not await chat.messages()


async def test_a_queued_turn_that_is_called_off_is_forgotten(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("1", waits=0.2), says("2")]) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("go")
        queued = await chat.send("go", queue=True, output_type=int, deps=object())
        await queued.cancel()
        await first.result()
        assert not runtime.services.inputs


def test_a_program_without_a_loop_gets_a_value(tmp_path: Path) -> None:
    """R8"""
    result = run_sync(
        "go", model=ScriptedModel([says("[1]")]), store=tmp_path / "x.db", output_type=list[int]
    )
    assert result.output == [1]


def test_a_type_that_cannot_be_described_is_refused() -> None:
    class Strange: ...

    class Silent:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> Any:
            raise LookupError

    with pytest.raises(ConfigError, match=r"pydantic cannot describe .*: Unable to generate .*"):
        Output(Strange)
    with pytest.raises(ConfigError, match=r"pydantic cannot describe .*: LookupError$"):
        Output(Silent)


@given(st.lists(st.integers() | st.text() | st.dictionaries(st.text(), st.booleans())))
def test_any_value_is_read_back_from_prose(values: list[Any]) -> None:
    """A JSON value in the answer is the result, whatever prose surrounds it (R8)."""
    output: Output[Any] = Output(list)
    text = json.dumps(values)
    for written in (text, f"```json\n{text}\n```", f"Sure:\n{text}\nDone.", json.dumps({"value": values})):
        assert output.parse(written) == values


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    """R8: a text is a value or Unfit, whole and in part."""
    output = SchemaOutput(spec_of_schema({"type": "object", "properties": {"a": {"type": "integer"}}}))
    output.parse_partial(text)
    with suppress(Unfit):
        assert isinstance(output.parse(text), dict)
