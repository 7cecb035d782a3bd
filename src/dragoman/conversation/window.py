"""Selects the messages that a request carries: after the last summary, earlier tool use by policy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, TypeAlias

from dragoman.conversation.tree import summary_of
from dragoman.messages.message import Message, Part, Text, ToolCall, canonical
from dragoman.messages.request import RequestMessage

PARTS = ("text", "reasoning", "call", "file", "item")
"""The kinds of message parts, as named in `history_parts`."""
Policy: TypeAlias = Literal["full", "results", "hint", "none"]
"""How tool use of earlier turns is sent: unchanged, each result as a text, one text for the whole trail
before the answer, or not.
"""


def window(
    path: Sequence[Message],
    policy: Policy = "full",
    turn: str | None = None,
    history: int | None = None,
    parts: Collection[str] | None = None,
) -> tuple[RequestMessage, ...]:
    """Return the messages of a request.

    `turn` is the running turn, which is always sent whole. `history` limits the number of turns before it.
    `parts` limits the types of parts in their messages. Text is always sent.
    """
    shown = [message for message in shown_messages(path, turn, history) if not message.says_nothing]
    if parts is not None:
        kept = {*parts, "text", "summary"}
        shown = [one if one.turn == turn else _with_parts(one, kept) for one in shown]
        shown = [message for message in shown if not message.says_nothing]
    if policy == "full":
        return tuple(RequestMessage(message.role, _sent(message)) for message in shown)
    return tuple(
        message
        for of, messages in groupby(shown, key=lambda one: one.turn)
        for message in _by_policy(list(messages), "full" if of == turn else policy)
    )


def shown_messages(
    path: Sequence[Message], turn: str | None = None, history: int | None = None
) -> list[Message]:
    """Return the messages of a path that a model is shown.

    They are the last summary, what it keeps, and everything since, limited to this turn and `history` turns
    before.
    """
    shown = _after_summary(path)
    if history is None:
        return shown
    earlier = list(dict.fromkeys(message.turn for message in path if message.turn != turn))
    kept = {*(earlier[-history:] if history else ()), turn}
    return [message for message in shown if message.turn in kept]


def trail_and_answer(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the tool use of a turn as one text, and the model's text. Policy `hint` sends both in one."""
    calls = (call for message in messages for call in message.calls if not call.is_text)
    said = (message.text for message in messages if message.role == "assistant")
    return "".join(map(_line, calls)), "".join(said)


def _after_summary(path: Sequence[Message]) -> list[Message]:
    """Return the messages from the last summary on. An earlier summary is part of the last one."""
    for place in range(len(path) - 1, -1, -1):
        if (summary := summary_of(path[place])) is not None:
            ids = [message.id for message in path[:place]]
            start = ids.index(summary.keeps_from) if summary.keeps_from in ids else place
            kept = [message for message in path[start:place] if summary_of(message) is None]
            return [path[place], *kept, *path[place + 1 :]]
    return list(path)


def _with_parts(message: Message, kept: Collection[str]) -> Message:
    return replace(message, parts=tuple(part for part in message.parts if part.type in kept))


def _sent(message: Message) -> tuple[Part, ...]:
    """Return the parts without rejected guesses, which count as text (D7)."""
    if not any(call.is_text for call in message.calls):
        return message.parts
    return tuple(part for part in message.parts if not (isinstance(part, ToolCall) and part.is_text))


def _by_policy(messages: list[Message], policy: Policy) -> Iterator[RequestMessage]:
    if policy == "full" or not any(message.calls for message in messages):
        yield from (RequestMessage(message.role, _sent(message)) for message in messages)
    elif policy == "hint":
        yield from (
            RequestMessage(message.role, message.parts) for message in messages if message.role == "user"
        )
        yield RequestMessage("assistant", (Text("".join(trail_and_answer(messages))),))
    else:
        for message in messages:
            parts = tuple(_without_calls(message, results=policy == "results"))
            if parts and not replace(message, parts=parts).says_nothing:
                yield RequestMessage(message.role, parts)


def _without_calls(message: Message, *, results: bool) -> Iterator[Part]:
    for part in message.parts:
        if not isinstance(part, ToolCall):
            yield part
        elif results:
            yield Text(_line(part))


def _line(call: ToolCall) -> str:
    result = call.result.text if call.result else "no result"
    return f"[{call.tool} {canonical(call.arguments)} → {call.state}: {result}]\n"
