"""What is known of models by their names: contexts, limits, prices and dates, from `facts.json`.

The file is made by `scripts/model_facts.py` (`make facts`) from lists that are on the package index. It is
read when the first model is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from dragoman.messages.media import Modality

FILE = Path(__file__).with_name("facts.json")
PAST = "past"  # retired on a day that nobody wrote down
_SHOWN: dict[str, Modality] = {"t": "text", "i": "image", "a": "audio", "v": "video", "f": "file"}

# What may stand behind the name of a model without making it another one: a date, a version, `latest`, and
# what is behind a colon or an @ (`:free`, `@default`). Bedrock's regions stand in front.
_DATE = r"\d{4}-?\d{2}-?\d{2}|\d{6}|\d{4}|\d{2}-\d{4}"
_SUFFIX = re.compile(rf"(?:[-@](?:{_DATE}|latest|default)|:[\w.-]+|-v\d+)$")
_REGION = re.compile(r"^(?:us|eu|apac|jp|au|ca|global|us-gov)\.(?=\w+\.)")


@dataclass(slots=True, frozen=True)
class ModelFacts:
    """What the sources say of one model. What none of them says is None."""

    context: int | None = None  # tokens it can be sent
    output: int | None = None  # tokens it can write
    modalities: tuple[Modality, ...] | None = None
    input_price: float | None = None  # dollars for a million tokens
    output_price: float | None = None
    released: str | None = None  # a day: 2026-03-05
    retires: str | None = None  # a day, or PAST

    def is_dead(self, on: str) -> bool:
        """Whether it is shut down on this day."""
        return self.retires is not None and (self.retires == PAST or self.retires <= on)


def facts_of(sources: Sequence[str], model: str) -> ModelFacts | None:
    """What is known of a model, by the `facts` of its provider in the catalog. None where nobody lists it."""
    if not sources:
        return None
    listed: dict[str, list[Any]] = _file()["models"].get("+".join(sources), {})
    name = next((name for name in _names(model) if name in listed), None)
    if name is None:
        return None
    context, output, shown, *rest = listed[name]  # the fields that are empty at the end are left out
    return ModelFacts(context, output, tuple(_SHOWN[one] for one in shown) if shown else None, *rest)


def known_models(sources: Sequence[str]) -> list[str]:
    """Every model of which something is known, in lower case."""
    return [*_file()["models"].get("+".join(sources), {})]


def as_of() -> str:
    """The day on which the facts were gathered."""
    return str(_file()["as_of"])


def _names(model: str) -> Iterator[str]:
    """The name, and the names under which the same model may be listed, the nearest first."""
    name = model.lower()
    yield name
    while (shorter := _SUFFIX.sub("", name)) != name:
        yield shorter
        name = shorter
    if (bare := _REGION.sub("", model.lower())) != model.lower():
        yield from _names(bare)


@cache
def _file() -> dict[str, Any]:
    data: dict[str, Any] = from_json(FILE.read_bytes())
    return data
