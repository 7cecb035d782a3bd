"""Select the part of a path that a model receives: four policies (R4), and summaries (R7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ConfigError, tool
from dragoman.conversation.window import Policy, trail_and_answer, window
from dragoman.messages.message import (
    CallState,
    Error,
    File,
    Message,
    Part,
    Reasoning,
    Summary,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.questions import reject
from dragoman.messages.request import RequestMessage
from dragoman.plugins.tool_history import ToolHistory
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of, runtime_with


def user(id: str, *parts: Part, turn: str = "t1") -> Message:
    return Message(id, "conv_1", None, "user", parts or (Text(id),), turn=turn)


def model(id: str, *parts: Part, turn: str = "t1") -> Message:
    return Message(id, "conv_1", None, "assistant", parts or (Text(id),), turn=turn)


def call(n: int, result: str) -> ToolCall:
    return ToolCall(f"call_{n}", "add", {"n": n}, state=CallState.COMPLETED, result=ToolResult(result))


FIRST, SECOND = call(1, "one"), call(2, "two")
TURN = [user("q1"), model("a", Text("let me see. "), FIRST), model("b", SECOND), model("c", Text("It is 3."))]
NEXT = [user("q2", turn="t2")]


def shown(path: list[Message], policy: Policy = "full", turn: str = "t2") -> list[tuple[str, str]]:
    """Roles and texts, calls written as their ids."""
    return [
        (
            message.role,
            "".join(
                part.id if isinstance(part, ToolCall) else getattr(part, "text", "") for part in message.parts
            ),
        )
        for message in window(path, policy, turn)
    ]


# ── R4 ────────────────────────────────────────────────────────────────────────────────────────────


def test_in_full_everything_is_sent_as_it_was() -> None:
    """R4"""
    assert window([*TURN, *NEXT]) == tuple(RequestMessage(m.role, m.parts) for m in [*TURN, *NEXT])


def test_results_are_sent_as_texts_in_the_place_of_their_calls() -> None:
    """R4"""
    assert shown([*TURN, *NEXT], "results") == [
        ("user", "q1"),
        ("assistant", 'let me see. [add {"n":1} → completed: one]\n'),
        ("assistant", '[add {"n":2} → completed: two]\n'),
        ("assistant", "It is 3."),
        ("user", "q2"),
    ]


def test_a_hint_is_one_text_in_front_of_the_answer() -> None:
    """R4"""
    lines = '[add {"n":1} → completed: one]\n[add {"n":2} → completed: two]\n'
    assert trail_and_answer(TURN)[0] == lines
    assert shown([*TURN, *NEXT], "hint") == [
        ("user", "q1"),
        ("assistant", f"{lines}let me see. It is 3."),
        ("user", "q2"),
    ]


def test_of_nothing_but_calls_nothing_is_sent() -> None:
    """R4: a reply that only called something would be an empty message."""
    assert shown([*TURN, *NEXT], "none") == [
        ("user", "q1"),
        ("assistant", "let me see. "),
        ("assistant", "It is 3."),
        ("user", "q2"),
    ]


@pytest.mark.parametrize("policy", get_args(Policy))
def test_the_running_turn_is_always_sent_in_full(policy: Policy) -> None:
    """R4: the policies are for earlier turns."""
    assert window(TURN, policy, "t1") == window(TURN)
    assert shown([*TURN, *NEXT, model("d", call(3, "three"), turn="t2")], policy)[-1] == (
        "assistant",
        "call_3",
    )


@pytest.mark.parametrize(
    ("history", "sent"), [(None, "q1 q2 q3"), (0, "q3"), (1, "q2 q3"), (2, "q1 q2 q3"), (9, "q1 q2 q3")]
)
def test_so_many_earlier_turns_are_sent(history: int | None, sent: str) -> None:
    """R4"""
    path = [user(f"q{n}", turn=f"t{n}") for n in (1, 2, 3)]
    assert window(path, "full", "t3", history) == tuple(
        RequestMessage("user", (Text(text),)) for text in sent.split()
    )


@pytest.mark.parametrize("policy", get_args(Policy))
def test_a_turn_without_calls_is_the_same_in_every_policy(policy: Policy) -> None:
    """R4"""
    path = [user("q1"), model("a", Reasoning("hm"), Text("hello")), *NEXT]
    assert window(path, policy, "t2") == window(path)


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("parts", [(), (Text(""),), (Error("gone"),), (Text(""), Error("gone"))])
def test_a_placeholder_is_never_sent(policy: Policy, parts: tuple[Part, ...]) -> None:
    """R4, T5"""
    path = [user("q1"), replace(model("a"), parts=parts), *NEXT]
    assert shown(path, policy) == [("user", "q1"), ("user", "q2")]


def test_a_file_alone_is_something_to_send() -> None:
    """R4"""
    picture = File("image/png", blob="0" * 64)
    assert window([user("q", picture)]) == (RequestMessage("user", (picture,)),)


def test_a_policy_that_does_not_exist_is_refused() -> None:
    """R4"""
    with pytest.raises(ConfigError, match="full, results, hint, none"):
        ToolHistory("some")  # type: ignore[arg-type]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SCRIPT = [
    says("First: ") + calls("add", a=1, b=2),
    calls("add", a=3, b=4) + calls("add", a="x", b=0),
    says("3 and 7."),
    says("You are welcome."),
]


async def test_a_turn_says_where_its_trail_ends(tmp_path: Path) -> None:
    """R4: where the trail ends in the text that later requests contain."""
    async with runtime_with(tmp_path, SCRIPT, tools=[add], tool_history="hint") as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("add them")).result()
        await (await chat.send("thanks")).result()
        running, later = model_of(runtime).requests[2].messages, model_of(runtime).requests[3].messages
    assert [len(message.parts) for message in running] == [1, 2, 2]
    assert [message.role for message in later] == ["user", "assistant", "user"]
    (sent,) = later[1].parts
    assert isinstance(sent, Text)
    boundary = first.trail_size
    assert first.answer_slice == (boundary, len(sent.text))
    assert sent.text[:boundary].startswith('[add {"a":1,"b":2} → completed: 3]\n')
    assert sent.text[:boundary].endswith("]\n")
    assert sent.text[:boundary].count("[add") == 3
    assert sent.text[boundary:] == "First: 3 and 7."


async def test_a_turn_that_ends_on_a_call_has_a_trail_and_no_answer(tmp_path: Path) -> None:
    """The same applies to a turn that a refusal ends, and to one without text (R4)."""
    script = [calls("add", a=1, b=2), says("Never said.")]
    async with runtime_with(tmp_path, script, tools=[add], allow=[], on_reject="stop") as runtime:
        turn = await runtime.send("add them")
        async for event in turn.events():
            if event.type == "call.asked":
                await turn.answer(event.question, reject())
        result = await turn.result()
    assert result.trail_size > 0
    assert result.answer_slice == (result.trail_size, result.trail_size)


@pytest.mark.parametrize(
    ("policy", "roles", "calls"),
    [("full", 4, 3), ("results", 4, 0), ("hint", 2, 0), ("none", 3, 0)],
)
async def test_a_policy_holds_in_the_next_turn(
    tmp_path: Path, policy: Policy, roles: int, calls: int
) -> None:
    """R4"""
    async with runtime_with(tmp_path, SCRIPT, tools=[add], tool_history=policy) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("add them")).result()
        await (await chat.send("thanks")).result()
        sent = model_of(runtime).requests[-1].messages
    assert len(sent) == roles + 1
    assert sum(isinstance(part, ToolCall) for message in sent for part in message.parts) == calls


# ── R7 ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_summary_takes_the_place_of_what_it_sums_up() -> None:
    """The messages that a summary keeps come after it, and then the later ones (R7)."""
    path = [user("a"), model("b"), user("c"), model("d"), user("s", Summary("so far", "c")), user("e")]
    assert shown(path) == [
        ("user", "so far"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", "e"),
    ]


@pytest.mark.parametrize("keeps_from", [None, "gone"])
def test_a_summary_that_keeps_nothing_stands_first(keeps_from: str | None) -> None:
    """R7"""
    path = [user("a"), model("b"), user("s", Summary("so far", keeps_from)), model("c")]
    assert shown(path) == [("user", "so far"), ("assistant", "c")]


def test_the_last_summary_counts() -> None:
    """R7"""
    path = [
        user("a"),
        user("s1", Summary("first", "a")),
        model("b"),
        user("c"),
        user("s2", Summary("second", "c")),
        model("d"),
    ]
    assert shown(path) == [("user", "second"), ("user", "c"), ("assistant", "d")]


def test_a_summary_among_what_a_later_one_keeps_is_not_shown_again() -> None:
    """The later summary covers the earlier one and the messages that it kept (R7)."""
    path = [
        user("a"),
        model("b"),
        user("c"),
        user("s1", Summary("first", "b")),
        model("d"),
        user("s2", Summary("second", "c")),
        model("e"),
    ]
    assert shown(path) == [("user", "second"), ("user", "c"), ("assistant", "d"), ("assistant", "e")]


@pytest.mark.parametrize("policy", get_args(Policy))
def test_a_summary_and_a_policy_go_together(policy: Policy) -> None:
    """R4, R7"""
    path = [user("z"), *TURN, user("s", Summary("so far", "q1"), turn="t2"), *NEXT]
    assert shown(path, policy)[:2] == [("user", "so far"), ("user", "q1")]
    assert shown(path, policy)[-1] == ("user", "q2")


PARTS = st.sampled_from(
    [(Text("hi"),), (FIRST,), (Text("x"), SECOND), (Text(""),), (Error("e"),), (Reasoning("r"),)]
)


@given(
    st.lists(st.tuples(st.booleans(), PARTS, st.sampled_from("abc")), max_size=8),
    st.sampled_from(get_args(Policy)),
)
def test_no_policy_sends_an_empty_message_or_an_earlier_call(
    drawn: list[tuple[bool, tuple[Part, ...], str]], policy: Policy
) -> None:
    """R4"""
    path = [
        user(str(n), Text("hi"), turn=turn) if asks else model(str(n), *parts, turn=turn)
        for n, (asks, parts, turn) in enumerate(drawn)
    ]
    sent = window(path, policy, "running")
    assert all(one.parts and not model("x", *one.parts).says_nothing for one in sent)
    assert policy == "full" or not any(isinstance(part, ToolCall) for one in sent for part in one.parts)
    assert sum(one.role == "user" for one in sent) == sum(asks for asks, _, _ in drawn)


def test_of_earlier_messages_only_these_parts_are_sent() -> None:
    """This is `requestMessageFields` of the seed. The running turn is sent whole (R4)."""
    picture = File("image/png", blob="0" * 64)
    path = [*TURN, *NEXT]
    assert any(message.calls for message in window(path))
    without = window([user("q0", picture), *path], parts=("reasoning",), turn="t2")
    assert [message.calls for message in without] == [()] * len(without)
    assert not [part for message in without for part in message.parts if isinstance(part, File)]
    running = window(path, parts=(), turn="t1")
    assert running == window(path, turn="t1")


def test_an_unknown_kind_of_part_is_refused() -> None:
    """R4"""
    with pytest.raises(
        ConfigError, match=r"Unknown part 'texts' in history_parts\. Choose from text, reasoning"
    ):
        ToolHistory("full", ["texts"])
