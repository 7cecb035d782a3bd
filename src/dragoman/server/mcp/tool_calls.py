"""Run the tool calls of other programs. Each is a turn: approved, stored and limited like any other."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import AlreadyAnswered, BadRequest, DragomanError, NotFound, TurnBusy, TurnEnded
from dragoman.messages import events as e
from dragoman.messages.asked import approval_text, call_end, cause, question_in
from dragoman.messages.ids import new_id
from dragoman.messages.message import Arguments, CallState, File, Message, Text
from dragoman.messages.questions import NOBODY, Answer, Question, Rule, reject, reply, withhold
from dragoman.runtime import Runtime
from dragoman.server.mcp.caller import CALLER, call_text
from dragoman.store.store import Store
from dragoman.tools.approval import choices_for
from dragoman.tools.permissions import decide
from dragoman.tools.program import description_with, functions_of, program_in
from dragoman.tools.tool import Tool
from dragoman.turn.agent import Agent
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.services import Services

_AGENT = "ask_"  # prefix of the tool that calls an agent
_TASK = "task"  # Clients get one tool for each agent instead of this one.
_BY = "MCP client"
_SOON = 2.0  # Seconds after which a call becomes a task, if the client knows tasks.
TASKS = "io.modelcontextprotocol/tasks"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "request": {"type": "string", "description": "what is to be done, with everything it needs to know"}
    },
    "required": ["request"],
}


@dataclass(slots=True, frozen=True)
class Caller:
    """The caller of one request: the user, the session, the program and its capabilities."""

    context: ServerRequestContext[Any, Any]
    person: str  # LOCAL, or the owner of the key

    @property
    def session(self) -> str:
        request = self.context.request
        headers: Mapping[str, str] = request.headers if request is not None else {}
        return headers.get("mcp-session-id", "")

    @property
    def program(self) -> str:
        params = self.context.session.client_params
        return (
            params.client_info.name if params is not None and params.client_info is not None else "a program"
        )

    @property
    def can_ask(self) -> bool:
        able = self.context.session.client_capabilities
        elicitation = able.elicitation if able is not None else None
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    @property
    def asks_by_result(self) -> bool:
        """Whether approval requests are results. In protocols from 2026-07-28 on, the client repeats the call
        with the answer."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def has_tasks(self) -> bool:
        """Whether the client declares with this request that it knows the tasks extension."""
        able = self.context.session.client_capabilities
        return self.asks_by_result and able is not None and TASKS in (able.extensions or {})


@dataclass(slots=True, frozen=True)
class Unfinished:
    """A call that takes longer than its client waits. The client can fetch the result later."""

    turn: str


class ToolCalls:
    """Runs calls in one conversation for each client, so that "for this conversation" means this client."""

    def __init__(self, runtime: Runtime, *, soon: float = _SOON) -> None:
        self._runtime = runtime
        self._soon = soon
        self._conversations: dict[tuple[str, str, str], tuple[str, str]] = {}
        self._beginning = asyncio.Lock()

    # ── inventory ─────────────────────────────────────────────────────────────────────────────────

    async def list_tools(self, person: str) -> list[types.Tool]:
        tools = await self._tools(person)
        if name := program_in(tools):
            specs = [tool.spec(one) for one, tool in tools.items()]
            told = description_with(specs, functions_of(tools))
            tools[name] = replace(tools[name], description=told)
        agents = [
            types.Tool(
                name=f"{_AGENT}{agent.name}",
                description=f"Give a piece of work to {agent.name}, an agent. {agent.description}".strip(),
                input_schema=_SCHEMA,
            )
            for agent in await self._agents(person)
            if f"{_AGENT}{agent.name}" not in tools  # A tool can have the same name, such as ask_person.
        ]
        return [*(described(name, tool) for name, tool in tools.items()), *agents]

    async def _tools(self, person: str) -> dict[str, Tool]:
        """Return the tools that run on this server and that no rule hides."""
        offered = await self._offered(await self._services(person))
        return {name: tool for name, tool in offered.items() if not tool.client and name != _TASK}

    async def _agents(self, person: str) -> list[Agent]:
        """Return the agents that no rule denies."""
        services = await self._services(person)
        task = (await self._offered(services)).get(_TASK)
        if task is None:
            return []
        return [
            agent
            for agent in services.agents.values()
            if decide(task.permission, [agent.name], self._rules).action != "deny"
        ]

    async def _services(self, person: str) -> Services:
        return await self._runtime.services.seen_by(person)

    async def _offered(self, services: Services) -> Mapping[str, Tool]:
        if services.mode == "off":
            return {}
        await services.toolbox.ready()
        return services.toolbox.offer(self._rules, {}).tools

    @property
    def _rules(self) -> list[Rule]:
        services = self._runtime.services
        return [*services.rules, *services.bounds]

    async def _call_of(self, person: str, name: str, arguments: Arguments) -> tuple[str, Arguments]:
        """Return the tool and arguments to call. A call of an agent becomes a call of the task tool."""
        if name in await self._tools(person):
            return name, arguments
        for agent in await self._agents(person):
            if name == f"{_AGENT}{agent.name}":
                return _TASK, {**arguments, "agent": agent.name}
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool {name!r}.")

    # ── a call ────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self, caller: Caller, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | Unfinished:
        tool, arguments = await self._call_of(caller.person, params.name, params.arguments or {})
        try:
            if params.request_state is not None:
                turn = await self._resumed(caller, params.request_state, call_text(tool, arguments))
                await self.take_answers(turn, params.input_responses or {})
            else:
                turn = await self._begun(caller, call_text(tool, arguments))
            return await self._followed(caller, turn)
        except* DragomanError as errors:
            error = errors.exceptions[0]
        return failure(str(error))

    async def _begun(self, caller: Caller, text: str) -> TurnHandle:
        conversation, first = await self._conversation(caller)
        try:
            chat = await self._runtime.conversation(conversation)
        except NotFound:  # The user has deleted the conversation.
            self._conversations = {
                key: one for key, one in self._conversations.items() if one[0] != conversation
            }
            conversation, first = await self._conversation(caller)
            chat = await self._runtime.conversation(conversation)
        try:
            return await chat.send(text)
        except TurnBusy:  # Parallel calls of a program run on separate branches.
            return await chat.send(text, parent=first)

    async def _conversation(self, caller: Caller) -> tuple[str, str]:
        """Return the conversation's ID and that of its first message."""
        key = (caller.person, caller.session, caller.program)
        async with self._beginning:
            if key not in self._conversations:
                at = self._runtime.services.clock()
                id = new_id("conv")
                text = f"Calls that {caller.program} makes over MCP."
                first = Message(new_id("msg"), id, None, "user", (Text(text),), created=at)
                user = None if caller.person == LOCAL else caller.person
                title = f"MCP: {caller.program}"[:60]
                made = Conversation(id, title, first.id, user, {"model": CALLER}, created=at, updated=at)
                await self._runtime.store.add_conversation(made, [first])
                self._conversations[key] = (id, first.id)
            return self._conversations[key]

    async def _resumed(self, caller: Caller, state: str, text: str) -> TurnHandle:
        """Return the turn of a call that is repeated with answers. It must be the same call of the same
        caller."""
        try:
            return await self.turn_of(caller, state, text)
        except NotFound:
            raise MCPError(types.INVALID_PARAMS, "No call has this state.") from None

    async def turn_of(self, caller: Caller, id: str, text: str | None = None) -> TurnHandle:
        """Return the turn of one of this caller's calls. If no process runs it, it resumes here.

        Raises NotFound for turns of others, and if the call differs from `text`.
        """
        store = self._runtime.store
        row = await store.turn(id)
        conversation = await store.conversation(row.conversation)
        before = (await store.message(row.message)).text
        ours = conversation.owner == caller.person and conversation.settings.get("model") == CALLER
        if not ours or text not in (None, before):
            raise NotFound("turn", id)
        turn = self._runtime.turn(id)
        if row.live and await store.is_abandoned(id):
            await turn.resume()
        return turn

    async def take_answers(self, turn: TurnHandle, responses: Mapping[str, types.InputResponse]) -> None:
        for id, response in responses.items():
            question = await self._runtime.store.question(id)
            if question.turn not in await self.turns_of(turn):
                raise MCPError(types.INVALID_PARAMS, f"Unknown question {id!r} in this call.")
            if isinstance(response, types.ElicitResult):
                await self._answer(question, answer_in(question, response))

    async def turns_of(self, turn: TurnHandle) -> set[str]:
        """Return the IDs of this turn and of the turns of its subagents."""
        store = self._runtime.store
        inner = await store.within((await store.turn(turn.id)).conversation)
        return {turn.id}.union([row.id for one in inner for row in await store.turns(one)])

    async def refuse(self, question: Question) -> None:
        """Reject an approval request, because the client cannot ask its user."""
        await self._answer(question, refusal(question))

    async def _answer(self, question: Question, answer: Answer) -> None:
        try:
            await self._runtime.answer(question.id, replace(answer, hash=question.hash, by=answer.by or _BY))
        except (AlreadyAnswered, TurnEnded):
            pass  # Another user answered first, or the request is closed.
        except BadRequest as error:
            await self._runtime.answer(question.id, no(question, str(error)))

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────

    async def _followed(
        self, caller: Caller, turn: TurnHandle
    ) -> types.CallToolResult | types.InputRequiredResult | Unfinished:
        result: types.CallToolResult | types.InputRequiredResult | Unfinished = Unfinished(turn.id)
        try:
            async with anyio.create_task_group() as asking:
                with anyio.move_on_after(self._soon if caller.has_tasks else None):
                    result = await self._until_over(caller, turn, asking)
                asking.cancel_scope.cancel()  # The client's request is closed.
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await turn.cancel("the program that called it stopped it")
            raise
        return result

    async def _until_over(
        self, caller: Caller, turn: TurnHandle, asking: anyio.abc.TaskGroup
    ) -> types.CallToolResult | types.InputRequiredResult:
        ended: e.CallEnd | None = None
        remarks: list[str] = []
        reports = 0
        async for event in turn.events():
            if (id := question_in(event)) is not None:
                question = await self._runtime.store.question(id)
                if not question.open:
                    continue
                if not caller.can_ask:
                    remarks.append(how_to_allow(question))
                    await self.refuse(question)
                elif caller.asks_by_result:
                    form = types.ElicitRequest(params=form_of(question))
                    return types.InputRequiredResult(input_requests={id: form}, request_state=turn.id)
                else:
                    asking.start_soon(self._ask, caller, question)
            elif isinstance(event, e.CallProgress | e.InnerCallMade):
                reports += 1
                value = event.value if isinstance(event, e.CallProgress) else event.tool
                message = value[-500:] if isinstance(value, str) else None
                await caller.context.session.report_progress(reports, message=message)
            elif isinstance(event, e.CallEnd):
                ended = event
            elif isinstance(event, e.TurnEnd) and ended is None:
                return await self.stored_result(turn)  # The turn had already ended.
        if ended is None:
            return failure("the call continued in another program")
        return await result_of(ended, self._runtime.store, remarks)

    async def stored_result(self, turn: TurnHandle) -> types.CallToolResult:
        """Return the result of a call whose turn has ended."""
        snapshot = await turn.snapshot()
        made = [call for message in snapshot.messages for call in message.calls if call.result is not None]
        if not made:
            error = snapshot.turn.error
            return failure(error.error if error is not None else f"the call was {snapshot.state}")
        return await result_of(call_end(made[-1]), self._runtime.store)

    async def _ask(self, caller: Caller, question: Question) -> None:
        form = form_of(question)
        try:
            filled = await caller.context.session.elicit_form(
                form.message, form.requested_schema, caller.context.request_id
            )
        except MCPError as error:
            return await self._answer(question, no(question, f"the client could not ask: {error.message}"))
        except ValidationError:
            return await self._answer(question, no(question, "the client's answer is not a filled form"))
        return await self._answer(question, answer_in(question, filled))


# ── approval requests as forms ────────────────────────────────────────────────────────────────────


_ANSWER = "answer"


def form_of(question: Question) -> types.ElicitRequestFormParams:
    """Return the form of an approval request, with the possible answers."""
    return types.ElicitRequestFormParams(message=approval_text(question), requested_schema=_schema(question))


def answer_in(question: Question, filled: types.ElicitResult) -> Answer:
    """Return the user's answer from a form. A closed form is not an approval."""
    content: dict[str, Any] = {**(filled.content or {})}
    if filled.action != "accept":
        return no(question, None if filled.action == "decline" else "the person closed the question")
    choices = choices_for(question)
    if not choices:
        return reply(content if question.schema else content.get(_ANSWER))
    chosen = content.get(_ANSWER)
    found = next((one for one in choices.values() if one.name == chosen), None)
    if found is None and question.free:
        return reply(chosen)
    return found.answer if found is not None else no(question, f"{chosen!r} was not one of the answers")


def refusal(question: Question) -> Answer:
    """Return the answer for clients that cannot ask their user."""
    return Answer("withhold" if question.kind == "review" else "reject", by=NOBODY)


def how_to_allow(question: Question) -> str:
    """Return a sentence that names the rule that would let the call run."""
    if question.kind != "approve" or question.because != "rule" or not question.rules:
        return f"This client cannot ask a person. It is {cause(question)}."
    rules = ", ".join(f'"{_written(one.permission, one.pattern)}"' for one in question.rules)
    return f"This client cannot ask a person. A rule in dragoman.toml would allow it: allow = [{rules}]"


def no(question: Question, why: str | None) -> Answer:
    """Return an answer that stops the call, or keeps its result from the model."""
    return withhold(why) if question.kind == "review" else reject(why)


def _written(permission: str, pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return permission if pattern == "*" else f"{permission}:{escaped}"


def _schema(question: Question) -> dict[str, Any]:
    if question.kind == "tool" and question.schema:
        return dict(question.schema)
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if choices := list(dict.fromkeys(choice.name for choice in choices_for(question).values())):
        if question.free:  # Forms cannot offer choices together with free text.
            field["description"] = f"One of these, or your own words: {'; '.join(choices)}"
        else:
            field["enum"] = choices
    return {"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]}


# ── tools and results ─────────────────────────────────────────────────────────────────────────────


_LARGEST = 10 * 1024 * 1024  # maximum bytes of an embedded attachment


def described(name: str, tool: Tool) -> types.Tool:
    """Return a tool's description for clients. Its hints bind no decision: rules and users decide."""
    spec = tool.spec(name)
    hints = types.ToolAnnotations(
        read_only_hint=tool.writes == "nothing", idempotent_hint=tool.replay == "safe"
    )
    return types.Tool(
        name=name, description=spec.description, input_schema=dict(spec.parameters), annotations=hints
    )


async def result_of(call: e.CallEnd, store: Store, remarks: Sequence[str] = ()) -> types.CallToolResult:
    """Return the result of a call for the client. `remarks` are appended.

    A call that did not run, or failed, is an error that the caller can read.
    """
    result = call.result
    text = "\n\n".join([result.text, *([result.note] if result.note else []), *remarks])
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    for file in result.attachments:
        content.append(await _attachment(file, store))
    completed = call.state is CallState.COMPLETED
    value = result.value if completed and isinstance(result.value, dict) else None
    return types.CallToolResult(content=content, structured_content=value, is_error=not completed)


def failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def _attachment(file: File, store: Store) -> types.ContentBlock:
    name = file.name or file.media_type
    if file.blob is None or (file.size or 0) > _LARGEST:
        where = file.url or f"dragoman://blobs/{file.blob}"
        return types.ResourceLink(type="resource_link", name=name, uri=where, mime_type=file.media_type)
    data = base64.b64encode(await store.blob(file.blob)).decode()
    if file.media_type.startswith("image/"):
        return types.ImageContent(type="image", data=data, mime_type=file.media_type)
    if file.media_type.startswith("audio/"):
        return types.AudioContent(type="audio", data=data, mime_type=file.media_type)
    uri = f"dragoman://blobs/{file.blob}"
    contents = types.BlobResourceContents(uri=uri, blob=data, mime_type=file.media_type)
    return types.EmbeddedResource(type="resource", resource=contents)
