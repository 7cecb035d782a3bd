"""Begin the turn that a request asks for, or resume the one whose calls the caller has run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import JsonValue
from starlette.requests import Request

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation, Tree
from dragoman.errors import AlreadyAnswered, DragomanError, NotFound, TurnEnded
from dragoman.messages.events import MessageAdded
from dragoman.messages.ids import new_id
from dragoman.messages.message import CallState, Message, Text
from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.server.context import Context
from dragoman.server.protocols.openai.api_errors import ApiRefusal
from dragoman.server.protocols.openai.find_conversation import MARK, find_parent
from dragoman.server.protocols.openai.request_input import (
    AnswerOptions,
    AssistantEntry,
    Brought,
    Entry,
    UserEntry,
    check_calls,
    messages_of,
    missing_output,
    parts_of,
    result_of,
    tool_specs,
)
from dragoman.store.store import SendKey, Store
from dragoman.turn.facts import CallChange, TurnOptions, options_in
from dragoman.turn.send import send_key, turn_options

# states of a turn whose answer is regenerated when the request is repeated
_CAME_TO_NOTHING = ("cancelled", "error")


@dataclass(slots=True, frozen=True)
class ReplyPlace:
    """The place of a reply: its turn, and the message in it after which the reply starts. None is the turn's
    start."""

    turn: str
    conversation: str
    after: str | None = None


@dataclass(slots=True, frozen=True)
class ReplyRequest:
    """A validated request. `conversation` and `parent` are set if the caller names them."""

    brought: Brought
    options: TurnOptions
    conversation: str | None = None
    parent: str | None = None
    metadata: Mapping[str, JsonValue] | None = None  # the request's metadata, stored with the message
    key: SendKey | None = None
    retried: bool = False  # whether an SDK retries it automatically


async def options_for(
    context: Context,
    body: AnswerOptions,
    options: dict[str, JsonValue],
    system: str | None,
    output: OutputSpec | None,
) -> TurnOptions:
    """Return the options of the turn. `model` names an agent, or a model as PROVIDER/MODEL."""
    services = await context.services()
    agent = body.model if body.model in services.agents else None
    model = body.model if agent is None else None
    if model is not None:
        try:
            services.model(model)
        except NotFound:
            what = f"Unknown model {model!r}. List the models with GET /v1/models."
            raise ApiRefusal(what, "model", status=404, code="model_not_found") from None
        except DragomanError as error:
            raise ApiRefusal(str(error), "model", status=404, code="model_not_found") from error
    return turn_options(
        output,
        model=model,
        agent=agent,
        system=system,
        options=options,
        # The caller's `max_tokens` limits the whole answer.
        continuations=0 if "max_tokens" in options else None,
        client_tools=tool_specs(body.tools),
    )


async def begin(context: Context, wanted: ReplyRequest) -> ReplyPlace:
    """Start or find the turn of a request and return the place of its reply. Everything is stored by then."""
    brought = wanted.brought
    check_calls(brought)
    if wanted.key is not None:
        turn = await context.turn_begun_with(wanted.key)
        if turn is not None:  # Whatever happened to that turn, nothing runs twice.
            return await _joined(context, turn)
    if brought.outputs:
        place = await _go_on(context, wanted)
        if place is not None:
            return place
        if not brought.sent:
            return await _answer_history(context, wanted)
    content = await parts_of(brought.sent, context)
    conversation, parent = wanted.conversation, wanted.parent
    new: Conversation | None = None
    history: Sequence[Message] = ()
    if conversation is None:
        earlier: list[Entry] = [*brought.earlier, *brought.outputs]
        found = await find_parent(context.runtime.store, context.person, wanted.options.agent, earlier)
        if found is None:
            new, history = await _history(context, earlier, wanted.options)
            conversation = new.id
        else:
            conversation, parent = found
    turn = await context.runtime.commands.send(
        conversation,
        content,
        parent=parent,
        options=wanted.options,
        metadata={MARK: {**(wanted.metadata or {})}},
        key=wanted.key,
        opens=new,
        history=history,
        by=context.person,
    )
    context.publisher.changed(conversation)
    return await _joined(context, turn)


async def _joined(context: Context, turn: str) -> ReplyPlace:
    store = context.runtime.store
    after = await answer_begins_behind(store, turn)
    return ReplyPlace(turn, (await store.turn(turn)).conversation, after)


async def _answer_history(context: Context, wanted: ReplyRequest) -> ReplyPlace:
    """Answer a history of another program that ends with call outputs. The turn begins after them."""
    entries = wanted.brought.entries
    replies = [entry for entry in entries if isinstance(entry, AssistantEntry)]
    made = {call.id for call in replies[-1].calls} if replies else set()
    lost = next((output.call for output in wanted.brought.outputs if output.call not in made), None)
    asked = any(isinstance(entry, UserEntry) for entry in entries)
    if lost is not None or not asked or wanted.conversation is not None:
        lost = lost or wanted.brought.outputs[0].call
        what = f"No call {lost!r} waits for its output. Its turn is over, or the call is unknown."
        raise ApiRefusal(what, "tool_call_id", code="invalid_tool_output")
    new, messages = await _history(context, entries, wanted.options, {**(wanted.metadata or {})})
    conversation = new.id
    await context.runtime.store.add_conversation(new, messages)
    try:
        last = messages[-1].calls[-1]
        assert last.result is not None
        change = CallChange(last.id, result=last.result.text)
        turn = await context.runtime.commands.rerun_call(
            change, options=wanted.options, key=wanted.key, by=context.person
        )
    except DragomanError:
        await context.runtime.store.delete_conversation(conversation)  # The conversation has no turn.
        raise
    # The same request arrived twice at the same time.
    if (await context.runtime.store.turn(turn)).conversation != conversation:
        await context.runtime.store.delete_conversation(conversation)
        return await _joined(context, turn)
    context.publisher.changed(conversation)
    steps = sum(message.turn == messages[-1].turn and message.role == "assistant" for message in messages)
    return ReplyPlace(turn, conversation, await _last_copied(context, turn, steps))


async def _last_copied(context: Context, turn: str, steps: int) -> str | None:
    """Return the message after which the reply begins. The turn starts with copies of `steps` earlier
    replies."""
    async for event in context.runtime.turn(turn).events():
        if isinstance(event, MessageAdded) and event.message.role == "assistant":
            steps -= 1
            if steps == 0:
                return event.message.id
    return None  # The turn ended before it had them all.


async def _history(
    context: Context,
    earlier: Sequence[Entry],
    options: TurnOptions,
    asked_with: dict[str, JsonValue] | None = None,
) -> tuple[Conversation, list[Message]]:
    """Return a new conversation that begins with the caller's history. It is not stored yet.

    `asked_with` becomes metadata of the last user message, which is answered next.
    """
    id, now = new_id("conv"), context.runtime.services.clock()
    messages = await messages_of(earlier, id, context)
    if messages:
        messages[0] = replace(messages[0], metadata={MARK: {}})
    if asked_with:
        last = max(place for place, message in enumerate(messages) if message.role == "user")
        messages[last] = replace(messages[last], metadata={MARK: asked_with})
    settings: dict[str, JsonValue] = {"agent": options.agent} if options.agent else {"model": options.model}
    leaf = messages[-1].id if messages else None
    conversation = Conversation(id, leaf=leaf, user=context.user, settings=settings, created=now, updated=now)
    return conversation, messages


# ── calls that the caller has run ─────────────────────────────────────────────────────────────────


async def _go_on(context: Context, wanted: ReplyRequest) -> ReplyPlace | None:
    """Deliver the outputs of calls, and return the place of the reply. None if they answer no call of a
    stored turn.

    Clients that lost the connection send outputs twice, but they are delivered once. If the turn has
    failed or was cancelled since, its answer is regenerated.
    """
    outputs = {output.call: output for output in wanted.brought.outputs}
    maker = await _maker(context, wanted.brought.outputs[0].call)
    if maker is None or maker.turn is None:
        return None
    if wanted.conversation not in (None, maker.conversation):
        raise ApiRefusal("The outputs belong to calls of another conversation.", code="invalid_tool_output")
    calls = {call.id: call for call in maker.calls}
    if foreign := outputs.keys() - calls.keys():
        what = f"All outputs must be of one reply's calls. {min(foreign)!r} is of another."
        raise ApiRefusal(what, "tool_call_id", code="invalid_tool_output")
    names = {spec.name for spec in await _brought_tools(context, maker.turn)}
    for call in calls.values():
        if call.id in outputs and call.tool not in names:
            raise ApiRefusal(
                f"Call {call.id!r} is not a function of this request, so the server runs it.",
                code="invalid_tool_output",
            )
    waiting = [call for call in calls.values() if call.state is CallState.RUNNING and call.tool in names]
    for call in waiting:
        if call.id not in outputs:
            raise missing_output(call.id)
    row = await context.runtime.store.turn(maker.turn)
    failed = row.state in _CAME_TO_NOTHING and not wanted.retried
    if failed and all(calls[id].state is CallState.COMPLETED for id in outputs):
        if wanted.brought.sent:
            return None  # There is a new message to answer.
        return await _answer_anew(context, maker, [*outputs][-1], wanted)
    if not waiting and wanted.brought.sent and not await _was_said(context, maker.turn, wanted):
        return None  # These outputs belong to the history, and there is a new message to answer.
    commands = context.runtime.commands
    if waiting and wanted.brought.sent:
        await commands.steer(maker.turn, await parts_of(wanted.brought.sent, context), by=context.person)
    for call in waiting:
        with suppress(AlreadyAnswered, TurnEnded):
            result = await result_of(outputs[call.id], context)
            await commands.deliver(call.id, result, by=context.person)
    return ReplyPlace(maker.turn, maker.conversation, maker.id)


async def _answer_anew(context: Context, maker: Message, call: str, wanted: ReplyRequest) -> ReplyPlace:
    """Regenerate the answer of a turn that was cancelled or failed after these calls. The caller sent their
    results again."""
    messages, _ = await context.runtime.store.messages(maker.conversation)
    made = next(one for one in maker.calls if one.id == call)
    assert made.result is not None
    change = CallChange(call, result=made.result.text)
    turn = await context.runtime.commands.rerun_call(
        change, options=wanted.options, key=wanted.key, by=context.person
    )
    context.publisher.changed(maker.conversation)
    path = Tree(messages).path(maker.id)
    steps = sum(message.turn == maker.turn and message.role == "assistant" for message in path)
    return ReplyPlace(turn, maker.conversation, await _last_copied(context, turn, steps))


async def _was_said(context: Context, turn: str, wanted: ReplyRequest) -> bool:
    """Return whether the turn of the calls has this message already, or still runs and accepts no other."""
    if (await context.runtime.store.turn(turn)).live:
        return True
    text = "".join(
        part.text for part in await parts_of(wanted.brought.sent, context) if isinstance(part, Text)
    )
    said = (await context.runtime.turn(turn).snapshot()).messages
    return any(message.role == "user" and message.text == text for message in said)


async def _brought_tools(context: Context, turn: str) -> tuple[ToolSpec, ...]:
    return options_in(await context.runtime.store.facts(turn)).client_tools


async def _maker(context: Context, call: str) -> Message | None:
    """Return the message that made a call, or None if the user has no access."""
    store = context.runtime.store
    try:
        await context.call(call, Right.TAKE_PART)
        row = await store.turn_of_call(call)
    except NotFound:
        return None
    messages, _ = await store.messages(row.conversation)
    return next((one for one in messages if any(made.id == call for made in one.calls)), None)


# ── repeated requests ─────────────────────────────────────────────────────────────────────────────


_COUNTED = 3600.0  # Seconds: by default, the SDKs wait ten minutes for an answer.
_UNCOUNTED = 60.0  # the same for clients that do not mark retries


async def attempt_of(request: Request, now: float, conversation: str | None = None) -> SendKey:
    """Return the key of a request's turn: the caller's idempotency key, or a hash of the request.

    A retry of an SDK joins the turn of the first request. A request that an SDK marks as its first joins no
    turn from before the request.
    """
    sent = f"{request.url.path} {conversation or ''} ".encode() + await request.body()
    if (named := request.headers.get("idempotency-key")) is not None:
        return send_key(named, sent, now)
    counted = request.headers.get("x-stainless-retry-count")
    window = 0.0 if counted == "0" else _UNCOUNTED if counted is None else _COUNTED
    sum = hashlib.sha256(sent).hexdigest()
    return SendKey(f"request {sum}", sum, now - window)


def is_retry(request: Request) -> bool:
    """Return whether an SDK marks the request as a retry."""
    return request.headers.get("x-stainless-retry-count", "0") != "0"


async def answer_begins_behind(store: Store, turn: str) -> str | None:
    """Return the message after which the answer of a turn begins, or None. A turn that answers the outputs of
    calls begins with copies of earlier replies."""
    row = await store.turn(turn)
    messages, _ = await store.messages(row.conversation)
    before = next(message.turn for message in messages if message.id == row.message)
    return _last_copy_of(messages, turn, before)


def _last_copy_of(messages: Sequence[Message], turn: str, before: str | None) -> str | None:
    replies = [message for message in messages if message.role == "assistant"]
    own = [reply.id for reply in replies if reply.turn == turn]
    copied = sum(reply.turn == before for reply in replies) if before != turn else 0
    return own[copied - 1] if 0 < copied <= len(own) else None


# ── IDs: the turn of an object, and the position in it ────────────────────────────────────────────


_RESPONSE = re.compile(r"resp_([0-9a-z]{1,40})(?:_([0-9a-z]{1,40}))?")


def suffix_of(place: ReplyPlace) -> str:
    turn = place.turn.removeprefix("turn_")
    return f"{turn}_{place.after.removeprefix('msg_')}" if place.after else turn


def response_id(place: ReplyPlace) -> str:
    return f"resp_{suffix_of(place)}"


def parse_response_id(id: str) -> tuple[str, str | None]:
    """Return the turn, and the message in it after which the response begins. Raises NotFound for an invalid
    ID."""
    found = _RESPONSE.fullmatch(id)
    if found is None:
        raise NotFound("response", id)
    turn, after = found.groups()
    return f"turn_{turn}", f"msg_{after}" if after else None


def headers_of(place: ReplyPlace) -> dict[str, str]:
    """Return headers that name the turn and conversation, so that a client can show them and answer there."""
    return {
        "x-request-id": place.turn,
        "x-dragoman-turn": place.turn,
        "x-dragoman-conversation": place.conversation,
    }
