"""Builds the requests that a turn sends to users: their text, subject, and the rules an answer may keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from dragoman.messages.ids import derived_id
from dragoman.messages.message import MadeIn, ToolCall, ToolResult
from dragoman.messages.questions import Cause, Kind, Mode, Question, Rule
from dragoman.sentences import Sentence, sentence, together
from dragoman.tools.approval import Foreseen
from dragoman.tools.authorize import Ask
from dragoman.tools.permissions import rules_in_words
from dragoman.tools.tool import Tool
from dragoman.turn.live.log import TurnLog

_WORDS: dict[Kind, Callable[[str], Sentence]] = {
    "approve": lambda tool: sentence("question.approve", tool=tool),
    "run": lambda tool: sentence("question.run", tool=tool),
    "loop": lambda tool: sentence("question.loop", tool=tool),
    "interrupted": lambda tool: sentence("question.interrupted", tool=tool),
    "review": lambda tool: sentence("question.review", tool=tool),
}


def question_to_run(
    log: TurnLog, call: ToolCall, tool: Tool, ask: Ask, mode: Mode, *, foreseen: Foreseen, fails: str = ""
) -> Question:
    """Ask whether this call may run. A rule is offered only if rules alone are the reason to ask.

    `fails` explains why the call would currently do nothing.
    """
    kind: Kind = "loop" if ask.because == "loop" else "run" if mode == "manual" else "approve"
    texts = [reason.text for reason in ask.reasons if reason.text] or [_WORDS[kind](call.tool)]
    texts += [sentence("question.bounds") for reason in ask.reasons if reason.cause == "bounds"]
    rules: tuple[Rule, ...] = ()
    wider: tuple[Rule, ...] = ()
    if ask.because == "rule":
        rules, wider = ask.beyond, ()
        if ask.line:
            rules, wider = (*tool.always(call.arguments), *rules), tool.always_wider(call.arguments)
    elif ask.because == "loop":
        rules = (Rule("loop", tool.name, "allow"),)
    elif ask.because == "format":
        rules = (Rule("format", ask.format, "allow"),)
    if tool.remark:
        texts.append(tool.remark)
    if fails:
        texts.append(sentence("question.fails", why=fails))
    return _question(
        log,
        call,
        tool,
        kind,
        ask.because,
        together(texts),
        patterns=tuple(tool.patterns(call.arguments)),
        rules=rules,
        wider=wider,
        schema=tool.parameters.schema,
        foreseen=foreseen,
    )


def question_on_the_way(
    log: TurnLog, call: ToolCall, tool: Tool, *, pattern: str, text: str, rule: Rule
) -> Question:
    """Ask whether a running call may access what it encountered.

    `rule` would make the request unnecessary.
    """
    words = text or sentence("question.met", tool=tool.name, pattern=pattern)
    return _question(
        log,
        call,
        tool,
        "approve",
        "rule",
        words,
        place=f"met {pattern}",
        patterns=(pattern,),
        rules=(rule,),
        schema={},
    )


def question_about(
    log: TurnLog, call: ToolCall, tool: Tool, kind: Kind, *, result: ToolResult | None = None, place: int = 0
) -> Question:
    """Ask whether a call may run again after a crash, or whether the model may see its result."""
    because: Cause = "interrupted" if kind == "interrupted" else "review"
    words = _WORDS[kind](call.tool)
    return _question(
        log, call, tool, kind, because, words, place=place, result=result, schema=tool.parameters.schema
    )


def question_of_tool(
    log: TurnLog,
    call: ToolCall,
    tool: Tool,
    text: str,
    *,
    choices: Sequence[str],
    free: bool,
    schema: dict[str, JsonValue] | None,
    place: str,
) -> Question:
    """Build the question that the tool itself asks."""
    return _question(
        log,
        call,
        tool,
        "tool",
        "tool",
        text,
        place=place,
        choices=tuple(choices),
        free=free,
        schema=schema or {},
    )


def _line_of(log: TurnLog, place: MadeIn) -> Sentence:
    lines = str(log.call(place.call).arguments.get("code", "")).splitlines()
    code = lines[place.line - 1].strip() if place.line <= len(lines) else ""
    return sentence("question.line", line=place.line, code=code)


def _question(  # noqa: PLR0917 - what every question has
    log: TurnLog,
    call: ToolCall,
    tool: Tool,
    kind: Kind,
    because: Cause,
    text: str,
    *,
    place: int | str = 0,
    patterns: tuple[str, ...] = (),
    rules: tuple[Rule, ...] = (),
    wider: tuple[Rule, ...] = (),
    choices: tuple[str, ...] = (),
    free: bool = False,
    schema: dict[str, JsonValue],
    result: ToolResult | None = None,
    foreseen: Foreseen = Foreseen(),  # noqa: B008 - nobody changes it
) -> Question:
    """Build a request. Repeated after a crash, it gets the same ID."""
    if call.made_in is not None and kind != "tool":
        text = together([text, _line_of(log, call.made_in)])
    return Question(
        id=derived_id("ask", log.id, call.id, kind, place, call.hash),
        conversation=log.conversation.id,
        turn=log.id,
        call=call.id,
        kind=kind,
        tool=call.tool,
        text=sentence("question.always", asked=text, rules=rules_in_words(rules)) if rules else text,
        arguments=call.arguments,
        hash=call.hash,
        server=tool.server,
        because=because,
        patterns=patterns,
        rules=rules,
        wider=wider,
        choices=choices,
        free=free,
        schema=schema,
        result=result,
        diff=foreseen.diff,
        told=foreseen.told,
        in_parts="\n@@ -" in foreseen.diff and tool.keep_hunks is not None,
        fingerprint=tool.fingerprint,
        asked=log.now(),
    )
