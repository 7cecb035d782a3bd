"""Changes of a turn that are stored together (T1)."""

from __future__ import annotations

from dataclasses import replace

from dragoman.messages.message import CallState, ToolCall, ToolResult
from dragoman.store.store import Change
from tests.store.conformance import scene


def test_a_later_change_is_added_to_an_earlier_one() -> None:
    """What it says of a call replaces what was said before."""
    call, later = ToolCall("call_1", "add"), ToolCall("call_1", "add", state=CallState.ASKED)
    other, third = replace(call, id="call_2"), replace(call, id="call_3")
    first, second = ToolResult("1"), ToolResult("2")
    changes = [
        Change(
            messages=[scene.user(f"msg_{n}")],
            calls=calls,
            made=[made],
            held=held,
            questions=[scene.question(f"ask_{n}")],
            closed={f"ask_{n}0": "over"},
            signals=[n],
        )
        for n, calls, made, held in (
            (1, [call, other], third, {"call_1": first, "call_2": first}),
            (2, [later], replace(third, id="call_4"), {"call_2": second}),
        )
    ]
    whole = changes[0]
    whole.add(changes[1])
    assert [one.id for one in whole.messages] == ["msg_1", "msg_2"]
    assert whole.calls == [other, later]
    assert [one.id for one in whole.made] == ["call_3", "call_4"]
    assert whole.held == {"call_1": first, "call_2": second}
    assert [one.id for one in whole.questions] == ["ask_1", "ask_2"]
    assert (whole.closed, whole.signals) == ({"ask_10": "over", "ask_20": "over"}, [1, 2])
