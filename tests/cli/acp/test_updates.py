"""Any turn's events, as updates that the protocol's own schema accepts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.cli.acp.updates import TurnUpdates, diff_contents
from dragoman.messages import events as e
from dragoman.messages.message import CallState, File, Message, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.tools.builtin.basics import todo
from dragoman.visible_text import visible
from dragoman.workspace.diff import diff_texts, joined
from tests.later import Later
from tests.messages.test_fold import cuts
from tests.sweeps import examples

if TYPE_CHECKING:
    from acp import schema
else:
    schema = Later("acp.schema")

HERE = Path("/notes")
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["path", "command", "items", "start", "url", "other"])
ARGUMENTS = st.dictionaries(NAMES, JSON | st.text(max_size=9), max_size=3)
DIFFS = st.builds(
    lambda path, old, new: joined(
        [diff_texts(path, old.encode() if old is not None else None, new.encode())]
    ),
    st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.none() | st.text(max_size=30),
    st.text(max_size=30),
)


def encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


RESULTS = st.builds(
    ToolResult,
    st.text(max_size=9),
    value=JSON,
    metadata=st.fixed_dictionaries({}, optional={"diff": DIFFS | st.text(), "items": JSON, "terminal": JSON}),
)


@st.composite
def turns(draw: st.DrawFn) -> list[e.Event]:
    """A reply of any parts, then what may happen to its calls, in any order and any number of times."""
    reply = draw(cuts())
    events: list[e.Event] = [e.StepStart(1, draw(st.integers(1, 3)), "msg_1", None, "some/model")]
    events += [event for cut in reply for event in cut.events()]
    called = [cut.part.id for cut in reply if isinstance(cut.part, ToolCall)]
    for id in draw(st.lists(st.sampled_from(called), max_size=6)) if called else []:
        tool, arguments = draw(st.sampled_from(["add", "shell", "todo", "read_file"])), draw(ARGUMENTS)
        settled = st.sampled_from([state for state in CallState if state.settled])
        reported: Any = draw(JSON | st.sampled_from([{"terminal": "t"}, {"asks": "q"}]))
        happens: list[e.Event] = [
            e.CallAsked(id, "q", "approve", tool, arguments, "May it?", diff=draw(DIFFS)),
            e.CallStart(id, tool, arguments),
            e.CallProgress(id, reported),
            e.CallEnd(id, tool, arguments, draw(settled), draw(RESULTS)),
        ]
        events.append(draw(st.sampled_from(happens)))
    parts = (Text("x"), Reasoning("y"), File("image/png", blob="b"), ToolCall("late", "add", {"n": 1}))
    events.append(
        e.MessageAdded(Message("msg_2", "conv_1", None, draw(st.sampled_from(["user", "assistant"])), parts))
    )
    return [*events, e.StepEnd(1, Usage()), e.TurnEnd("completed", "", Usage())]


def updates_of(events: Iterable[e.Event]) -> list[dict[str, Any]]:
    updates = TurnUpdates(HERE, lambda tool: "basics.todo" if tool == "todo" else tool)
    return [update for event in events for update in updates.updates(event)]


@given(turns())
@settings(max_examples=examples(15, 500))
def test_every_update_is_one_of_the_protocols(events: list[e.Event]) -> None:
    """F1, F3: the schema reads each of them, and finds nothing to repair."""
    for update in updates_of(events):
        read = schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
        written = read.model_dump(by_alias=True, exclude_none=True)["update"]
        assert _without_none(written) == _without_none(update)


@given(turns())
@settings(max_examples=examples(15, 500))
def test_a_call_is_announced_once_and_before_it_is_updated(events: list[e.Event]) -> None:
    """F2, C2"""
    announced: set[str] = set()
    for update in updates_of(events):
        if update["sessionUpdate"] == "tool_call":
            assert update["toolCallId"] not in announced
            announced.add(update["toolCallId"])
        elif update["sessionUpdate"] == "tool_call_update":
            assert update["toolCallId"] in announced


def test_a_call_is_pending_then_runs_then_is_over() -> None:
    """F2"""
    arguments: dict[str, JsonValue] = {"a": 1}
    events: list[e.Event] = [
        e.CallInputStart("c1", "add"),
        e.CallInputEnd("c1", "add", arguments),
        e.CallStart("c1", "add", arguments),
        e.CallEnd("c1", "add", arguments, CallState.COMPLETED, ToolResult("2")),
    ]
    statuses = [update.get("status") for update in updates_of(events)]
    assert statuses == ["pending", None, "in_progress", "completed"]


@given(st.text(max_size=200).filter(encodable), st.text(max_size=200).filter(encodable))
def test_a_diff_says_what_was_and_what_will_be(old: str, new: str) -> None:
    """The diff of a small file contains all of it, with any line ends and characters (B2)."""
    contents = diff_contents(diff_texts("a b.txt", old.encode(), new.encode()).text, HERE)
    if "\0" in old + new:
        assert contents == []
        return
    changed = [(one["path"], one["oldText"] or "", one["newText"]) for one in contents]
    if old.count("\n") < 6 and new.count("\n") < 6 and old != new:
        assert changed == [("/notes/a b.txt", visible(old), visible(new))]
    for _, before, after in changed:
        assert before in visible(old)
        assert after in visible(new)


def test_a_list_of_tasks_is_a_plan() -> None:
    items: list[JsonValue] = [{"text": "read", "state": "doing"}]
    end = e.CallEnd("c", todo.name, {}, CallState.COMPLETED, ToolResult("", metadata={"items": items}))
    *_, plan = updates_of([end])
    assert plan["entries"] == [{"content": "read", "priority": "medium", "status": "in_progress"}]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return [_without_none(one) for one in value] if isinstance(value, list) else value
