"""Run `dragoman questions` and `answer`: list approval requests of all conversations, and answer them."""

from __future__ import annotations

import sys
from datetime import datetime

from pydantic import JsonValue, ValidationError

from dragoman.cli.flags.conversations import AnswerFlags, QuestionsFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import find_question, open_store
from dragoman.cli.terminal.choices import rule_options
from dragoman.cli.terminal.text import count, parse_json, print_json
from dragoman.config.build import store_of
from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.asked import approval_text
from dragoman.messages.message import Arguments
from dragoman.messages.questions import VERDICTS, Answer, Question, Rule, Scope
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.permissions import rules_in_words
from dragoman.tools.schema import problems
from dragoman.visible_text import visible


def to_answer(flags: AnswerFlags, question: Question) -> Answer:
    """Return the answer of these flags, which must name exactly one verdict. Raises BadRequest for one that
    the request does not accept."""
    given = [name for name in ("reject", "stop", "withhold", "reply") if getattr(flags, name) is not None]
    given += [name for name in ("release", "deny") if getattr(flags, name)]
    scope = _scope(flags)
    if flags.allow or flags.arguments is not None or (scope != "once" and not flags.deny):
        given.append("allow")
    if len(given) != 1:
        known = ", ".join(f"--{verdict}" for verdict in sorted(VERDICTS[question.kind]))
        raise BadRequest(f"Pass one answer to question {question.id}: {known}.")
    if flags.rule != 1 and scope == "once":
        raise BadRequest("--rule applies to later calls. Add --conversation, --hour or --always.")
    match given[0]:
        case "allow":
            arguments = _parse_arguments(flags.arguments, question)
            rules = _rules(flags.rule, question) if flags.rule != 1 else ()
            return Answer("allow", scope=scope, arguments=arguments, rules=rules)
        case "deny":
            rules = _rules(flags.rule, question) if scope != "once" else ()
            return Answer("reject", scope=scope, rules=rules)
        case "reject" | "stop" | "withhold" as verdict:
            return Answer(verdict, reason=getattr(flags, verdict) or None)
        case "release":
            return Answer("release")
        case _:
            return Answer("reply", value=_parse_reply(flags.reply or "", question))


def _scope(flags: AnswerFlags) -> Scope:
    if flags.always:
        return "always"
    return "hour" if flags.hour else "conversation" if flags.conversation else "once"


def _rules(number: int, question: Question) -> tuple[Rule, ...]:
    """Return the rules of this number, as `dragoman questions` lists them."""
    options = rule_options(question)
    if not 1 <= number <= len(options):
        offered = count(len(options), "rule")
        raise BadRequest(f"Question {question.id} has no rule {number}. It offers {offered}.")
    return options[number - 1]


async def list_questions(flags: QuestionsFlags) -> None:
    settings, found = settings_for(flags), list[Question]()
    if store_of(settings).is_there:
        async with open_store(settings) as runtime:
            found = await runtime.questions()
    if flags.json:
        print_json([_report(question) for question in found], indent=2)
        return
    for question in found:
        when = datetime.fromtimestamp(question.asked).strftime("%Y-%m-%d %H:%M")
        print(f"{question.id}\t{when}\t{question.kind}\t{question.conversation}")
        print("\n".join(f"  {line}" for line in approval_text(question).split("\n")))
        for choice in question.choices:
            print(f"  - {visible(choice)}")
        if question.choices and question.free:
            print("  or an answer in your own words")
        for number, rules in enumerate(rule_options(question), 1):
            print(f"  {number}  {visible(rules_in_words(rules))}")
    if not found:
        print("Nothing waits for you.", file=sys.stderr)


def _report(question: Question) -> JsonValue:
    return {
        "id": question.id,
        "kind": question.kind,
        "conversation": question.conversation,
        "turn": question.turn,
        "tool": question.tool,
        "server": question.server,
        "arguments": question.arguments,
        "text": question.text,
        "diff": question.diff,
        "result": question.result.text if question.result is not None else None,
        "because": question.because,
        "rules": [rules_in_words(rules) for rules in rule_options(question)],
        "choices": [*question.choices],
        "free": question.free,
        "asked": question.asked,
    }


async def answer(flags: AnswerFlags) -> None:
    async with open_store(settings_for(flags)) as runtime:
        question = await find_question(runtime.store, flags.question)
        await runtime.answer(question.id, to_answer(flags, question))
    print(f"answered {question.id}")
    print(f"If no program is at work on it: dragoman resume {question.conversation} continues.")


def _parse_arguments(text: str | None, question: Question) -> Arguments | None:
    if text is None:
        return None
    try:
        arguments = parse_json(text)
    except ValueError as error:
        raise BadRequest(f"--arguments is not valid JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadRequest("--arguments must be a JSON object: '{ … }'.")
    if question.schema:
        try:
            JsonParameters(question.tool, question.schema).validate(arguments)
        except ValidationError as error:
            raise BadRequest(f"The edited arguments do not fit: {problems(error)}") from error
        except ConfigError:
            pass  # The schema is invalid, so the tool reports what does not match.
    return arguments


def _parse_reply(text: str, question: Question) -> JsonValue:
    """Return a form's reply as JSON, and any other as it is written."""
    if not question.schema:
        return text
    try:
        value: JsonValue = parse_json(text)
    except ValueError as error:
        raise BadRequest(f"--reply must be valid JSON here: {error}") from error
    return value
