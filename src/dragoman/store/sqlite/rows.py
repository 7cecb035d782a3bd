"""Values to rows and back: how messages, calls and questions are spelled in the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.messages.codec import Codec
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.messages.questions import Grant, Question, Rule
from dragoman.messages.usage import Usage
from dragoman.store.store import TurnRow

MESSAGE: Codec[Message] = Codec(Message)
CALL: Codec[ToolCall] = Codec(ToolCall)
RESULT: Codec[ToolResult] = Codec(ToolResult)
QUESTION: Codec[Question] = Codec(Question)
USAGE: Codec[Usage] = Codec(Usage)
JSON: Codec[dict[str, JsonValue]] = Codec(dict[str, JsonValue])


def message_body(message: Message) -> str:
    """The message without what its calls' own rows say."""
    parts = tuple(
        ToolCall(part.id, part.tool) if isinstance(part, ToolCall) else part for part in message.parts
    )
    return MESSAGE.dump(replace(message, parts=parts))


def whole_message(body: str, calls: Mapping[str, ToolCall]) -> Message:
    message = MESSAGE.load(body)
    if not message.calls:
        return message
    parts = tuple(calls[part.id] if isinstance(part, ToolCall) else part for part in message.parts)
    return replace(message, parts=parts)


def calls_by_id(bodies: Iterable[str]) -> dict[str, ToolCall]:
    calls = (CALL.load(body) for body in bodies)
    return {call.id: call for call in calls}


def call_row(call: ToolCall, held: ToolResult | None = None) -> dict[str, object]:
    return {
        "id": call.id,
        "tool": call.tool,
        "state": call.state,
        "body": CALL.dump(call),
        "held": RESULT.dump(held) if held else None,
    }


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
    }


def conversation_of(row: sqlite3.Row) -> Conversation:
    return Conversation(
        row["id"],
        row["title"],
        row["leaf"],
        row["user"],
        JSON.load(row["settings"]),
        USAGE.load(row["usage"]),
        row["created"],
        row["updated"],
        row["parent"],
        row["call"],
    )


def turn_of(row: sqlite3.Row) -> TurnRow:
    return TurnRow(
        row["id"],
        row["conversation"],
        row["message"],
        row["state"],
        bool(row["live"]),
        bool(row["steerable"]),
        row["epoch"],
        row["owner"],
        row["created"],
    )


def grant_of(row: sqlite3.Row) -> Grant:
    rule = Rule(row["permission"], row["pattern"], row["action"])
    return Grant(row["id"], rule, row["conversation"], row["created"], row["user"], row["workspace"])
