"""Compute the cost of tokens, as far as prices are known (T11)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dragoman.messages.usage import Usage
from dragoman.providers.catalog_tables import UnitPrices
from dragoman.providers.facts import Price, cost_of, library, price_of

USED = Usage(input=1000, output=100)


@pytest.fixture(autouse=True)
def a_fresh_library() -> None:
    library.cache_clear()


async def test_t11_known_tokens_of_a_known_model_have_a_cost() -> None:
    assert await cost_of(USED, "openai", "gpt-4o") == pytest.approx(1000 * 2.5e-6 + 100 * 10e-6)


async def test_t11_cached_tokens_are_cheaper_and_counted_among_the_input() -> None:
    cached = await cost_of(Usage(input=1000, output=100, cached=900), "openai", "gpt-4o")
    assert cached == pytest.approx(100 * 2.5e-6 + 900 * 1.25e-6 + 100 * 10e-6)


@pytest.mark.parametrize(
    ("usage", "provider", "model"),
    [
        (USED, "openai", "never-received-of-it"),
        (USED, "never-received-of-them", "gpt-4o"),
        (USED, None, "gpt-4o"),
        (Usage(), "openai", "gpt-4o"),
        (Usage(input=1, cached=5), "openai", "gpt-4o"),
    ],
    ids=["model", "provider", "no provider", "no tokens", "numbers that cannot be"],
)
async def test_t11_what_is_unknown_is_not_free(usage: Usage, provider: str | None, model: str) -> None:
    assert await cost_of(usage, provider, model) is None


async def test_tokens_of_a_model_of_ones_own_cost_what_the_settings_say() -> None:
    """T11: without a price for cached tokens, they cost as much as others."""
    used = Usage(input=1_000_000, output=500_000, cached=400_000)
    assert await cost_of(used, None, "big", {"million_input": 2.0, "million_output": 4.0}) == 4.0
    prices: UnitPrices = {"million_input": 2.0, "million_cached": 0.5, "million_output": 4.0}
    assert await cost_of(used, None, "big", prices) == pytest.approx(1.2 + 0.2 + 2.0)
    assert await cost_of(used, None, "big", {"million_input": 2.0}) is None


async def test_a_cost_the_provider_tells_itself_stands() -> None:
    counted = Usage(input=1000, output=100, cost=0.5)
    assert await cost_of(counted, "openai", "gpt-4o") == 0.5


async def test_without_the_price_list_every_price_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert await cost_of(USED, "openai", "gpt-4o") is None
    assert price_of("openai", "gpt-4o") is None
    library.cache_clear()


def test_a_list_shows_the_price_of_a_million_tokens() -> None:
    assert price_of("openai", "gpt-4o") == Price(2.5, 10.0)
    assert price_of(None, "gpt-4o") is None


@pytest.mark.slow
def test_importing_the_providers_imports_neither_prices_nor_the_http_client_nor_a_keyring() -> None:
    script = (
        "import sys, dragoman.providers.models, dragoman.providers.listing;"
        "sys.exit(any(name in sys.modules for name in ('genai_prices', 'aiohttp', 'keyring', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
