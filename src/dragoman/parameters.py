"""Interpret the parameters of a runtime: store addresses, model names, agents and folders."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import isroutine
from pathlib import Path
from typing import TypeAlias, TypeVar

from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.installed import require
from dragoman.providers.compatible import NamedModel, OpenAICompatible
from dragoman.sentences import sentence
from dragoman.store.address import StoreFile, StoreServer, store_address
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store
from dragoman.tools.toolbox import Toolbox
from dragoman.turn.agent import Agent
from dragoman.wire.files.attachments import UsesBlobs
from dragoman.wire.files.uploads import DeletesProviderFiles
from dragoman.wire.wire import Model
from dragoman.workspace.workspaces import NAME, Workspace, Workspaces

AnyModel: TypeAlias = NamedModel | Sequence[NamedModel] | Model | Callable[[str | None], Model] | None
Item = TypeVar("Item")


def agents_by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    for agent in listed("agents", agents):
        if not isinstance(agent, Agent):
            raise ConfigError(f"{agent!r} is not an agent. Write Agent(name=…).")
        if agent.name in named:
            raise ConfigError(f"Two agents are named {agent.name!r}. Rename one.")
        named[agent.name] = agent
    if "" in named:
        raise ConfigError("An agent needs a name: Agent(name=…).")
    for agent in named.values():
        if unknown := [name for name in agent.handoffs if name not in named]:
            raise ConfigError(sentence("agent.no_successor", name=agent.name, unknown=", ".join(unknown)))
    return named


def missing_tools(agents: Iterable[Agent], toolbox: Toolbox) -> Iterator[str]:
    """Yield agents' tool names that do not exist, because a missing tool is noticed late. With sources, the
    names are not known yet."""
    for agent in agents if not toolbox.sources else ():
        for name in agent.tools or ():
            try:
                toolbox.check_name(name)
            except BadRequest as error:
                yield f"agent {agent.name}: {error}"


def store_at(place: str | Path | StoreFile | StoreServer | Store) -> Store:
    """Return the store at an address, not yet open. Raises ConfigError if its driver is not installed."""
    given: object = place
    if given is None or isinstance(given, int | float | bytes):
        raise ConfigError(f"A store must be a file, such as chat.db, or a database, not {given!r}.")
    address = store_address(place) if isinstance(place, str | Path) else place
    if isinstance(address, StoreFile):
        return SqliteStore(address.path, blobs=address.blobs, migrates=address.migrates)
    if isinstance(address, StoreServer):
        require("asyncpg")
        from dragoman.store.postgres import PostgresStore  # an extra contains its driver

        return PostgresStore(address.url, blobs=address.blobs, migrates=address.migrates)
    return address


def models_for(
    model: AnyModel, store: Store
) -> tuple[Callable[[str | None], Model], Callable[[], Awaitable[None]]]:
    """Return the function that finds models, and the one that closes them at the end.

    They are the models of the catalog, unless the caller passes a model or a function that finds one. The
    caller closes passed ones.
    """
    if model is None or isinstance(model, str | OpenAICompatible | Sequence):
        from dragoman.config.sources import catalog_here
        from dragoman.providers.models import models_named

        models = models_named(model, catalog_here(), store)
        return models, models.close
    if callable(model):
        models_of_caller: object = model
        if isinstance(models_of_caller, UsesBlobs):
            models_of_caller.use_blobs(store)
        return partial(_found_by, model) if isroutine(model) else model, _nothing

    def only(name: str | None) -> Model:
        if name is not None and name != model.name:
            raise NotFound("model", name)
        return model

    return only, _nothing


def _found_by(find: Callable[[str | None], Model], name: str | None) -> Model:
    found: object = find(name)
    if found is None and name is not None:
        raise NotFound("model", name)
    if not hasattr(found, "stream"):
        raise ConfigError(sentence("model.found_wrong", found=found))
    return found  # type: ignore[return-value] # it answers


def checked_retention(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise ConfigError(f"'retention' must be a number of seconds above 0, not {seconds!r}.")
    return seconds


def deletes_files(models: object, store: Store) -> Callable[[], Awaitable[None]] | None:
    """Return a function that deletes unneeded files at providers, or None if the models do not support
    that."""
    if isinstance(models, DeletesProviderFiles):
        return partial(models.delete_unwanted_files, store)
    return None


async def _nothing() -> None:
    pass


def listed(name: str, given: Iterable[Item]) -> Iterable[Item]:
    """Return a list unchanged. Raises ConfigError for a string, which would count as letters, and for a
    table.

    Only the names of a table would count: `{"shell": "git *"}` is not `["shell"]`.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"{name} takes a list, not {given!r}")
    return given


def table(name: str, given: Mapping[str, Item] | None) -> dict[str, Item]:
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"'{name}' must be a table, not {given!r}.")
    return dict(given or {})


def text_of(name: str, given: str) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"'{name}' must be a string, not {given!r}.")
    return given


def workspaces_at(
    main: str | Path | Workspace | None,
    named: Mapping[str, str | Path | Workspace] | None,
    records: Path | None,
) -> Workspaces:
    """Return the workspaces. Copies are stored in a folder within `records`."""
    for name in named or {}:
        if not NAME.fullmatch(name):
            raise ConfigError(f"Invalid workspace name {name!r}. Use 1 to 40 letters, digits, `_` and `-`.")
    return Workspaces(
        _workspace(main) if main is not None else None,
        {name: _workspace(one) for name, one in (named or {}).items()},
        records / "copies" if records is not None else None,
    )


def _workspace(given: str | Path | Workspace) -> Workspace:
    if not isinstance(given, str | Path | Workspace):
        raise ConfigError(f"A workspace must be the path of a folder, not {given!r}.")
    workspace = given if isinstance(given, Workspace) else Workspace(Path(given))
    workspace = replace(workspace, folder=Path(workspace.folder))
    if not workspace.folder.is_dir():
        raise ConfigError(f"The workspace {str(workspace.folder)!r} is not a folder.")
    return workspace
