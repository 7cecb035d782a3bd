"""Converts values to database rows and back, with replacements for unreadable rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import from_json

from dragoman.conversation.tree import Conversation
from dragoman.errors import Unreadable
from dragoman.messages.codec import Codec, replace_fast
from dragoman.messages.message import Error, Message, Part, Role, ToolCall, ToolResult
from dragoman.messages.questions import Action, Grant, Question, Rule
from dragoman.messages.usage import Usage
from dragoman.store.codecs import CALL, JSON, MESSAGE, QUESTION, RESULT, USAGE
from dragoman.store.sql.database import Row
from dragoman.store.turns import TurnRow

T = TypeVar("T")
Calls = Mapping[str, ToolCall | Unreadable]


def load(codec: Codec[T], noun: str, id: str, body: str | bytes | None) -> T:
    """Parse a body. Raise Unreadable, without any of its contents, if it is invalid."""
    try:
        return codec.load(body or b"")
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise Unreadable(noun, id, f"{where}: {fault['msg']}" if where else fault["msg"]) from error


def text_in(value: str | bytes | None) -> str | None:
    """Return text, even if a damaged file has bytes: in SQLite a single bit decides that."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def number_in(value: object) -> float:
    """Return a number, and 0 if a damaged file has none or one that is not finite."""
    return value if isinstance(value, int | float) and math.isfinite(value) else 0


def is_json(body: str | bytes) -> bool:
    try:
        from_json(body)
    except ValueError:
        return False
    return True


# ── messages and calls ────────────────────────────────────────────────────────────────────────────


def message_row(message: Message) -> dict[str, object]:
    """Return the row. Its body omits what the rows of its calls contain."""
    parts = tuple(
        ToolCall(part.id, part.tool) if isinstance(part, ToolCall) else part for part in message.parts
    )
    return {
        "id": message.id,
        "conversation": message.conversation,
        "parent": message.parent,
        "turn": message.turn,
        "role": message.role,
        "body": MESSAGE.dump(replace_fast(message, parts=parts, inner=())),
    }


def message_of(row: Row, calls: Calls, inner: Mapping[str, Sequence[ToolCall]]) -> Message:
    """Return the message, or a replacement with an error if it is unreadable."""
    id, parent = text_in(row["id"]) or "", text_in(row["parent"])
    try:
        message = load(MESSAGE, "message", id, row["body"])
        if (message.id, message.parent) != (id, parent):
            raise Unreadable("message", id, "the store has another message there")
    except Unreadable as error:
        role: Role = "user" if row["role"] == "user" else "assistant"
        conversation, turn = text_in(row["conversation"]) or "", text_in(row["turn"])
        return Message(id, conversation, parent, role, (_in_place_of(error),), turn=turn)
    if not message.calls:
        return message
    parts = tuple(_with_call(part, calls) for part in message.parts)
    made = (one for call in message.calls for one in inner.get(call.id, ())) if inner else ()
    return replace(message, parts=parts, inner=tuple(made))


def _with_call(part: Part, calls: Calls) -> Part:
    if not isinstance(part, ToolCall):
        return part
    call = calls.get(part.id) or Unreadable("call", part.id, "it is not there")
    return _in_place_of(call) if isinstance(call, Unreadable) else call


def _in_place_of(error: Unreadable) -> Error:
    return Error(f"{error}. Everything else can be.", "unreadable")


def calls_of(rows: Iterable[Row]) -> Calls:
    calls: dict[str, ToolCall | Unreadable] = {}
    for row in rows:
        id = text_in(row["id"]) or ""
        try:
            calls[id] = load(CALL, "call", id, row["body"])
        except Unreadable as error:
            calls[id] = error
    return calls


def inner_of(calls: Calls) -> dict[str, list[ToolCall]]:
    """Return the calls made by programs, grouped by the program's call, in order."""
    inner: dict[str, list[ToolCall]] = {}
    for call in calls.values():
        if isinstance(call, ToolCall) and call.made_in is not None:
            inner.setdefault(call.made_in.call, []).append(call)
    for made in inner.values():
        made.sort(key=lambda call: call.made_in.number if call.made_in is not None else 0)
    return inner


def call_row(call: ToolCall, held: ToolResult | None = None) -> dict[str, object]:
    return {
        "id": call.id,
        "tool": call.tool,
        "state": call.state,
        "body": CALL.dump(call),
        "held": RESULT.dump(held) if held else None,
    }


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


def conversation_row(conversation: Conversation) -> dict[str, object]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "leaf": conversation.leaf,
        "user": conversation.user,
        "settings": JSON.dump(conversation.settings),
        "usage": USAGE.dump(conversation.usage),
        "created": conversation.created,
        "updated": conversation.updated,
        "parent": conversation.parent,
        "call": conversation.call,
        "pinned": int(conversation.pinned),
        "archived": int(conversation.archived),
        "tags": json.dumps(conversation.tags),
    }


def tags_in(text: str | bytes) -> tuple[str, ...]:
    """Return the tags. None if the stored value is not a list of words."""
    try:
        found = from_json(text)
    except ValueError:
        return ()
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def conversation_of(row: Row) -> Conversation:
    settings = load(JSON, "conversation", row["id"], row["settings"])
    usage = load(USAGE, "conversation", row["id"], row["usage"])
    return replace(_bare_conversation(row), settings=settings, usage=usage)


def listed_conversation(row: Row) -> Conversation:
    """Return the conversation for a list, which includes unreadable ones."""
    try:
        return conversation_of(row)
    except Unreadable:
        bare = _bare_conversation(row)
        return replace(bare, title=f"{bare.title or 'untitled'} (cannot be read)")


def _bare_conversation(row: Row) -> Conversation:
    return Conversation(
        text_in(row["id"]) or "",
        text_in(row["title"]),
        text_in(row["leaf"]),
        text_in(row["user"]),
        created=number_in(row["created"]),
        updated=number_in(row["updated"]),
        parent=text_in(row["parent"]),
        call=text_in(row["call"]),
        pinned=bool(row["pinned"]),
        archived=bool(row["archived"]),
        tags=tags_in(row["tags"]),
    )


def added_usage(before: str, usage: Usage) -> str | None:
    """Return a conversation's usage plus a turn's. None if it is unreadable, and then stays unchanged."""
    try:
        return USAGE.dump(load(USAGE, "usage", "", before) + usage)
    except Unreadable:
        return None


# ── turns, questions, grants ──────────────────────────────────────────────────────────────────────


def turn_of(row: Row) -> TurnRow:
    return TurnRow(
        row["id"],
        row["conversation"],
        row["message"],
        row["state"],
        bool(row["live"]),
        bool(row["steerable"]),
        row["epoch"],
        row["owner"],
        number_in(row["created"]),
        row["sender"],
    )


def question_of(row: Row) -> Question:
    return load(QUESTION, "question", row["id"], row["body"])


def grant_row(grant: Grant) -> dict[str, object]:
    return {
        "id": grant.id,
        "conversation": grant.conversation,
        "permission": grant.rule.permission,
        "pattern": grant.rule.pattern,
        "action": grant.rule.action,
        "created": grant.created,
        "user": grant.user,
        "workspace": grant.workspace,
        "expires": grant.expires,
    }


def grant_of(row: Row) -> Grant:
    texts = [row[name] for name in ("id", "permission", "pattern", "conversation", "user", "workspace")]
    if any(isinstance(text, bytes) for text in texts):
        raise Unreadable("grant", text_in(row["id"]) or "", "one of its strings is not valid")
    if row["action"] not in get_args(Action):
        raise Unreadable("grant", row["id"], "its action is not allow, ask or deny")
    if row["expires"] is not None and not number_in(row["expires"]):
        raise Unreadable("grant", row["id"], "its expiry is not a valid time")
    rule = Rule(row["permission"], row["pattern"], row["action"])
    created = number_in(row["created"])
    return Grant(row["id"], rule, row["conversation"], created, row["user"], row["workspace"], row["expires"])
