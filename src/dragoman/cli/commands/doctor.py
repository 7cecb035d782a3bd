"""Run `dragoman doctor`: check everything that a conversation needs, and name the command that fixes a
problem."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import JsonValue
from rich.text import Text

from dragoman.cli.commands.mcp import CHECK, tried
from dragoman.cli.flags.setup import DoctorFlags
from dragoman.cli.folder_trust import describe, settings_for
from dragoman.cli.lookup import open_store
from dragoman.cli.model_choice import ChosenModel, choose_model
from dragoman.cli.terminal.tables import open_console
from dragoman.cli.terminal.text import count, describe_error, one_line, print_json
from dragoman.config.build import cage_of, catalog_of, find_errors, servers_of, store_of
from dragoman.config.settings import Settings
from dragoman.errors import DragomanError, ProviderError
from dragoman.providers.catalog import Provider
from dragoman.providers.facts import facts_of
from dragoman.providers.listing import ListedModel, list_models
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.sign_in import Keys, describe_auth, reach
from dragoman.redaction import redact_text
from dragoman.server.page import BUILT
from dragoman.store.address import StoreServer
from dragoman.store.sql.deletion import SqlAttachments
from dragoman.store.sqlite.checkup import check_store
from dragoman.tools.cage.checkup import BOUNDARIES, try_cage
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.http_client.client import HttpClient

EXTRAS = {
    "keyring": ("keyring", "keyring", "keys from the system's keyring"),
    "prices": ("genai_prices", "genai-prices", "cost of a turn"),
    "objects": ("obstore", "obstore", "attachments in S3, Google Cloud Storage or Azure"),
    "local": ("xllamacpp", "xllamacpp", "the bundled model, and GGUF files"),
}
SIGNS = {"fine": ("✓", "green"), "optional": ("–", "dim"), "missing": ("✗", "red")}
PATIENCE = 5.0  # seconds that a model's server has to answer


@dataclass(slots=True, frozen=True)
class Finding:
    """The result of one check. You must fix what is `missing`, but not what is `optional`."""

    name: str
    state: Literal["fine", "optional", "missing"]
    text: str
    fix: str | None = None

    @property
    def report(self) -> dict[str, JsonValue]:
        return {"name": self.name, "state": self.state, "said": self.text, "fix": self.fix}

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", redact_text(self.text))


async def examine(flags: DoctorFlags) -> int:
    """Run all checks. Returns 1 if something required is missing."""
    found = [one async for one in _find(flags)]
    if flags.json:
        findings: list[JsonValue] = [one.report for one in found]
        print_json({"findings": findings}, indent=2)
    else:
        _show(found)
    return int(any(one.state == "missing" for one in found))


async def _find(flags: DoctorFlags) -> AsyncIterator[Finding]:
    yield Finding("python", "fine", ".".join(map(str, sys.version_info[:3])))
    remedy = "correct that, then: dragoman config check"
    try:
        settings = settings_for(flags)
    except (DragomanError, OSError) as error:
        yield Finding("settings", "missing", describe_error(error), remedy)
        return
    if errors := find_errors(settings):
        for wrong in errors:
            yield Finding("settings", "missing", redact_text(wrong), remedy)
        return
    none = "no dragoman.toml in use" if settings.sources.left_out else "no dragoman.toml"
    files = ", ".join(map(str, settings.files)) or f"{none}, so the defaults apply"
    yield Finding("settings", "fine", files)
    for left_out in settings.sources.left_out:
        yield Finding("folder", "optional", describe(left_out))
    store = await _check_store(settings)
    yield store
    if store.state == "fine":
        async for defect in _check_contents(settings, repair=flags.repair):
            yield defect
        yield await _check_blobs(settings)
    for finding in (*await check_models(settings), *await check_servers(settings)):
        yield finding
    yield await _check_cage(settings)
    yield _check_page()
    for name, about in EXTRAS.items():
        yield _check_extra(name, *about)


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
    fix = 'name a file that can be written: store = "…" in dragoman.toml'
    return Finding("store", "missing", f"{address} cannot be written", fix)


async def _check_blobs(settings: Settings) -> Finding:
    """Check where attachments are stored, and whether they can be written, read and deleted."""
    address = store_of(settings)
    if address.is_there:
        try:
            async with open_store(settings) as runtime:
                if isinstance(runtime.store, SqlAttachments):
                    await runtime.store.check_blobs()
        except DragomanError as error:
            fix = 'repair that, or name another place: blobs = "…" in dragoman.toml'
            return Finding("blobs", "missing", str(error), fix)
    return Finding("blobs", "fine", address.shown_blobs)


def _is_writable(path: Path) -> bool:
    parent = next(folder for folder in path.parents if folder.exists())
    return parent.is_dir() and os.access(parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


async def _check_contents(settings: Settings, *, repair: bool) -> AsyncIterator[Finding]:
    """Check the store file: its pages, rows and attachments. A database server checks its data itself."""
    # attachments that need not be in the folder next to the store
    address, other = store_of(settings), set[str]()
    if isinstance(address, StoreServer) or not address.is_there:
        return
    try:
        async with open_store(settings) as runtime:
            if isinstance(runtime.store, SqlAttachments):
                other = await runtime.store.list_named_blobs()
    except DragomanError as error:
        yield Finding("store", "missing", f"not looked at: {error}", "fix that first")
        return
    for defect in check_store(address.path, repair=repair, other_blobs=other):
        if defect.repaired:
            yield Finding("store", "fine", f"repaired: {defect.text}")
        else:
            yield Finding("store", "optional" if defect.harmless else "missing", defect.text, defect.hint)


async def _check_cage(settings: Settings) -> Finding:
    """Try every boundary of the cage, because kernels, containers and policies differ."""
    wanted = cage_of(settings)
    if wanted.use == "off":
        return Finding(
            "cage", "optional", "off: commands run with all your rights", 'cage = "auto" under [shell]'
        )
    missing, through = await try_cage(wanted)
    worst: Literal["optional", "missing"] = "missing" if wanted.use == "always" else "optional"
    if missing:
        return Finding("cage", worst, f"not available, so commands need your approval: {missing}")
    if through:
        return Finding(
            "cage",
            worst,
            f"it does not hold: {', '.join(through)}",
            "docs/concepts/cage.md says what that means",
        )
    return Finding("cage", "fine", f"holds, each tried: {', '.join(BOUNDARIES)}")


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
        if one.fix is not None:
            console.print(Text(f"             {one_line(one.fix, 500)}", "dim"), soft_wrap=True)


# ── requests to other servers ─────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class _Answered:
    """A provider's answer to a request for its models: a list, or the problem and its fix."""

    models: list[ListedModel] | None = None
    problem: str = ""
    fix: str | None = None

    @property
    def text(self) -> str:
        if self.problem:
            return self.problem
        return f"answers, with {count(len(self.models), 'model')}" if self.models is not None else "answers"


async def check_models(settings: Settings) -> list[Finding]:
    """Check the default model, then every other provider with a key or an address."""
    keys, catalog = Keys(), catalog_of(settings)
    wanted = {*settings.values.get("providers", {})}
    wanted |= {one.name for one in catalog.providers.values() if describe_auth(one, keys) is not None}
    found: list[Finding] = []
    try:
        chosen = await choose_model(settings)
        async with chosen.models:
            chosen.models(None)
            provider, model = chosen.models.catalog.find(chosen.name)
            found.append(await _check_model(chosen, provider, model))
            wanted.discard(provider.name)
    except DragomanError as error:
        fix = "Run `dragoman models` to list models and what they need."
        found.append(Finding("model", "missing", str(error), fix))
    others = [catalog.providers[name] for name in sorted(wanted - {PROVIDER}) if name in catalog.providers]
    async with HttpClient() as client:
        answers = await asyncio.gather(*(_ask_provider(client, one, keys) for one in others))
    for one, answer in zip(others, answers, strict=True):
        found.append(Finding(one.name, "optional" if answer.problem else "fine", answer.text, answer.fix))
    if not any(keys.find(one) for one in catalog.providers.values()):
        fix = "export OPENAI_API_KEY=… or the like; dragoman models names them all"
        found.append(Finding("keys", "optional", "none: models on this machine need none", fix))
    return found


async def _check_model(chosen: ChosenModel, provider: Provider, model: str) -> Finding:
    about = f"{chosen.name} ({chosen.reason})"
    if provider.name == PROVIDER:
        return Finding("model", "fine", about, chosen.note)  # Dragoman serves this model itself.
    answer = await _ask_provider(chosen.models.client, provider, chosen.models.keys)
    if answer.problem:
        return Finding("model", "missing", f"{about}: {answer.problem}", answer.fix)
    names = [one.id for one in answer.models or ()]
    if names and model.lower() not in map(str.lower, names) and facts_of(provider.facts, model) is None:
        known = one_line(", ".join(names), 200)
        fix = f"name one of those it has: {known}"
        return Finding("model", "missing", f"{about}: {provider.title} answers, and has no {model}", fix)
    return Finding("model", "fine", f"{about}: {provider.title} {answer.text}", chosen.note)


async def _ask_provider(client: HttpClient, provider: Provider, keys: Keys) -> _Answered:
    """Request the list of models: nearly every provider has one, and it costs no tokens."""
    try:
        endpoint = reach(provider, keys)
    except DragomanError as error:
        return _Answered(problem=str(error), fix="dragoman models names what it needs")
    try:
        return _Answered(await list_models(client, endpoint, seconds=PATIENCE))
    except ProviderError as error:
        if error.kind == "auth":
            name = endpoint.auth.name or "the key"
            refused = f"refuses the key (HTTP {error.status})"
            return _Answered(problem=refused, fix=f"set {name} to a valid key")
        if error.status is not None or error.kind == "no_list":
            return _Answered()  # The provider answers. Some have no list.
        start = "start the server" if provider.local else "look at your network or proxy"
        silent = f"{redact_text(endpoint.base_url)} does not answer"
        return _Answered(problem=silent, fix=f"{start}, or name another model")


async def check_servers(settings: Settings) -> list[Finding]:
    """Check all servers at the same time, so that the slowest determines the duration."""
    try:
        servers = servers_of(settings)
    except DragomanError as error:
        return [Finding("mcp", "missing", str(error), "correct it, then: dragoman mcp list")]
    on = {name: server for name, server in servers.items() if server.enabled}
    return list(await asyncio.gather(*(_check_server(name, server) for name, server in on.items())))


async def _check_server(name: str, server: McpServer) -> Finding:
    if server.command is not None and shutil.which(server.command) is None:
        fix = f"install {server.command}, or: dragoman mcp remove {name}"
        return Finding(f"mcp {name}", "missing", f"program not found: {server.command}", fix)
    async with tried(McpSource(name, server, patience=CHECK)) as source:
        if source.state != "running":
            problem, fix = source.error or source.state, f"dragoman mcp test {name}"
            return Finding(f"mcp {name}", "missing", problem, fix)
        return Finding(f"mcp {name}", "fine", f"answers, with {count(len(source.group().tools), 'tool')}")
