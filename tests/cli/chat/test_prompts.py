"""Texts that MCP servers offer to people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.person import CTRL_D, Person
from tests.fork_server import python
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.servers import RAW

pytestmark = pytest.mark.slow


def test_a_servers_prompt_is_read_before_it_is_sent(stage: Path) -> None:
    """C9, P11: nothing of it goes to the model before the person has seen it."""
    server = f"""[mcp.it]
command = "{NODE}"
args = ["{script("server-everything", "dist/index.js")}"]
"""
    settings = stage / "dragoman.toml"
    settings.write_text(f"{settings.read_text('utf-8')}\n{server}", "utf-8")
    somebody = Person("chat", folder=stage)
    somebody.says("/prompt")
    somebody.sees("it args-prompt city=…")
    somebody.says("/prompt it nothere")
    somebody.sees("it says")
    somebody.says("/prompt it args-prompt city=Rome")
    somebody.sees("Edit it, and press Enter to send it")
    somebody.sees("What's weather in Rome?")
    somebody.types("")
    somebody.sees("You said: What's weather in Rome?")
    assert somebody.leaves() == 0


def test_a_servers_names_cannot_control_the_terminal(stage: Path) -> None:
    command, *words = python(RAW, "paints")
    settings = stage / "dragoman.toml"
    server = f"[mcp.it]\ncommand = {json.dumps(command)}\nargs = {json.dumps(words)}\n"
    settings.write_text(f"{settings.read_text('utf-8')}\n{server}", "utf-8")
    somebody = Person("chat", folder=stage)
    somebody.says("/prompt")
    somebody.sees("it painted [colour=…]")
    assert "owned" not in somebody.sees("› ")
    somebody.types("", CTRL_D)
    assert somebody.ended() == 0
