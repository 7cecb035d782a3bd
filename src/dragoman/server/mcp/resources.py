"""Offer conversations as resources, and commands and skills as prompts, to MCP clients."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as types
from mcp.shared.exceptions import MCPError

from dragoman.config.project_prompt import Template
from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound, Unreadable
from dragoman.runtime import Runtime
from dragoman.tools.skills import Skill, Skills

_PREFIX = "dragoman://conversations/"
_PAGE = 50
_MARKDOWN = "text/markdown"
TEMPLATE = types.ResourceTemplate(
    name="conversation",
    uri_template=f"{_PREFIX}{{id}}",
    description="A conversation, for reading: who said what, what was called and what came of it.",
    mime_type=_MARKDOWN,
)


async def list_conversations(
    runtime: Runtime, person: str, cursor: str | None
) -> tuple[list[types.Resource], str | None]:
    """Return one page of the conversations that a user may read, most recently used first, and the next
    cursor."""
    page = await runtime.store.conversations(user=person, limit=_PAGE, before=_before(cursor), shared=True)
    found = [
        types.Resource(
            name=one.id, title=one.title or "untitled", uri=f"{_PREFIX}{one.id}", mime_type=_MARKDOWN
        )
        for one in page
    ]
    return found, f"{page[-1].updated!r} {page[-1].id}" if len(page) == _PAGE else None


async def read_conversation(runtime: Runtime, person: str, uri: str) -> types.TextResourceContents:
    """Return a conversation as Markdown. Raises MCPError if it does not exist or belongs to another user."""
    id = uri.removeprefix(_PREFIX)
    try:
        if id == uri or await runtime.store.right_of(id, person) < Right.READ:
            raise NotFound("resource", uri)
        text = await runtime.export_markdown(id)
    except (NotFound, Unreadable) as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
    return types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)


def _before(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    updated, _, id = cursor.partition(" ")
    try:
        return float(updated), id
    except ValueError:
        raise MCPError(
            types.INVALID_PARAMS, f"Unknown page {cursor!r}. Pass the `nextCursor` of the previous page."
        ) from None


# ── prompts ───────────────────────────────────────────────────────────────────────────────────────


async def list_prompts(
    runtime: Runtime, person: str, templates: Mapping[str, Template]
) -> list[types.Prompt]:
    argument = types.PromptArgument(name="arguments", description="what it is about", required=False)
    commands = [
        types.Prompt(name=one.name, description=one.help, arguments=[argument]) for one in templates.values()
    ]
    skills = [
        types.Prompt(name=name, description=skill.description)
        for name, skill in (await _skills(runtime, person)).items()
        if name not in templates
    ]
    return [*commands, *skills]


async def read_prompt(
    runtime: Runtime, person: str, templates: Mapping[str, Template], name: str, arguments: Mapping[str, str]
) -> types.GetPromptResult:
    if name in templates:
        text = templates[name].fill(arguments.get("arguments", ""))
    elif (skill := (await _skills(runtime, person)).get(name)) is not None:
        text = skill.text
    else:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt {name!r}.")
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(messages=[message])


async def _skills(runtime: Runtime, person: str) -> dict[str, Skill]:
    found: dict[str, Skill] = {}
    for source in (await runtime.services.seen_by(person)).toolbox.sources:
        if isinstance(source, Skills):
            await source.ready()
            found |= source.skills
    return found
