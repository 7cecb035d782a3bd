"""Check `dragoman config`: settings with their origins, and whether they are valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.program import invoke

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
        "modle = 'x'\n": "modle: unknown setting. Did you mean mode or model?",
        "model = 'nowhere/x'\n": "Unknown provider 'nowhere'",
        "tools = ['hammer']\n": "unknown group 'hammer'",
        "model = \n": "is not valid TOML",
    }.items():
        (stage / "wrong.toml").write_text(wrong)
        checked = cli("config", "check", "--config", "wrong.toml", status=2)
        assert complaint in checked.err
        assert checked.err.count("\n") == 1


MISTAKES = """\
modle = "x"
tools = ["hammer", "basics", "saw"]
allow = [":x", "basics.*"]
mcp_file = "none.json"
[limits]
max_rounds = -1
max_calls = 3
[server]
prot = 1
[agents.clerk]
model = "nowhere/x"
deny = [":y"]
[agents.cook]
mode = "loud"
"""


def test_everything_that_is_wrong_with_the_settings_is_told_at_once(
    stage: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors in files and in the environment are listed together, each once, on a separate line, with its
    place (R1)."""
    (stage / "wrong.toml").write_text(MISTAKES)
    monkeypatch.setenv("DRAGOMAN_SERVER_PORT", "many")
    monkeypatch.setenv("DRAGOMAN_WORKSPACE", "nowhere")
    monkeypatch.setenv("DRAGOMAN_STROE", "x.db")
    lines = cli("config", "check", "--config", "wrong.toml", status=2).err.splitlines()
    expected = {
        "wrong.toml, line 1: modle: unknown setting",
        "wrong.toml:2: unknown group 'hammer'",
        "wrong.toml:2: unknown group 'saw'",
        "wrong.toml:3: allow: ':x' is not a rule",
        "none.json: No such file",
        "wrong.toml, line 6: limits.max_rounds: it should be greater than or equal to 0",
        "wrong.toml, line 9: server.prot: unknown setting. Did you mean port",
        "wrong.toml:10: agents.clerk: Unknown provider 'nowhere'",
        "wrong.toml:10: deny: ':y' is not a rule",
        "wrong.toml, line 14: agents.cook.mode: it should be 'auto'",
        "DRAGOMAN_SERVER_PORT: server.port: it should be a valid integer",
        "DRAGOMAN_STROE: unknown setting. Did you mean DRAGOMAN_STORE?",
        "nowhere' is not a folder",
    }
    for words in expected:
        assert [words in line for line in lines].count(True) == 1, (words, lines)
    assert len(lines) == len(expected)
    assert all(line.startswith("dragoman: ") for line in lines)


def test_a_file_that_cannot_be_read_does_not_hide_the_mistakes_of_the_other(stage: Path, cli: Cli) -> None:
    """R1: the person's own file is not valid TOML, the nearest one has a wrong name and a wrong group."""
    own = stage / "home" / "config" / "dragoman" / "dragoman.toml"
    own.parent.mkdir(parents=True)
    own.write_text("model = \n")
    (stage / "dragoman.toml").write_text('modle = "x"\ntools = ["hammer"]\n')
    first, second, third = cli("config", "check", status=2).err.splitlines()
    assert f"{own} is not valid TOML" in first
    assert "line 1: modle" in second
    assert "unknown group 'hammer'" in third


def test_options_are_checked_against_the_wire_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_TRUST", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    text = 'model = "openai/gpt-5.4"\n[options]\n{}\n[agents.a]\nprompt = "x"\noptions = {{ {} }}\n'
    (tmp_path / "dragoman.toml").write_text(text.format("temprature = 1", 'temperature = "hot"'))
    found = invoke("config", "check")
    assert found.exit_code == 2
    assert "temprature" in found.output
    assert "temperature" in found.output
    (tmp_path / "dragoman.toml").write_text(text.format("max_tokens = 100", "max_tokens = 5"))
    assert invoke("config", "check").exit_code == 0
