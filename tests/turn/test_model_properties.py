"""A turn ends within its limits, whatever a model replies (T7, T12, C10)."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dragoman import Runtime, ScriptedModel, tool
from dragoman.dialects.dialect import NAMES
from dragoman.messages.questions import nobody_to_ask
from dragoman.messages.usage import Usage
from dragoman.providers.catalog import Traits
from dragoman.providers.served import ServedModel
from dragoman.wire.scripted import Line, calls, calls_with, says, thinks
from tests.dialects.calls import replies
from tests.patience import PATIENCE
from tests.runtimes import add, with_tables
from tests.sweeps import examples, some

MANY = 400  # more requests than any limit allows, so a turn that gets here never ends


hopeless: SearchStrategy[Line] = st.one_of(
    st.sampled_from(["nosuch", "no such", "", "ad", "add2"]).map(calls),
    st.sampled_from(['{"a": 1', "", "null", "[]", '"x"', '{"a": 1, "b": 2}{"a": 1}']).map(
        lambda text: calls_with("add", text)
    ),
    st.builds(calls, st.just("add"), a=st.sampled_from(["x", None, [], 1.5]), b=st.integers(0, 3)),
    st.builds(calls, st.just("add"), a=st.integers(0, 2), b=st.integers(0, 2)),
    st.just(calls("denied")),
    st.just(Line()),
    st.just(thinks("hm")),
    st.just(says("and so on", finish="length")),
    st.just(calls_with("add", '{"a": 1, "b"') + says("", finish="length")),
)
lines = st.lists(hopeless, min_size=1, max_size=3).map(lambda parts: sum(parts[1:], parts[0]))


@tool
def denied() -> str:
    """Nobody may."""
    return "ran"


async def requests_of(model: ScriptedModel, served: ServedModel | None = None, **limits: float) -> int:
    """How many requests one turn made."""
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(
            with_tables(Path(folder) / "chat.db"),
            model=served or model,
            tools=[add, denied],
            allow=["add"],
            **limits,  # type: ignore[arg-type]  # numbers all
        ) as runtime:
            turn = await runtime.send("go")
            async with asyncio.timeout(PATIENCE):
                async for event in turn.events():
                    if event.type == "call.asked":
                        await turn.answer(event.question, nobody_to_ask())
            assert (await turn.result()).state == "completed"
    return len(model.requests)


def endless(script: list[Line]) -> ScriptedModel:
    """Its script again and again."""
    return ScriptedModel([script[place % len(script)] for place in range(MANY)])


def most_requests(rounds: int) -> int:
    """The rounds, the batch over the limit, the closing request, and three times the rest of a cut reply."""
    return rounds + 2 + 3


SOME = settings(max_examples=examples(12))


@pytest.mark.slow
@SOME
@given(st.lists(lines, min_size=1, max_size=4), st.integers(0, 4))
def test_the_number_of_requests_never_passes_the_limit_of_rounds(script: list[Line], rounds: int) -> None:
    """T7: unknown tools, torn JSON, wrong types, refused calls, nothing at all."""
    made = asyncio.run(requests_of(endless(script), max_rounds=rounds))
    assert made <= most_requests(rounds)


@pytest.mark.slow
@SOME
@given(st.lists(lines.filter(lambda line: bool(line.calls)), min_size=1, max_size=4), st.integers(1, 6))
def test_budgets_count_every_reply_with_calls(script: list[Line], calls: int) -> None:
    """T12: calls that could not run are calls, and their tokens are tokens."""
    assert asyncio.run(requests_of(endless(script), max_rounds=300, max_calls=calls)) <= calls + 5
    assert asyncio.run(requests_of(endless(script), max_rounds=300, max_tokens=15 * calls)) <= calls + 5


@pytest.mark.slow
@pytest.mark.parametrize("name", some(NAMES, 3))
@settings(max_examples=examples(3))
@given(data=st.data())
def test_the_limit_holds_in_every_dialect(name: str, data: st.DataObject) -> None:
    """T7, D3: a malformed call is a call."""
    script = data.draw(st.lists(replies(name).map(says), min_size=1, max_size=4))
    model = endless(script)

    async def free(_: Usage) -> float | None:
        return None

    served = ServedModel(model, Traits(tools=name), price=free)
    assert asyncio.run(requests_of(model, served, max_rounds=3)) <= most_requests(3)


async def test_a_model_that_repeats_a_hopeless_call_is_told_twice_and_then_asked_for_its_answer() -> None:
    """C10: also the loop guard's count begins with what could not run."""
    for line in (calls("nosuch"), calls_with("add", '{"a": 1'), calls("add", a="x")):
        assert await requests_of(endless([line]), max_rounds=100) == 4
