"""The formatters and linters that settings name."""

from __future__ import annotations

from pathlib import Path

from dragoman.config.settings import Settings, user_file
from dragoman.config.tables import FormatterTable
from dragoman.errors import ConfigError
from dragoman.tools.builtin.formatters import FILE, SECONDS, Formatter


def formatters_of(settings: Settings) -> list[Formatter]:
    """In the order in which they are written down: a linter sees what a formatter before it made."""
    for name, table in settings.values.get("formatters", {}).items():
        origin, program = settings.origins.get(f"formatters.{name}", ""), table["command"][0]
        if "/" in program and not Path(program).is_absolute() and origin.startswith(f"{user_file()}:"):
            # It would be another program in each folder, and in a clone somebody else's.
            raise ConfigError(f"{origin}: formatters.{name}: give the name of {program!r}, or its whole path")
    return [
        Formatter(name, tuple(table["files"]), _command(settings, table), table.get("timeout", SECONDS))
        for name, table in settings.values.get("formatters", {}).items()
        if table.get("enabled", True)
    ]


def _command(settings: Settings, table: FormatterTable) -> tuple[str, ...]:
    """With whole paths for files of the workspace: in another one the same name is another program."""
    words = table["command"]
    return tuple(str(path.absolute()) if (path := _file(settings, word)) else word for word in words)


def _file(settings: Settings, word: str) -> Path | None:
    path = settings.workspace / word
    return path if FILE not in word and not word.startswith("-") and path.is_file() else None
