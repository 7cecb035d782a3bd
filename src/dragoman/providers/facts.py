"""What is known of models by their names: contexts, limits, prices and dates, from `facts.json`.

The file is made by `scripts/model_facts.py` (`make facts`) from lists that are on the package index. It is
read when the first model is looked up.
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


# What tokens cost, by the optional `genai-prices`. None is unknown, 0 is what runs on this machine.


@dataclass(slots=True, frozen=True)
class Price:
    """Dollars for a million tokens."""

    input: float
    output: float


async def cost_of(
    usage: Usage, provider: str | None, model: str, units: UnitPrices | None = None, *, free: bool = False
) -> float | None:
    """What the tokens cost. `provider` is its name in the price list; without one the price is unknown.
    `units` are the prices of what is paid for by other measures: where there are some, they count alone.
    `free`: it runs on this machine, and costs nothing."""
    if units and usage.cost is None:
        return unit_cost(usage, units)
    if free and usage.cost is None:
        return 0.0
    if usage.cost is not None or provider is None or not usage.total:
        return usage.cost
    if not library.cache_info().currsize:
        # a quarter of a second, once: not while others wait for their events
        await asyncio.to_thread(library)
    return _cost(usage, provider, model)


def price_of(provider: str | None, model: str) -> Price | None:
    """For a list: what a short request pays."""
    if provider is None:
        return None
    input, output = (_cost(usage, provider, model) for usage in (Usage(input=1000), Usage(output=1000)))
    return None if input is None or output is None else Price(input * 1000, output * 1000)


@cache
def library() -> Any:
    """The price list, or None where it is not installed."""
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
    except (LookupError, ValueError):  # it does not know the model, or cannot make sense of the numbers
        return None
