"""Check `dragoman models`: available models, their prices, and which are ready to use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.providers.lessons import FILE, Lessons
from dragoman.stored_keys import data_folder
from dragoman.wire.scripted import says
from tests.cli.program import invoke
from tests.loopback import loopback

SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def nobody_elses_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_TRUST", str(tmp_path))
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)


def providers(*options: str) -> dict[str, Any]:
    printed = invoke("models", "--json", *options)
    assert SECRET not in printed.output
    return {one["name"]: one for one in json.loads(printed.stdout)["providers"]}


def test_each_model_has_its_context_what_it_takes_and_its_price() -> None:
    listed = {one["name"]: one for one in providers()["openai"]["models"]}
    assert listed["openai/gpt-4o*"] == {
        "name": "openai/gpt-4o*",
        "type": "chat",
        "context": 128_000,
        "modalities": ["text", "image", "file"],
        "tools": "native",
        "reasoning": "apart",
        "price": {"input": 2.5, "output": 10.0},
        "unit_prices": {},
    }


def test_whether_a_key_is_there_is_told_and_never_the_key() -> None:
    printed = providers()
    assert printed["groq"]["key"] == {"variables": ["GROQ_API_KEY"], "needed": True, "found": "environment"}
    assert printed["openai"]["key"]["found"] is None
    assert printed["ollama"]["key"]["needed"] is False


def test_providers_of_ones_own_are_listed_from_the_file_here_or_the_one_that_is_named(tmp_path: Path) -> None:
    own = '[providers.{}]\nbase_url = "https://llm.example/v1"\nmodels = {{ m = {{ context = 5 }} }}\n'
    (tmp_path / "dragoman.toml").write_text(own.format("mine"))
    (tmp_path / "other.toml").write_text(own.format("yours"))
    assert providers()["mine"]["models"][0]["context"] == 5
    assert "mine" not in providers("--config", str(tmp_path / "other.toml"))


def test_people_get_a_list_that_can_be_copied_from(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[providers.odd]\ntitle = "[/] odd"\nbase_url = "http://x"\n')
    printed = invoke("models")
    assert printed.exit_code == 0
    assert SECRET not in printed.output
    assert "groq  Groq: key found in the environment (GROQ_API_KEY)" in printed.output
    assert "openai  OpenAI: no key: set OPENAI_API_KEY" in printed.output
    assert "odd  [/] odd: needs no key" in printed.output
    assert "openai/gpt-4o*" not in printed.output
    assert "openai/gpt-4o*" in invoke("models", "--all").output
    assert "openai/gpt-4o*" in invoke("models", "openai").output


def test_what_runs_here_comes_before_what_has_a_key_and_that_before_the_rest() -> None:
    printed = invoke("models").output
    assert printed.index("local/smollm2") < printed.index("groq  Groq") < printed.index("openai  OpenAI")


# ── beside what the providers say ─────────────────────────────────────────────────────────────────


def checked(*options: str) -> dict[str, Any]:
    printed = invoke("models", "--check", "--json", *options)
    assert printed.exit_code == 0, printed.output
    assert SECRET not in printed.output
    return {one["name"]: one for one in json.loads(printed.stdout)["providers"]}


def own(folder: Path, name: str, url: str) -> None:
    """The person's own settings, in which a known provider is at another address."""
    (folder / "dragoman.toml").write_text(f'[providers.{name}]\nbase_url = "{url}"\nkeys = "GROQ_API_KEY"\n')


async def test_what_is_known_stands_beside_what_the_provider_lists(tmp_path: Path) -> None:
    async with loopback(says("hi"), models=["openai/gpt-oss-120b", "brand-new"]) as server:
        own(tmp_path, "groq", server.url)
        groq = (await asyncio.to_thread(checked, "groq"))["groq"]
    models = {one["name"]: one for one in groq["models"]}
    assert models["groq/openai/gpt-oss-120b"]["state"] == "listed"
    assert models["groq/openai/gpt-oss-120b"]["context"] == 131_072
    assert models["groq/brand-new"]["state"] == "new"
    assert models["groq/llama-3.3-70b-versatile"]["state"] == "not listed"
    assert models["groq/moonshotai/kimi-k2-instruct"]["retires"]
    assert groq["problem"] is None


def test_who_has_no_key_is_not_asked_and_what_is_known_is_shown() -> None:
    openai = checked("openai")["openai"]
    assert (openai["access"], openai["problem"]) == (None, None)
    assert {one["state"] for one in openai["models"]} == {None}
    assert len(openai["models"]) > 50


async def test_a_server_that_nobody_knows_is_asked_and_gets_no_key_of_others() -> None:
    async with loopback(says("hi"), models=["mine"]) as server:
        found = await asyncio.to_thread(checked, "groq", "--base-url", server.url)
        plain = await asyncio.to_thread(invoke, "models", "--base-url", server.url)
    assert [one["name"] for one in found["groq"]["models"]] == ["groq/mine"]
    assert server.listed_for == [None, None]
    assert "server/mine" in plain.output


def test_a_list_that_cannot_be_had_is_a_line_and_no_failure(tmp_path: Path) -> None:
    own(tmp_path, "groq", "http://127.0.0.1:9/v1")
    assert "no connection to 127.0.0.1:9" in checked("groq")["groq"]["problem"]
    printed = invoke("models", "--check", "groq")
    assert printed.exit_code == 0
    assert "retired" in printed.output


def test_a_server_that_is_not_there_is_an_error_where_it_alone_is_asked() -> None:
    printed = invoke("models", "--base-url", "http://127.0.0.1:9/v1")
    assert printed.exit_code != 0
    assert "no connection to 127.0.0.1:9" in f"{printed.output}{printed.exception}"


def test_a_provider_that_is_not_there_is_an_error() -> None:
    printed = invoke("models", "--check", "grok")
    assert printed.exit_code != 0
    assert "Unknown provider 'grok'" in f"{printed.output}{printed.exception}"


def test_the_list_can_be_of_some_providers() -> None:
    assert set(providers("groq", "openai")) == {"groq", "openai"}


# ── lessons ───────────────────────────────────────────────────────────────────────────────────────


def test_what_servers_refuse_is_shown_and_can_be_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The list shows when each is requested again (R9)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lessons = Lessons(data_folder() / FILE)
    for _ in range(2):
        lessons.note("acme/m", "acme.example", ["drop temperature"])
    lessons.note("other/m", "other.example", ["no_tools"])

    shown = invoke("models", "--learned").output
    assert "acme/m at acme.example does not take temperature" in shown
    assert "refused once" in shown
    (report,) = json.loads(invoke("models", "--learned", "--json", "acme").stdout)["lessons"]
    assert (report["lesson"], report["times"], report["counts"]) == ("drop temperature", 2, True)

    assert "1 forgotten" in invoke("models", "--forget", "acme").output
    assert [one.model for one in lessons.all()] == ["other/m"]
    invoke("models", "--forget")
    assert "No server" in invoke("models", "--learned").output
