"""The pure state machine: its table, its refusals, and its invariants for every order of facts."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoman.errors import IllegalFact
from dragoman.messages.message import CallState
from dragoman.turn.facts import (
    ApprovalAsked,
    CallFinished,
    CallInterrupted,
    CallMade,
    CallsMade,
    CallStarted,
    Compacted,
    CompactionStarted,
    Fact,
    InnerCall,
    MessageAppended,
    QuestionAnswered,
    QuestionWithdrawn,
    ReplyReceived,
    RequestBuilt,
    ResultAsked,
    Steered,
    StepFinished,
    ToolAsked,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from dragoman.turn.machine import CALL, SETTLES, TURN, State, Turn, advance, replay
from tests.sweeps import examples

STARTED = TurnStarted("msg_1")
ASKED_MODEL = (STARTED, RequestBuilt(1, 1, "msg_2", "m"))
ONE_CALL = (*ASKED_MODEL, ReplyReceived(1, "msg_2", (CallMade("c1", "rm"),)))


def test_a_turn_without_calls_goes_straight_to_its_end() -> None:
    """T1"""
    facts = (*ASKED_MODEL, ReplyReceived(1, "msg_2"), StepFinished(1, again=False), TurnCompleted())
    states = [replay(facts[:n]).state for n in range(len(facts) + 1)]
    assert states == ["idle", "preparing", "streaming", "finalizing", "finalizing", "completed"]


@pytest.mark.parametrize(
    ("calls", "finish", "rounds"),
    [((), "stop", 0), ((), "pause", 1), ((CallMade("c1", "rm"),), "tool_calls", 1)],
)
def test_a_round_is_a_reply_after_which_tools_ran(
    calls: tuple[CallMade, ...], finish: str, rounds: int
) -> None:
    """T7: a pause means that the provider's tools ran."""
    assert replay((*ASKED_MODEL, ReplyReceived(1, "msg_2", calls, finish))).rounds == rounds


def test_streaming_and_tool_calls_alternate() -> None:
    """T1"""
    facts: tuple[Fact, ...] = (
        *ONE_CALL,
        CallStarted("c1"),
        CallFinished("c1", CallState.COMPLETED),
        StepFinished(1, again=True),
        RequestBuilt(2, 1, "msg_3", "m"),
        ReplyReceived(2, "msg_3"),
        StepFinished(2, again=False),
        TurnCompleted(),
    )
    states = [replay(facts[:n]).state for n in range(3, len(facts) + 1)]
    assert states == [
        "tool_call",
        "tool_call",
        "tool_call",
        "streaming",
        "streaming",
        "finalizing",
        "finalizing",
        "completed",
    ]


def test_a_program_waits_with_its_calls_and_ends_after_them() -> None:
    """The facts of its calls show the order in which they ended (G2, G3)."""
    made = CallsMade("c1", (InnerCall("i1", "a", "x"), InnerCall("i2", "b", "y")))
    running = (*ONE_CALL, CallStarted("c1", at=5.0), made)
    assert replay(running).unsettled == ("c1", "i1", "i2")
    with pytest.raises(IllegalFact, match="no result: i1, i2"):
        advance(replay(running), CallFinished("c1", CallState.COMPLETED))
    with pytest.raises(IllegalFact, match="repeats"):
        advance(replay(running), made)
    ended = (CallStarted("i2"), CallFinished("i2", CallState.COMPLETED))
    asked = replay((*running, ApprovalAsked("i1", "ask_1"), *ended))
    assert asked.state is State.WAITING
    done = replay((*running, *ended, CallFinished("i1", CallState.REJECTED)))
    assert done.state is State.TOOL_CALL
    assert done.calls["i2"].settled < done.calls["i1"].settled
    assert (done.calls["c1"].began, done.unsettled) == (5.0, ("c1",))
    assert advance(done, CallStarted("c1", at=9.0)).calls["c1"].began == 5.0


def test_a_turn_waits_when_every_unfinished_call_does() -> None:
    """T1, P7"""
    two = (*ASKED_MODEL, ReplyReceived(1, "msg_2", (CallMade("c1", "rm"), CallMade("c2", "ls"))))
    turn = replay((*two, ApprovalAsked("c1", "q1")))
    assert turn.state is State.TOOL_CALL  # c2 can still move
    turn = advance(advance(turn, CallStarted("c2")), CallFinished("c2", CallState.COMPLETED))
    assert turn.state is State.WAITING
    assert advance(turn, QuestionAnswered("c1", "q1", "allow", "h")).state is State.TOOL_CALL


def test_a_call_that_a_client_runs_makes_the_turn_wait() -> None:
    """T1"""
    assert replay((*ONE_CALL, CallStarted("c1", client=True))).state is State.WAITING


TWO_CALLS = (*ASKED_MODEL, ReplyReceived(1, "msg_2", (CallMade("c1", "rm"), CallMade("c2", "ls"))))
RUNNING = (*ONE_CALL, CallStarted("c1"))
ASKED = (*ONE_CALL, ApprovalAsked("c1", "q1"))
ANSWERED = (*ASKED_MODEL, ReplyReceived(1, "msg_2"))
OVER = (*ANSWERED, StepFinished(1, again=False))
SECOND = (*ANSWERED, StepFinished(1, again=True), RequestBuilt(2, 1, "msg_3", "m"))
LATER = (
    *RUNNING,
    CallFinished("c1", CallState.COMPLETED),
    StepFinished(1, again=True),
    RequestBuilt(2, 1, "m", "m"),
)
C1, C2 = CallMade("c1", "rm"), CallMade("c2", "ls")
# Written down, since the properties below ask the machine itself what is legal.
REFUSED: dict[str, tuple[tuple[Fact, ...], Fact, str]] = {
    # T1: a fact that the state does not have
    "a second start": ((STARTED,), STARTED, "TurnStarted, but the turn is preparing"),
    "a call before any reply": (
        (STARTED,),
        CallStarted("c1"),
        "CallStarted of c1, but the turn is preparing$",
    ),
    "a reply that nothing asked for": ((STARTED,), ReplyReceived(0, "msg_2"), "the turn is preparing"),
    "an end before the answer": (ASKED_MODEL, TurnCompleted(), "the turn is streaming"),
    "anything after the end": ((*OVER, TurnCompleted()), TurnCancelled(), "the turn is completed"),
    # T1: steps and attempts, each after the one before
    "a step left out": ((STARTED,), RequestBuilt(2, 1, "m", "m"), "step 0, attempt 0, is over"),
    "a first attempt left out": ((STARTED,), RequestBuilt(1, 2, "m", "m"), "step 0, attempt 0, is over"),
    "an attempt left out": (ASKED_MODEL, RequestBuilt(1, 3, "m", "m"), "step 1, attempt 1, is awaited"),
    "an attempt twice": (ASKED_MODEL, RequestBuilt(1, 1, "m", "m"), "step 1, attempt 1, is awaited"),
    "a step before the reply": (ASKED_MODEL, RequestBuilt(2, 1, "m", "m"), "step 1, attempt 1, is awaited"),
    "a reply of another step": (ASKED_MODEL, ReplyReceived(2, "m"), "step 1, attempt 1, is awaited"),
    "the end of another step": (ANSWERED, StepFinished(2, again=False), "step 1, attempt 1, is answered"),
    "the end of a step twice": (OVER, StepFinished(1, again=False), "step 1, attempt 1, is over"),
    "the end inside a step": (ANSWERED, TurnCompleted(), "step 1, attempt 1, is answered"),
    "a message after the last step": (OVER, MessageAppended("a", "p"), "its last step is over"),
    "steering after the last step": (OVER, Steered("a"), "its last step is over"),
    "a message twice": (
        (*ASKED_MODEL, MessageAppended("a", "p")),
        MessageAppended("a", "p"),
        "a is there already",
    ),
    # C2: one result for each call, before the next request
    "a call id twice in a reply": (ASKED_MODEL, ReplyReceived(1, "m", (C1, C1)), "a call id repeats"),
    "a call id of an earlier step": (LATER, ReplyReceived(2, "m", (C1,)), "a call id repeats"),
    "a step's end before a result": (RUNNING, StepFinished(1, again=True), "have no result: c1"),
    "a cancel before a result": (RUNNING, TurnCancelled(), "have no result: c1"),
    "a failure before a result": (RUNNING, TurnFailed("boom"), "have no result: c1"),
    "a call that nobody made": (ONE_CALL, CallStarted("c9"), "the turn has no call c9"),
    "a result of what never ran": (ONE_CALL, CallFinished("c1", CallState.COMPLETED), "call c1 is pending"),
    # An approval request has one answer, and its call starts only if that answer is yes (P6).
    "a late answer": (
        (*ASKED, CallFinished("c1", CallState.REJECTED)),
        QuestionAnswered("c1", "q1", "allow", "h"),
        "QuestionAnswered of c1, but call c1 is rejected",
    ),
    "an answer to another question": (
        ASKED,
        QuestionAnswered("c1", "q2", "allow", "h"),
        "call c1 does not ask q2",
    ),
    "a start before the answer": (ASKED, CallStarted("c1"), "call c1 is asked"),
    "a start after a no": (
        (*ASKED, QuestionAnswered("c1", "q1", "reject")),
        CallStarted("c1"),
        "no rule or user allowed call c1",
    ),
    "a start after a yes to what ran before": (
        (*ASKED, QuestionAnswered("c1", "q1", "allow", "h"), CallStarted("c1"), CallInterrupted("c1", "q2")),
        CallStarted("c1"),
        "call c1 is asked",
    ),
    "a question twice": ((*RUNNING, ToolAsked("c1", "q1")), ToolAsked("c1", "q1"), "call c1 asks it already"),
    "an interruption beside a question": (
        (*RUNNING, ToolAsked("c1", "q1")),
        CallInterrupted("c1", "q2"),
        "call c1 has an open question already",
    ),
    "a review beside a question": (
        (*RUNNING, ToolAsked("c1", "q1")),
        ResultAsked("c1", "q2"),
        "call c1 has an open question already",
    ),
}


@pytest.mark.parametrize(("facts", "fact", "why"), REFUSED.values(), ids=REFUSED)
def test_a_fact_out_of_order_is_refused(facts: tuple[Fact, ...], fact: Fact, why: str) -> None:
    """T1, C2, P6: the error names the state, the fact and the call. It is the bug report."""
    with pytest.raises(IllegalFact, match=why):
        advance(replay(facts), fact)


def test_a_torn_step_is_asked_again_with_the_next_attempt() -> None:
    """S3"""
    turn = advance(replay(ASKED_MODEL), RequestBuilt(1, 2, "msg_2", "m"))
    assert (turn.step, turn.attempt, turn.state) == (1, 2, State.STREAMING)


def test_every_state_has_its_row_and_ends_have_none() -> None:
    assert set(TURN) == set(State)
    assert all(not TURN[state] for state in State if state.ended)
    assert set(CALL) == set(SETTLES) == {state for state in CallState if not state.settled}


class AnyTurn(RuleBasedStateMachine):
    """Legal facts in any order, with illegal ones in between."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Fact] = []
        self.turn = Turn()
        self.made = 0
        self.asked = 0

    def _do(self, fact: Fact) -> None:
        self.turn = advance(self.turn, fact)
        self.facts.append(fact)

    def _candidates(self) -> list[Fact]:
        turn, calls = self.turn, self.turn.calls
        number = len(self.facts)
        facts: list[Fact] = [
            STARTED,
            RequestBuilt(turn.step + 1, 1, f"msg_{number}", "m"),
            RequestBuilt(turn.step, turn.attempt + 1, turn.reply or "", "m"),
            ReplyReceived(turn.step, f"msg_{number}"),
            ReplyReceived(
                turn.step, f"msg_{number}", (CallMade(f"c{number}a", "t"), CallMade(f"c{number}b", "t"))
            ),
            MessageAppended(f"app_{number}", "p", request=True),
            Steered(f"steer_{number}"),
            StepFinished(turn.step, again=True),
            StepFinished(turn.step, again=False),
            CompactionStarted("full"),
            Compacted(f"sum_{number}"),
            TurnCompleted(),
            TurnFailed("boom"),
            TurnCancelled(),
        ]
        for id, call in calls.items():
            question = f"q{number}{id}"
            facts += [
                ApprovalAsked(id, question),
                CallStarted(id),
                CallStarted(id, client=True),
                CallInterrupted(id, question),
                ToolAsked(id, question),
                ResultAsked(id, question),
                QuestionAnswered(id, (call.questions or ("none",))[0], "allow", "hash"),
                QuestionAnswered(id, (call.questions or ("none",))[-1], "reject"),
                QuestionWithdrawn(id, (call.questions or ("none",))[0]),
                *(CallFinished(id, state) for state in CallState if state.settled),
            ]
        return facts

    def _legal(self) -> list[Fact]:
        return [fact for fact in self._candidates() if _is_legal(self.turn, fact)]

    @precondition(lambda self: not self.turn.state.ended)
    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        legal = self._legal()
        keeps_on = [fact for fact in legal if not isinstance(fact, TurnFailed | TurnCancelled)]
        self._do(data.draw(st.sampled_from(keeps_on or legal)))

    @rule(data=st.data())
    def something_impossible_is_refused_and_changes_nothing(self, data: st.DataObject) -> None:
        illegal = [fact for fact in self._candidates() if not _is_legal(self.turn, fact)]
        if illegal:
            before = self.turn
            with pytest.raises(IllegalFact):
                advance(self.turn, data.draw(st.sampled_from(illegal)))
            assert self.turn == before

    @invariant()
    def it_is_never_stuck(self) -> None:
        assert self.turn.state.ended or self._legal()

    @invariant()
    def no_call_is_lost(self) -> None:
        made = {call.call for fact in self.facts if isinstance(fact, ReplyReceived) for call in fact.calls}
        assert set(self.turn.calls) == made

    @invariant()
    def an_ended_turn_has_a_result_for_every_call(self) -> None:
        if self.turn.state.ended:
            assert not self.turn.unsettled
            settled = [fact.call for fact in self.facts if isinstance(fact, CallFinished)]
            assert sorted(settled) == sorted(self.turn.calls)

    @invariant()
    def the_facts_alone_make_the_same_turn(self) -> None:
        assert replay(self.facts) == self.turn

    @invariant()
    def waiting_means_that_all_open_calls_wait_for_somebody(self) -> None:
        if self.turn.state is State.WAITING:
            assert all(self.turn.calls[id].waits for id in self.turn.unsettled)


def _is_legal(turn: Turn, fact: Fact) -> bool:
    try:
        advance(turn, fact)
    except IllegalFact:
        return False
    return True


class TestAnyTurn(AnyTurn.TestCase):  # type: ignore[misc,valid-type]  # hypothesis makes it at run time
    settings = settings(max_examples=examples(15), stateful_step_count=40)
