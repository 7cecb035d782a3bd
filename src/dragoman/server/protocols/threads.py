"""Conversations that somebody else's client names, what it says was said in them, and what it says now."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, DragomanError, NotFound
from dragoman.messages.boundary import check_json
from dragoman.messages.ids import derived_id, new_id
from dragoman.messages.message import Message
from dragoman.messages.parts import File, Part, Text
from dragoman.server.context import Context
from dragoman.store.store import TurnRow
from dragoman.turn.facts import TurnOptions

LONGEST_NAME = 500
_DATA = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*(?P<base64>;base64)?,", re.ASCII)
_OURS = re.compile(r"/api/files/([0-9a-f]{64})")


@dataclass(slots=True, frozen=True)
class Said:
    """A message of a history that a client brings."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]


async def conversation_of(context: Context, person: str, name: str, protocol: str) -> str | None:
    """The conversation that a client means by this name: one of ours, or the one that was begun under it.
    None where there is none yet."""
    if not name or len(name) > LONGEST_NAME:
        raise BadRequest(f"the name of a conversation has 1 to {LONGEST_NAME} characters")
    for id in (name, derived_id("conv", protocol, person, name)):
        try:
            return (await context.conversation(id, person)).id
        except NotFound:
            continue
    return None


async def begin_conversation(
    context: Context, person: str, name: str, protocol: str, history: Sequence[Said]
) -> str:
    """A conversation under a name of the client's, with what it says was said before."""
    id = derived_id("conv", protocol, person, name)
    now = context.runtime.services.clock()
    messages: list[Message] = []
    for said in history:
        parts = tuple(part for part in said.parts if not isinstance(part, Text) or part.text)
        if not parts:
            continue
        check_json([part.text for part in parts if isinstance(part, Text)], "the history")
        parent = messages[-1].id if messages else None
        finish = None if said.role == "user" else "stop"
        messages.append(Message(new_id("msg"), id, parent, said.role, parts, created=now, finish=finish))
    conversation = Conversation(
        id,
        leaf=messages[-1].id if messages else None,
        user=context.user(person),
        created=now,
        updated=now,
    )
    try:
        await context.runtime.store.add_conversation(conversation, messages)
    except Exception:  # somebody was faster: then it is there
        if await conversation_of(context, person, name, protocol) is None:
            raise
    return id


async def say_first(
    context: Context, conversation: str, content: Sequence[Part], options: TurnOptions
) -> TurnRow:
    """In a conversation that was just begun: one in which nothing can be said is not kept."""
    try:
        return await say(context, conversation, content, after=None, first=False, options=options)
    except DragomanError:
        if not await context.runtime.store.turns(conversation):
            await context.runtime.delete(conversation)
        raise


async def say(
    context: Context,
    conversation: str,
    content: Sequence[Part],
    *,
    after: TurnRow | None,
    first: bool,
    options: TurnOptions,
) -> TurnRow:
    """A message and the turn that answers it: below what a turn said, or last. `first`: it is the first one
    of all, and where there was another it takes its place. Who has hung up on a turn and says something
    else does not want it any more."""
    runtime = context.runtime
    for live in await runtime.store.live_turns(conversation):
        await context.readers.stop_if_left(live.id)
    old = await _first_message(context, conversation) if first else None
    if old is not None:
        turn = await runtime.commands.edit(old, content, options=options)
    else:
        parent = None
        if after is not None:
            said = (await runtime.turn(after.id).snapshot()).messages
            parent = said[-1].id if said else after.message
        turn = await runtime.commands.send(conversation, content, parent=parent, options=options)
    context.publisher.changed(conversation)
    return await runtime.store.turn(turn)


async def _first_message(context: Context, conversation: str) -> str | None:
    stored, _ = await context.runtime.store.messages(conversation)
    return next((one.id for one in stored if one.parent is None and one.role == "user"), None)


async def attach(context: Context, person: str, url: str, media_type: str, name: str | None = None) -> File:
    """A file by its address: its bytes in a `data:` address, one of ours, or one on the web. BadRequest
    where it is none of these."""
    if (found := _DATA.match(url)) is not None:
        rest = url[found.end() :]
        try:
            data = b64decode(rest, validate=True) if found["base64"] else unquote_to_bytes(rest)
        except ValueError as error:
            raise BadRequest("a file of the message cannot be read: its data are no base64") from error
        return await store_file(context, person, data, media_type or found["type"] or "text/plain", name)
    try:
        address = urlsplit(url)
    except ValueError as error:
        raise BadRequest(f"a file of the message has no address: {error}") from error
    if (ours := _OURS.fullmatch(address.path)) is not None:
        await context.check_blob(ours[1], person)
        return File(media_type, blob=ours[1], name=name)
    if address.scheme in ("http", "https"):
        return File(media_type, url=url, name=name)
    raise BadRequest("a file of a message is a data: address, one of this server, or one on the web")


async def store_file(context: Context, person: str, data: bytes, media_type: str, name: str | None) -> File:
    if not data:
        raise BadRequest("a file of the message is empty")
    if len(data) > context.upload_limit:
        raise BadRequest(f"a file of the message is larger than {context.upload_limit} bytes")
    if not re.fullmatch(r"[\w.+-]{1,100}/[\w.+-]{1,100}", media_type, re.ASCII):
        raise BadRequest(f"{media_type!r} is no type of a file")
    store = context.runtime.store
    blob = await store.put_blob(data)
    await store.add_upload(blob, person, context.runtime.services.clock())
    return File(media_type, blob=blob, name=name, size=len(data))
