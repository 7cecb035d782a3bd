"""`dragoman models`: what there is, what it costs, and what is ready to use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app

SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def nobody_elses_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_TRUST", str(tmp_path))
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)


def providers(*options: str) -> dict[str, Any]:
    printed = CliRunner().invoke(app, ["models", "--json", *options])
    assert SECRET not in printed.output
    return {one["name"]: one for one in json.loads(printed.stdout)["providers"]}


def test_each_model_has_its_context_what_it_takes_and_its_price() -> None:
    listed = {one["name"]: one for one in providers()["openai"]["models"]}
    assert listed["openai/gpt-4o*"] == {
        "name": "openai/gpt-4o*",
        "context": 128_000,
        "modalities": ["text", "image", "file"],
        "tools": "native",
        "reasoning": "apart",
        "price": {"input": 2.5, "output": 10.0},
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
    printed = CliRunner().invoke(app, ["models"])
    assert printed.exit_code == 0
    assert SECRET not in printed.output
    assert "groq  Groq: key found in the environment (GROQ_API_KEY)" in printed.output
    assert "openai  OpenAI: no key: set OPENAI_API_KEY" in printed.output
    assert "openai/gpt-4o*" in printed.output
    assert "odd  [/] odd: needs no key" in printed.output
