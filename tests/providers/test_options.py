"""Options of the catalog, variants, and the way of an option from a send to a body (R1, R9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import Catalog, load_catalog, split_variant
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.scripted import says
from tests.loopback import Loopback, loopback

ACME = """
[providers.acme]
base_url = "{url}"
{provider}

[providers.acme.defaults.options]
temperature = 0.1
reasoning = {{ effort = "low", summary = "auto" }}

[providers.acme.models."big*"]
context = 32_000

[providers.acme.models."big*".options]
top_p = 0.5
reasoning = {{ effort = "high" }}

[providers.acme.models."big*".variants.fast]
temperature = 0.9
max_tokens = 100

[providers.acme.models."big*".variants."deep-1.5"]
reasoning = {{ effort = "max" }}
"""


def catalog_at(folder: Path, url: str, provider: str = "") -> Catalog:
    file = folder / "dragoman.toml"
    file.write_text(ACME.format(url=url, provider=provider))
    return load_catalog(file)


def models_at(folder: Path, url: str, default: str = "acme/big-1", provider: str = "") -> Models:
    catalog = catalog_at(folder, url, provider)
    return Models(default, catalog=catalog, keys=Keys(environment={}, use_keyring=False))


def options_in(server: Loopback, request: int = -1) -> dict[str, Any]:
    """Return the fields of a body that not every body has."""
    return {
        name: value
        for name, value in server.bodies[request].items()
        if name not in ("model", "messages", "stream", "stream_options", "tools", "tool_choice")
    }


# ── the catalog's own ─────────────────────────────────────────────────────────────────────────────


async def test_r1_options_of_provider_and_model_are_layers(tmp_path: Path) -> None:
    """R1: object by object, not one instead of the other."""
    async with (
        loopback(says("yes")) as server,
        models_at(tmp_path, server.url) as models,
        Runtime(tmp_path / "chat.db", model=models) as runtime,
    ):
        await (await runtime.send("Hello?")).result()
    assert options_in(server) == {
        "temperature": 0.1,
        "top_p": 0.5,
        "reasoning": {"effort": "high", "summary": "auto"},
    }


async def test_r1_none_removes_an_option_of_the_catalog_from_every_layer(tmp_path: Path) -> None:
    """R1: of agent, conversation and send, and inside an object."""
    agent = Agent(name="calm", options={"temperature": None})
    async with (
        loopback(says("yes")) as server,
        models_at(tmp_path, server.url) as models,
        Runtime(tmp_path / "chat.db", model=models, agents=[agent]) as runtime,
    ):
        chat = await runtime.conversation(agent="calm", options={"reasoning": {"summary": None}})
        await (await chat.send("Hello?", options={"top_p": None})).result()
        await (await chat.send("Hello?", options={"temperature": 0.7})).result()
    assert options_in(server, 0) == {"reasoning": {"effort": "high"}}
    assert options_in(server, 1) == {"temperature": 0.7, "top_p": 0.5, "reasoning": {"effort": "high"}}


def test_r1_a_persons_file_adds_to_what_is_known_of_a_model(tmp_path: Path) -> None:
    """A variant of a built-in model keeps the model's known facts (R1, W2)."""
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[providers.anthropic.models."claude-sonnet-4-6".variants.fast]\nreasoning_effort = "low"\n'
    )
    catalog = load_catalog(file)
    traits = catalog.traits(*catalog.find("anthropic/claude-sonnet-4-6"))
    assert (traits.context, traits.variants) == (1_000_000, {"fast": {"reasoning_effort": "low"}})
    assert catalog.traits(*catalog.find("anthropic/claude-opus-5")).variants == {}


# ── variants ──────────────────────────────────────────────────────────────────────────────────────


async def test_r9_a_variant_is_chosen_with_the_models_name(tmp_path: Path) -> None:
    """R9, R1: over the agent's options, under those of the conversation and the send."""
    agent = Agent(name="calm", options={"temperature": 0.2, "seed": 7}, model="acme/big-1#fast")
    async with (
        loopback(says("yes")) as server,
        models_at(tmp_path, server.url) as models,
        Runtime(tmp_path / "chat.db", model=models, agents=[agent]) as runtime,
    ):
        chat = await runtime.conversation(agent="calm")
        result = await (await chat.send("Hello?")).result()
        await (await chat.send("Hello?", options={"max_tokens": 7})).result()
    assert server.bodies[0]["model"] == "big-1"
    assert result.messages[-1].model == "acme/big-1"  # so that its reasoning is valid for every variant
    first = {"temperature": 0.9, "seed": 7, "max_completion_tokens": 100, "top_p": 0.5}
    assert options_in(server, 0) == first | {"reasoning": {"effort": "high", "summary": "auto"}}
    assert options_in(server, 1)["max_completion_tokens"] == 7


async def test_r9_a_variant_holds_without_a_turn_too(tmp_path: Path) -> None:
    async with loopback(says("yes")) as server, models_at(tmp_path, server.url) as models:
        request = Request("acme/big-1", (RequestMessage("user", (Text("Hello?"),)),))
        async for _ in models("acme/big-1#deep-1.5").stream(request, "msg_1"):
            pass
    assert options_in(server)["reasoning"] == {"effort": "max", "summary": "auto"}


def test_r9_a_variant_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    models = models_at(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(NotFound, match=r"Unknown variant 'acme/big-1#slow'\. Choose one of fast, deep-1\.5"):
        models("acme/big-1#slow")
    with pytest.raises(NotFound, match=r"Unknown variant 'acme/small#fast'\. The model has none"):
        models("acme/small#fast")


NAMES = {
    "ollama/qwen3:8b": ("ollama/qwen3:8b", None),
    "ollama/qwen3:8b#fast": ("ollama/qwen3:8b", "fast"),
    "openrouter/a/b:free#x-1.5": ("openrouter/a/b:free", "x-1.5"),
    "local//models/a#b.gguf": ("local//models/a#b.gguf", None),
    "local//c#/qwen.gguf": ("local//c#/qwen.gguf", None),
    "acme/m#": ("acme/m#", None),
}


@pytest.mark.parametrize(("name", "parts"), NAMES.items())
def test_r9_no_name_of_a_real_model_is_taken_for_a_variant(name: str, parts: tuple[str, str | None]) -> None:
    assert split_variant(name) == parts


# ── options that a wire has no word for ───────────────────────────────────────────────────────────


async def test_r9_an_unknown_server_takes_every_option_as_it_is(tmp_path: Path) -> None:
    async with (
        loopback(says("yes")) as server,
        models_at(tmp_path, server.url, "acme/m") as models,
        Runtime(tmp_path / "chat.db", model=models) as runtime,
    ):
        await (await runtime.send("Hello?", options={"min_p": 0.1, "top_k": 3})).result()
    assert options_in(server)["min_p"] == 0.1
    assert options_in(server)["top_k"] == 3


async def test_r9_a_provider_that_lists_its_options_takes_no_others(tmp_path: Path) -> None:
    """The error suggests the nearest name, before anything is stored or sent (R9)."""
    listed = 'extra = ["reasoning", "top_k"]'
    async with (
        loopback(says("yes")) as server,
        models_at(tmp_path, server.url, "acme/m", listed) as models,
        Runtime(tmp_path / "chat.db", model=models) as runtime,
    ):
        await (await runtime.send("Hello?", options={"top_k": 3})).result()
        with pytest.raises(BadRequest, match=r"acme/m has no option 'topk'\. Did you mean top_k"):
            await runtime.send("Hello?", options={"topk": 3})
        with pytest.raises(BadRequest, match="Did you mean temperature"):
            models().check_options({"temprature": 1})
        models().check_options({"top_k": 3, "temperature": None})
    assert len(server.bodies) == 1


def test_r9_options_of_the_catalog_that_cannot_be_followed_are_an_error_of_configuration(
    tmp_path: Path,
) -> None:
    models = models_at(tmp_path, "http://127.0.0.1:9/v1", provider="extra = false")
    with pytest.raises(ConfigError, match="has no valid entry for acme/m: acme/m has no option 'reasoning'"):
        models("acme/m")


def test_r9_every_built_in_provider_says_what_it_takes() -> None:
    for provider in load_catalog().providers.values():
        served_here = provider.local or provider.name == "local"
        assert (provider.extra is True) is served_here, provider.name
