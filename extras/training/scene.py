"""The inputs of a conversation's values, and a value in words and in JSON."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias, TypeVar

Language: TypeAlias = Literal["en", "de", "zh"]
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Value:
    """A value in words, and in JSON."""

    spoken: str
    written: Any


@dataclass(slots=True)
class Scene:
    """The inputs of the values of one conversation."""

    chance: random.Random
    language: Language
    today: date
    knows_today: bool

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.chance.random() * len(options))]

    def maybe(self, part: float) -> bool:
        return self.chance.random() < part
