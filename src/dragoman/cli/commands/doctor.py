"""`dragoman doctor`: looks at all that a conversation needs, and names the command that mends what fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from dragoman.cli.folder_trust import describe, load_settings
from dragoman.cli.lookup import open_store
from dragoman.cli.model_choice import ChosenModel, choose_model
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.build import catalog_of, servers_of, store_of
from dragoman.config.settings import Settings
from dragoman.errors import DragomanError, ProviderError
from dragoman.providers.discover import LARGEST
from dragoman.providers.keys import Keys
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.sign_in import reach
from dragoman.redaction import redact_text
from dragoman.server.page import BUILT
from dragoman.store.address import StoreAddress, StoreServer
from dragoman.store.sql.attachments import SqlAttachments
from dragoman.store.sqlite.checkup import check_store

OLDEST = (3, 11)
PATIENCE = 5.0  # seconds a model's server has to answer
EXTRAS = {
    "keyring": ("keyring", "keyring", "keys from the system's keyring"),
    "prices": ("genai_prices", "genai-prices", "what a turn costs"),
    "objects": ("obstore", "obstore", "attachments in S3, Google Cloud Storage or Azure"),
    "local": ("xllamacpp", "xllamacpp", "the model in the box, and GGUF files"),
}
SIGNS = {"fine": ("✓", "green"), "optional": ("–", "dim"), "missing": ("✗", "red")}


@dataclass(slots=True, frozen=True)
class Finding:
    """What was found of one thing. `missing` has to be mended; `optional` need not be."""

    name: str
    state: Literal["fine", "optional", "missing"]
    text: str
    mend: str | None = None

    @property
    def report(self) -> dict[str, JsonValue]:
        return {"name": self.name, "state": self.state, "said": self.text, "mend": self.mend}

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", redact_text(self.text))


def examine(config: Path | None, *, trust: bool, mend: bool, as_json: bool) -> bool:
    """Returns whether everything that has to be there is."""
    found = list(_find(config, trust=trust, mend=mend))
    if as_json:
        findings: list[JsonValue] = [one.report for one in found]
        print_json({"findings": findings}, indent=2)
    else:
        _show(found)
    return all(one.state != "missing" for one in found)


def _find(config: Path | None, *, trust: bool, mend: bool) -> Iterator[Finding]:
    yield _check_python()
    try:
        settings = load_settings(config, trust=trust, asks=True)
    except DragomanError as error:
        yield Finding("settings", "missing", str(error), "correct that line, then: dragoman config check")
        return
    none = "none that is used" if settings.sources.left_out else "no dragoman.toml"
    files = ", ".join(map(str, settings.files)) or f"{none}: the defaults hold"
    yield Finding("settings", "fine", files)
    for left_out in settings.sources.left_out:
        yield Finding("folder", "optional", describe(left_out))
    store = asyncio.run(_check_store(settings))
    yield store
    if store.state == "fine":
        yield from _check_contents(store_of(settings), mend=mend)
        yield asyncio.run(_check_blobs(settings))
    yield asyncio.run(_check_model(settings))
    yield _check_keys(settings)
    yield from _check_servers(settings)
    yield _check_page()
    yield from (_check_extra(name, *about) for name, about in EXTRAS.items())


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info[:2]) >= OLDEST:
        return Finding("python", "fine", version)
    return Finding("python", "missing", f"{version} is too old", "install Python 3.11 or newer")


async def _check_store(settings: Settings) -> Finding:
    address = store_of(settings)
    if address.is_there:
        try:
            async with open_store(settings):
                pass
        except DragomanError as error:
            return Finding("store", "missing", str(error), 'name another one: store = "…" in dragoman.toml')
    if isinstance(address, StoreServer) or _is_writable(address.path):
        new = "" if address.is_there else " (made with the first conversation)"
        return Finding("store", "fine", f"{address}{new}")
    mend = 'name a file that can be written: store = "…" in dragoman.toml'
    return Finding("store", "missing", f"{address} cannot be written", mend)


async def _check_blobs(settings: Settings) -> Finding:
    """Where attachments go, and whether they can be stored there, read and removed."""
    address = store_of(settings)
    if address.is_there:
        try:
            async with open_store(settings) as runtime:
                if isinstance(runtime.store, SqlAttachments):
                    await runtime.store.check_blobs()
        except DragomanError as error:
            mend = 'mend that, or name another place: blobs = "…" in dragoman.toml'
            return Finding("blobs", "missing", str(error), mend)
    return Finding("blobs", "fine", address.shown_blobs)


async def _list_named_blobs(address: StoreAddress) -> set[str]:
    """What is not in the folder beside the file, and need not be."""
    store = address.store()
    await store.open()
    try:
        return await store.list_named_blobs() if isinstance(store, SqlAttachments) else set()
    finally:
        await store.close()


def _is_writable(path: Path) -> bool:
    parent = next(folder for folder in path.parents if folder.exists())
    return parent.is_dir() and os.access(parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def _check_contents(address: StoreAddress, *, mend: bool) -> Iterator[Finding]:
    """What is in the file: its pages, rows and attachments. A database server looks after its own."""
    if isinstance(address, StoreServer) or not address.is_there:
        return
    try:
        other = asyncio.run(_list_named_blobs(address))
    except DragomanError as error:
        yield Finding("store", "missing", f"not looked at: {error}", "mend that first")
        return
    for defect in check_store(address.path, mend=mend, other_blobs=other):
        if defect.mended:
            yield Finding("store", "fine", f"mended: {defect.text}")
        else:
            yield Finding("store", "optional" if defect.harmless else "missing", defect.text, defect.hint)


async def _check_model(settings: Settings) -> Finding:
    try:
        chosen = await choose_model(settings)
        async with chosen.models:
            chosen.models(None)
            unreachable = await _ask_server(chosen)
    except DragomanError as error:
        return Finding(
            "model", "missing", str(error), "dragoman models lists what there is and what it needs"
        )
    about = f"{chosen.name} ({chosen.reason})"
    if unreachable is not None:
        problem, mend = unreachable
        return Finding("model", "missing", f"{about}: {problem}", mend)
    return Finding("model", "fine", about, chosen.note)


async def _ask_server(chosen: ChosenModel) -> tuple[str, str] | None:
    """None where the model's server answers; else what is wrong, and what mends it.

    The list of models is asked for: every provider has it, and it costs no tokens.
    """
    provider, _ = chosen.models.catalog.find(chosen.name)
    if provider.name == PROVIDER:
        return None  # we serve it ourselves
    endpoint = reach(provider, chosen.models.keys)
    if (url := endpoint.list_url()) is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            await chosen.models.client.get(url, largest=LARGEST, endpoint=endpoint)
    except (ProviderError, TimeoutError) as error:
        if isinstance(error, ProviderError) and error.kind == "auth":
            name = endpoint.auth.name or "the key"
            return f"{provider.title} refuses the key (HTTP {error.status})", f"set {name} to a valid key"
        if isinstance(error, ProviderError) and error.status is not None:
            return None  # it answers: not all of them have a list
        start = "start the server" if provider.local else "look at your network or proxy"
        return f"{endpoint.base_url} does not answer", f"{start}, or name another model"
    return None


def _check_keys(settings: Settings) -> Finding:
    keys = Keys()
    found = [provider.name for provider in catalog_of(settings).providers.values() if keys.find(provider)]
    if found:
        return Finding("keys", "fine", f"for {', '.join(found)}")
    mend = "export OPENAI_API_KEY=… or the like; dragoman models names them all"
    return Finding("keys", "optional", "none: models on this machine need none", mend)


def _check_servers(settings: Settings) -> Iterator[Finding]:
    try:
        servers = servers_of(settings)
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


def _check_page() -> Finding:
    if (BUILT / "index.html").is_file():
        return Finding("page", "fine", "built")
    return Finding("page", "optional", "not built: `dragoman serve` has only the API", "make page")


def _check_extra(name: str, module: str, package: str, purpose: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(name, "fine", purpose)
    return Finding(name, "optional", f"not installed: {purpose}", f"pip install {package}")


def _show(found: list[Finding]) -> None:
    console = Console(highlight=False)
    for one in found:
        sign, colour = SIGNS[one.state]
        line = Text.assemble((f"{sign} ", colour), (f"{one.name:<10}", "bold"), f" {one_line(one.text, 500)}")
        console.print(line, soft_wrap=True)
        if one.mend is not None:
            console.print(Text(f"             {one_line(one.mend, 500)}", "dim"), soft_wrap=True)
