"""Define the routes for AG-UI: a run of the default agent, or of a named one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, dropwhile, takewhile

from pydantic import JsonValue
from starlette.responses import Response

from dragoman.conversation.sharing import Right
from dragoman.errors import AlreadyAnswered, BadRequest, NotFound, TurnEnded
from dragoman.messages.events import TurnEnd
from dragoman.messages.message import CallState, File, Message, Part, Reasoning, Text, ToolResult
from dragoman.messages.questions import Answer, Question, allow_once, reject, release, reply, withhold
from dragoman.server.context import Context, Key, TheContext, api_router
from dragoman.server.event_stream import EventStream
from dragoman.server.protocols.ag_ui.run_input import (
    UPDATE_STATE,
    AgentMessage,
    AgentPart,
    ResumeEntry,
    RunAgentInput,
    check_state,
    state_in,
)
from dragoman.server.protocols.ag_ui.run_writer import AgentRun, RunEvent
from dragoman.server.protocols.threads import (
    EarlierMessage,
    attach,
    conversation_of,
    earlier_call,
    respond,
    said_lately,
    say,
    write,
)
from dragoman.store.store import SendKey, TurnRow
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.wire.calls import parse_arguments

router = api_router("AG-UI")

PROTOCOL = "ag-ui"
_STREAM: dict[int | str, dict[str, object]] = {
    200: {"description": "Events of a run", "content": {"text/event-stream": {}}}
}


@router.post("/ag-ui", response_class=Response, responses=_STREAM)
async def run(context: TheContext, body: RunAgentInput, key: Key = None) -> Response:
    """Run the default agent: with a new message, with the input that a run waits for, or to read a live run
    again."""
    async with context.readers.one_by_one(context.person, body.thread):
        return await _run(context, body, None, key)


@router.post("/ag-ui/{agent}", response_class=Response, responses=_STREAM)
async def run_agent(context: TheContext, agent: str, body: RunAgentInput, key: Key = None) -> Response:
    """Run the agent of this name."""
    async with context.readers.one_by_one(context.person, body.thread):
        return await _run(context, body, agent, key)


async def _run(context: Context, body: RunAgentInput, agent: str | None, key: SendKey | None) -> Response:
    check_state(body.state)
    if (begun := await context.turn_begun_with(key)) is not None:
        return await _from_the_start(context, body, begun)
    conversation = await conversation_of(context, body.thread, PROTOCOL, _needed(body))
    live = await context.runtime.store.live_turns(conversation) if conversation is not None else []
    if conversation is not None and (known := await _known_run(context, body, conversation)):
        return await _show(context, body, conversation, live, known)
    if live and (turn := await _waiting_turn(context, body, live)) is not None:
        return await _go_on(context, body, turn)
    if live and _last_said(body.messages) == await _question_of(context, live[-1]):
        return await _from_the_start(context, body, live[-1].id)
    if body.resume:
        raise BadRequest(
            "No call in this thread waits for an answer. The call was answered, or its turn is over."
        )
    if (lost := next(_results(body), None)) is not None:
        raise BadRequest(f"No call {lost.call!r} in this thread waits for a result.")
    if conversation is not None and _last_said(body.messages) is None:
        return await _show(context, body, conversation, live)
    state = body.state or await state_in(context, conversation)
    row = await _start(context, body, agent, state, key=key)
    context.readers.began(row.id)
    projection = await _projection(context, body, row.id)
    return respond(context, row, projection, projection.show_thread())


def _needed(body: RunAgentInput) -> Right:
    """Return the right that a request needs: to send, to answer, or to read."""
    if body.resume:
        return Right.ANSWER
    return Right.READ if _last_said(body.messages) is None and not any(_results(body)) else Right.TAKE_PART


async def _from_the_start(
    context: Context, body: RunAgentInput, turn: str, history: Sequence[Message] = ()
) -> Response:
    """Return a response with a whole turn, after the history."""
    row = await context.turn(turn, Right.READ)
    await context.adopt(row)  # Answers 409 if the turn cannot resume here.
    projection = await _projection(context, body, turn)
    projection.history = history
    snapshot = await context.runtime.turn(turn).snapshot()
    lacking = chain(projection.show_thread(), projection.replay(snapshot))
    return respond(context, row, projection, lacking, snapshot)


async def _go_on(context: Context, body: RunAgentInput, id: str) -> Response:
    """Resume a turn that waits for the input of this request."""
    row = await context.turn(id, Right.ANSWER)
    projection = await _projection(context, body, id)
    snapshot = await context.runtime.turn(id).snapshot()
    for _ in projection.replay(snapshot):
        pass  # The client already has these events.
    projection.state = body.state or projection.state  # The client can have changed the state since.
    await _bring(context, body, projection, id)
    await context.adopt(row)  # Answers 409 if the turn cannot resume here.
    return respond(context, row, projection, known=snapshot)


async def _projection(context: Context, body: RunAgentInput, turn: str | None) -> AgentRun:
    """Return a writer for a turn, with the tools of its client and its initial state."""
    options = options_in(await context.runtime.store.facts(turn)) if turn is not None else TurnOptions()
    names = {spec.name for spec in options.client_tools} - {UPDATE_STATE} | {tool.name for tool in body.tools}
    return AgentRun(body.thread, body.run, names, version=body.version, state=options.state)


async def _show(
    context: Context,
    body: RunAgentInput,
    conversation: str,
    live: Sequence[TurnRow],
    known: str | None = None,
) -> Response:
    """Return a response for a client that lacks part of a thread: its history, its state and the live answer.

    If no turn is live, the response ends as the turn `known` did.
    """
    path = await (await context.runtime.conversation(conversation)).messages()
    if live:
        before = [one for one in path if one.turn != live[-1].id or one.id == live[-1].message]
        return await _from_the_start(context, body, live[-1].id, before)
    projection = await _projection(context, body, None)
    projection.history, projection.state = path, await state_in(context, conversation)
    end = [event async for event in context.runtime.turn(known).events()][-1] if known is not None else None
    projection.end = end if isinstance(end, TurnEnd) else None
    chunks = write(context, "", _shown(projection))
    return EventStream(chunks, context.publisher.streams, reader=context.reader(conversation))


async def _shown(projection: AgentRun) -> AsyncIterator[RunEvent]:
    for told in (projection.begin(), *projection.show_thread(), *projection.finish()):
        yield told


async def _question_of(context: Context, turn: TurnRow) -> str:
    return (await context.runtime.store.message(turn.message)).text


def _last_said(messages: Sequence[AgentMessage]) -> str | None:
    return next((one.text for one in reversed(messages) if one.role == "user"), None)


async def _start(
    context: Context, body: RunAgentInput, agent: str | None, state: JsonValue, *, key: SendKey | None
) -> TurnRow:
    dialogue = [one for one in body.messages if one.role in ("user", "assistant", "reasoning")]
    place = next((n for n, one in reversed([*enumerate(dialogue)]) if one.role == "user"), None)
    if place is None:
        raise BadRequest("The request has no user message to answer.")
    before = [
        EarlierMessage(
            "user" if one.role == "user" else "assistant", one.id, partial(_earlier, context, body, one)
        )
        for one in dialogue[:place]
    ]
    content, options = await _content(context, dialogue[place]), body.turn_options(agent, state)
    return await say(
        context,
        body.thread,
        PROTOCOL,
        before=before,
        content=content,
        options=options,
        mark=body.run,
        key=key,
    )


async def _content(context: Context, message: AgentMessage) -> tuple[Part, ...]:
    return tuple([await _part(context, part) for part in message.parts])


async def _earlier(context: Context, body: RunAgentInput, message: AgentMessage) -> tuple[Part, ...]:
    """Return an earlier message that the client sends. Results of its calls are separate messages."""
    if message.role == "reasoning":
        return (Reasoning(message.text),)
    results = {one.call: one for one in body.messages if one.role == "tool"}
    calls: list[Part] = []
    for call in message.calls:
        result = results.get(call.id)
        calls.append(
            earlier_call(
                call.id,
                call.function.name,
                parse_arguments(call.function.arguments or "{}") or {},
                await _result(context, result) if result is not None else None,
                CallState.COMPLETED if result is None or result.error is None else CallState.FAILED,
            )
        )
    return (*await _content(context, message), *calls)


async def _result(context: Context, message: AgentMessage) -> ToolResult:
    parts = await _content(context, message)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    files = tuple(part for part in parts if isinstance(part, File))
    return ToolResult(message.error if message.error is not None else text, attachments=files)


async def _part(context: Context, part: AgentPart) -> Part:
    source = part.file
    if source is None:
        return Text(part.text)
    data = f"data:{source.media_type};base64,{source.value}"
    return await attach(context, data if source.type == "data" else source.value, source.media_type)


# ── answers to a waiting run ──────────────────────────────────────────────────────────────────────


async def _known_run(context: Context, body: RunAgentInput, conversation: str) -> str | None:
    """Return the turn that has already answered this run, or whose awaited input has already been settled.

    The input was settled elsewhere, or by a request whose response was lost.
    """
    if not body.resume and not any(_results(body)):
        return await _asked_already(context, body, conversation)
    try:
        asked = [await context.question(entry.interrupt, Right.READ) for entry in body.resume]
        calls = [await context.call(message.call, Right.READ) for message in _results(body)]
    except NotFound:
        return None
    if any(one.open for one in asked) or any(not call.state.settled for call in calls):
        return None
    return asked[0].turn if asked else (await context.runtime.store.turn_of_call(calls[0].id)).id


async def _asked_already(context: Context, body: RunAgentInput, conversation: str) -> str | None:
    for turn, said in await said_lately(context, conversation):
        same = said.metadata.get(PROTOCOL) == body.run and said.text == _last_said(body.messages)
        if same and (not turn.live or turn.message != said.id):
            return turn.id
    return None


async def _waiting_turn(context: Context, body: RunAgentInput, live: Sequence[TurnRow]) -> str | None:
    """Return the turn that waits for this input, possibly sent with a new message. If none does, return the
    last live turn for a resume, otherwise None."""
    results = [*_results(body)]
    found = {(await context.question(entry.interrupt, Right.ANSWER)).turn for entry in body.resume}
    for message in results or _results(body, beside=True):
        with suppress(NotFound):
            call = await context.call(message.call, Right.READ)
            if results or not call.state.settled:
                found.add((await context.runtime.store.turn_of_call(call.id)).id)
    waiting = [row.id for row in live if row.id in found]
    return waiting[-1] if waiting else live[-1].id if body.resume else None


async def _bring(context: Context, body: RunAgentInput, projection: AgentRun, turn: str) -> None:
    """Pass on answers to interrupts, results of calls, and a message sent with them. Settled ones are
    ignored."""
    for entry in body.resume:
        asked = await context.question(entry.interrupt, Right.ANSWER)
        given = _answer(asked, entry)
        with suppress(AlreadyAnswered, TurnEnded):
            await context.runtime.answer(asked.id, given, by=context.person)
            await context.audit_answer(asked, given)
        projection.reader.was_brought(asked.id)
    results = [*_results(body)]
    if not results and (beside := [*_results(body, beside=True)]):
        results = beside
        said = await _content(context, body.messages[-1])
        await context.runtime.commands.steer(turn, said, metadata={PROTOCOL: body.run}, by=context.person)
    for message in results:
        with suppress(AlreadyAnswered, NotFound, TurnEnded):
            call = await context.call(message.call, Right.TAKE_PART)
            if not call.state.settled:
                result = await _result(context, message)
                failed = message.error is not None
                await context.runtime.commands.deliver(message.call, result, failed=failed, by=context.person)
        projection.reader.was_brought(message.call)


def _results(body: RunAgentInput, *, beside: bool = False) -> Iterator[AgentMessage]:
    """Yield results of calls that the client has run since the last reply. With `beside`, user messages may
    follow them."""
    newest = reversed(body.messages)
    if beside:
        newest = dropwhile(lambda message: message.role == "user", newest)
    return takewhile(lambda message: message.role == "tool", newest)


def _answer(asked: Question, entry: ResumeEntry) -> Answer:
    payload: dict[str, JsonValue] = entry.payload if isinstance(entry.payload, dict) else {}
    yes = entry.status == "resolved" and payload.get("approved") is True
    reason = payload.get("reason")
    why = reason if isinstance(reason, str) else None
    if asked.kind == "review":
        text = payload.get("text")
        return release(text if isinstance(text, str) else None) if yes else withhold(why)
    if asked.kind == "tool":
        return reply(entry.payload) if entry.status == "resolved" else reject(why)
    edited = payload.get("arguments")
    return allow_once(edited if isinstance(edited, dict) else None) if yes else reject(why)
