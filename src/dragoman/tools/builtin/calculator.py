"""`calculator`: evaluates arithmetic. Only what is in the tables below is understood."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.tool import tool

Number: TypeAlias = int | float

LONGEST = 500  # characters of an expression
LARGEST = 4096  # bits of a whole number: some 1,200 digits


def _power(base: Number, exponent: Number) -> object:
    """Looked at before it is worked out: a few digits can ask for more memory than there is."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and (int(base).bit_length() - 1) * exponent > LARGEST:
        raise OverflowError
    return base**exponent


def _rounded(number: Number, digits: Number | None = None) -> Number:
    if isinstance(digits, int) and abs(digits) > LARGEST:
        raise OverflowError  # to a billionth digit, it would think for ever
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
    """The value. ToolFailed says what the expression cannot contain, or why it has none."""
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ToolFailed(f"this is no expression: {error.msg}, at character {error.offset}") from error
    except ZeroDivisionError as error:
        raise ToolFailed("this divides by zero") from error
    except OverflowError as error:
        raise ToolFailed("a number on the way is too large") from error
    except (RecursionError, MemoryError) as error:
        raise ToolFailed("this is nested too deeply: work it out in parts") from error
    except (ValueError, TypeError) as error:  # the logarithm of nothing, a function with too few arguments
        raise ToolFailed(f"this cannot be worked out: {error}") from error


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
            raise ValueError("the result is not a real number")


def _unknown(node: ast.expr) -> str:
    match node:
        case ast.BinOp(op=ast.BitXor()):
            return "^ is not known here: a power is written **"
        case ast.Tuple():
            return "a comma is known only between the arguments of a function: write 1000, not 1,000"
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return f"the arguments of {name} have no names here"
        case ast.Call(func=ast.Name(id=name)):
            return f"there is no function {name}: there are {', '.join(FUNCTIONS)}"
        case ast.Name(id=name):
            return f"there is no {name}: there are only numbers, {', '.join(CONSTANTS)} and functions"
        case _:
            return f"{ast.unparse(node)} is not arithmetic"
