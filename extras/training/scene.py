"""What the values of a conversation depend on, and a value as it is said and written."""

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
    """As it is said, and as it is written."""

    spoken: str
    written: Any


@dataclass(slots=True)
class Scene:
    """What the values of one conversation depend on."""

    chance: random.Random
    language: Language
    today: date
    knows_today: bool

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.chance.random() * len(options))]

    def maybe(self, part: float) -> bool:
        return self.chance.random() < part
