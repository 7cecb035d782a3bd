"""Chains of models and models by their address, against servers on the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    AnthropicCompatible,
    GeminiCompatible,
    OpenAICompatible,
    ProviderError,
    ResponsesCompatible,
    Runtime,
    run_sync,
)
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.events import Event, StepModel
from dragoman.providers.catalog import load_catalog
from dragoman.providers.chain import ModelChain
from dragoman.providers.compatible import NamedModel
from dragoman.providers.models import Models, models_named
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.auth.auth import NO_KEY
from dragoman.wire.endpoint import ENDPOINTS
from tests.loopback import Answer, Loopback, Script, Stream, loopback
from tests.patience import PATIENCE
from tests.runtimes import add
from tests.wire.endings.replies import ANSWERS, chat

DOWN = Answer(401, {"error": {"message": "no such key", "type": "authentication_error"}})
WIRES = {
    "openai_chat": OpenAICompatible,
    "openai_responses": ResponsesCompatible,
    "anthropic_messages": AnthropicCompatible,
    "gemini": GeminiCompatible,
}


@pytest.mark.parametrize("wire", WIRES)
async def test_any_address_answers_in_one_line(tmp_path: Path, wire: str) -> None:
    async with loopback(ANSWERS[wire]("Hello.")) as server:
        model = WIRES[wire](server.url, model="acme-1", key="sk-acme-0123456789")
        async with Runtime(tmp_path / "chat.db", model=model) as runtime:
            result = await (await runtime.send("Hi")).result()
    assert result.text == "Hello."
    protocol = "" if wire == "openai_chat" else f"-{wire.replace('_', '-')}"
    assert result.messages[-1].model == f"127-0-0-1-{server.port}{protocol}/acme-1"
    assert any("sk-acme-0123456789" in value for value in server.headers[0].values())
    assert "sk-acme" not in repr(model)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "gemini"])
def test_the_address_of_the_requests_is_as_good(wire: str) -> None:
    """R1: the documents of many servers show no other."""
    plain, whole = (
        WIRES[wire](f"http://gw/v1{path}", model="m", key="A") for path in ("", f"/{ENDPOINTS[wire].path}/")
    )
    reached = [one.provider.reached(one.base_url, NO_KEY).url("m") for one in (plain, whole)]
    assert reached == [f"http://gw/v1/{ENDPOINTS[wire].path}"] * 2
    assert whole.full_name == plain.full_name


def test_an_address_for_a_program_without_a_loop(tmp_path: Path) -> None:
    async def served() -> str:
        async with loopback(chat("Hello.")) as server:
            model = OpenAICompatible(server.url, model="x", name="acme", options={"temperature": 0.5})
            result = await asyncio.to_thread(run_sync, "Hi", model=model, store=tmp_path / "chat.db")
            assert server.bodies[0]["temperature"] == 0.5
            assert server.keys == [None]
            return f"{result.messages[-1].model}: {result.text}"

    assert asyncio.run(served()) == "acme/x: Hello."


@pytest.mark.parametrize("url", ["localhost:8000", "", "ftp://host", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not an address"):
        OpenAICompatible(url, model="x")


async def test_a_name_means_what_it_means_in_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's settings name a provider, and those of a project do once it is trusted (R1, P11)."""
    async with loopback(chat("Hello.")) as server:
        own = tmp_path / "config" / "dragoman"
        own.mkdir(parents=True)
        (own / "dragoman.toml").write_text(f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n')
        project = tmp_path / "project"
        project.mkdir()
        (project / "dragoman.toml").write_text(f'[providers.zeta]\nbase_url = "{server.url}"\nlocal = true\n')
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.chdir(project)
        async with Runtime(tmp_path / "chat.db", model="acme/x") as runtime:
            assert (await (await runtime.send("Hi")).result()).text == "Hello."
        async with Runtime(tmp_path / "chat.db", model="zeta/x") as runtime:
            with pytest.raises(BadRequest, match="zeta"):
                await runtime.send("Hi")
        monkeypatch.setenv("DRAGOMAN_TRUST", str(project))
        async with Runtime(tmp_path / "chat.db", model="zeta/x") as runtime:
            assert (await (await runtime.send("Hi")).result()).text == "Hello."


@asynccontextmanager
async def _chain(
    folder: Path, first: list[Script], second: list[Script], **more: Any
) -> AsyncIterator[tuple[Runtime, Loopback, Loopback]]:
    async with asyncio.timeout(PATIENCE), loopback(*first) as one, loopback(*second) as two:
        models = [
            OpenAICompatible(one.url, model="a", name="one", key="sk-one-0123456789"),
            OpenAICompatible(two.url, model="b", name="two", key="sk-two-0123456789"),
        ]
        async with Runtime(folder / "chat.db", model=models, allow=["*"], **more) as runtime:
            yield runtime, one, two


def _asked(events: list[Event]) -> list[tuple[str, bool]]:
    return [(event.model, bool(event.reason)) for event in events if isinstance(event, StepModel)]


async def _events(turn: TurnHandle) -> list[Event]:
    return [event async for event in turn.events()]


async def test_the_next_model_answers_where_one_cannot(tmp_path: Path) -> None:
    """Events report the fallback, the turn names the model that answered, and the failed one pauses."""
    async with _chain(tmp_path, [DOWN], [chat("Two.")]) as (runtime, one, two):
        turn = await runtime.send("Hi")
        events = await _events(turn)
        result = await turn.result()
        assert _asked(events) == [("one/a", False), ("two/b", True)]
        assert result.messages[-1].model == "two/b"
        assert "no such key" in next(e.reason for e in events if isinstance(e, StepModel) and e.reason)
        again = await runtime.send("Hi again")
        assert _asked(await _events(again)) == [("two/b", False)]
        assert (len(one.bodies), len(two.bodies)) == (1, 2)
        assert (two.bodies[0]["model"], two.keys[0]) == ("b", "Bearer sk-two-0123456789")


async def test_the_first_model_answers_where_it_can(tmp_path: Path) -> None:
    async with _chain(tmp_path, [chat("One.")], [chat("Two.")]) as (runtime, _, two):
        turn = await runtime.send("Hi")
        assert _asked(await _events(turn)) == [("one/a", False)]
        assert (await turn.result()).messages[-1].model == "one/a"
        assert not two.bodies


@pytest.mark.parametrize(
    "fault",
    [
        Answer(400, {"error": {"message": "messages: bad", "type": "invalid_request_error"}}),
        Answer(400, {"error": {"message": "flagged", "code": "content_filter"}}),
    ],
)
async def test_what_is_the_requests_own_fault_is_not_sent_on(tmp_path: Path, fault: Answer) -> None:
    """A text that a content filter stopped does not go to the next provider."""
    async with _chain(tmp_path, [fault], [chat("Two.")]) as (runtime, _, two):
        with pytest.raises(ProviderError):
            await (await runtime.send("Hi")).result()
        assert not two.bodies


async def test_nothing_is_asked_again_once_a_reply_has_begun(tmp_path: Path) -> None:
    """R6"""
    half = Stream(chat("Half").pieces[:2], then="dies")
    async with _chain(tmp_path, [half], [chat("Two.")]) as (runtime, _, two):
        with pytest.raises(ProviderError):
            await (await runtime.send("Hi")).result()
        assert not two.bodies


async def test_where_all_fail_every_error_is_told(tmp_path: Path) -> None:
    """The error is the last model's, and lists the errors of those before it (R5)."""
    async with _chain(tmp_path, [DOWN], [DOWN]) as (runtime, one, two):
        with pytest.raises(ProviderError, match=r"no such key.*Before it: one/a could not answer.*no such"):
            await (await runtime.send("Hi")).result()
        assert (len(one.bodies), len(two.bodies)) == (1, 1)


async def test_a_chain_goes_on_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """The second model receives the first one's calls as history (R5)."""
    first: list[Script] = [chat("", "tool_calls", call=True), DOWN]
    async with _chain(tmp_path, first, [chat("3")], tools=[add]) as (runtime, _, two):
        result = await (await runtime.send("Add.")).result()
        assert result.text == "3"
        assert [m.model for m in result.messages if m.role == "assistant"] == ["one/a", "two/b"]
        assert any(message["role"] == "tool" for message in two.messages())


async def test_options_are_checked_for_every_model_of_a_chain(tmp_path: Path) -> None:
    """R9"""
    async with _chain(tmp_path, [], []) as (runtime, one, _):
        with pytest.raises(BadRequest, match="temperature"):
            await runtime.send("Hi", options={"temperature": "hot"})
        assert not one.bodies


def _find(*models: NamedModel) -> ModelChain:
    found = models_named(models, load_catalog(), None)(None)
    assert isinstance(found, ModelChain)
    return found


def test_addresses_on_one_host_are_servers_of_their_own() -> None:
    """Addresses with another path or protocol have separate keys and model facts (R1)."""
    chain = _find(
        OpenAICompatible("http://gw/team-a/v1", model="big", key="A", context=128_000),
        OpenAICompatible("http://me:secret@gw/team-b/v1", model="big", key="B", context=8_000),
        AnthropicCompatible("http://gw/team-b", model="small", key="B", context=9_000),
    )
    assert [model.name for model in chain.models] == [
        "gw-team-a/big",
        "gw-team-b/big",
        "gw-team-b-anthropic-messages/small",
    ]
    assert [model.context for model in chain.models] == [128_000, 8_000, 9_000]


def test_two_models_of_one_server_are_a_chain() -> None:
    qwen, llama = (OpenAICompatible("http://gw/v1", model=name, key="A") for name in ("qwen", "llama"))
    assert _find(qwen, llama).name == "gw/qwen, gw/llama"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            OpenAICompatible("http://gw/v1", model="a", key="A"),
            OpenAICompatible("http://gw/v1", model="b", key="B"),
        ),
        (OpenAICompatible("http://gw/v1", model="a", key="A"), OpenAICompatible("http://gw/v1", model="b")),
        (OpenAICompatible("http://gw/v1", model="a"), OpenAICompatible("https://gw/v1", model="a")),
        (OpenAICompatible("http://gw/v1", model="a", context=8), OpenAICompatible("http://gw/v1", model="b")),
        (
            OpenAICompatible("http://gw/v1", model="a", name="x"),
            OpenAICompatible("http://other/v1", model="a", name="x"),
        ),
        (OpenAICompatible("http://gw/v1", model="a", name="openai"), "openai/gpt-5.4"),
    ],
)
def test_two_servers_with_one_name_are_refused(one: NamedModel, other: NamedModel) -> None:
    """R1: else the key of one would go to the other."""
    with pytest.raises(ConfigError, match="name="):
        _find(one, other)
    with pytest.raises(ConfigError, match="name="):
        _find(other, one)


async def test_a_model_without_a_key_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log and an event report it. The chain keeps its name, so that a turn started with it finds it."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with asyncio.timeout(PATIENCE), loopback(chat("Two."), chat("Again.")) as server:
        two = OpenAICompatible(server.url, model="b", name="two")
        async with Runtime(tmp_path / "chat.db", model=["anthropic/claude-sonnet-5", two]) as runtime:
            turn = await runtime.send("Hi")
            events = await _events(turn)
            assert (await turn.result()).text == "Two."
            assert _asked(events) == [("two/b", True)]
            reason = next(event.reason for event in events if isinstance(event, StepModel))
            assert "anthropic/claude-sonnet-5 is left out: No key" in reason
            assert (await turn.turn()).options.started_with == "anthropic/claude-sonnet-5, two/b"
            assert "ANTHROPIC_API_KEY" in caplog.text
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
            chain = runtime.services.model(None)
            assert isinstance(chain, ModelChain)
            assert [model.name for model in chain.models] == ["anthropic/claude-sonnet-5", "two/b"]


def test_a_chain_of_which_no_model_has_a_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown provider in a chain is an error too, at any position."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=r"ANTHROPIC_API_KEY.*OPENAI_API_KEY"):
        _find("anthropic/claude-sonnet-5", "openai/gpt-5.4")
    with pytest.raises(NotFound):
        _find("ollama/qwen3", "nobody/x")


async def test_a_variant_that_rests_leaves_the_others_of_its_model_alone(tmp_path: Path) -> None:
    """Two variants of one model are two models of a chain."""
    table = tmp_path / "catalog.toml"
    async with asyncio.timeout(PATIENCE), loopback(DOWN, chat("Low."), chat("Low again.")) as server:
        table.write_text(
            f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n'
            "[providers.acme.models.x.variants]\nhigh = { temperature = 1.0 }\nlow = { temperature = 0.1 }\n"
        )
        async with (
            Models("acme/x#high, acme/x#low", catalog=load_catalog(table)) as models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
        ):
            await (await runtime.send("Hi")).result()
            await (await runtime.send("Hi again")).result()
        assert [body["temperature"] for body in server.bodies] == [1.0, 0.1, 0.1]
