"""Check shell completion, the example of every command, and the function that each command calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from dragoman.cli.flags.command import Flags
from dragoman.cli.main import app, command_with
from tests.cli.program import clean_environment
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_the_shell_completes_conversations_and_models(stage: Path) -> None:
    installed = Path(sys.executable).with_name("dragoman")
    subprocess.run(
        [installed, "run", "hello"], cwd=stage, env=clean_environment(stage), check=True, timeout=PATIENCE
    )
    for typed, offered in {"dragoman show conv_": "conv_", "dragoman chat --model stag": "stage/"}.items():
        shell = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        environment = {**clean_environment(stage), **shell, "_DRAGOMAN_COMPLETE": "complete_bash"}
        done = subprocess.run(
            [installed],
            cwd=stage,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.stdout.startswith(offered)


def test_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    names = "run chat serve acp tools doctor list show search export import rm decode parse explain demo"
    more = (
        ("questions",),
        ("answer",),
        ("models", "list"),
        ("models", "get"),
        ("config", "show"),
        ("config", "check"),
        ("people", "add"),
        ("mcp", "serve"),
    )
    stores = (("store", "copy"), ("store", "migrate"))
    for command in (*((one,) for one in names.split()), *more, *stores):
        with pytest.raises(SystemExit, match=r"^0$"):
            command_with(command[0]).main([*command, "--help"], prog_name="dragoman")
        assert f"Example: dragoman {' '.join(command)}" in " ".join(capsys.readouterr().out.split())


def _commands(flags: type[Flags] = Flags) -> Iterator[type[Flags]]:
    for one in flags.__subclasses__():
        if "work" in vars(one):
            yield one
        yield from _commands(one)


def test_every_command_names_a_function_that_takes_its_parameters() -> None:
    """A string names the function, and no type checker follows it."""
    commands = {*_commands()}
    groups = [group.typer_instance for group in app.registered_groups]
    assert len(commands) == sum(len(group.registered_commands) for group in groups if group is not None)
    for flags in commands:
        module, _, function = flags.work.partition(":")
        hints = get_type_hints(getattr(import_module(f"dragoman.cli.{module}"), function))
        returned = hints.pop("return")
        assert list(hints.values()) == [flags], flags.work
        assert returned in (int, type(None)), flags.work
