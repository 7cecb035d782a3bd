"""Settings, tools, people and the doctor, by command."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.server.auth import key_hash
from tests.cli.conftest import Told
from tests.cli.program import surroundings

pytestmark = pytest.mark.slow


def test_every_setting_is_shown_with_its_origin(
    stage: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_LIMITS_MAX_CALLS", "7")
    shown = told("config", "show")
    assert f'model = "stage/model"\t# {stage / "dragoman.toml"}:1' in shown.out
    assert "limits.max_calls = 7\t# DRAGOMAN_LIMITS_MAX_CALLS" in shown.out
    assert "\x1b" not in shown.out
    as_json = json.loads(told("config", "show", "--json").out)
    assert as_json["store"] == {"value": "chat.db", "origin": f"{stage / 'dragoman.toml'}:2"}
    paths = told("config", "path").out
    assert f"store     {stage / 'chat.db'}" in paths
    schema = json.loads(told("config", "schema").out)
    assert "model" in schema["properties"]


def test_secrets_of_servers_are_not_shown(tmp_path: Path, told: Told) -> None:
    (tmp_path / "dragoman.toml").write_text('[mcp.x]\ncommand = "x"\nenv = {TOKEN = "hush-hush"}\n')
    shown = told("config", "show").out
    assert "TOKEN" in shown
    assert "hush" not in shown


def test_settings_are_checked(stage: Path, told: Told) -> None:
    assert told("config", "check").out.startswith("fine: ")
    for wrong, complaint in {
        "modle = 'x'\n": "modle: there is no such setting: did you mean mode or model?",
        "model = 'nowhere/x'\n": "there is no provider 'nowhere'",
        "tools = ['hammer']\n": "there is no group 'hammer'",
        "model = \n": "is no TOML",
    }.items():
        (stage / "wrong.toml").write_text(wrong)
        checked = told("config", "check", "--config", "wrong.toml", status=2)
        assert complaint in checked.err
        assert checked.err.count("\n") == 1


def test_tools_are_listed_with_what_the_rules_say(stage: Path, told: Told) -> None:
    config = stage / "dragoman.toml"
    config.write_text('deny = ["notes.write:secret*"]\n' + config.read_text())
    listed = json.loads(told("tools", "--json").out)
    tools = {tool["name"]: tool for group in listed["groups"] for tool in group["tools"]}
    assert (tools["add"]["rules"], tools["note"]["rules"]) == ("allow", "ask")
    assert tools["add"]["by"].endswith("dragoman.toml:5")
    assert tools["note"]["exceptions"] == [f"denied for 'secret*' ({config}:1)"]
    assert tools["calculator"]["by"] == "allow basics.*, built in"
    text = told("tools").out
    assert "notes.write" in text
    assert "asked" in text


def test_people_get_keys_that_are_kept_as_hashes(stage: Path, told: Told) -> None:
    added = told("people", "add", "anna")
    key = added.out.strip()
    assert key not in added.err
    with sqlite3.connect(stage / "chat.db") as db:
        dump = "\n".join(db.iterdump())
    db.close()
    assert key not in dump
    assert key_hash(key) in dump
    assert told("people", "list").out.startswith("anna\t")
    assert "already" in told("people", "add", "anna", status=1).err
    assert "needs no key" in told("people", "add", "local", status=1).err
    told("people", "remove", "anna")
    assert told("people", "list", "--json").out == "[]\n"
    assert "there is no person 'anna'" in told("people", "remove", "anna", status=1).err


def test_the_doctor_names_what_is_missing_and_what_mends_it(stage: Path, told: Told) -> None:
    assert "✓ model      stage/model" in told("doctor").out
    config = stage / "dragoman.toml"
    config.write_text(
        config.read_text().replace("127.0.0.1:", "127.0.0.1:1") + '\n[mcp.x]\ncommand = "no-such-program"\n'
    )
    ill = told("doctor", "--json", status=1)
    findings = {one["name"]: one for one in json.loads(ill.out)["findings"]}
    assert findings["model"]["state"] == "missing"
    assert "does not answer" in findings["model"]["said"]
    assert findings["mcp x"]["mend"] == "install no-such-program, or: dragoman mcp remove x"
    config.write_text("model = 5\n")
    assert "✗ settings" in told("doctor", status=1).out


def test_the_shell_completes_conversations_and_models(stage: Path) -> None:
    installed = Path(sys.executable).with_name("dragoman")
    subprocess.run([installed, "run", "hello"], cwd=stage, env=surroundings(stage), check=True, timeout=30)
    for typed, offered in {"dragoman show conv_": "conv_", "dragoman chat --model stag": "stage/"}.items():
        shell = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        environment = {**surroundings(stage), **shell, "_DRAGOMAN_COMPLETE": "complete_bash"}
        done = subprocess.run(
            [installed], cwd=stage, env=environment, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.stdout.startswith(offered)


def test_every_command_has_an_example() -> None:
    commands = ("chat", "serve", "tools", "doctor", "list", "show", "search", "export", "import", "rm")
    more = (("questions",), ("answer",), ("config", "show"), ("config", "check"), ("people", "add"))
    for command in (*((one,) for one in commands), *more):
        ended = CliRunner().invoke(app, [*command, "--help"])
        assert ended.exit_code == 0
        assert f"Example: dragoman {' '.join(command)}" in " ".join(ended.output.split())
