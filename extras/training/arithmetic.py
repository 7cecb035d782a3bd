"""Calculations for the calculator: in words, typed, or as a small story; with the correct expression."""

from __future__ import annotations

import math
import re
from typing import Any

from training.material.sums import SAID, TYPED
from training.scene import Scene
from training.values import make_value

LARGEST_POWER = 20
_NAMES = {
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "pi": math.pi,
    "e": math.e,
}


def calculation(scene: Scene) -> tuple[str, str, str]:
    """A request, its expression, and the result."""
    for _ in range(20):
        request, expression = _typed(scene) if scene.maybe(0.35) else _said(scene)
        result = _result(expression)
        if result:
            return request, expression, result
    return "2 + 2", "2 + 2", "4"


def _said(scene: Scene) -> tuple[str, str]:
    pattern, expression = scene.pick(SAID[scene.language])
    kinds = {
        "a": scene.pick(
            [
                "int 2 999",
                "int 2 99",
                "int 1000 90000",
                "float 1 900",
                "int 100000 5000000",
                "float 0.001 90000",
            ]
        ),
        "b": scene.pick(["int 2 999", "int 2 99", "float 1 90"]),
        "c": "int 2 500",
        "d": "float 1.1 90",
        "d2": "float 1.1 20",
        "p": scene.pick(["int 1 99", "float 0.5 40"]),
        "n": "int 2 40",
        "k": "int 2 12",
        "k1": "int 1 3",
        "n2": "int 30 99",
    }
    values = {name: make_value(scene, kind) for name, kind in kinds.items()}
    request = pattern.format(**{name: value.spoken for name, value in values.items()})
    return request, expression.format(**{name: f"{value.written}" for name, value in values.items()})


def _typed(scene: Scene) -> tuple[str, str]:
    chance = scene.chance
    spaced = scene.maybe(0.6)

    def number() -> str:
        return str(
            chance.choice(
                [
                    chance.randint(1, 20),
                    chance.randint(2, 999),
                    round(chance.uniform(0.1, 99), 2),
                    chance.randint(1000, 99999),
                ]
            )
        )

    def operator() -> str:
        sign = chance.choice(["+", "-", "*", "/", "*", "+", "-", "**", "//", "%"])
        return f" {sign} " if spaced else sign

    def term(depth: int) -> str:
        if depth and chance.random() < 0.35:
            return f"({term(0)}{operator()}{term(0)})"
        if depth and chance.random() < 0.08:
            return f"{chance.choice(['sqrt', 'abs', 'round'])}({number()})"
        return number()

    pieces = [term(1)]
    for _ in range(chance.choice([1, 1, 2, 2, 3, 4])):
        pieces += [operator(), term(1)]
    expression = "".join(pieces)
    shown = expression
    if scene.maybe(0.15):
        shown = shown.replace("**", "^")
    if scene.maybe(0.12):
        shown = (
            shown.replace("//", "/ /").replace("/", "÷").replace("÷ ÷", "//") if "//" not in shown else shown
        )
        shown = shown.replace("*", "×") if "**" not in shown else shown
    return str(scene.pick(TYPED[scene.language])).format(shown), expression


def _result(expression: str) -> str:
    """Return the result, or nothing if it is too large to say or takes too long to compute."""
    powers = re.findall(r"\*\*\s*\(?\s*([\d.]*)", expression)
    if len(powers) > 1 or any(not power or float(power) > LARGEST_POWER for power in powers):
        return ""
    names: dict[str, Any] = {**_NAMES, "round": round, "abs": abs, "min": min, "max": max}
    try:
        value = eval(expression, {"__builtins__": {}}, names)  # a text from this program
    except (ArithmeticError, ValueError, SyntaxError, TypeError):
        return ""
    if isinstance(value, complex) or abs(value) > 1e15:
        return ""
    return str(int(value)) if float(value).is_integer() else f"{value:.10g}"
