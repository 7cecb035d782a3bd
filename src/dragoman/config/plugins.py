"""Loads the plugins that settings name, and those of a `plugins` folder next to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dragoman.config.settings import Settings, user_file
from dragoman.config.tables import FormatterTable
from dragoman.errors import ConfigError
from dragoman.installed import import_object, installed, load_installed
from dragoman.plugins import built_in
from dragoman.plugins.snapshots import Snapshots
from dragoman.tools.builtin.formatters import FILE, SECONDS, Formatter
from dragoman.tools.python_files import run_file
from dragoman.turn.plugin import Plugin, check, name_of

FOLDER = "plugins"
_BUILT_IN = {
    name_of(one)
    for one in (*vars(built_in).values(), Snapshots)
    if inspect.isclass(one) and issubclass(one, Plugin) and one is not Plugin
}


def load_plugins(settings: Settings, folders: list[Path], warnings: list[str]) -> list[Plugin]:
    """Return the plugins of the folders in the order of their files, then those that the settings name.

    A table `[plugins.NAME]` has the parameters of either. `enabled = false` leaves one out.
    """
    tables: dict[str, Mapping[str, Any]] = {**settings.values.get("plugins", {})}
    found: dict[str, Callable[..., object] | Plugin] = {}
    for folder in folders:
        for file in sorted((folder / FOLDER).glob("[!_]*.py")):
            try:
                found |= _defined_in(file)
            except ConfigError as error:
                warnings.append(str(error))
    plugins = [_made(settings, name, tables.pop(name, {}), what, found) for name, what in found.items()]
    plugins += [_made(settings, name, table, None, found) for name, table in tables.items()]
    return [plugin for plugin in plugins if plugin is not None]


def _defined_in(file: Path) -> dict[str, Callable[..., object] | Plugin]:
    """Return the plugins of a file by name: its plugin objects, and its classes without objects.

    Base classes of others in the file, and classes whose name starts with `_`, are left out.
    """
    module = run_file(file)
    made = {one.name: one for one in vars(module).values() if isinstance(one, Plugin)}
    classes = [
        one
        for one in vars(module).values()
        if inspect.isclass(one)
        and issubclass(one, Plugin)
        and one.__module__ == module.__name__
        and not one.__name__.startswith("_")
        and not inspect.isabstract(one)
    ]
    bases = {base for one in classes for base in one.__mro__[1:]}
    if not made and not classes:
        raise ConfigError(f"'{file}' has no plugins. Write a class that inherits from Plugin.")
    unmade = [
        one
        for one in classes
        if one not in bases and not any(isinstance(plugin, one) for plugin in made.values())
    ]
    return {**made, **{name_of(one): one for one in unmade}}


def _made(
    settings: Settings,
    name: str,
    table: Mapping[str, Any],
    what: Callable[..., object] | Plugin | None,
    found: Iterable[str],
) -> Plugin | None:
    """Return the plugin with the parameters of its table, or None if the settings turn it off.

    Errors list the plugins `found` in folders.
    """
    options = {key: value for key, value in table.items() if key not in ("use", "enabled")}
    where = settings.origins.get(f"plugins.{name}", "settings")
    if what is None and "use" not in table and name in _BUILT_IN and name not in installed("plugins"):
        raise ConfigError(
            f"{where}: The built-in plugin {name!r} has no settings here. To replace it, set `use` "
            "to your own plugin."
        )
    if not table.get("enabled", True):
        return None
    try:
        if what is None:
            named: Any = (
                import_object(table["use"]) if "use" in table else load_installed("plugins", name, found)
            )
            what = named
        if isinstance(what, Plugin):
            if options:
                raise ConfigError("The file already creates it, so it takes no parameters.")
            return check(what)
        if not callable(what):
            raise ConfigError(f"{what!r} is not a plugin.")
        return check(what(**options))
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: Plugin {name!r}: {error}") from error


# ── formatters ────────────────────────────────────────────────────────────────────────────────────
# Loads the formatters and linters that settings name.


def formatters_of(settings: Settings) -> list[Formatter]:
    """Return them in the order of the settings: a linter sees the result of earlier formatters."""
    for name, table in settings.values.get("formatters", {}).items():
        origin, program = settings.origins.get(f"formatters.{name}", ""), table["command"][0]
        if "/" in program and not Path(program).is_absolute() and origin.startswith(f"{user_file()}:"):
            # A relative path would be another program in each folder, and in a clone an untrusted one.
            raise ConfigError(
                f"{origin}: formatters.{name}: write the name of {program!r} alone, or its absolute path."
            )
    return [
        Formatter(name, tuple(table["files"]), _command(settings, table), table.get("timeout", SECONDS))
        for name, table in settings.values.get("formatters", {}).items()
        if table.get("enabled", True)
    ]


def _command(settings: Settings, table: FormatterTable) -> tuple[str, ...]:
    """Return the command with absolute paths for workspace files. In another workspace, the same name is
    another program."""
    words = table["command"]
    return tuple(str(path.absolute()) if (path := _file(settings, word)) else word for word in words)


def _file(settings: Settings, word: str) -> Path | None:
    path = settings.workspace / word
    return path if FILE not in word and not word.startswith("-") and path.is_file() else None
