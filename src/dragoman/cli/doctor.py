"""Nothing in, what works here out: each thing looked at, and the command that mends what does not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from dragoman.cli.chosen import choose
from dragoman.cli.looking import looking
from dragoman.cli.plain import one_line
from dragoman.cli.printing import print_json
from dragoman.cli.reaching import reached
from dragoman.config.build import catalog_of, store_of
from dragoman.config.settings import Settings, load
from dragoman.errors import DragomanError
from dragoman.providers.keys import Keys
from dragoman.server.page import BUILT
from dragoman.tools.mcp.servers import servers_of

OLDEST = (3, 11)
EXTRAS = {
    "keyring": ("keyring", "keyring", "keys from the system's keyring"),
    "prices": ("genai_prices", "genai-prices", "what a turn costs"),
    "local": ("xllamacpp", "xllamacpp", "the model in the box, and GGUF files"),
}
SIGNS = {"fine": ("✓", "green"), "optional": ("–", "dim"), "missing": ("✗", "red")}


@dataclass(slots=True, frozen=True)
class Finding:
    """`missing` has to be mended; `optional` is only said."""

    name: str
    state: Literal["fine", "optional", "missing"]
    said: str
    mend: str | None = None


def doctor(config: Path | None, *, as_json: bool) -> bool:
    """Whether everything that has to be there is."""
    found = list(_findings(config))
    if as_json:
        findings: list[JsonValue] = [asdict(one) for one in found]
        print_json({"findings": findings}, indent=2)
    else:
        _show(found)
    return all(one.state != "missing" for one in found)


def _findings(config: Path | None) -> Iterator[Finding]:
    yield _python()
    try:
        settings = load(config)
    except DragomanError as error:
        yield Finding("settings", "missing", str(error), "correct that line, then: dragoman config check")
        return
    files = ", ".join(map(str, settings.files)) or "no dragoman.toml: the defaults hold"
    yield Finding("settings", "fine", files)
    yield asyncio.run(_store(settings))
    yield asyncio.run(_model(settings))
    yield _keys(settings)
    yield from _servers(settings)
    yield _page()
    yield from (_extra(name, *about) for name, about in EXTRAS.items())


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info[:2]) >= OLDEST:
        return Finding("python", "fine", version)
    return Finding("python", "missing", f"{version} is too old", "install Python 3.11 or newer")


async def _store(settings: Settings) -> Finding:
    path = store_of(settings)
    if path.exists():
        try:
            async with looking(settings):
                pass
        except DragomanError as error:
            return Finding("store", "missing", str(error), 'name another file: store = "…" in dragoman.toml')
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            return Finding("store", "fine", str(path))
    else:
        parent = next(folder for folder in path.parents if folder.exists())
        if parent.is_dir() and os.access(parent, os.W_OK):
            return Finding("store", "fine", f"{path} (made with the first conversation)")
    mend = 'name a file that can be written: store = "…" in dragoman.toml'
    return Finding("store", "missing", f"{path} cannot be written", mend)


async def _model(settings: Settings) -> Finding:
    try:
        chosen = await choose(settings)
        async with chosen.models:
            chosen.models(None)
            trouble = await reached(chosen)
    except DragomanError as error:
        return Finding(
            "model", "missing", str(error), "dragoman models lists what there is and what it needs"
        )
    if trouble is not None:
        return Finding("model", "missing", f"{chosen.name} ({chosen.reason}): {trouble.said}", trouble.mend)
    return Finding("model", "fine", f"{chosen.name} ({chosen.reason})", chosen.note)


def _keys(settings: Settings) -> Finding:
    keys = Keys()
    found = [provider.name for provider in catalog_of(settings).providers.values() if keys.find(provider)]
    if found:
        return Finding("keys", "fine", f"for {', '.join(found)}")
    mend = "export OPENAI_API_KEY=… or the like; dragoman models names them all"
    return Finding("keys", "optional", "none: models on this machine need none", mend)


def _servers(settings: Settings) -> Iterator[Finding]:
    file = settings.values.get("mcp_file")
    try:
        path = settings.path(file) if file else None
        servers = servers_of(settings.values.get("mcp", {}), path, settings.origins)
    except DragomanError as error:
        yield Finding("mcp", "missing", str(error), "correct it, then: dragoman mcp list")
        return
    for name, server in servers.items():
        if not server.enabled or server.command is None:
            continue
        if shutil.which(server.command) is None:
            mend = f"install {server.command}, or: dragoman mcp remove {name}"
            yield Finding(f"mcp {name}", "missing", f"there is no program {server.command}", mend)
        else:
            yield Finding(f"mcp {name}", "fine", f"{server.command} is there", f"dragoman mcp test {name}")


def _page() -> Finding:
    if (BUILT / "index.html").is_file():
        return Finding("page", "fine", "built")
    return Finding("page", "optional", "not built: `dragoman serve` has only the API", "make page")


def _extra(name: str, module: str, package: str, told: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(name, "fine", told)
    return Finding(name, "optional", f"not installed: {told}", f"pip install {package}")


def _show(found: list[Finding]) -> None:
    console = Console(highlight=False)
    for one in found:
        sign, colour = SIGNS[one.state]
        line = Text.assemble((f"{sign} ", colour), (f"{one.name:<10}", "bold"), f" {one_line(one.said, 500)}")
        console.print(line, soft_wrap=True)
        if one.mend is not None:
            console.print(Text(f"             {one_line(one.mend, 500)}", "dim"), soft_wrap=True)
