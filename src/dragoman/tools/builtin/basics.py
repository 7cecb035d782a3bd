"""Provide small tools that need no folder: arithmetic, the time, to-dos, questions, and long results."""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.tools.tool import ToolContext, ToolOutput, tool

# `calculator`: evaluates arithmetic. It understands only what is in the tables below.


Number: TypeAlias = int | float

LONGEST = 500  # characters of an expression
LARGEST = 4096  # bits of an integer: about 1,200 digits


def _power(base: Number, exponent: Number) -> object:
    """Check the size before computing: a few digits can require more memory than the machine has."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and max(int(base).bit_length() - 1, 0) * exponent > LARGEST:
        raise OverflowError
    return base**exponent


def _rounded(number: Number, digits: Number | None = None) -> Number:
    if isinstance(digits, int) and abs(digits) > LARGEST:
        raise OverflowError  # Rounding to a billionth digit would take forever.
    return round(number, digits)  # type: ignore[arg-type]  # a fraction of a digit is a TypeError, and reported


OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "log": math.log,
    "exp": math.exp,
    "round": _rounded,
    "abs": abs,
    "min": min,
    "max": max,
}
CONSTANTS = {"pi": math.pi, "e": math.e}


@tool(
    permission="basics.calculator",
    writes="nothing",
    replay="safe",
    timeout=5,
    examples=[{"expression": "2 * (3 + 4) ** 2"}, {"expression": "round(sqrt(2) * pi, 4)"}],
)
def calculator(
    expression: Annotated[str, Field(min_length=1, max_length=LONGEST, description="such as `17 * (3 + 4)`")],
) -> str:
    """Work out an arithmetic expression.

    It knows + - * / // % ** and parentheses; sqrt, sin, cos, log, exp, round, abs, min and max; pi and e.
    Angles are in radians, log is the natural one unless it is given a base. Whole numbers are exact.
    """
    return str(evaluate(expression))


def evaluate(expression: str) -> Number:
    """Return the value.

    Raises ToolFailed if the expression has no value or contains something unsupported.
    """
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ToolFailed(f"Invalid expression: {error.msg}, at character {error.offset}.") from error
    except ZeroDivisionError as error:
        raise ToolFailed("The expression divides by zero.") from error
    except OverflowError as error:
        raise ToolFailed("An intermediate number is too large.") from error
    except (RecursionError, MemoryError) as error:
        raise ToolFailed("The expression has too many levels. Calculate it in parts.") from error
    except (ValueError, TypeError) as error:  # the logarithm of zero, a function with too few arguments
        raise ToolFailed(f"Cannot calculate this: {error}") from error


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
            return _bounded(SIGNS[type(sign)](_value(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _bounded(OPERATORS[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _bounded(FUNCTIONS[name](*(_value(argument) for argument in arguments)))
        case _:
            raise ToolFailed(_unknown(node))


def _bounded(number: object) -> Number:
    match number:
        case int() if number.bit_length() <= LARGEST:
            return number
        case float() if math.isfinite(number):
            return number
        case int() | float():
            raise OverflowError
        case _:
            raise ValueError("The result is not a real number.")


def _unknown(node: ast.expr) -> str:
    match node:
        case ast.BinOp(op=ast.BitXor()):
            return "^ is not known here: a power is written **"
        case ast.Tuple():
            return "a comma is known only between the arguments of a function: write 1000, not 1,000"
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return f"the arguments of {name} have no names here"
        case ast.Call(func=ast.Name(id=name)):
            return f"unknown function {name}; use one of {', '.join(FUNCTIONS)}"
        case ast.Name(id=name):
            return f"unknown name {name}; use numbers, {', '.join(CONSTANTS)} and functions"
        case _:
            return f"{ast.unparse(node)} is not arithmetic"


# `current_time`: date and time of day, here or in another time zone.


@tool(
    permission="basics.current_time",
    writes="nothing",
    replay="safe",
    repeats=True,
    timeout=5,
    examples=[{}, {"zone": "Europe/Vienna"}],
)
def current_time(
    zone: Annotated[
        str | None, Field(description="an IANA name, such as Europe/Vienna; left out: this machine's")
    ] = None,
) -> str:
    """Tell the date, the weekday and the time of day."""
    now = datetime.now(_zone(zone)) if zone else datetime.now().astimezone()
    return f"{now:%A}, {now.isoformat(' ', 'seconds')} ({zone or now.tzname()})"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:  # an unknown zone, an invalid name, a folder of zones
        near = get_close_matches(name, available_timezones(), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Use a name such as Europe/Vienna or UTC."
        raise ToolFailed(f"Unknown time zone {name!r}. {hint}") from error


# `todo`: a list of tasks. Each call passes the whole list, so that the conversation contains it.


MARKS = {"open": "[ ]", "doing": "[~]", "done": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    text: str = Field(min_length=1, max_length=500)
    state: Literal["open", "doing", "done"] = "open"


@tool(
    permission="basics.todo",
    writes="nothing",
    replay="safe",
    timeout=5,
    examples=[{"items": [{"text": "read the report", "state": "done"}, {"text": "sum it up"}]}],
)
def todo(
    items: Annotated[
        list[TodoItem], Field(max_length=100, description="all of them, also those already done")
    ],
) -> ToolOutput:
    """Keep a list of what is to be done in this conversation. Each call gives the whole list anew."""
    done = sum(item.state == "done" for item in items)
    lines = [f"{MARKS[item.state]} {item.text}" for item in items]
    return ToolOutput(
        "\n".join(lines) or "The list is empty.",
        title=f"{done} of {len(items)} done",
        metadata={"items": [item.model_dump() for item in items]},
    )


# `ask_person`: lets the model ask the user a question.


_SHOWN = 120  # characters of a question, and of its answer, in the line that shows both
Choice = Annotated[str, Field(min_length=1, max_length=200)]


@tool(
    permission="basics.ask_person",
    writes="nothing",
    replay="safe",
    cancellable=True,
    examples=[{"question": "Which colour shall it be?", "choices": ["red", "green"]}],
)
async def ask_person(
    question: Annotated[str, Field(min_length=1, max_length=2000)],
    context: ToolContext,
    choices: Annotated[
        list[Choice] | None,
        Field(max_length=10, description="answers to choose from; left out: they write what they like"),
    ] = None,
) -> ToolOutput:
    """Ask the person something that only they can decide, and wait for the answer."""
    said: JsonValue = await context.ask(question, choices or (), free=True)
    answer = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return ToolOutput(said, title=f"{_head(question)} → {_head(answer)}")


def _head(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# `read_output`: the rest of a result that was too long to show.


_PAGE = 400
_WIDTH = 4000


@tool(permission="output.read", writes="nothing", replay="safe", repeats=True)
async def read_output(
    call: str,
    context: ToolContext,
    start: Annotated[int, Field(ge=1, description="the first line wanted")] = 1,
    lines: Annotated[int, Field(ge=1, le=2000, description="how many lines")] = _PAGE,
) -> str:
    """Read a part of an earlier result that was shown only in part.

    Args:
        call: the id of the call, as the note in the shortened result gives it
    """
    whole = [
        line[at : at + _WIDTH]
        for line in (await context.read_output(call)).splitlines()
        for at in range(0, max(len(line), 1), _WIDTH)  # A very long line is read in chunks.
    ]
    if start > len(whole):
        raise ToolFailed(f"The output of {call} has {len(whole)} lines, so start cannot be {start}.")
    page = whole[start - 1 : start - 1 + lines]
    return f"lines {start} to {start - 1 + len(page)} of {len(whole)}\n" + "\n".join(page)
