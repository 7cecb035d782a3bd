"""Messages, turns and questions for the tests of a store, which differ only in what matters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import (
    CallState,
    Citation,
    Error,
    File,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Summary,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.questions import Question, Rule
from dragoman.messages.usage import Usage
from dragoman.store.store import Change, Start, Started, Store

CONVERSATION = Conversation("conv_1", user="ada", created=1.0, updated=1.0)


@contextmanager
def refused(kind: type[Exception], *words: str) -> Iterator[None]:
    """Expect the block to raise this error with these words in it."""
    text = None
    try:
        yield
    except kind as error:
        text = str(error)
    assert text is not None, f"{kind.__name__} was not raised"
    assert [word for word in words if word not in text] == [], text


def user(
    id: str,
    parent: str | None = None,
    conversation: str = "conv_1",
    *,
    turn: str | None = None,
    text: str = "hello",
    parts: tuple[Part, ...] = (),
) -> Message:
    return Message(id, conversation, parent, "user", parts or (Text(text),), turn=turn, created=1.0)


def reply(id: str, parent: str, *parts: Part, turn: str | None = None) -> Message:
    usage = Usage(1, 2, cost=0.125)
    return Message(
        id,
        "conv_1",
        parent,
        "assistant",
        parts,
        turn=turn,
        model="some/model",
        finish="stop",
        usage=usage,
        created=2.0,
        metadata={"n": [None]},
    )


def every_part(name: str = "any") -> tuple[Part, ...]:
    result = ToolResult(
        "done",
        {"n": [1, None, 0.5]},
        "Title",
        {"k": True},
        (File("a/b", url="data:,u"),),
        None,
        "note",
    )
    return (
        Reasoning("hm", "signed", "some wire", "some/model", {"raw": ["x"]}, 0.5, "reasoning"),
        ProviderItem("web_search_call", "rivers", "some wire", "some/model", {"id": "ws_1"}),
        Text("first", (Citation("https://a.example", "A", "words", 0, 5, {"type": "page"}),), "commentary"),
        *(
            ToolCall(
                f"call_{name}_{state}",
                "add",
                {"a": None, "b": {"c": [1]}},
                raw='{"a"' if state == "failed" else None,
                state=state,
                result=result if state.settled else None,
                provider_id="p",
                signature="s",
                original={"a": 1},
                started=1.0,
                ended=2.0 if state.settled else None,
            )
            for state in CallState
            if name == "any" or state.settled
        ),
        Error("gone", "provider", True),
    )


def start(number: int, **options: Any) -> Start:
    parent = options.pop("parent", None)
    message = user(f"msg_{number}", parent, turn=f"turn_{number}")
    return Start(f"turn_{number}", "conv_1", fact(1), float(number), message, **options)


def fact(name: object) -> str:
    """Any JSON will do: a store does not know what facts mean."""
    return f'{{"fact":"{name}"}}'


def change(*facts: object, **changes: Any) -> Change:
    """With facts of these names."""
    return Change(
        **{"conversation": "conv_1", "facts": [fact(name) for name in facts], "state": "streaming", **changes}
    )


def question(id: str) -> Question:
    return Question(
        id,
        "conv_1",
        "turn_1",
        "call_1",
        "approve",
        "add",
        "May it?",
        {"a": 1},
        "hash",
        rules=(Rule("add", "a", "allow"),),
        choices=("yes", "no"),
        schema={"type": "object"},
        asked=2.0,
    )


async def begun(store: Store) -> Started:
    """A conversation with one turn in it."""
    await store.add_conversation(CONVERSATION)
    started = await store.start(start(1))
    assert started is not None
    return started


async def replied(store: Store, *parts: Part) -> Started:
    """The same with a reply: facts 1 and 2."""
    started = await begun(store)
    answer = reply("msg_r1", "msg_1", *(parts or (Text("hello yourself"),)), turn="turn_1")
    await store.append("turn_1", 1, 2, change("a", messages=[answer], leaf=("msg_1", "msg_r1")))
    return started


async def asked(store: Store) -> None:
    """Like `replied`, with a call that needs approval: facts 1 to 3."""
    call = ToolCall("call_1", "add", {"a": 1})
    await replied(store, call)
    asked = change("b", calls=[replace(call, state=CallState.ASKED)], questions=[question("ask_1")])
    await store.append("turn_1", 1, 3, asked)


async def ended(
    store: Store, number: int = 1, *, epoch: int = 1, seq: int = 2, state: str = "completed"
) -> None:
    last = change("end", state=state, live=False, steerable=False)
    await store.append(f"turn_{number}", epoch, seq, last)


async def written(store: Store, *texts: str) -> None:
    """A conversation with these messages, msg_1 and so on."""
    messages = [user(f"msg_{n}", text=text) for n, text in enumerate(texts, 1)]
    await store.add_conversation(CONVERSATION, messages)


async def everything(store: Store) -> tuple[object, ...]:
    """Return everything that a failed change must leave unchanged."""
    return (
        await store.conversation("conv_1"),
        await store.messages("conv_1"),
        await store.turns("conv_1"),
        await store.facts("turn_1"),
        await store.signals("turn_1"),
        await store.questions(),
    )


async def revision(store: Store, conversation: str = "conv_1") -> int:
    return (await store.revisions([conversation]))[conversation]


async def pairs(store: Store, conversation: str) -> list[tuple[list[Message], Message]]:
    messages, _ = await store.messages(conversation)
    return [(messages, message) for message in messages]


def shape(all: list[Message], message: Message) -> Message:
    """A message with places instead of ids: equal for a message and its copy."""
    places: dict[str | None, str | None] = {one.id: str(place) for place, one in enumerate(all)}
    turns = {one.turn: str(place) for place, one in reversed(list(enumerate(all)))}
    parts = tuple(
        replace(part, id="call")
        if isinstance(part, ToolCall)
        else replace(part, keeps_from=places.get(part.keeps_from))
        if isinstance(part, Summary)
        else part
        for part in message.parts
    )
    return replace(
        message,
        id=str(places[message.id]),
        conversation="",
        parent=places.get(message.parent),
        parts=parts,
        turn=turns[message.turn] if message.turn else None,
    )
