"""Turn a server's list of tools into tools, and keep it for the next start without the server.

Nothing here needs the MCP SDK. A kept list is read immediately, and its server starts when one of its tools
is called (L3).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from dragoman.errors import ConfigError
from dragoman.messages.ids import new_id
from dragoman.messages.message import Arguments, canonical
from dragoman.tools.json_schema import JsonArguments, JsonParameters
from dragoman.tools.mcp.servers import McpServer, local_name, offered_name
from dragoman.tools.schema import Parameters
from dragoman.tools.tool import Replay, Tool, ToolContext, ToolOutput

CallTool: TypeAlias = Callable[["Definition", Arguments, ToolContext], Awaitable[ToolOutput]]


@dataclass(slots=True, frozen=True)
class Definition:
    """A tool as a server describes it. The fingerprint changes with anything that is shown of it."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    replay: Replay
    remark: str  # the server's claims, for the user who decides
    fingerprint: str


@dataclass(slots=True, frozen=True)
class ToolList:
    """The tools and resources that a server offers."""

    definitions: tuple[Definition, ...] = ()
    rules: str = ""  # the server's instructions for its tools
    has_resources: bool = False
    left_out: tuple[str, ...] = ()  # tools that cannot be offered, and why

    def sound(self, tools: Iterable[Tool], left_out: Iterable[str]) -> ToolList:
        """Return the list to keep: only definitions that became tools. The next start skips their schema
        check."""
        offered = {tool.fingerprint for tool in tools}
        definitions = tuple(one for one in self.definitions if one.fingerprint in offered)
        return replace(self, definitions=definitions, left_out=tuple(left_out))


_LIST: TypeAdapter[ToolList] = TypeAdapter(ToolList)


class KeptLists:
    """The kept lists, one file for each server and its settings: changed settings have no list."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str, server: McpServer) -> ToolList | None:
        """Return the list. None if it is missing or unreadable: then the server is asked."""
        try:
            return _LIST.validate_json(self._path(name, server).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, name: str, server: McpServer, found: ToolList) -> None:
        """Write the list atomically. If that fails, the server is asked next time."""
        path = self._path(name, server)
        partial = path.with_name(new_id("part"))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(_LIST.dump_json(found))
            partial.replace(path)
        except OSError:
            with suppress(OSError):
                partial.unlink()

    def _path(self, name: str, server: McpServer) -> Path:
        said = json.dumps([name, asdict(server)], sort_keys=True, default=str)
        return self._folder / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.json"


def tools_of(
    server: str,
    settings: McpServer,
    definitions: Sequence[Definition],
    call: CallTool,
    *,
    checked: bool = False,
) -> tuple[tuple[Tool, ...], list[str]]:
    """Return the tools that can be offered, in the server's order, and why the others cannot be.

    Pass `checked` for a kept list.
    """
    tools: dict[str, Tool] = {}
    wrong: list[str] = []
    for definition in definitions:
        if definition.name in tools:
            wrong.append(f"there are two tools named {definition.name}: the second one is left out")
            continue
        try:
            tools[definition.name] = _tool_of(server, settings, definition, call, checked=checked)
        except ConfigError as error:
            wrong.append(f"{str(error).removesuffix('.')}: it is left out")
    return tuple(tools.values()), wrong


def _tool_of(
    server: str, settings: McpServer, definition: Definition, call: CallTool, *, checked: bool
) -> Tool:
    name = offered_name(server, definition.name)

    async def run(arguments: BaseModel, context: ToolContext) -> ToolOutput:
        assert isinstance(arguments, JsonArguments)
        return await call(definition, arguments.root, context)

    return Tool(
        name=name,
        description=definition.description,
        parameters=JsonParameters(name, definition.schema, checked=checked),
        run=run,
        permission=f"mcp.{server}.{local_name(definition.name)}",
        patterns=lambda _: (),
        replay=settings.replay or definition.replay,
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
        fingerprint=definition.fingerprint,
        remark=definition.remark,
    )


def fingerprint_of(shown: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(shown).encode("utf-8", "surrogatepass")).hexdigest()[:32]


# Offer the resources of an MCP server as two tools: one lists them, the other reads one.

ListResources: TypeAlias = Callable[[ToolContext], Awaitable[ToolOutput]]
ReadResource: TypeAlias = Callable[[str, ToolContext], Awaitable[ToolOutput]]


class _Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Uri(BaseModel):
    model_config = ConfigDict(extra="forbid")

    uri: Annotated[str, Field(min_length=1, max_length=4000, description="as the list names it")]


def resource_tools(
    server: str, settings: McpServer, taken: Collection[str], find: ListResources, read: ReadResource
) -> list[Tool]:
    """Return the resource tools, with our own descriptions because servers do not describe them as tools.

    If the server has tools with these names, the server's tools are used.
    """

    async def run_find(_: BaseModel, context: ToolContext) -> ToolOutput:
        return await find(context)

    async def run_read(arguments: BaseModel, context: ToolContext) -> ToolOutput:
        assert isinstance(arguments, _Uri)
        return await read(arguments.uri, context)

    listing = Tool(
        name=offered_name(server, "list_resources"),
        description=f"List what {server} has to read: addresses, names, descriptions.",
        parameters=Parameters("list_resources", _Nothing),
        run=run_find,
        permission=f"mcp.{server}.resources",
        patterns=lambda _: (),
        replay="safe",
        writes="nothing",
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
    )
    reading = Tool(
        name=offered_name(server, "read_resource"),
        description=f"Read a resource of {server} by its address.",
        parameters=Parameters("read_resource", _Uri),
        run=run_read,
        permission=f"mcp.{server}.resources",
        patterns=lambda arguments: (str(arguments.get("uri", "")),),
        replay="safe",
        writes="nothing",
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
    )
    return [tool for tool in (listing, reading) if tool.name not in taken]
