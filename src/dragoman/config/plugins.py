"""The plugins that settings name, and those of a `plugins` folder beside them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.installed import import_object, installed, load_installed
from dragoman.plugins import built_in
from dragoman.plugins.snapshots import Snapshots
from dragoman.tools.custom import run_file
from dragoman.turn.plugin import Plugin, check, name_of

FOLDER = "plugins"
_BUILT_IN = {
    name_of(one)
    for one in (*vars(built_in).values(), Snapshots)
    if inspect.isclass(one) and issubclass(one, Plugin) and one is not Plugin
}


def load_plugins(settings: Settings, folders: list[Path], warnings: list[str]) -> list[Plugin]:
    """Those of the folders, in the order of their files, then those that the settings name. A table
    `[plugins.NAME]` has the parameters of either; `enabled = false` leaves one out."""
    tables: dict[str, Mapping[str, Any]] = {**settings.values.get("plugins", {})}
    found: dict[str, Callable[..., object] | Plugin] = {}
    for folder in folders:
        for file in sorted((folder / FOLDER).glob("[!_]*.py")):
            try:
                found |= _defined_in(file)
            except ConfigError as error:
                warnings.append(str(error))
    plugins = [_made(settings, name, tables.pop(name, {}), what) for name, what in found.items()]
    plugins += [_made(settings, name, table, None) for name, table in tables.items()]
    return [plugin for plugin in plugins if plugin is not None]


def _defined_in(file: Path) -> dict[str, Callable[..., object] | Plugin]:
    """By name: objects that the file makes, and the classes of which it makes none. A class from which others
    of the file inherit, or whose name begins with `_`, is there for them."""
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
        raise ConfigError(f"{file} has no plugins: write a class that inherits from Plugin")
    unmade = [
        one
        for one in classes
        if one not in bases and not any(isinstance(plugin, one) for plugin in made.values())
    ]
    return {**made, **{name_of(one): one for one in unmade}}


def _made(
    settings: Settings, name: str, table: Mapping[str, Any], what: Callable[..., object] | Plugin | None
) -> Plugin | None:
    """The plugin with the parameters of its table; None where it is switched off."""
    options = {key: value for key, value in table.items() if key not in ("use", "enabled")}
    where = settings.origins.get(f"plugins.{name}", "settings")
    if what is None and "use" not in table and name in _BUILT_IN and name not in installed("plugins"):
        raise ConfigError(
            f"{where}: plugin {name} is built in, and no table sets it up or leaves it out: a plugin of your "
            "own takes its place if `use` names it here"
        )
    if not table.get("enabled", True):
        return None
    try:
        if what is None:
            named: Any = import_object(table["use"]) if "use" in table else load_installed("plugins", name)
            what = named
        if isinstance(what, Plugin):
            if options:
                raise ConfigError("it is made already, and takes no parameters")
            return check(what)
        if not callable(what):
            raise ConfigError(f"{what!r} is no plugin")
        return check(what(**options))
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: plugin {name}: {error}") from error
