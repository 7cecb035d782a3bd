"""What tokens cost, by the optional `genai-prices`. None is unknown, 0 is what runs on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from dragoman.messages.usage import Usage
from dragoman.providers.media import unit_cost
from dragoman.providers.tables import UnitPrices


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
