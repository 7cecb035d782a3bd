"""`/prompt`: texts that MCP servers offer, put where one types, to be read before they are sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.terminal.text import one_line
from dragoman.errors import BadRequest, ToolFailed
from dragoman.tools.mcp.source import McpSource


async def prompt(session: Session, argument: str) -> None:
    sources = {
        one.name: one for one in session.runtime.services.toolbox.sources if isinstance(one, McpSource)
    }
    if not sources:
        raise BadRequest("no MCP server is set up: `dragoman mcp` tells how")
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise BadRequest(f"/prompt SERVER NAME [ARGUMENT=VALUE …]: {error}") from error
    if not words:
        return await _list(session, sources.values())
    server, name, *given = [*words, ""] if len(words) == 1 else words
    if server not in sources:
        raise BadRequest(f"there is no server {server!r}: there are {', '.join(sources)}")
    if not name:
        return await _list(session, [sources[server]])
    values = dict(word.partition("=")[::2] for word in given)
    try:
        session.draft = await sources[server].prompt(name, values)
    except ToolFailed as error:
        raise BadRequest(str(error)) from error
    return session.notify(f"what {server} proposes stands below: read it, change it, Enter sends it")


async def _list(session: Session, sources: Iterable[McpSource]) -> None:
    for source in sources:
        try:
            found = await source.prompts()
        except ToolFailed as error:
            session.notify(str(error))
            continue
        if not found:
            session.notify(f"{source.name} has none")
        for one in found:
            takes = " ".join(
                [*(f"{name}=…" for name in one.required), *(f"[{name}=…]" for name in one.optional)]
            )
            line = one_line(f"{source.name} {one.name} {takes}", 400)
            session.console.print(Text(f"  {line}  {one_line(one.description, 60)}"))
