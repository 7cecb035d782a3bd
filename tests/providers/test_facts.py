"""Model facts load lazily and fast, known errors stay fixed, and every default model exists."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.providers.catalog import Catalog, load_catalog
from dragoman.providers.facts import FILE, as_of, facts_of, known_models

# Defaults missing in the sources, each with the reason for keeping it.
UNLISTED: dict[str, str] = {}

# Models shut down before the facts were gathered. A source without their shutdown is not maintained.
KNOWN_TO_BE_DEAD = (
    "deepseek/deepseek-chat",
    "deepseek/deepseek-reasoner",
    "openai/gpt-4",
    "openai/gpt-3.5-turbo",
    "groq/moonshotai/kimi-k2-instruct",
    "fireworks/accounts/fireworks/models/gpt-oss-120b",
    "google/gemini-3.1-flash-lite-preview",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


# ── nothing dead is chosen ────────────────────────────────────────────────────────────────────────


def test_every_default_is_listed_and_alive(catalog: Catalog) -> None:
    for provider in catalog.providers.values():
        if provider.default is None:
            continue
        name = f"{provider.name}/{provider.default}"
        facts = facts_of(provider.facts, provider.default)
        if facts is None:
            assert name in UNLISTED, f"{name} is the default, and nobody lists it"
            continue
        assert name not in UNLISTED, f"{name} is listed by now"
        assert not facts.is_dead(as_of()), f"{name} is the default, and was retired on {facts.retires}"


def test_what_is_known_to_be_dead_is_dead(catalog: Catalog) -> None:
    for name in KNOWN_TO_BE_DEAD:
        provider, model = catalog.find(name)
        facts = facts_of(provider.facts, model)
        assert facts is not None, name
        assert facts.is_dead(as_of()), name
    assert facts_of(catalog.providers["xai"].facts, "grok-4-fast") is None  # gone without a date


def test_providers_whose_keys_people_have_for_other_reasons_are_never_chosen_by_a_key(
    catalog: Catalog,
) -> None:
    for name in ("github", "huggingface", "databricks", "bedrock", "vertex", "azure", "cloudflare"):
        assert catalog.providers[name].default is None


# ── what was wrong ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("qwen/qwen3.5-397b-a17b", 262_144),
        ("qwen/qwen3.6-27b", 262_144),
        ("qwen/qwen3-coder-30b-a3b-instruct", 262_144),
        ("mistral/devstral-small-2507", 128_000),
        ("mistral/mistral-small-2506", 128_000),
        ("openai/gpt-5.3-chat-latest", 128_000),
        ("google/gemini-3.1-flash-image-preview", 65_536),
        ("openrouter/anthropic/claude-opus-4.7", 1_000_000),
        ("azure/gpt-5.4", 1_050_000),
        ("xai/grok-4.20-0309-reasoning", 1_000_000),
        ("openai/gpt-5", 272_000),
    ],
)
def test_a_context_is_what_can_be_sent(name: str, context: int, catalog: Catalog) -> None:
    found = catalog.traits(*catalog.find(name)).context
    assert found is not None
    assert abs(found - context) / context < 0.15, found


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("anthropic/claude-sonnet-4-6-20260217", "anthropic/claude-sonnet-4-6"),
        ("openai/GPT-5.4-mini-2027-01-01", "openai/gpt-5.4-mini"),
        ("openrouter/openai/gpt-5.4:nitro", "openrouter/openai/gpt-5.4"),
        ("bedrock/ca.anthropic.claude-sonnet-4-6", "bedrock/anthropic.claude-sonnet-4-6"),
    ],
)
def test_a_date_a_region_and_the_like_make_no_other_model(name: str, listed: str, catalog: Catalog) -> None:
    provider, model = catalog.find(name)
    assert facts_of(provider.facts, model) == facts_of(provider.facts, catalog.find(listed)[1]) is not None


def test_another_model_of_the_same_beginning_is_not_taken_for_it(catalog: Catalog) -> None:
    assert facts_of(catalog.providers["openai"].facts, "gpt-5.4-mini-of-my-own") is None
    assert facts_of((), "gpt-5.4") is None
    assert facts_of(("nobody:x",), "gpt-5.4") is None


# ── who wins ──────────────────────────────────────────────────────────────────────────────────────


def test_what_a_person_says_wins_over_the_facts_and_they_over_the_built_in_guess(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[providers.openai.models]\n"gpt-5.4*" = { prompt = "Be brief." }\n"gpt-5.5" = { context = 7 }\n'
    )
    catalog = load_catalog(file)
    openai = catalog.providers["openai"]
    known = facts_of(openai.facts, "gpt-5.4-mini")
    assert known is not None
    mini = catalog.traits(openai, "gpt-5.4-mini")
    assert (mini.prompt, mini.context) == ("Be brief.", known.context)  # facts missing in the reply stay
    assert catalog.traits(openai, "gpt-5.5").context == 7
    assert catalog.traits(openai, "gpt-6-never-listed").context == 1_050_000  # a guess, by its pattern


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def test_the_file_is_small_sorted_and_read_in_no_time(catalog: Catalog) -> None:
    assert FILE.stat().st_size < 300_000
    began = time.process_time()
    facts_of(catalog.providers["openai"].facts, "gpt-5.4")
    assert time.process_time() - began < 0.5
    for provider in catalog.providers.values():
        names = known_models(provider.facts)
        assert names == sorted(names)
        assert bool(names) == bool(provider.facts), provider.name


@pytest.mark.slow
def test_importing_the_library_reads_no_facts() -> None:
    program = (
        "import dragoman, sys; from dragoman.providers import facts; print(facts._file.cache_info().currsize)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "0"
