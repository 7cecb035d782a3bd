"""Find the conversation that a client of another protocol names, start its turn, and stream the reply."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count, zip_longest
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, DragomanError, NotFound, Unreadable
from dragoman.messages.asked import question_to_read
from dragoman.messages.boundary import check_json
from dragoman.messages.events import Event, MessageAdded
from dragoman.messages.ids import derived_id, new_id
from dragoman.messages.media import data_in, is_media_type, parse_data_url
from dragoman.messages.message import (
    Arguments,
    CallState,
    File,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.sentences import sentence
from dragoman.server.context import Context
from dragoman.server.event_stream import STOPS, EventStream
from dragoman.server.protocols.event_reader import TurnWriter
from dragoman.store.store import SendKey, TurnRow
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.facts import TurnOptions
from dragoman.turn.live.log import Snapshot

LONGEST_NAME = 500
_LATELY = 3  # number of recent turns that are searched for a repeated message
_OURS = re.compile(r"/api/files/([0-9a-f]{64})")


class Loose(BaseModel):
    """A model that ignores unknown fields: clients send more than the server needs, and newer ones send even
    more."""

    model_config = ConfigDict(extra="ignore")


class WithContent(Loose):
    """A model that ignores unknown single values, but refuses unknown lists and objects.

    They would contain content, which must not be lost silently. Raises BadRequest.
    """

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _all_is_read(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if value and isinstance(value, list | dict):
                raise BadRequest(sentence("client.field", name=name))
        return self


def unreadable(type: str) -> BadRequest:
    return BadRequest(sentence("client.part", type=type))


@dataclass(slots=True, frozen=True)
class EarlierMessage:
    """A message of a history that a client sends. `id` is the server's if the client got it from the
    server."""

    role: Literal["user", "assistant"]
    id: str
    parts: Callable[[], Awaitable[tuple[Part, ...]]]  # returns the parts, and stores the files in them


async def conversation_of(context: Context, name: str, protocol: str, right: Right) -> str | None:
    """Return the conversation that a client names by its ID or by a name that the client chose, or None.

    Raises Forbidden if the user lacks this right.
    """
    if not name or len(name) > LONGEST_NAME:
        raise BadRequest(f"The name of a conversation must have 1 to {LONGEST_NAME} characters.")
    for id in (name, await _own_id(context, name, protocol)):
        try:
            return (await context.conversation(id, right)).id
        except NotFound:
            continue
    return None


async def _own_id(context: Context, name: str, protocol: str) -> str:
    """Return the ID for the user's conversation of this name. If the user has given one away and lost access
    to it, its name is free again."""
    origin: tuple[object, ...] = (protocol, context.person, name)
    for given_away in count():
        id = derived_id("conv", *origin, given_away) if given_away else derived_id("conv", *origin)
        try:
            if await context.runtime.store.right_of(id, context.person) is not Right.NONE:
                return id
        except NotFound:
            return id
    raise AssertionError


async def begin_conversation(
    context: Context, name: str, protocol: str, history: Sequence[EarlierMessage]
) -> str:
    """Create a conversation under a client's name, with the client's history, and return its ID."""
    id = await _own_id(context, name, protocol)
    now = context.runtime.services.clock()
    messages: list[Message] = []
    turn = new_id("turn")
    for said in history:
        turn = new_id("turn") if said.role == "user" else turn
        parts = tuple(part for part in await said.parts() if not isinstance(part, Text) or part.text)
        if not parts:
            continue
        check_json([asdict(part) for part in parts], "the history")
        parent = messages[-1].id if messages else None
        finish = None if said.role == "user" else "stop"
        messages.append(
            Message(new_id("msg"), id, parent, said.role, parts, turn=turn, created=now, finish=finish)
        )
    conversation = Conversation(
        id,
        leaf=messages[-1].id if messages else None,
        user=context.user,
        created=now,
        updated=now,
    )
    try:
        await context.runtime.store.add_conversation(conversation, messages)
    except Exception:  # If another request created it first, use that one.
        if await conversation_of(context, name, protocol, Right.TAKE_PART) is None:
            raise
    return id


def earlier_call(
    id: str,
    tool: str,
    arguments: Arguments,
    result: ToolResult | None,
    state: CallState = CallState.COMPLETED,
) -> ToolCall:
    """Return a call of a history that a client sends. Without a result, the call counts as interrupted."""
    if result is None:
        result, state = ToolResult("The call was broken off: it has no result."), CallState.INTERRUPTED
    return ToolCall(new_id("call"), tool, arguments, state=state, result=result, provider_id=id)


async def say(
    context: Context,
    name: str,
    protocol: str,
    *,
    before: Sequence[EarlierMessage],
    content: Sequence[Part],
    options: TurnOptions,
    mark: str,
    key: SendKey | None = None,
    continues: bool = False,
    kept: Mapping[str, JsonValue] | None = None,
) -> TurnRow:
    """Send a message to the conversation of this name, and return the turn that answers it.

    The message follows the last answer in `before`. If `before` is empty, it replaces the first message, or
    with `continues` follows the last one. `mark` identifies a message that a client repeats. `kept` is
    metadata that the client gets back.
    """
    metadata: dict[str, JsonValue] = {protocol: mark, **(kept or {})}
    conversation = await conversation_of(context, name, protocol, Right.TAKE_PART)
    if conversation is None:
        conversation = await begin_conversation(context, name, protocol, before)
        try:
            return await _send(
                context, conversation, content, None, options=options, metadata=metadata, key=key
            )
        except DragomanError:
            if not await context.runtime.store.turns(conversation):
                await context.runtime.delete(conversation)  # The conversation has no turns.
            raise
    await stop_what_was_left(context, conversation)
    if not before and not continues and (old := await _first_message(context, conversation)) is not None:
        turn = await context.runtime.commands.edit(
            old, content, options=options, metadata=metadata, key=key, by=context.person
        )
        context.publisher.changed(conversation)
        return await context.runtime.store.turn(turn)
    parent = await _last_known(context, conversation, before)
    return await _send(context, conversation, content, parent, options=options, metadata=metadata, key=key)


async def find_asked(
    context: Context, conversation: str, before: Sequence[EarlierMessage], content: Sequence[Part]
) -> list[tuple[TurnRow, Message]]:
    """Return recent turns that answer exactly this message after the same answer, with the message."""
    parent = await _last_known(context, conversation, before)
    text = "".join(part.text for part in content if isinstance(part, Text))
    return [
        (turn, message)
        for turn, message in await said_lately(context, conversation)
        if message.id == turn.message
        and message.text == text
        and (message.parent == parent or (parent is None and before))
    ]


async def said_lately(context: Context, conversation: str) -> list[tuple[TurnRow, Message]]:
    """Return user messages that the most recent turns answer or received while running, oldest first.

    A repeated message is one of these, so a long conversation need not be read.
    """
    found: list[tuple[TurnRow, Message]] = []
    for turn in (await context.runtime.store.turns(conversation))[-_LATELY:]:
        with suppress(NotFound, Unreadable):
            asked = await context.runtime.store.message(turn.message)
            during = (await context.runtime.turn(turn.id).snapshot()).messages
            said = {one.id: one for one in (asked, *during) if one.role == "user"}
            found += [(turn, message) for message in said.values()]
    return found


async def stop_what_was_left(context: Context, conversation: str) -> None:
    """Cancel turns whose client has disconnected: a new request shows that they are not needed."""
    for live in await context.runtime.store.live_turns(conversation):
        await context.readers.stop_if_left(live.id)


async def _send(
    context: Context,
    conversation: str,
    content: Sequence[Part],
    parent: str | None,
    *,
    options: TurnOptions,
    metadata: dict[str, JsonValue],
    key: SendKey | None,
) -> TurnRow:
    turn = await context.runtime.commands.send(
        conversation,
        content,
        parent=parent,
        options=options,
        metadata=metadata,
        key=key,
        by=context.person,
    )
    context.publisher.changed(conversation)
    return await context.runtime.store.turn(turn)


async def _last_known(context: Context, conversation: str, before: Sequence[EarlierMessage]) -> str | None:
    """Return the last message of the latest stored answer, named by its turn or one of its messages. None if
    there is none."""
    for said in reversed([said for said in before if said.role == "assistant"]):
        with suppress(NotFound):
            turn = await turn_of(context, said.id, Right.READ)
            if turn.conversation == conversation:
                messages = (await context.runtime.turn(turn.id).snapshot()).messages
                return messages[-1].id if messages else turn.message
    return None


async def turn_of(context: Context, id: str, right: Right) -> TurnRow:
    """Return a turn by its ID, or by that of one of its messages."""
    with suppress(NotFound):
        return await context.turn(id, right)
    return await context.turn((await context.message(id, right)).turn or "", right)


async def _first_message(context: Context, conversation: str) -> str | None:
    stored, _ = await context.runtime.store.messages(conversation)
    return next((one.id for one in stored if one.parent is None and one.role == "user"), None)


async def events_after(turn: TurnHandle, known: Snapshot) -> AsyncIterator[Event]:
    """Yield the events after a snapshot. If the turn has ended since, its messages come again as a whole, and
    only the unknown parts are yielded."""
    has = {message.id: message for message in known.messages}
    async for event in turn.events(known.last):
        if isinstance(event, MessageAdded) and not event.seq and event.message.id in has:
            lacking = _lacking(event.message, has[event.message.id])
            if lacking.parts:
                yield MessageAdded(lacking)
        else:
            yield event


def _lacking(said: Message, known: Message) -> Message:
    parts: list[Part] = []
    for part, before in zip_longest(said.parts, known.parts[: len(said.parts)]):
        match part, before:
            case (Text() | Reasoning(), Text() | Reasoning()) if part.text.startswith(before.text):
                rest = part.text[len(before.text) :]
                parts += [replace(part, text=rest)] if rest else []
            case _ if part != before:
                parts.append(part)
    return replace(said, parts=tuple(parts))


def respond(
    context: Context,
    row: TurnRow,
    writer: TurnWriter,
    lacking: Iterable[dict[str, JsonValue]] = (),
    known: Snapshot | None = None,
    *,
    end: bytes = b"",
) -> EventStream:
    """Return a stream with `lacking` first, then new events until the turn ends or waits for the client."""
    chunks = write(context, row.id, _follow(context, row.id, writer, lacking, known), end)
    stopping = f"data: {json.dumps(writer.stopping(str(STOPS)))}\n\n".encode()
    reader = context.reader(row.conversation)
    return EventStream(chunks, context.publisher.streams, reader=reader, farewell=lambda: stopping)


async def _follow(
    context: Context,
    turn: str,
    writer: TurnWriter,
    lacking: Iterable[dict[str, JsonValue]],
    known: Snapshot | None,
) -> AsyncIterator[dict[str, JsonValue]]:
    handle = context.runtime.turn(turn)
    yield writer.begin()
    for told in lacking:
        yield told
    waits = writer.waits  # The request brought nothing new.
    if not waits:
        await writer.act(handle)
        async for event in handle.events() if known is None else events_after(handle, known):
            for told in writer.events(event):
                yield told
            if (question := question_to_read(event)) is not None:
                for told in writer.ask_within(await context.runtime.store.question(question)):
                    yield told
            await writer.act(handle)
            if waits := writer.waits:
                break
    if waits:
        for told in writer.pause():
            yield told


async def write(
    context: Context, turn: str, values: AsyncIterator[dict[str, JsonValue]], end: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """Write the values as Server-Sent Events and count as a reader of this turn."""
    with context.readers.reading(turn):
        async for value in values:
            yield f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
        if end:
            yield end


async def attach(context: Context, url: str, media_type: str, name: str | None = None) -> File:
    """Return a file by its address: a `data:` address, or one of this server. Raises BadRequest for others.

    The model's server would fetch a web address, perhaps inside this network, without any check.
    """
    if (inside := parse_data_url(url)) is not None:
        try:
            data = data_in(url) or b""
        except ValueError as error:
            raise BadRequest("The data of a file in the message is not valid base64.") from error
        return await store_file(context, data, media_type or inside.media_type or "text/plain", name)
    try:
        address = urlsplit(url)
    except ValueError as error:
        raise BadRequest(f"A file of the message has no valid URL: {error}") from error
    if (ours := _OURS.fullmatch(address.path)) is not None and address.scheme in ("", "http", "https"):
        await context.check_blob(ours[1])
        return File(_checked_type(media_type), blob=ours[1], name=name)
    raise BadRequest(
        "A file must be a data: URL, or a URL of this server. The server fetches no other address."
    )


async def store_file(context: Context, data: bytes, media_type: str, name: str | None) -> File:
    if not data:
        raise BadRequest("A file of the message is empty.")
    if len(data) > context.upload_limit:
        raise BadRequest(f"A file of the message is larger than {context.upload_limit} bytes.")
    media_type = _checked_type(media_type)
    store = context.runtime.store
    blob = await store.put_blob(data)
    await store.add_upload(blob, context.person, context.runtime.services.clock())
    return File(media_type, blob=blob, name=name, size=len(data))


def _checked_type(media_type: str) -> str:
    """Return the type without parameters, such as the codecs of a recording. Raises BadRequest if it is
    invalid."""
    type = media_type.partition(";")[0].strip()
    if not is_media_type(type):
        raise BadRequest(f"{media_type!r} is not a media type.")
    return type
