"""At which step of its migrations a database is, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources.abc import Traversable

from dragoman.errors import ConfigError


@dataclass(slots=True, frozen=True)
class SchemaState:
    """`version` is the last step that was taken, 0 where there are no tables; `newest` is the last one."""

    version: int
    newest: int
    missing: tuple[tuple[int, str], ...]  # steps that are still to be taken, with their titles
    others: tuple[str, ...] = ()  # what is beside its tables, and is not there yet


def schema_state(migrations: Traversable, version: int) -> SchemaState:
    """ConfigError where the database is ahead of this program."""
    names = sorted(file.name for file in migrations.iterdir() if file.name.endswith(".sql"))
    steps = [(int(name[:4]), name[5:].removesuffix(".sql").replace("_", " ")) for name in names]
    newest = steps[-1][0]
    if version > newest:
        raise ConfigError(
            f"the store was written by a newer Dragoman (schema {version}, this one knows {newest}): "
            "upgrade Dragoman, or name another store"
        )
    return SchemaState(version, newest, tuple(step for step in steps if step[0] > version))


def refuse_missing(state: SchemaState) -> None:
    """ConfigError where there are steps to be taken, and somebody has to order it."""
    if state.missing:
        at = f"its tables are at version {state.version}" if state.version else "it has no tables yet"
        raise ConfigError(
            f"{at}, and this Dragoman needs version {state.newest}. The settings say migrate = false: run "
            "`dragoman store migrate` first (--dry-run shows what it would do)"
        )
