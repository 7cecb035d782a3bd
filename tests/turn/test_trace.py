"""A turn's trace, built from its facts, shows durations, waits and their reasons."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, ProviderError, Rule, TurnView, allow_always, allow_once, reject, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import Question
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.turn.facts import (
    FACT,
    ApprovalAsked,
    CallChange,
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
    ModelAsked,
    QuestionAnswered,
    QuestionWithdrawn,
    ReplyReceived,
    RequestBuilt,
    ResultAsked,
    Retried,
    Steered,
    StepFinished,
    ToolAsked,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnOptions,
    TurnStarted,
)
from dragoman.turn.trace import STOPPED, CallTrace, Tracer, trace_turn
from dragoman.wire.scripted import Line, calls, fails, says
from tests.runtimes import add, runtime_with


@tool(pattern="path")
async def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


def _turn(*facts: Fact) -> list[Fact]:
    started = TurnStarted("msg_1", TurnOptions(agent="clerk", started_with="acme/large"), at=100.0)
    return [started, *facts]


def test_calls_stand_side_by_side_with_what_they_waited_for() -> None:
    """Two calls of one reply overlap, and the seconds that they share count once (O3)."""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "acme/large", at=101.0),
        ReplyReceived(
            1,
            "msg_2",
            (CallMade("c1", "a"), CallMade("c2", "b")),
            "tool_calls",
            Usage(10, 5),
            101.5,
            at=102.0,
        ),
        CallStarted("c1", because="rule: allow a (/etc/dragoman.toml:7)", at=102.0),
        ApprovalAsked("c2", "ask_1", at=102.0),
        CallFinished("c1", CallState.COMPLETED, at=104.0),
        QuestionAnswered("c2", "ask_1", "allow", "hash", at=105.0),
        CallStarted("c2", because="answer: ada allowed it (once)", at=105.0),
        CallFinished("c2", CallState.FAILED, at=106.0),
        StepFinished(1, True, at=106.0),
        RequestBuilt(2, 1, "msg_3", "acme/large", at=106.0),
        ReplyReceived(2, "msg_3", (), "stop", Usage(20, 5), 106.5, at=107.0),
        StepFinished(2, False, at=107.0),
        TurnCompleted(at=108.0),
    )
    trace = trace_turn("turn_1", "conv_1", facts)
    assert (trace.state, trace.agent, trace.model) == ("completed", "clerk", "acme/large")
    totals = trace.totals(now=999.0)
    assert (totals.seconds, totals.preparing, totals.first_token) == (8.0, 1.0, 1.5)
    assert (totals.waited, totals.requests, totals.tools) == (3.0, 2.0, 3.0)
    one, two = trace.calls
    assert one.because is not None
    assert (one.because.kind, one.because.text, one.because.origin) == (
        "rule",
        "allow a",
        "/etc/dragoman.toml:7",
    )
    assert two.because is not None
    assert (two.because.kind, two.because.at) == ("answer", 105.0)
    assert [(wait.asked, wait.answered, wait.verdict) for wait in two.waits] == [(102.0, 105.0, "allow")]
    assert (trace.usage.input, trace.usage.output) == (30, 10)


def test_the_calls_of_a_program_follow_its_own() -> None:
    """O3, G2"""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=101.0),
        ReplyReceived(1, "msg_2", (CallMade("c1", "run"),), at=102.0),
        CallStarted("c1", at=103.0),
        CallsMade("c1", (InnerCall("i1", "a", "x"), InnerCall("i2", "b", "y")), at=104.0),
        CallStarted("i1", at=105.0),
        CallFinished("i1", CallState.COMPLETED, at=106.0),
    )
    trace = trace_turn("t", "c", facts)
    assert [(one.id, one.tool, one.made, one.parent, one.state) for one in trace.calls] == [
        ("c1", "run", 102.0, None, "running"),
        ("i1", "a", 104.0, "c1", "completed"),
        ("i2", "b", 104.0, "c1", "pending"),
    ]


def test_each_attempt_is_told_with_its_wait_and_its_reason() -> None:
    """O3: two that the client made again by itself, and one that a plugin had asked again."""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=100.0),
        RequestBuilt(1, 2, "msg_2", "m", at=110.0),
        ReplyReceived(
            1,
            "msg_2",
            retries=(Retried(101.0, 2.0, "overloaded", 503), Retried(109.0, 0.0, "too long", 400)),
            first=111.0,
            at=112.0,
        ),
        StepFinished(1, False, at=112.0),
        TurnCompleted(at=112.0),
    )
    told = [
        (one.attempt, one.started, one.ended, one.error, one.status, one.wait)
        for one in trace_turn("t", "c", facts).steps[0].requests
    ]
    assert told == [
        (1, 100.0, 101.0, "overloaded", 503, 2.0),
        (2, 103.0, 109.0, "too long", 400, 0.0),
        (3, 110.0, 112.0, None, None, 0.0),
    ]


def test_an_attempt_that_died_with_its_process_says_so() -> None:
    """The next owner makes the request again, and nothing more about the first attempt is known (O3, T3)."""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=100.0),
        RequestBuilt(1, 2, "msg_2", "m", at=160.0),
        ReplyReceived(1, "msg_2", first=161.0, at=162.0),
    )
    first, second = trace_turn("t", "c", facts).steps[0].requests
    assert (first.ended, first.error) == (160.0, STOPPED)
    assert (second.first, second.error) == (161.0, None)


def test_what_a_request_used_for_nothing_stays_with_it() -> None:
    """Lost usage stays with its request, also if a plugin repaired its cause and the request was built again
    (T12 × O3)."""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "acme/large", at=101.0),
        ModelAsked("", "acme/large", Usage(90, 10), at=102.0),
        RequestBuilt(1, 2, "msg_2", "acme/large", at=103.0),
        ReplyReceived(
            1, "msg_2", (), "stop", Usage(7, 3), 104.0, (Retried(102.0, 0.0, "too long"),), at=105.0
        ),
    )
    requests = trace_turn("t", "c", facts).steps[0].requests
    assert [request.usage for request in requests] == [Usage(90, 10), Usage(7, 3)]


def test_a_summary_that_nobody_goes_on_with_is_over_when_the_next_request_is_made() -> None:
    """An unfinished summary ends when the next request starts, and that request's usage stays separate (O3 ×
    S2)."""
    facts = _turn(
        CompactionStarted("full", at=101.0),
        RequestBuilt(1, 1, "msg_2", "acme/large", at=102.0),
        ModelAsked("", "acme/large", Usage(90, 10), at=103.0),
    )
    trace = trace_turn("t", "c", facts)
    tracer = Tracer("t", "c")
    assert [_ended(tracer, fact) for fact in facts] == ["", "", "Compaction", ""]
    [left] = trace.compactions
    assert (left.ended, left.error, left.usage) == (102.0, "stopped", None)
    assert trace.steps[0].requests[0].usage == Usage(90, 10)


def test_a_turn_that_runs_has_no_end_and_counts_up_to_now() -> None:
    """O3"""
    facts = _turn(
        CompactionStarted("long", at=101.0),
        Compacted("msg_0", Usage(5, 5), at=103.0),
        RequestBuilt(1, 1, "m", "m", at=104.0),
    )
    trace = trace_turn("t", "c", facts)
    assert (trace.ended, trace.totals(now=110.0).seconds, trace.totals(now=110.0).requests) == (
        None,
        10.0,
        6.0,
    )
    assert [(one.reason, one.ended) for one in trace.compactions] == [("long", 103.0)]


def test_what_failed_is_told_with_its_error() -> None:
    """O3"""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=100.0),
        ReplyReceived(1, None, finish="error", at=101.0),
        TurnFailed("the key is wrong", "auth", at=101.0),
    )
    trace = trace_turn("t", "c", facts)
    assert (trace.state, trace.error, trace.error_kind) == ("error", "the key is wrong", "auth")
    assert trace.steps[0].requests[0].error == "the key is wrong"


def test_facts_of_an_older_version_are_read_as_they_are() -> None:
    """S6, O3: stored before replies had a first piece and retries."""
    old = '{"step":1,"message":"msg_2","calls":[],"finish":"stop","usage":{"input":1,"output":1},"at":5.0,'
    fact = FACT.load(old + '"type":"reply_received"}')
    assert isinstance(fact, ReplyReceived)
    assert (fact.first, fact.retries) == (0.0, ())


# ── of turns that ran ─────────────────────────────────────────────────────────────────────────────


async def _only_call(folder: Path, **options: Any) -> CallTrace:
    async with runtime_with(
        folder, [calls("delete", path="a"), says("ok")], tools=[delete], **options
    ) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        (call,) = (await turn.trace()).calls
        return call


def _ended(tracer: Tracer, fact: Fact) -> str:
    return " ".join(type(one).__name__.removesuffix("Trace") for one in tracer.take(fact))


def test_each_fact_tells_what_it_ended() -> None:
    """Inner items come before outer ones (O3)."""
    calls = tuple(CallMade(id, f"tool_{id}") for id in ("c1", "c2", "c3"))
    settings = TurnOptions(settings={"agent": "clerk"}, model="acme/small")
    facts: list[tuple[Fact, str]] = [
        (TurnStarted("msg_1", settings, at=100.0, by="ada"), ""),
        (CompactionStarted("full", at=100.5), ""),
        (ModelAsked("", "m", Usage(1, 1), at=100.6), ""),
        (CompactionStarted("full", at=100.7), "Compaction"),
        (ModelAsked("", "m", Usage(1, 1), at=100.8), ""),
        (Compacted("msg_0", Usage(2, 2), at=101.0), "Compaction"),
        (RequestBuilt(1, 1, "msg_2", "m", at=102.0), ""),
        (ReplyReceived(1, "msg_2", calls, "tool_calls", Usage(10, 5), 102.5, at=103.0), "Request"),
        (Steered("msg_3", at=103.1), ""),
        (MessageAppended("msg_4", "memory", at=103.2), ""),
        (CallStarted("c1", client=True, at=103.3), ""),
        (ToolAsked("c1", "q1", at=103.5), ""),
        (QuestionWithdrawn("c1", "q1", at=104.0), "Wait"),
        (ModelAsked("c1", "m", Usage(3, 3), at=104.1), ""),
        (ModelAsked("c1", "m", Usage(3, 3), at=104.2), ""),
        (CallFinished("c1", CallState.COMPLETED, at=105.0), "Call"),
        (ApprovalAsked("c2", "q2", at=105.0), ""),
        (CallFinished("c2", CallState.CANCELLED, limit="stopped", at=106.0), "Wait Call"),
        (CallStarted("c3", at=106.0), ""),
        (CallInterrupted("c3", "q3", at=107.0), ""),
        (QuestionAnswered("c3", "q3", "allow", at=108.0), "Wait"),
        (CallStarted("c3", because="answer: ada allowed it", at=109.0), ""),
        (ToolAsked("c3", "q4", at=110.0), ""),
        (QuestionAnswered("c3", "q4", "reply", at=111.0), "Wait"),
        (ResultAsked("c3", "q5", at=112.0), ""),
        (QuestionAnswered("c3", "q5", "release", at=113.0), "Wait"),
        (CallFinished("c3", CallState.COMPLETED, at=114.0), "Call"),
        (StepFinished(1, True, limit="calls", at=114.0), "Step"),
        (RequestBuilt(2, 1, "msg_5", "m", at=115.0), ""),
        (ReplyReceived(2, None, (), "error", retries=(Retried(116.0, 1.0, "busy"),), at=118.0), "Request"),
        (TurnFailed("no key", "auth", at=119.0), "Request Step Turn"),
    ]
    tracer = Tracer("turn_1", "conv_1")
    assert [_ended(tracer, fact) for fact, _ in facts] == [ended for _, ended in facts]
    trace = tracer.trace
    assert (trace.by, trace.agent, trace.model, trace.limit) == ("ada", "clerk", "acme/small", "calls")
    assert (trace.state, trace.ended, trace.cancelled_by, trace.usage) == (
        "error",
        119.0,
        None,
        Usage(20, 15),
    )
    assert [(one.kind, one.at, one.by) for one in trace.remarks] == [
        ("steered", 103.1, None),
        ("appended", 103.2, "memory"),
    ]
    assert [(one.started, one.ended, one.error, one.usage) for one in trace.compactions] == [
        (100.5, 100.7, "stopped", Usage(1, 1)),
        (100.7, 101.0, None, Usage(3, 3)),
    ]
    assert [(step.number, step.started, step.ended) for step in trace.steps] == [
        (1, 102.0, 114.0),
        (2, 115.0, 119.0),
    ]
    requests = trace.steps[1].requests
    assert [(one.started, one.ended, one.error, one.finish) for one in requests] == [
        (115.0, 116.0, "busy", None),
        (117.0, 118.0, "no key", "error"),
    ]
    one, two, three = trace.calls
    assert (one.made, one.client, one.usage, one.ended) == (103.0, True, Usage(6, 6), 105.0)
    assert (two.state, two.runs, two.limit, two.ended) == ("cancelled", [], "stopped", 106.0)
    assert [(run.started, run.ended) for run in three.runs] == [(106.0, 107.0), (109.0, 112.0)]
    assert three.because is not None
    assert (three.because.kind, three.because.text, three.because.at) == ("answer", "ada allowed it", 108.0)
    assert [(wait.kind, wait.asked, wait.answered, wait.verdict) for wait in trace.waits] == [
        ("tool", 103.5, 104.0, None),
        ("approve", 105.0, 106.0, None),
        ("interrupted", 107.0, 108.0, "allow"),
        ("tool", 110.0, 111.0, "reply"),
        ("review", 112.0, 113.0, "release"),
    ]


@pytest.mark.parametrize(
    ("fact", "state"),
    [
        (ApprovalAsked("c1", "q1", at=103.0), "asked"),
        (CallStarted("c1", at=103.0), "running"),
        (ToolAsked("c1", "q1", at=103.0), "asked"),
        (ResultAsked("c1", "q1", at=103.0), "reviewing"),
        (CallInterrupted("c1", "q1", at=103.0), "asked"),
    ],
)
@pytest.mark.parametrize("runs", [False, True])
def test_a_call_shows_what_it_does_now(fact: Fact, state: str, runs: bool) -> None:
    """O3: an answer lets it run on, or else it is still to run."""
    begun: list[Fact] = [CallStarted("c1", at=102.0)] if runs else []
    made = ReplyReceived(1, "msg_2", (CallMade("c1", "a"),), at=102.0)
    facts = _turn(RequestBuilt(1, 1, "msg_2", "m", at=101.0), made, *begun, fact)
    assert [call.state for call in trace_turn("t", "c", facts).calls] == [state]
    if state != "running":
        facts.append(QuestionAnswered("c1", "q1", "allow", at=104.0))
        stays = runs and isinstance(fact, ApprovalAsked | ToolAsked)
        assert trace_turn("t", "c", facts).calls[0].state == ("running" if stays else "pending")


@pytest.mark.parametrize("ends", [TurnCancelled("why", at=109.0, by="bob"), TurnCompleted(at=109.0)])
def test_the_end_of_a_turn_ends_what_is_left(ends: Fact) -> None:
    """O3"""
    tracer = Tracer("t", "c")
    for fact in _turn(RequestBuilt(1, 1, "msg_2", "m", at=101.0), CompactionStarted("full", at=102.0)):
        assert _ended(tracer, fact) == ""
    assert _ended(tracer, ends) == "Compaction Request Step Turn"
    trace, cancelled = tracer.trace, isinstance(ends, TurnCancelled)
    assert trace.cancelled_by == ("bob" if cancelled else None)
    assert trace.compactions[0].error == trace.state == ("cancelled" if cancelled else "completed")
    assert {trace.ended, trace.steps[0].ended, trace.steps[0].requests[0].ended} == {109.0}


def test_retries_stand_with_the_request_that_made_them() -> None:
    """O3: two requests were repaired by a plugin, and the second one was retried before."""
    long, busy = Retried(102.0, 0.0, "long", 400), Retried(105.0, 1.0, "busy", 503)
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=100.0),
        RequestBuilt(1, 2, "msg_2", "m", at=102.0),
        RequestBuilt(1, 3, "msg_2", "m", at=110.0),
        ReplyReceived(1, "msg_2", retries=(replace(long, at=110.0), busy, long), at=112.0),
    )
    requests = trace_turn("t", "c", facts).steps[0].requests
    assert [(one.attempt, one.started, one.ended, one.built, one.sent) for one in requests] == [
        (1, 100.0, 102.0, 1, 1),
        (2, 102.0, 105.0, 2, 1),
        (3, 106.0, 110.0, 2, 2),
        (4, 110.0, 112.0, 3, 1),
    ]


@pytest.mark.parametrize(
    ("step", "copied"), [((1, "msg_2", 0.0), True), ((1, "msg_2", 101.5), False), ((1, None, 0.0), False)]
)
def test_a_reply_that_was_copied_says_so(step: tuple[int, str | None, float], copied: bool) -> None:
    """T10: so do its calls, unless they ran again."""
    number, message, first = step
    made = (CallMade("c1", "a"), CallMade("c2", "b"))
    facts: list[Fact] = [
        TurnStarted("msg_1", TurnOptions(again_from=CallChange("c0")), at=100.0),
        RequestBuilt(number, 1, "msg_2", "m", at=101.0),
        ReplyReceived(number, message, made, first=first, at=102.0),
        CallFinished("c1", CallState.COMPLETED, at=102.0),
        CallFinished("c2", CallState.COMPLETED, at=103.0),
    ]
    step_trace = trace_turn("t", "c", facts).steps[0]
    assert step_trace.requests[0].copied is copied
    assert [call.copied for call in step_trace.calls] == [copied, False]


def test_an_answer_that_the_turn_has_not_read_yet_counts() -> None:
    """O3 × P6"""
    made = ReplyReceived(1, "msg_2", (CallMade("c1", "a"),), at=102.0)
    asked = ApprovalAsked("c1", "q1", at=103.0)
    facts = _turn(RequestBuilt(1, 1, "msg_2", "m", at=101.0), made, asked)
    question = Question("q1", "conv_1", "t", "c1", "run", "a", "Run?", {}, "h", because="loop", asked=103.0)
    answered = replace(question, answer=replace(allow_once(), at=105.0, by="ada"))
    [open] = trace_turn("t", "c", facts, [question]).waits
    assert (open.kind, open.because, open.answered, open.verdict) == ("run", "loop", None, None)
    [wait] = trace_turn("t", "c", facts, [answered]).waits
    assert (wait.answered, wait.verdict, wait.by, wait.scope) == (105.0, "allow", "ada", "once")
    totals = trace_turn("t", "c", facts).totals(now=110.0)
    assert (totals.waited, totals.tools, totals.requests, totals.first_token) == (7.0, 0.0, 1.0, None)


async def test_a_call_that_a_rule_allowed_names_the_rule(tmp_path: Path) -> None:
    """O3, P1"""
    rule = Rule("delete", "a", "allow", "dragoman.toml:3")
    call = await _only_call(tmp_path, allow=(), rules=[rule])
    assert call.because is not None
    assert (call.because.kind, call.because.text, call.because.origin) == (
        "rule",
        "allow delete on a",
        rule.origin,
    )
    assert call.waits == []


async def test_a_call_that_somebody_answered_names_them_and_the_next_one_the_grant(tmp_path: Path) -> None:
    """The trace names the user and time of an answer, and for later calls the grant that allowed them (O3,
    P4)."""
    script = [calls("delete", path="a"), calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, replace(allow_always(), by="ada"))
        await turn.result()
        one, two = (await turn.trace()).calls
        (grant,) = await runtime.grants()
    assert one.because is not None
    assert two.because is not None
    assert (one.because.kind, one.because.by) == ("answer", "ada")
    assert one.because.at == one.waits[0].answered
    assert (one.waits[0].by, one.waits[0].scope) == ("ada", "always")
    assert two.because.kind == "grant"
    assert two.because.origin is not None
    assert two.because.origin.startswith(f"{grant.id} of ")


async def test_a_call_that_did_not_run_has_no_reason_for_running(tmp_path: Path) -> None:
    """O3"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert (await turn.trace()).state == "waiting"
        await turn.answer(turn.question, reject())
        await turn.result()
        (call,) = (await turn.trace()).calls
    assert (call.state, call.because, call.runs) == ("rejected", None, [])
    assert call.waits[0].verdict == "reject"


async def test_an_approval_over_a_restart_is_one_wait(tmp_path: Path) -> None:
    """O3 × T4: asked by one process, answered in another."""
    script = [calls("delete", path="a"), says("gone")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("gone")], tools=[delete], allow=()) as second:
        await second.answer(question, allow_once())
        again = second.turn(turn.id)
        await again.result()
        trace = await again.trace()
    (call,) = trace.calls
    assert [(wait.kind, wait.verdict) for wait in call.waits] == [("approve", "allow")]
    assert len(call.runs) == 1


class Mender(Plugin):
    """Takes away the cause of the first error."""

    async def on_error(self, error: Exception, turn: TurnView) -> bool:
        return turn.turn.attempt == 1


async def test_a_request_that_a_plugin_had_repeated_is_two_attempts(tmp_path: Path) -> None:
    """O3, H5"""
    script = [fails(ProviderError("too busy", status=503)), says("ok")]
    async with runtime_with(tmp_path, script, plugins=[Mender()]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        requests = (await turn.trace()).steps[0].requests
    assert [(one.attempt, one.error, one.status) for one in requests] == [
        (1, "too busy", 503),
        (2, None, None),
    ]
    assert requests[1].first is not None


async def test_a_call_that_opened_a_sub_agent_names_its_turn(tmp_path: Path) -> None:
    """A damaged conversation of another call does not hide it (O3, R4)."""

    def script(request: Request) -> Line:
        inner = any(part.text == "inner" for part in request.messages[0].parts if part.type == "text")
        if inner:
            return says("done")
        place = sum(message.role == "assistant" for message in request.messages)
        task = calls("task", agent="clerk", request="inner")
        outer = (task + task, says("all done"))
        return outer[place]

    async with runtime_with(tmp_path, script, tools=[add], agents=[Agent(name="clerk")]) as runtime:
        turn = await runtime.send("outer")
        await asyncio.wait_for(turn.result(), 30)
        opened = [call.opened for call in (await turn.trace()).calls]
        assert [(await runtime.turn(str(id)).trace()).agent for id in opened] == ["clerk", "clerk"]
        for id in opened:
            row = await runtime.store.turn(str(id))
            with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
                db.execute("UPDATE conversations SET settings = '{' WHERE id = ?", [row.conversation])
            left = [call.opened for call in (await turn.trace()).calls]
            assert left == [None, opened[1] if id == opened[0] else None]


@pytest.mark.parametrize("text", ["", "something else"])
def test_a_reason_in_unknown_words_is_shown_as_it_is(text: str) -> None:
    """O3, S6: of a newer version, or none."""
    facts = _turn(
        RequestBuilt(1, 1, "msg_2", "m", at=100.0),
        ReplyReceived(1, "msg_2", (CallMade("c1", "a"),), "tool_calls", at=101.0),
        CallStarted("c1", because=text, at=102.0),
    )
    because = trace_turn("t", "c", facts).calls[0].because
    assert (because.text if because else "") == text
