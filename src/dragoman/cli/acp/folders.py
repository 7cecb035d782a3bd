"""The runtimes behind an editor's sessions: one for each folder, with the servers the editor adds to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.cli.acp.editor import Editor
from dragoman.cli.acp.servers import HeldSource, held_sources, read_client_servers
from dragoman.cli.folder_trust import load_settings
from dragoman.cli.model_choice import ChosenModel, choose_model
from dragoman.config.build import DEFAULT_TOOLS, build_runtime, servers_of
from dragoman.config.project_prompt import Template, templates
from dragoman.errors import BadRequest
from dragoman.messages.message import canonical
from dragoman.runtime import Runtime
from dragoman.store.address import absolute_place

_log = logging.getLogger("dragoman.acp")
_MOST_MODELS = 60  # to choose from


@dataclass(slots=True, frozen=True, kw_only=True)
class AcpFlags:
    """The flags of `dragoman acp`. What they leave out, the settings of each folder say."""

    model: str | None = None
    mode: str | None = None
    system: str | None = None
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    store: str | None = None
    config: Path | None = None
    trust: bool = False


@dataclass(slots=True, frozen=True)
class OpenWorkspace:
    """A folder that is worked in: its runtime, its models, its commands, and servers yet to be allowed."""

    folder: Path
    runtime: Runtime
    chosen: ChosenModel
    templates: dict[str, Template]
    held: list[HeldSource]

    def models(self, current: str | None) -> list[str]:
        """Those to choose from: the one in use, and those with a name whose provider has its key."""
        catalog, keys = self.chosen.models.catalog, self.chosen.models.keys
        named = [
            f"{provider.name}/{model}"
            for provider in catalog.providers.values()
            if not provider.local and keys.find(provider) is not None
            for model in (*([provider.default] if provider.default else []), *provider.models)
            if "*" not in model and "?" not in model
        ]
        first = [current] if current is not None else []
        return list(dict.fromkeys([*first, self.chosen.name, *named]))[:_MOST_MODELS]


class EditorFolders:
    """Opens each folder once, and closes all of them in the end."""

    def __init__(self, flags: AcpFlags, stack: AsyncExitStack) -> None:
        self._flags = flags
        self._stack = stack
        self._open: dict[str, OpenWorkspace] = {}
        self._opening = asyncio.Lock()

    async def open(self, folder: str, servers: Sequence[Any], editor: Editor) -> OpenWorkspace:
        path = whole_path(folder)
        key = canonical([str(path), list(servers)])
        async with self._opening:
            if key not in self._open:
                self._open[key] = await self._opened(path, servers, editor)
            return self._open[key]

    async def _opened(self, folder: Path, servers: Sequence[Any], editor: Editor) -> OpenWorkspace:
        flags = self._flags
        values = {
            "model": flags.model,
            "mode": flags.mode,
            "system": flags.system,
            "store": absolute_place(flags.store),
            "workspace": str(folder),
        }
        settings = load_settings(flags.config, values, trust=flags.trust, asks=True, start=folder)
        chosen = await choose_model(settings)
        chosen.models(None)  # a missing key is an error before anything is stored
        without = {"browser"}
        wanted = [name for name in settings.values.get("tools", DEFAULT_TOOLS) if name not in without]
        groups = editor.groups(wanted)
        held = held_sources(read_client_servers(servers), servers_of(settings), folder)
        built = build_runtime(
            settings,
            model=chosen.models,
            tools=[*groups, *held],
            without={*without, *(group.name for group in groups)},
            allow=flags.allow,
            deny=flags.deny,
            adopts=False,  # what other programs left behind goes on when it is opened, and not before
        )
        for warning in built.warnings:
            _log.warning("left out: %s", warning)
        await self._stack.enter_async_context(chosen.models)
        runtime = await self._stack.enter_async_context(built.runtime)
        return OpenWorkspace(folder, runtime, chosen, templates(settings), held)


def whole_path(folder: str) -> Path:
    """A folder as editors name it. BadRequest where it is none."""
    path = Path(folder)
    if not path.is_absolute() or not path.is_dir():
        raise BadRequest(f"cwd is the whole path of a folder, not {folder!r}")
    return path.resolve()
