"""`dragoman config`: settings with their origins, and whether they can be followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow


def test_every_setting_is_shown_with_its_origin(
    stage: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_LIMITS_MAX_CALLS", "7")
    shown = cli("config", "show")
    assert f'model = "stage/model"\t# {stage / "dragoman.toml"}:1' in shown.out
    assert "limits.max_calls = 7\t# DRAGOMAN_LIMITS_MAX_CALLS" in shown.out
    assert "\x1b" not in shown.out
    as_json = json.loads(cli("config", "show", "--json").out)
    assert as_json["store"] == {"value": "chat.db", "origin": f"{stage / 'dragoman.toml'}:2"}
    paths = cli("config", "path").out
    assert f"store     {stage / 'chat.db'}" in paths
    schema = json.loads(cli("config", "schema").out)
    assert "model" in schema["properties"]


def test_secrets_of_servers_are_not_shown(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "dragoman.toml").write_text('[mcp.x]\ncommand = "x"\nenv = {TOKEN = "hush-hush"}\n')
    shown = cli("config", "show").out
    assert "TOKEN" in shown
    assert "hush" not in shown


def test_settings_are_checked(stage: Path, cli: Cli) -> None:
    assert cli("config", "check").out.startswith("fine: ")
    for wrong, complaint in {
        "modle = 'x'\n": "modle: there is no such setting: did you mean mode or model?",
        "model = 'nowhere/x'\n": "there is no provider 'nowhere'",
        "tools = ['hammer']\n": "there is no group 'hammer'",
        "model = \n": "is no TOML",
    }.items():
        (stage / "wrong.toml").write_text(wrong)
        checked = cli("config", "check", "--config", "wrong.toml", status=2)
        assert complaint in checked.err
        assert checked.err.count("\n") == 1
