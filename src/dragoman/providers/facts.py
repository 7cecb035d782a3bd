"""Look up facts about models by their names: contexts, limits, prices and dates, from `facts.json`.

`scripts/model_facts.py` (`make facts`) makes the file from lists on the package index. It is read when the
first model is looked up.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from dragoman.messages.media import Modality
from dragoman.messages.usage import Usage
from dragoman.providers.catalog_tables import UnitPrices
from dragoman.providers.media_checks import unit_cost

FILE = Path(__file__).with_name("facts.json")
PAST = "past"  # retired on an unknown day
_SHOWN: dict[str, Modality] = {"t": "text", "i": "image", "a": "audio", "v": "video", "f": "file"}

# Suffixes of a model's name that do not make it another model: a date, a version, `latest`, and anything
# after a colon or an @ (`:free`, `@default`). Bedrock's regions are prefixes.
_DATE = r"\d{4}-?\d{2}-?\d{2}|\d{6}|\d{4}|\d{2}-\d{4}"
_SUFFIX = re.compile(rf"(?:[-@](?:{_DATE}|latest|default)|:[\w.-]+|-v\d+)$")
_REGION = re.compile(r"^(?:us|eu|apac|jp|au|ca|global|us-gov)\.(?=\w+\.)")


@dataclass(slots=True, frozen=True)
class ModelFacts:
    """The sources' values for one model. Unlisted ones are None."""

    context: int | None = None  # maximum tokens of its input
    output: int | None = None  # maximum tokens of its output
    modalities: tuple[Modality, ...] | None = None
    input_price: float | None = None  # dollars per million tokens
    output_price: float | None = None
    released: str | None = None  # a day: 2026-03-05
    retires: str | None = None  # a day, or PAST

    def is_dead(self, on: str) -> bool:
        """Return whether it is shut down on this day."""
        return self.retires is not None and (self.retires == PAST or self.retires <= on)


def facts_of(sources: Sequence[str], model: str) -> ModelFacts | None:
    """Return what is known of a model, by the `facts` of its provider in the catalog.

    None if it is unlisted.
    """
    if not sources:
        return None
    listed: dict[str, list[Any]] = _file()["models"].get("+".join(sources), {})
    name = next((name for name in _names(model) if name in listed), None)
    if name is None:
        return None
    context, output, shown, *rest = listed[name]  # Empty fields at the end are omitted.
    return ModelFacts(context, output, tuple(_SHOWN[one] for one in shown) if shown else None, *rest)


def known_models(sources: Sequence[str]) -> list[str]:
    """Return every listed model, in lower case."""
    return [*_file()["models"].get("+".join(sources), {})]


def as_of() -> str:
    """Return the day on which the facts were gathered."""
    return str(_file()["as_of"])


def _names(model: str) -> Iterator[str]:
    """Yield the name, and other names under which the model may be listed, the nearest first."""
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


# Compute what tokens cost, with the optional `genai-prices`. None is unknown, 0 is for models on this
# machine.


@dataclass(slots=True, frozen=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float


async def cost_of(
    usage: Usage, provider: str | None, model: str, units: UnitPrices | None = None, *, free: bool = False
) -> float | None:
    """Return what the tokens cost. `provider` is its name in the price list. Without one, the price is
    unknown.

    `units` are prices by other measures: if there are any, only they apply. `free`: it runs on this
    machine, and costs nothing.
    """
    if units and usage.cost is None:
        return unit_cost(usage, units)
    if free and usage.cost is None:
        return 0.0
    if usage.cost is not None or provider is None or not usage.total:
        return usage.cost
    if not library.cache_info().currsize:
        # This takes 0.25 s, once, so it must not block other tasks.
        await asyncio.to_thread(library)
    return _cost(usage, provider, model)


def price_of(provider: str | None, model: str) -> Price | None:
    """Return the price of a short request, for a list."""
    if provider is None:
        return None
    input, output = (_cost(usage, provider, model) for usage in (Usage(input=1000), Usage(output=1000)))
    return None if input is None or output is None else Price(input * 1000, output * 1000)


@cache
def library() -> Any:
    """Return the price list, or None if it is not installed."""
    try:
        return import_module("genai_prices")
    except ImportError:
        return None


def _cost(usage: Usage, provider: str, model: str) -> float | None:
    prices = library()
    if prices is None:
        return None
    tokens = prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
    )
    try:
        return float(prices.calc_price(tokens, model, provider_id=provider).total_price)
    except (LookupError, ValueError):  # an unknown model, or implausible numbers
        return None
