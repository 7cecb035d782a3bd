"""Open the store without resuming turns, and find objects by shortened IDs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from dragoman.cli.terminal.text import one_line
from dragoman.config.build import snapshot_options, store_of
from dragoman.config.settings import Settings
from dragoman.config.workspaces import workspaces_of
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError, NotFound, Unreadable
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.store.store import Store, TurnRow

LAST = "last"
_PAGE = 200
_TURN = "turn_"


@asynccontextmanager
async def open_store(
    settings: Settings, *, create: bool = False, workspace: bool = False
) -> AsyncIterator[Runtime]:
    """Open the store to read and to answer. With `create`, a missing store is created. With `workspace`,
    changes in that folder can be shown and undone."""
    address = store_of(settings)
    if not create and not address.is_there:
        raise ConfigError(f"Database {address} not found. Name another one with --store.")
    main, others = workspaces_of(settings, address) if workspace else (None, {})
    options = snapshot_options(settings, address)
    async with Runtime(address, adopts=False, workspace=main, workspaces=others, **options) as runtime:
        yield runtime


def recent_titles(settings: Settings) -> list[tuple[str, str]]:
    """Return the most recently used conversations with their titles, without archived ones."""

    async def read() -> list[Conversation]:
        async with open_store(settings) as runtime:
            return await runtime.store.conversations(limit=_PAGE)

    shown = [one for one in asyncio.run(read()) if one.parent is None and not one.archived]
    return [(one.id, one_line(one.title or "untitled", 60)) for one in shown]


async def find_conversation(store: Store, name: str) -> Conversation:
    """Return the conversation of this ID or unique ID prefix, or the most recently used one."""
    if name == LAST:
        async for conversation in each_conversation(store):
            return conversation
        raise NotFound("conversation", LAST, "The store has no conversations yet.")
    try:
        return await store.conversation(name)
    except (NotFound, Unreadable):  # A list also contains unreadable conversations.
        found = {one.id: one async for one in each_conversation(store, inner=True)}
        return found[match_id("conversation", name, found)]


async def find_turn(store: Store, name: str = LAST, *, ended: bool = False) -> TurnRow:
    """Return the turn of this ID or unique ID prefix, the latest one, or the latest one of a conversation.
    With `ended`, only ended turns count as the latest."""
    if name.startswith(_TURN):
        return await _find_turn_by_id(store, name)
    try:
        found = each_conversation(store) if name == LAST else _only(await find_conversation(store, name))
    except NotFound as error:
        raise NotFound("turn or conversation", name) from error
    async for conversation in found:  # Imported conversations have no turns.
        for row in reversed(await store.turns(conversation.id)):
            if not (ended and row.live):
                return row
    where = "The store has no turns yet." if name == LAST else "That conversation has no turns here."
    raise NotFound("turn", name, where)


async def _find_turn_by_id(store: Store, name: str) -> TurnRow:
    try:
        return await store.turn(name)
    except NotFound:
        conversations = [one.id async for one in each_conversation(store, inner=True)]
        found = {row.id: row for one in conversations for row in await store.turns(one)}
        return found[match_id("turn", name, found)]


async def _only(conversation: Conversation) -> AsyncIterator[Conversation]:
    yield conversation


async def find_question(store: Store, name: str) -> Question:
    """Return an open approval request by its ID or unique ID prefix, or an answered one by its full ID."""
    open = {question.id: question for question in await store.questions()}
    if name == LAST and open:
        return list(open.values())[-1]
    if name in open:
        return open[name]
    try:
        return await store.question(name)
    except NotFound:
        return open[match_id("question", name, open)]


def match_id(noun: str, beginning: str, ids: Iterable[str]) -> str:
    """Return the only ID with this prefix, with or without a type such as `conv_`. Raises NotFound or
    BadRequest."""
    known = list(ids)
    matches = [id for id in known if beginning and beginning in (id[: len(beginning)], _bare(id, beginning))]
    if len(matches) > 1:
        raise BadRequest(f"{beginning!r} is the beginning of {len(matches)} ids: {', '.join(matches[:5])}")
    if not matches:
        raise NotFound(noun, beginning)
    return matches[0]


async def each_conversation(store: Store, *, inner: bool = False) -> AsyncIterator[Conversation]:
    """Yield conversations, most recently used first. With `inner`, include those that calls opened."""
    before: tuple[float, str] | None = None
    while page := await store.conversations(limit=_PAGE, before=before):
        for conversation in page:
            if inner or conversation.parent is None:
                yield conversation
        before = (page[-1].updated, page[-1].id)


def _bare(id: str, beginning: str) -> str:
    """Return a prefix of this length without the type."""
    return id.partition("_")[2][: len(beginning)]
