"""`dragoman doctor`: looks at all that a conversation needs, and names the command that mends what fails."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pydantic import JsonValue
from rich.text import Text

from dragoman.cli.commands.doctor_network import Finding, check_models, check_servers
from dragoman.cli.folder_trust import describe, load_settings
from dragoman.cli.lookup import open_store
from dragoman.cli.terminal.errors import describe_error
from dragoman.cli.terminal.tables import open_console
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.build import find_errors, store_of
from dragoman.config.settings import Settings
from dragoman.errors import DragomanError
from dragoman.parameters import store_at
from dragoman.redaction import redact_text
from dragoman.server.page import BUILT
from dragoman.store.address import StoreAddress, StoreServer
from dragoman.store.sql.deletion import SqlAttachments
from dragoman.store.sqlite.checkup import check_store

OLDEST = (3, 11)
EXTRAS = {
    "keyring": ("keyring", "keyring", "keys from the system's keyring"),
    "prices": ("genai_prices", "genai-prices", "what a turn costs"),
    "objects": ("obstore", "obstore", "attachments in S3, Google Cloud Storage or Azure"),
    "local": ("xllamacpp", "xllamacpp", "the model in the box, and GGUF files"),
}
SIGNS = {"fine": ("✓", "green"), "optional": ("–", "dim"), "missing": ("✗", "red")}


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
    remedy = "correct that, then: dragoman config check"
    try:
        settings = load_settings(config, trust=trust, asks=True)
    except (DragomanError, OSError) as error:
        yield Finding("settings", "missing", describe_error(error), remedy)
        return
    if errors := find_errors(settings):
        yield from (Finding("settings", "missing", redact_text(error), remedy) for error in errors)
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
    yield from asyncio.run(check_models(settings))
    yield from asyncio.run(check_servers(settings))
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
    store = store_at(address)
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


def _check_page() -> Finding:
    if (BUILT / "index.html").is_file():
        return Finding("page", "fine", "built")
    return Finding("page", "optional", "not built: `dragoman serve` has only the API", "make page")


def _check_extra(name: str, module: str, package: str, purpose: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(name, "fine", purpose)
    return Finding(name, "optional", f"not installed: {purpose}", f"pip install {package}")


def _show(found: list[Finding]) -> None:
    console = open_console()
    for one in found:
        sign, colour = SIGNS[one.state]
        line = Text.assemble((f"{sign} ", colour), (f"{one.name:<10}", "bold"), f" {one_line(one.text, 500)}")
        console.print(line, soft_wrap=True)
        if one.mend is not None:
            console.print(Text(f"             {one_line(one.mend, 500)}", "dim"), soft_wrap=True)
