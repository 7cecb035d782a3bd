"""Make cases from stored turns: the messages before the answer, the answer, and the results of its calls."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest
from dragoman.evaluation.case import Case, CaseFile, CaseMessage, CaseOrigin, CaseTool, case_from, values_of
from dragoman.evaluation.expected import Answered, Expected, ExpectedCall, MadeCall, Rubric
from dragoman.messages.message import CallState, Message, ToolCall
from dragoman.messages.usage import Usage
from dragoman.plugins.privacy import Mask, Privacy, mask_of
from dragoman.redaction import redact_text, redact_value
from dragoman.runtime import Runtime
from dragoman.store.store import Rating, Store
from dragoman.tools.toolbox import Offer, Toolbox
from dragoman.turn.facts import FACT, Fact, ReplyReceived, RequestBuilt, TurnFailed, TurnOptions, TurnStarted
from dragoman.turn.steps.finalize import answer_of
from dragoman.turn.steps.request_layers import offer_of

UNRECORDED, SIMULATED = "unrecorded", "simulated"  # marks of results that the run invented
# settings that the run determines, or that are stored separately
_DECIDED = ("model", "mode", "review", "private", "system", "agent", "workspace")
_FAULT = "The answer does not have this fault, which a person found in an earlier one: {note}"


async def case_of_turn(
    runtime: Runtime, turn: str, *, message: str | None = None, rating: Rating | None = None
) -> Case:
    """Return a case of a stored turn, without secrets. The runtime must have the turn's tools.

    `message` names a reply of the turn. Earlier replies are then given, and the case asks for this one again.
    A badly rated turn must change and lose the fault that the note names. Any other turn is expected to make
    the same calls. Raises BadRequest if the turn is running or unreadable.
    """
    store = runtime.store
    row = await store.turn(turn)
    if row.live:
        raise BadRequest(f"The turn '{turn}' is still running. Wait until it ends.")
    facts = [FACT.load(body) for body in await store.facts(turn)]
    messages, _ = await store.messages(row.conversation)
    tree = Tree(messages)
    first = facts[0] if facts else None
    if not isinstance(first, TurnStarted) or first.message not in tree:
        raise BadRequest(f"The beginning of the turn '{turn}' cannot be read. Choose another turn.")
    options = first.options
    recorded = answered_in(facts, [one for one in messages if one.turn == turn])
    path = [await _message_of(store, one) for one in tree.path(first.message)]
    replies = [one for one in messages if one.turn == turn and one.role == "assistant"]
    ids = [one.id for one in replies]
    before = replies[: ids.index(message)] if message in ids else []
    conversation = await store.conversation(row.conversation)
    settings = {**(options.settings or conversation.settings), **options.over}
    private = settings.get("private")
    own = {name: str(one) for name, one in private.items()} if isinstance(private, Mapping) else {}
    mask = mask_of({**private_fields(runtime), **own})
    offer = await offer_of(runtime.services, turn)
    agent = options.agent or settings.get("agent")
    case = Case(
        _id_of(mask.hide(path[-1].text), turn, len(before)),
        tuple(path),
        _expected_of(recorded, rating),
        system="\n\n".join(one for one in (settings.get("system"), options.system) if isinstance(one, str))
        or None,
        agent=agent if isinstance(agent, str) else None,
        options=options.options,
        settings=_settings_of(settings, options),
        tools=tuple(_tools_of(runtime.services.toolbox, offer, options)),
        recorded=recorded,
        output=options.output,
        given=tuple([await _message_of(store, one) for one in before]),
        origin=CaseOrigin(
            turn,
            row.conversation,
            rating.value if rating is not None else "",
            rating.note if rating is not None else "",
        ),
    )
    return _without_secrets(case, mask)


def private_fields(runtime: Runtime | None) -> dict[str, str]:
    """Return the private values of a runtime's settings. Cases and reports contain masks instead."""
    plugins = runtime.services.plugins if runtime is not None else ()
    return {
        name: one for plugin in plugins if isinstance(plugin, Privacy) for name, one in plugin.fields.items()
    }


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with `change` applied to every string in it."""
    match value:
        case str():
            return change(value)
        case dict():
            return {name: with_texts(one, change) for name, one in value.items()}
        case list():
            return [with_texts(one, change) for one in value]
        case _:
            return value


def answered_in(facts: Sequence[Fact], messages: Sequence[Message]) -> Answered:
    """Return the result of a stored turn from its facts and messages."""
    replies = [message for message in messages if message.role == "assistant"]
    usage = sum((message.usage for message in replies if message.usage is not None), Usage())
    started = next((one.options.started_with for one in facts if isinstance(one, TurnStarted)), None)
    failed = next((one.error for one in facts if isinstance(one, TurnFailed)), "")
    return Answered(
        ", ".join(dict.fromkeys(one.model for one in replies if one.model)) or started or "",
        answer_of(messages),
        tuple(made_call(call) for message in replies for call in message.all_calls),
        sum(isinstance(one, ReplyReceived) for one in facts),
        usage.input,
        usage.output,
        usage.cost,
        round(sum(_waits(facts)), 3),
        str(failed),
    )


def _waits(facts: Sequence[Fact]) -> Iterator[float]:
    """Yield the seconds of each reply, without the time before a process resumed the turn."""
    asked = 0.0
    for fact in facts:
        if isinstance(fact, RequestBuilt):
            asked = fact.at
        elif isinstance(fact, ReplyReceived) and asked:
            yield max(0.0, fact.at - asked)


def made_call(call: ToolCall) -> MadeCall:
    result: JsonValue = None
    if call.result is not None:
        result = call.result.text if call.result.value is None else call.result.value
    metadata = call.result.metadata if call.result is not None else {}
    return MadeCall(
        call.tool,
        call.asked_for,
        result,
        failed=call.state is not CallState.COMPLETED,
        unrecorded=bool(metadata.get(UNRECORDED)),
        simulated=bool(metadata.get(SIMULATED)),
    )


async def _message_of(store: Store, message: Message) -> CaseMessage:
    files = []
    for file in message.files:
        url = file.url
        if file.blob is not None:
            data = b64encode(await store.blob(file.blob)).decode("ascii")
            url = f"data:{file.media_type};base64,{data}"
        if url is not None:
            files.append(CaseFile(file.media_type, url, file.name))
    calls = tuple(made_call(call) for call in message.calls)
    return CaseMessage(message.role, message.text, calls, tuple(files))


def _expected_of(recorded: Answered, rating: Rating | None) -> Expected:
    if rating is not None and rating.value == "bad":
        rubrics = (Rubric(_FAULT.format(note=rating.note)),) if rating.note else ()
        return Expected(changed=True, rubrics=rubrics)
    return Expected(any_order=tuple(ExpectedCall(call.tool, call.arguments) for call in recorded.calls))


def _settings_of(settings: Mapping[str, Any], options: TurnOptions) -> dict[str, JsonValue]:
    """Return the other settings of the conversation and its request, as `run` passes them to the turn
    again."""
    kept = {name: value for name, value in settings.items() if name not in _DECIDED and name != "tools"}
    extra: dict[str, JsonValue] = {"dialect": options.dialect} if options.dialect is not None else {}
    if options.disabled:
        extra["disable"] = list(options.disabled)
    return {**kept, **extra}


def _tools_of(toolbox: Toolbox, offer: Offer, options: TurnOptions) -> Iterator[str | CaseTool]:
    """Yield names of tools that every runtime with these settings has, and definitions of all others."""
    offered = {id(tool): name for name, tool in offer.tools.items()}
    brought = {spec.name for spec in options.client_tools}
    for group in toolbox.groups:
        on = [tool for tool in group.tools if id(tool) in offered and tool.name not in brought]
        if group.name == "output":
            continue  # Every runtime has it.
        if any(offered[id(tool)] in offer.sources for tool in on):
            for tool in on:
                spec = tool.spec(offered[id(tool)])
                yield CaseTool(
                    spec.name, spec.description, dict(spec.parameters), group.name, tool.permission
                )
        elif on and len(on) == len(group.tools):
            yield group.name
        else:
            yield from (f"{group.name}.{tool.name}" for tool in on)
    for spec in options.client_tools:
        yield CaseTool(spec.name, spec.description, dict(spec.parameters), permission=f"client.{spec.name}")


def _id_of(text: str, turn: str, given: int) -> str:
    words = re.findall(r"\w+", redact_text(text).lower())
    whole = "-".join([*words[:6], turn[-6:], *([f"reply-{given + 1}"] if given else [])])
    return whole.encode()[-80:].decode(errors="ignore").lstrip("-")


def _without_secrets(case: Case, mask: Mask) -> Case:
    """Return the case without strings that look like keys and without private values, including those in text
    attachments."""

    def hide(text: str) -> str:
        return redact_text(mask.hide(text))

    hidden: Any = redact_value(with_texts(values_of(case), mask.hide))
    messages = zip(
        (*case.messages, *case.given), (*hidden["messages"], *hidden.get("given", ())), strict=True
    )
    for message, kept in messages:
        for file, kept_file in zip(message.files, kept.get("files", ()), strict=True):
            kept_file["url"] = _in_data(file.url, hide)
    return replace(case_from(hidden, case.id), id=case.id)


def _in_data(url: str, change: Callable[[str], str]) -> str:
    """Return the URL with `change` applied: to the text in a data URL, or to the URL itself."""
    head, mark, data = url.partition(";base64,")
    if not mark:
        return change(url)
    try:
        text = b64decode(data).decode("utf-8")
    except ValueError:  # The data is an image or another binary format.
        return url
    return f"{head}{mark}{b64encode(change(text).encode()).decode('ascii')}"
