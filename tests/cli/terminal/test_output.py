"""Check the output of `dragoman run`."""

from __future__ import annotations

from io import StringIO

import pytest

from dragoman.cli.terminal.output import TextOutput, ValueOutput
from dragoman.cli.terminal.text import describe_error
from dragoman.errors import BadRequest
from dragoman.messages import events as e
from dragoman.messages.message import Message, Text
from dragoman.messages.usage import Usage

OVER: list[e.Event] = [
    e.MessageAdded(Message("msg_1", "conv_1", None, "user", (Text("Go on."),))),
    e.MessageAdded(Message("msg_2", "conv_1", "msg_1", "assistant", (Text("First."),))),
    e.MessageAdded(Message("msg_3", "conv_1", "msg_2", "assistant", (Text("Then."),))),
    e.TurnEnd("completed", "Then.", Usage()),
]


def printed(output: TextOutput, out: StringIO) -> str:
    for event in OVER:
        output.show(event)
    output.end(e.TurnEnd("completed", "Then.", Usage()))
    return out.getvalue()


def test_a_turn_that_was_over_before_it_was_looked_at_is_printed_all_the_same() -> None:
    """A message queued after a run can be answered before the run reads its events (T13)."""
    out = StringIO()
    assert printed(TextOutput(out), out) == "First.\nThen.\n"


def test_what_a_provider_says_of_its_error_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """An error text of a provider is untrusted wherever it is printed (O2)."""
    said = "A\x1b]0;title\x07B\x1b[2JC\x9b31mD\u202eE"
    TextOutput(StringIO()).end(e.TurnEnd("error", "", Usage(), said))
    assert capsys.readouterr().err == "dragoman: ABC31mDE\n"
    assert describe_error(BadRequest(said)) == "ABC31mDE"


def test_where_a_type_was_asked_for_its_value_alone_is_printed() -> None:
    """R8"""
    out = StringIO()
    assert printed(ValueOutput(out), out) == ""
