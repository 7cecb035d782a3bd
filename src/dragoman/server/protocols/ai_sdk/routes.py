"""Define the routes for `useChat`: to stream an answer, to resume it after a reload, and to stop it.

`/ai-sdk/chat` is for versions 6 and 7. Version 5 does not support approvals. At `/ai-sdk/v5/chat` the stream
stays open while a turn waits, and clients answer approval requests at `/questions/ID/answer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue
from starlette.responses import Response

from dragoman.conversation.sharing import Right
from dragoman.errors import AlreadyAnswered, BadRequest, NotFound, TurnBusy, TurnEnded
from dragoman.messages.message import CallState, Part, Reasoning, Text, ToolCall, ToolResult, canonical
from dragoman.messages.questions import allow_once, reject
from dragoman.server import shapes
from dragoman.server.context import Context, Key, TheContext, api_router
from dragoman.server.protocols.ai_sdk.ui_history import chat_messages
from dragoman.server.protocols.ai_sdk.ui_input import UIChatBody, UIMessage, UIPart
from dragoman.server.protocols.ai_sdk.ui_writer import Chunk, UIMessageStream
from dragoman.server.protocols.threads import (
    LONGEST_NAME,
    EarlierMessage,
    attach,
    conversation_of,
    earlier_call,
    find_asked,
    respond,
    say,
    stop_what_was_left,
    turn_of,
    unreadable,
)
from dragoman.store.store import SendKey, TurnRow
from dragoman.turn.facts import options_in
from dragoman.turn.live.log import Snapshot

router = api_router("AI SDK")

PROTOCOL = "ai-sdk"
_HEADER = "x-vercel-ai-ui-message-stream"
_STREAM_ID = "x-resumable-stream-id"  # assistant-ui keeps this ID over a reload and requests the rest by it.
_STREAM: dict[int | str, dict[str, object]] = {
    200: {"description": "Chunks of a UI message", "content": {"text/event-stream": {}}}
}
_REST: dict[int | str, dict[str, object]] = {**_STREAM, 204: {"description": "Nothing is being written"}}
_DONE = b"data: [DONE]\n\n"
_SETTLED = {
    "output-available": CallState.COMPLETED,
    "output-error": CallState.FAILED,
    "output-denied": CallState.REJECTED,
}


@router.post("/ai-sdk/chat", response_class=Response, responses=_STREAM)
async def chat(context: TheContext, body: UIChatBody, key: Key = None) -> Response:
    """Answer a request of `DefaultChatTransport`: a new message, a regeneration, or input for a
    waiting call."""
    async with context.readers.one_by_one(context.person, body.id):
        return await _chat(context, body, key, approvals=True)


@router.post("/ai-sdk/v5/chat", response_class=Response, responses=_STREAM)
async def chat_v5(context: TheContext, body: UIChatBody, key: Key = None) -> Response:
    """Answer a request of version 5, which does not support approvals."""
    async with context.readers.one_by_one(context.person, body.id):
        return await _chat(context, body, key, approvals=False)


@router.get("/ai-sdk/chat/{id}")
async def read_chat(context: TheContext, id: str) -> list[dict[str, JsonValue]]:
    """Return the messages of a chat for `useChat`, or none if it has not begun. `resumeStream()` delivers the
    live answer."""
    return await _read(context, id, approvals=True)


@router.get("/ai-sdk/v5/chat/{id}")
async def read_chat_v5(context: TheContext, id: str) -> list[dict[str, JsonValue]]:
    return await _read(context, id, approvals=False)


@router.get("/ai-sdk/chat/{id}/stream", response_class=Response, responses=_REST)
async def resume(context: TheContext, id: str) -> Response:
    """Stream the live answer from its beginning, or return 204 if there is none."""
    return await _resume(context, id, approvals=True)


@router.get("/ai-sdk/v5/chat/{id}/stream", response_class=Response, responses=_REST)
async def resume_v5(context: TheContext, id: str) -> Response:
    return await _resume(context, id, approvals=False)


@router.post("/ai-sdk/chat/{id}/stop")
async def stop(context: TheContext, id: str) -> shapes.Cancelled:
    """Stop the live answer of this chat immediately."""
    turn = await _live_turn(context, id, Right.TAKE_PART)
    cancelled = turn is not None and await context.runtime.commands.cancel(
        turn.id, "stopped", by=context.person
    )
    if turn is not None:
        context.publisher.changed(turn.conversation)
    return shapes.Cancelled(cancelled)


async def _chat(context: Context, body: UIChatBody, key: SendKey | None, *, approvals: bool) -> Response:
    if (turn := await context.turn_begun_with(key)) is not None:
        return await _tell(context, await context.runtime.store.turn(turn), approvals=approvals)
    if (answer := body.gone_on_with) is not None:
        return await _go_on(context, answer, approvals=approvals)
    said = await _said_now(context, body)
    if body.trigger == "submit-message":
        if (joined := await _join(context, said, approvals=approvals)) is not None:
            return joined
        if (again := await _asked_already(context, body, said)) is not None:
            return await _tell(context, again, approvals=approvals)
    try:
        row = await _start(context, body, said, key)
    except TurnBusy:  # A request with the same message can have started the turn in this moment.
        again = await _asked_already(context, body, said)
        if again is None or body.trigger != "submit-message":
            raise
        return await _tell(context, again, approvals=approvals)
    stream = await _stream(context, row, approvals=approvals)
    context.readers.began(row.id)
    return _respond(context, row, stream)


async def _go_on(context: Context, answer: UIMessage, *, approvals: bool) -> Response:
    """Resume the turn of an answer with the client's input."""
    row = await turn_of(context, answer.id, Right.ANSWER)
    snapshot = await context.runtime.turn(row.id).snapshot()
    stream = await _stream(context, row, approvals=approvals, message=answer.id)
    lacking = [*stream.catch_up(snapshot, answer)]
    await _bring(context, answer, stream)
    await context.adopt(row)  # Answers 409 if the turn cannot resume here.
    return _respond(context, row, stream, lacking, snapshot)


async def _tell(context: Context, row: TurnRow, *, approvals: bool) -> Response:
    """Return a response with a turn from its beginning."""
    await context.adopt(row)  # Answers 409 if the turn cannot resume here.
    stream = await _stream(context, row, approvals=approvals)
    snapshot = await context.runtime.turn(row.id).snapshot()
    return _respond(context, row, stream, stream.replay(snapshot), snapshot)


async def _stream(
    context: Context, row: TurnRow, *, approvals: bool, message: str | None = None
) -> UIMessageStream:
    options = options_in(await context.runtime.store.facts(row.id))
    brought = {spec.name for spec in options.client_tools}
    return UIMessageStream(row.id, row.conversation, brought=brought, approvals=approvals, message=message)


async def _resume(context: Context, id: str, *, approvals: bool) -> Response:
    row = await _live_turn(context, id, Right.READ)
    if row is None:
        return Response(status_code=204)
    return await _tell(context, row, approvals=approvals)


async def _read(context: Context, id: str, *, approvals: bool) -> list[dict[str, JsonValue]]:
    conversation = await conversation_of(context, id, PROTOCOL, Right.READ)
    if conversation is None:
        return []
    path = await (await context.runtime.conversation(conversation)).messages()
    turns = await context.runtime.store.turns(conversation)
    brought = options_in(await context.runtime.store.facts(turns[-1].id)).client_tools if turns else ()
    live = {turn.id for turn in turns if turn.live}
    names = {spec.name for spec in brought}
    return [*chat_messages(path, PROTOCOL, live=live, brought=names, approvals=approvals)]


async def _live_turn(context: Context, name: str, right: Right) -> TurnRow | None:
    conversation = await conversation_of(context, name, PROTOCOL, right)
    live = await context.runtime.store.live_turns(conversation) if conversation is not None else []
    return live[-1] if live else None


# ── something new ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class _SaidNow:
    """The user's new message, and the messages before it."""

    mark: str  # the ID that the client gave it
    content: tuple[Part, ...]
    kept: dict[str, JsonValue]
    before: list[EarlierMessage]
    answer: UIMessage | None  # the last answer before it

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, Text))


async def _said_now(context: Context, body: UIChatBody) -> _SaidNow:
    dialogue = [one for one in body.messages if one.role != "system"]
    place = next((n for n, one in reversed([*enumerate(dialogue)]) if one.role == "user"), None)
    if place is None:
        raise BadRequest("The request has no user message to answer.")
    before = [
        EarlierMessage("user" if one.role == "user" else "assistant", one.id, partial(_content, context, one))
        for one in dialogue[:place]
    ]
    answers = [one for one in dialogue[:place] if one.role == "assistant"]
    content = await _content(context, dialogue[place])
    last = dialogue[place]
    return _SaidNow(last.id[:LONGEST_NAME], content, last.kept, before, answers[-1] if answers else None)


async def _start(context: Context, body: UIChatBody, said: _SaidNow, key: SendKey | None) -> TurnRow:
    """Start a turn that answers the last message or regenerates its answer."""
    options = body.turn_options()
    if body.trigger == "regenerate-message":
        again = await _turn_to_repeat(context, body, said)
        if again is not None:
            turn = await context.runtime.commands.rerun(
                again.message, options=options, key=key, by=context.person
            )
            context.publisher.changed(again.conversation)
            return await context.runtime.store.turn(turn)
    return await say(
        context,
        body.id,
        PROTOCOL,
        before=said.before,
        content=said.content,
        options=options,
        mark=said.mark,
        key=key,
        continues=body.continues,
        kept=said.kept,
    )


async def _turn_to_repeat(context: Context, body: UIChatBody, said: _SaidNow) -> TurnRow | None:
    """Return the named turn, or the last one that answered this message. None if the message never
    arrived."""
    conversation = await conversation_of(context, body.id, PROTOCOL, Right.TAKE_PART)
    if conversation is None:
        return None
    await stop_what_was_left(context, conversation)
    turns = await context.runtime.store.turns(conversation)
    asked = await find_asked(context, conversation, said.before, said.content)
    found = [turn for turn in turns if turn.id == body.message] or [turn for turn, _ in asked[-1:]]
    if found and found[0].live:
        raise TurnBusy(found[0].id)
    return found[0] if found else None


async def _asked_already(context: Context, body: UIChatBody, said: _SaidNow) -> TurnRow | None:
    """Return the turn that already answers this message, or None.

    A client that lost the response, or a second tab, sends the message again. An edited message starts a new
    turn, and so does one whose turn was cancelled or failed.
    """
    conversation = await conversation_of(context, body.id, PROTOCOL, Right.TAKE_PART)
    if conversation is None or body.message is not None or not said.mark:
        return None
    asked = await find_asked(context, conversation, said.before, said.content)
    turns = [turn for turn, message in asked if message.metadata.get(PROTOCOL) == said.mark]
    return turns[-1] if turns and turns[-1].state not in ("cancelled", "error") else None


async def _content(context: Context, message: UIMessage) -> tuple[Part, ...]:
    found = [await _part(context, part, message.role) for part in message.parts]
    return tuple(part for part in found if part is not None)


async def _part(context: Context, part: UIPart, role: str) -> Part | None:
    """Return a part, or None for parts that the SDK shows only in the client. Raises BadRequest for parts
    that are unreadable or that a user message cannot contain."""
    match part.type:
        case "text":
            return Text(part.text)
        case "file":
            return await attach(context, part.url, part.media_type, part.filename)
        case type if type.startswith("data-"):
            return None
        case "reasoning" if role == "assistant":
            return Reasoning(part.text)
        case "reasoning-file" if role == "assistant":
            return await attach(context, part.url, part.media_type)
        case "step-start" | "source-url" | "source-document" if role == "assistant":
            return None
        case type if role == "assistant" and type.startswith(("tool-", "dynamic-tool")):
            return _earlier_call(part)
    raise unreadable(part.type)


def _earlier_call(part: UIPart) -> ToolCall:
    arguments = part.input if isinstance(part.input, dict) else {}
    state = _SETTLED.get(part.state, CallState.INTERRUPTED)
    result = _brought_result(part) if part.settled else None
    return earlier_call(part.call, part.tool or part.type.removeprefix("tool-"), arguments, result, state)


def _brought_result(part: UIPart) -> ToolResult:
    output = part.output if part.state == "output-available" else part.error
    text = output if isinstance(output, str) else canonical(output)
    return ToolResult(text, value=None if isinstance(output, str) else output)


# ── answers to waiting calls ──────────────────────────────────────────────────────────────────────


async def _join(context: Context, said: _SaidNow, *, approvals: bool) -> Response | None:
    """Steer a turn with a new message that arrives together with input for the last answer's calls. The
    answer continues in a separate message. None if no turn waits for this input."""
    try:
        row = await turn_of(context, said.answer.id if said.answer is not None else "", Right.TAKE_PART)
    except NotFound:
        return None
    assert said.answer is not None
    snapshot = await context.runtime.turn(row.id).snapshot()
    marks = [message.metadata.get(PROTOCOL) for message in snapshot.messages if message.id != row.message]
    known = bool(said.mark) and said.mark in marks  # The client sent this message before.
    if not known:
        if not row.live or not _brings(said.answer, snapshot):
            return None
        await context.runtime.commands.steer(
            row.id, said.content, metadata={PROTOCOL: said.mark, **said.kept}, by=context.person
        )
    own = [message.metadata.get(PROTOCOL) == said.mark for message in snapshot.messages]
    place = own.index(True) if known else len(own)
    id = snapshot.messages[place - 1].id
    stream = await _stream(context, row, approvals=approvals, message=id)
    lacking = [*stream.go_on_behind(snapshot, place, said.text)]
    await _bring(context, said.answer, stream)
    await context.adopt(row)
    return _respond(context, row, stream, lacking, snapshot)


def _brings(answer: UIMessage, snapshot: Snapshot) -> bool:
    """Return whether this message contains input that the turn waits for."""
    open = {question.id for question in snapshot.questions}
    calls = {call.id for message in snapshot.messages for call in message.calls if not call.state.settled}
    return any(
        (part.settled and part.call in calls)
        or (part.state == "approval-responded" and part.approval is not None and part.approval.id in open)
        for part in answer.calls
    )


async def _bring(context: Context, message: UIMessage, stream: UIMessageStream) -> None:
    """Pass on the answers and results in a message that the client continues. Settled ones are ignored."""
    commands = context.runtime.commands
    for part in message.calls:
        with suppress(AlreadyAnswered, NotFound, TurnEnded):
            approval = part.approval
            if part.state == "approval-responded" and approval is not None and approval.approved is not None:
                asked = await context.question(approval.id, Right.ANSWER)
                stream.reader.was_brought(approval.id)
                given = allow_once() if approval.approved else reject(approval.reason)
                await context.runtime.answer(approval.id, given, by=context.person)
                await context.audit_answer(asked, given)
            elif part.state in ("output-available", "output-error"):
                call = await context.call(part.call, Right.READ)
                stream.reader.was_brought(call.id)
                if call.state.settled:
                    continue
                await context.call(part.call, Right.TAKE_PART)
                failed = part.state == "output-error"
                await commands.deliver(part.call, _brought_result(part), failed=failed, by=context.person)


# ── streams ───────────────────────────────────────────────────────────────────────────────────────


def _respond(
    context: Context,
    turn: TurnRow,
    stream: UIMessageStream,
    lacking: Iterable[Chunk] = (),
    known: Snapshot | None = None,
) -> Response:
    response = respond(context, turn, stream, lacking, known, end=_DONE)
    response.headers[_HEADER] = "v1"
    response.headers[_STREAM_ID] = turn.conversation
    return response
