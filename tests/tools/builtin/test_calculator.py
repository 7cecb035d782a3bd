"""Check `calculator`: arithmetic gives the result of Python, all else is refused, and nothing takes long."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState
from dragoman.tools.builtin.basics import FUNCTIONS, calculator, evaluate
from tests.tools.bench import run, text_of

NAMES: dict[str, Any] = {"pi": math.pi, "e": math.e, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos}
NAMES |= {"log": math.log, "exp": math.exp, "round": round, "abs": abs, "min": min, "max": max}

NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(0, 1e6, allow_nan=False).map(repr),
    st.sampled_from(["pi", "e"]),
)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner),
        st.builds("{} ** {}".format, inner.map("({})".format), st.integers(-3, 3)),
        st.builds("{}{}".format, st.sampled_from("+-"), inner),
        st.builds(
            "{}({})".format, st.sampled_from(["sqrt", "sin", "cos", "log", "exp", "round", "abs"]), inner
        ),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
    ),
    max_leaves=8,
).filter(lambda text: len(text) <= 500)


@given(EXPRESSIONS)
@example("0.9999 ** -5000")
def test_it_says_what_python_says(expression: str) -> None:
    try:
        expected = eval(expression, {"__builtins__": {}}, NAMES)
        known = not isinstance(expected, complex) and (isinstance(expected, int) or math.isfinite(expected))
    except (ArithmeticError, ValueError):
        known = False
    try:
        value = evaluate(expression)
    except ToolFailed:
        assert not known or "too large" in str(_failure(expression))
    else:
        assert known
        assert (value, type(value)) == (expected, type(expected))


def _failure(expression: str) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        evaluate(expression)
    return raised.value


@given(st.text(max_size=40))
def test_whatever_is_written_is_a_number_or_an_explanation(expression: str) -> None:
    try:
        value = evaluate(expression)
    except ToolFailed:
        return
    assert isinstance(value, int | float)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 * (3 + 4) ** 2", "98"),
        ("2 ** 200", str(2**200)),
        ("123456789 * 987654321", "121932631112635269"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7 / 2", "3.5"),
        ("round(sqrt(2) * pi, 4)", "4.4429"),
        ("log(8, 2)", "3.0"),
        (" 1 +\t1 ", "2"),
        ("1 ** 999999999999", "1"),
    ],
)
async def test_numbers(expression: str, value: str) -> None:
    assert await text_of(calculator, expression=expression) == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("2 ^ 3", "a power is written **"),
        ("1,000 + 1", "write 1000, not 1,000"),
        ("1 +", "Invalid expression"),
        ("1 / 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("0 ** -5000", "divides by zero"),
        ("log(0)", "Cannot calculate this"),
        ("(-8) ** 0.5", "not a real number"),
        ("9 ** 9 ** 9", "too large"),
        ("9.0 ** 9999", "too large"),
        ("1e999", "too large"),
        ("2 ** 4000 * 2 ** 4000", "too large"),
        ("round(5, -9999999999)", "too large"),
        ("exp(1000)", "too large"),
        ("(" * 230 + "1" + ")" * 230, "Invalid expression"),
        ("factorial(9)", "unknown function factorial; use one of sqrt"),
        ("x + 1", "unknown name x"),
        ("min(3)", "Cannot calculate this"),
        ("round(1.5, ndigits=1)", "no names"),
        ("__import__('os')", "unknown function __import__"),
        ("(1).__class__", "is not arithmetic"),
        ("[1, 2][0]", "is not arithmetic"),
        ("'a' * 9", "is not arithmetic"),
        ("True + 1", "True is not arithmetic"),
        ("1j", "is not arithmetic"),
        ("1 if 1 else 2", "is not arithmetic"),
        ("1 << 999", "is not arithmetic"),
        ("(x := 1)", "is not arithmetic"),
        ("sqrt(*[1])", "is not arithmetic"),
    ],
)
async def test_what_is_not_arithmetic_is_explained(expression: str, says: str) -> None:
    outcome = await run(calculator, expression=expression)
    assert outcome.state is CallState.FAILED
    assert says in outcome.result.text


@pytest.mark.parametrize("expression", ["-" * 499 + "1", "1" + "+1" * 249, "9" * 500, "2**-" * 120 + "1"])
async def test_what_is_deep_or_long_is_over_at_once(expression: str) -> None:
    outcome = await run(calculator, expression=expression)
    assert "took longer" not in outcome.result.text


def test_a_deeper_expression_than_the_tool_takes_is_explained() -> None:
    with pytest.raises(ToolFailed, match="too many levels"):
        evaluate("-" * 100_000 + "1")


async def test_a_long_expression_does_not_fit() -> None:
    assert "at most 500" in await text_of(calculator, expression="1+" * 300 + "1")


def test_its_description_names_every_function() -> None:
    assert all(name in calculator.description for name in FUNCTIONS)
