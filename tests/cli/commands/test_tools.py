"""Check `dragoman tools`: what each tool can access, and how the rules decide about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow


def test_tools_are_listed_with_what_the_rules_say(stage: Path, cli: Cli) -> None:
    config = stage / "dragoman.toml"
    config.write_text('deny = ["notes.write:secret*"]\n' + config.read_text())
    listed = json.loads(cli("tools", "--json").out)
    tools = {tool["name"]: tool for group in listed["groups"] for tool in group["tools"]}
    assert (tools["add"]["rules"], tools["note"]["rules"]) == ("allow", "ask")
    assert tools["add"]["by"].endswith("dragoman.toml:5")
    assert tools["note"]["exceptions"] == [f"denied for 'secret*' ({config}:1)"]
    assert tools["calculator"]["by"] == "allow basics.*, built in"
    text = cli("tools").out
    assert "notes.write" in text
    assert "asked" in text
