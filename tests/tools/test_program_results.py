"""G1: what the model reads at the end of a program that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import tool
from dragoman.messages.message import CallState
from dragoman.tools.program import programs_group
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, play
from tests.tools.bench import Bench

ANY = "from typing import Any\nf: Any = add\n"  # The type checker does not see through it.
MOST = 1_000_000


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize(
    ("code", "ended", "told"),
    [
        ("await add(a=1, b=2)", True, "3"),
        ("print('a')\nawait add(a=1, b=2)", True, "a\n3"),
        ("'a'", True, "a"),
        ("print('a')", True, "a\n"),
        ("None", True, "The program printed nothing, and its last expression is None."),
        ("float('nan')", True, "nan"),
        (f"{ANY}x = f(a=1, b=2)\n1", True, "Not awaited, so not called: add\n1"),
        (f"'x' * {MOST}", True, "x" * 100),
        (f"'x' * {MOST + 3}", True, "x\n[3 more characters were returned.]"),
        (f"print('x' * {MOST - 1})", True, "x" * 100 + "\n"),
        (f"print('x' * {MOST})\nprint('yy')", True, "x\n[4 more characters were printed.]\n"),
        (f"{ANY}await f(1, 2)", False, "~~\nTypeError: add() takes keyword arguments only"),
        (f"{ANY}await f(a={{1}}, b=2)", False, "Object of type set is not JSON serializable"),
        (f"{ANY}await f(a=float('nan'), b=2)", False, "Out of range float values are not JSON compliant"),
        (f"{ANY}await f(a='x' * {MOST}, b=2)", False, f"add(): the arguments exceed {MOST} characters"),
        ("1 / 0", False, "ZeroDivisionError: division by zero"),
        ("await add(a=1, b=2)\n1 / 0", False, "\nThe program made 1 call until then. They are not undone."),
        (
            "for n in range(2):\n    await add(a=n, b=2)\n1 / 0",
            False,
            "made 2 calls until then. They are not undone.",
        ),
        ("await add(a=1, b='2')", False, 'is incorrect: Expected `int`, found `Literal["2"]`'),
        ("await add(1, 2)", False, "Too many positional arguments to function `add`: expected 0, got 2"),
    ],
)
async def test_a_program_ends_with_what_it_found(tmp_path: Path, code: str, ended: bool, told: str) -> None:
    script = [calls("run_program", code=code), says("done")]
    call = calls_of((await play(tmp_path, script, tools=[add, "programs"])).messages)[0]
    assert call.result is not None
    assert call.result.text.removesuffix(": nan").endswith(told)  # a newer Python names the number
    assert call.state is (CallState.COMPLETED if ended else CallState.FAILED)


async def test_a_program_needs_a_turn() -> None:
    (run,) = programs_group().tools
    outcome = await Bench().run(run, {"code": "1"})
    assert outcome.result.text == "Programs cannot run here: the call belongs to no turn."
