"""What is shipped for running it for a team: the files fit the program."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.config.tables import ConfigTable

ROOT = Path(__file__).parent.parent


def test_the_settings_of_the_fleet_are_settings() -> None:
    """N2"""
    settings = tomllib.loads((ROOT / "deploy" / "dragoman.toml").read_text("utf-8"))
    TypeAdapter(ConfigTable).validate_python(settings)


def test_every_command_of_the_fleet_is_one_of_ours() -> None:
    """N2: with flags that it has."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    commands = [service["command"] for service in services.values() if "command" in service]
    assert [command[:2] for command in commands] == [["dragoman", "serve"], ["dragoman", "worker"]]
    for _, name, *words in commands:
        shown = CliRunner().invoke(app, [name, "--help"], terminal_width=200, color=False).output
        for flag in (word for word in words if word.startswith("--")):
            assert flag in shown
