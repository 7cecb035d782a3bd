"""Whether an answer fits the question it is given to, and the rule that it leaves behind."""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue, ValidationError

from dragoman.errors import BadRequest, ConfigError, ToolFailed
from dragoman.messages.boundary import check_fields, check_json
from dragoman.messages.ids import new_id
from dragoman.messages.message import Arguments
from dragoman.messages.questions import VERDICTS, Answer, Grant, Question, Rule
from dragoman.sentences import sentence
from dragoman.store.codecs import ANSWER
from dragoman.tools.authorize import Refuse, Run, Verdict
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.repair import repair_arguments
from dragoman.tools.schema import problems
from dragoman.tools.tool import Tool
from dragoman.turn.services import Services
from dragoman.turn.waiting_calls import waiting_tool

_HOUR = 3600.0


async def check_answer(services: Services, asked: Question, answer: Answer) -> None:
    """BadRequest where this does not answer that question."""
    if not isinstance(answer, Answer):
        raise BadRequest(sentence("answer.kind", answer=answer))
    if answer.verdict not in list(VERDICTS[asked.kind]):  # a list: it may be anything
        words = ", ".join(sorted(VERDICTS[asked.kind]))
        raise BadRequest(sentence("answer.verdict", verdict=answer.verdict, question=asked.id, words=words))
    check_json([answer.arguments, answer.value, answer.reason], "the answer")
    check_fields(ANSWER, answer, "the answer")
    if answer.arguments is not None and answer.verdict != "allow":
        raise BadRequest(sentence("answer.edits", verdict=answer.verdict))
    if answer.hash is not None and answer.hash != asked.hash:
        raise BadRequest(sentence("question.other_arguments", question=asked.id))
    offered = {(rule.permission, rule.pattern) for rule in (*asked.rules, *asked.wider)}
    tool = await waiting_tool(services, asked) if answer.arguments is not None else None
    if answer.arguments is not None and tool is not None:
        fitted = fitting_arguments(answer.arguments, tool, "the edited arguments")
        edited = (*tool.always(fitted), *tool.always_wider(fitted))
        offered |= {(rule.permission, rule.pattern) for rule in edited}
    if any((rule.permission, rule.pattern) not in offered for rule in answer.rules):
        raise BadRequest(sentence("answer.rule", question=asked.id, offers=_offers(asked)))
    if asked.choices and answer.verdict == "reply" and answer.value not in asked.choices:
        _check_own_words(asked, answer)
    if asked.kind == "review" and not isinstance(answer.value, str | None):
        raise BadRequest(sentence("answer.release"))
    if asked.kind == "tool" and asked.schema and answer.verdict == "reply":
        _check_form(asked, answer.value)


def answer_by_rule(verdict: Verdict | None, made: Answer) -> Answer | None:
    """What the rules, as they are now, answer to a question that is there because of them, for as long as
    `made` holds. None where a person still has to."""
    match verdict:
        case Run():
            return replace(made, verdict="allow")
        case Refuse():
            return replace(made, verdict="reject", reason="a rule denies it now")
    return None


def grant_of(
    answer: Answer, rule: Rule, conversation: str | None, user: str | None, folder: str | None
) -> Grant:
    """The rule for as long as the answer says. None for the conversation, user or folder is every one: a
    text format belongs to a model, wherever it works."""
    until = answer.at + _HOUR if answer.scope == "hour" else None
    folder = None if rule.permission == "format" else folder
    return Grant(new_id("grant"), rule, conversation, answer.at, user, folder, until)


def _check_own_words(asked: Question, answer: Answer) -> None:
    if not asked.free:
        raise BadRequest(sentence("answer.choices", choices=", ".join(asked.choices)))
    if not isinstance(answer.value, str) or not answer.value.strip():
        raise BadRequest(sentence("answer.choices_or_text", choices=", ".join(asked.choices)))


def _check_form(asked: Question, value: JsonValue) -> None:
    """A field that is needed and left out has its default, if there is one. The default of any other need not
    fit: `null` often stands for nothing."""
    properties, required = asked.schema.get("properties"), asked.schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    if not isinstance(value, dict):
        raise BadRequest(sentence("answer.object", question=asked.id, fields=", ".join(fields)))
    defaults = {
        name: field["default"]
        for name, field in fields.items()
        if name in needed and isinstance(field, dict) and "default" in field
    }
    try:
        JsonParameters("reply", asked.schema).validate({**defaults, **value})
    except ConfigError:
        pass  # the schema is none: whoever asked will say what is wrong
    except ValidationError as error:
        raise BadRequest(sentence("answer.reply", problems=problems(error))) from error


def fitting_arguments(arguments: Arguments, tool: Tool, which: str) -> Arguments:
    """As the tool takes them. BadRequest where a person gave some that it does not take."""
    try:
        return repair_arguments(arguments, tool.parameters)[0]
    except ToolFailed as error:
        what = str(error).partition("\n")[2] or str(error)
        raise BadRequest(sentence("arguments.unfit", which=which, what=what)) from error


def _offers(asked: Question) -> str:
    return "; ".join(map(str, (*asked.rules, *asked.wider))) or "none"
