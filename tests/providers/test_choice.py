"""Choose a model if none is named: the order, and the reported reason."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.catalog import load_catalog
from dragoman.providers.choice import ModelChoice, choose
from dragoman.providers.listing import LocalServer
from dragoman.providers.sign_in import Keys

CATALOG = load_catalog()
OLLAMA = LocalServer("ollama", "http://127.0.0.1:11434/v1", ("qwen3:8b", "llama3"))
EMPTY = LocalServer("vllm", "http://127.0.0.1:8000/v1", ())


async def chosen(
    named: str | None = None, *servers: LocalServer, boxed: bool = True, **environment: str
) -> ModelChoice:
    async def running() -> tuple[LocalServer, ...]:
        return servers

    keys = Keys(environment=environment, use_keyring=False)
    return await choose(named, catalog=CATALOG, keys=keys, servers=running, boxed=lambda: boxed)


async def test_what_is_named_wins_over_everything() -> None:
    choice = await chosen("groq/x", OLLAMA, OPENAI_API_KEY="k")
    assert choice == ModelChoice("groq/x", "you named it")


async def test_a_server_that_runs_comes_before_a_key() -> None:
    choice = await chosen(None, EMPTY, OLLAMA, OPENAI_API_KEY="k")
    assert choice == ModelChoice("ollama/qwen3:8b", "Ollama runs at http://127.0.0.1:11434/v1")


async def test_a_key_comes_before_the_box_and_says_its_name() -> None:
    choice = await chosen(None, EMPTY, ANTHROPIC_API_KEY="k", GROQ_API_KEY="k")
    assert choice.name.startswith("anthropic/")
    assert choice.reason == "ANTHROPIC_API_KEY is set"


async def test_the_model_in_the_box_is_the_last_resort() -> None:
    assert (await chosen()).name == "local/smollm2"


async def test_where_there_is_nothing_it_is_said_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"dragoman keys set.*Ollama.*dragoman models get"):
        await chosen(boxed=False)


def test_w2_every_default_is_a_model_the_catalog_knows() -> None:
    defaults = {name: one.default for name, one in CATALOG.providers.items() if one.default}
    assert len(defaults) > 10
    for name, model in defaults.items():
        provider, _ = CATALOG.find(f"{name}/{model}")
        known = CATALOG.traits(provider, model).context
        assert known, f"{name}/{model}: nothing is known of it"
