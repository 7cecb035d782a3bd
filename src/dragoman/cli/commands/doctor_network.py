"""What `dragoman doctor` asks others: each provider for its list of models, and each MCP server to start."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from dragoman.cli.model_choice import ChosenModel, choose_model
from dragoman.cli.terminal.text import count, one_line
from dragoman.config.build import catalog_of, servers_of
from dragoman.config.settings import Settings
from dragoman.errors import DragomanError, ProviderError
from dragoman.providers.catalog import Provider
from dragoman.providers.facts import facts_of
from dragoman.providers.listing import ListedModel, list_models
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.sign_in import Keys, describe_auth, reach
from dragoman.redaction import redact_text
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.http_client.client import HttpClient

PATIENCE = 5.0  # seconds a model's server has to answer
START = 20.0  # seconds an MCP server has to show that it is there


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


@dataclass(slots=True, frozen=True)
class _Answered:
    """What a provider said when it was asked for its models: a list, or what is wrong, and what mends it."""

    models: list[ListedModel] | None = None
    problem: str = ""
    mend: str | None = None

    @property
    def text(self) -> str:
        if self.problem:
            return self.problem
        return f"answers, with {count(len(self.models), 'model')}" if self.models is not None else "answers"


async def check_models(settings: Settings) -> list[Finding]:
    """The model that would answer; then every other provider that a key or an address is set for."""
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
        mend = "dragoman models lists what there is and what it needs"
        found.append(Finding("model", "missing", str(error), mend))
    others = [catalog.providers[name] for name in sorted(wanted - {PROVIDER}) if name in catalog.providers]
    async with HttpClient() as client:
        answers = await asyncio.gather(*(_ask(client, one, keys) for one in others))
    for one, answer in zip(others, answers, strict=True):
        found.append(Finding(one.name, "optional" if answer.problem else "fine", answer.text, answer.mend))
    if not any(keys.find(one) for one in catalog.providers.values()):
        mend = "export OPENAI_API_KEY=… or the like; dragoman models names them all"
        found.append(Finding("keys", "optional", "none: models on this machine need none", mend))
    return found


async def _check_model(chosen: ChosenModel, provider: Provider, model: str) -> Finding:
    about = f"{chosen.name} ({chosen.reason})"
    if provider.name == PROVIDER:
        return Finding("model", "fine", about, chosen.note)  # we serve it ourselves
    answer = await _ask(chosen.models.client, provider, chosen.models.keys)
    if answer.problem:
        return Finding("model", "missing", f"{about}: {answer.problem}", answer.mend)
    names = [one.id for one in answer.models or ()]
    if names and model.lower() not in map(str.lower, names) and facts_of(provider.facts, model) is None:
        known = one_line(", ".join(names), 200)
        mend = f"name one of those it has: {known}"
        return Finding("model", "missing", f"{about}: {provider.title} answers, and has no {model}", mend)
    return Finding("model", "fine", f"{about}: {provider.title} {answer.text}", chosen.note)


async def _ask(client: HttpClient, provider: Provider, keys: Keys) -> _Answered:
    """The list of models is asked for: nearly every provider has it, and it costs no tokens."""
    try:
        endpoint = reach(provider, keys)
    except DragomanError as error:
        return _Answered(problem=str(error), mend="dragoman models names what it needs")
    try:
        return _Answered(await list_models(client, endpoint, seconds=PATIENCE))
    except ProviderError as error:
        if error.kind == "auth":
            name = endpoint.auth.name or "the key"
            refused = f"refuses the key (HTTP {error.status})"
            return _Answered(problem=refused, mend=f"set {name} to a valid key")
        if error.status is not None or error.kind == "no_list":
            return _Answered()  # it is there: not all of them have a list
        start = "start the server" if provider.local else "look at your network or proxy"
        silent = f"{redact_text(endpoint.base_url)} does not answer"
        return _Answered(problem=silent, mend=f"{start}, or name another model")


async def check_servers(settings: Settings) -> list[Finding]:
    """All at once: the slowest decides how long it takes."""
    try:
        servers = servers_of(settings)
    except DragomanError as error:
        return [Finding("mcp", "missing", str(error), "correct it, then: dragoman mcp list")]
    on = {name: server for name, server in servers.items() if server.enabled}
    return list(await asyncio.gather(*(_check_server(name, server) for name, server in on.items())))


async def _check_server(name: str, server: McpServer) -> Finding:
    if server.command is not None and shutil.which(server.command) is None:
        mend = f"install {server.command}, or: dragoman mcp remove {name}"
        return Finding(f"mcp {name}", "missing", f"there is no program {server.command}", mend)
    source = McpSource(name, server, patience=START)
    try:
        await source.ready()
        if source.state != "running":
            problem, mend = source.error or source.state, f"dragoman mcp test {name}"
            return Finding(f"mcp {name}", "missing", problem, mend)
        return Finding(f"mcp {name}", "fine", f"answers, with {count(len(source.group().tools), 'tool')}")
    finally:
        await source.close()
