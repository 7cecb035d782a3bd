"""The mode of a turn, from the send, the conversation, the agents and the nodes (P8, P9, P14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Agent, Runtime, ScriptedModel
from dragoman.conversation.tree import Conversation
from dragoman.messages.questions import Mode
from dragoman.store.turns import TurnRow
from dragoman.turn.facts import NodeRules, TurnOptions, TurnStarted
from dragoman.turn.live.log import TurnLog
from dragoman.turn.steps.prepare import mode_of

ROW = TurnRow("turn_1", "conv_1", "msg_1", "preparing", True, True, 1, None, 1.0)


@pytest.mark.parametrize(
    ("node", "accepted", "conversation", "said", "agents", "task", "mode"),
    [
        ("auto", None, None, None, [None], False, "auto"),
        ("auto", "auto", None, None, [None], False, "auto"),
        ("ask", "auto", None, None, [None], False, "ask"),  # this node is stricter
        ("auto", "ask", None, None, [None], False, "ask"),  # the node that accepted it was
        ("auto", "manual", None, None, [None], False, "manual"),
        ("auto", "a later word", None, None, [None], False, "ask"),
        ("ask", None, None, None, ["auto"], False, "auto"),
        ("ask", "ask", None, "auto", ["manual"], False, "auto"),  # the send goes first
        ("auto", "auto", "ask", None, ["auto"], False, "ask"),
        ("auto", "auto", "ask", "auto", ["auto"], False, "auto"),
        ("auto", "auto", "a later word", None, ["auto"], False, "ask"),
        ("auto", "auto", None, "auto", ["ask"], True, "ask"),  # in a task, the strictest
        ("auto", "auto", None, "ask", ["auto"], True, "ask"),
        ("ask", "auto", None, "auto", [None], True, "auto"),
        ("auto", "auto", None, "auto", ["manual", "auto"], False, "manual"),  # after a handover, too
        ("ask", "auto", None, None, ["auto", None], False, "ask"),
    ],
)
def test_the_mode_of_a_turn(
    tmp_path: Path,
    *,
    node: Mode,
    accepted: str | None,
    conversation: str | None,
    said: Mode | None,
    agents: list[Mode | None],
    task: bool,
    mode: Mode,
) -> None:
    runtime = Runtime(tmp_path / "chat.db", model=ScriptedModel([]), mode=node)
    settings = {"mode": conversation} if conversation is not None else {}
    rules = NodeRules(mode=accepted) if accepted is not None else None
    options = TurnOptions(mode=said, accepted=rules)
    where = Conversation("conv_1", settings={**settings}, parent="conv_0" if task else None)
    fact = TurnStarted("msg_1", options, at=1.0)
    log = TurnLog(ROW, store=runtime.store, conversation=where, facts=[fact], path=[], clock=lambda: 1.0)
    named = [Agent(name=str(number), mode=own) for number, own in enumerate(agents)]
    assert mode_of(runtime.services, log, *named) == mode
