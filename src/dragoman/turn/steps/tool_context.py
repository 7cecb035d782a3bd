"""Gives a running tool access to its turn: questions to users, permissions, outputs, files."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from pydantic import JsonValue

from dragoman.errors import BadRequest, ConfigError, NotFound, ProviderError, ToolFailed
from dragoman.messages import events as e
from dragoman.messages.asked import call_asked
from dragoman.messages.codec import Codec
from dragoman.messages.events import CallProgress, FileAdded, FilePartial, StepRetry
from dragoman.messages.fold import Draft
from dragoman.messages.ids import new_id
from dragoman.messages.media import ModelType
from dragoman.messages.message import CallState, File, Message, Part, ToolCall
from dragoman.messages.questions import Answer, Question, Rule
from dragoman.messages.request import Request, RequestMessage
from dragoman.store.store import Change
from dragoman.tools.authorize import Ask, Authority, Refuse, authorize, authorize_beyond, may_be_shown
from dragoman.tools.permissions import literal
from dragoman.tools.tool import InnerCalls, Tool, ToolContext
from dragoman.trace_context import within
from dragoman.turn.facts import ModelAsked, QuestionAnswered, QuestionWithdrawn, ToolAsked
from dragoman.turn.live.log import TurnLog, asking_aside
from dragoman.turn.live.signals import Received
from dragoman.turn.services import Services
from dragoman.turn.steps.ask import question_of_tool, question_on_the_way
from dragoman.turn.steps.authority import authority_by_rules, load_authority
from dragoman.turn.steps.prepare import PreparedTurn
from dragoman.turn.steps.slots import Slot
from dragoman.turn.steps.stream import store_made
from dragoman.wire.lowering import result_files
from dragoman.wire.wire import Model

# Asks a model of another type for a tool. Its files are stored, and shown while they are made.


_FILE: Codec[File] = Codec(File)


async def ask_model(
    services: Services,
    log: TurnLog,
    call: str,
    type: ModelType,
    *,
    parts: Sequence[Part],
    options: dict[str, JsonValue],
    see_request: Callable[[Request], Awaitable[None]],
) -> Message:
    """Return the reply of the first configured model of this type. Raise ToolFailed if none is available."""
    model = _model_of(services, type)
    request = Request(model.name, (RequestMessage("user", tuple(parts)),), options=options)
    await see_request(request)
    draft = Draft(Message(new_id("msg"), log.conversation.id, None, "assistant", (), model=model.name))
    try:
        model.check_options(request.options)
        if (check := getattr(model, "check_message", None)) is not None:  # Custom models may lack it.
            check(parts)
        with asking_aside(log, "tool", request) as aside:
            async with aclosing(model.stream(request, draft.id)) as replies:
                async for events in replies:
                    for event in events:
                        if isinstance(event, FileAdded | FilePartial):
                            await store_made(event, log.store, log.sender, log.now())
                        if isinstance(event, FilePartial):
                            log.publish(CallProgress(call, {"partial": _FILE.to_json(event.file)}))
                        elif isinstance(event, StepRetry):
                            aside.retry(event, log.now())
                            log.publish(event)
                        draft.apply(event)
            aside.reply = draft.message
    except (ProviderError, BadRequest) as error:
        raise ToolFailed(f"{model.name}: {error}") from error
    finally:
        log.count_lost(request, call)
    usage = draft.message.usage
    if usage is not None and not usage.is_empty and log.is_running(call):
        # The usage is billed, whatever the outcome of the call.
        await log.record(ModelAsked(call, model.name, usage))
    return draft.message


def files_of_conversation(log: TurnLog) -> list[File]:
    """Return the files that were sent, made or returned by calls, the newest first."""
    found: list[File] = []
    for message in reversed(log.path):
        for part in reversed((*message.parts, *message.inner)):
            for file in result_files(part) if isinstance(part, ToolCall) else (part,):
                if isinstance(file, File):
                    found.append(replace(file, made_by=None, signature=None))
    return found


def _model_of(services: Services, type: ModelType) -> Model:
    names = getattr(services.model, "of_type", lambda _: ())(type)  # A custom function has no list of models.
    try:
        return services.model(next(iter(names)))
    except StopIteration:
        pass
    except (NotFound, ConfigError) as error:
        raise ToolFailed(str(error)) from error
    raise ToolFailed(f"No model of type {type!r} is set up.")


_OVER = "the call is over: it can no longer ask"


class CallContext:
    """The context of one run of a call."""

    def __init__(
        self,
        prepared: PreparedTurn,
        tool: Tool,
        call: str,
        grants: Sequence[Rule] = (),
        *,
        slot: Slot,
        program: InnerCalls | None = None,
    ) -> None:
        self._prepared = prepared
        self._log = prepared.log
        self._tool = tool
        self._call = call
        self._grants = grants
        self._slot = slot
        self._program = program
        self._asked: Counter[str] = Counter()  # the tool's questions, counted by text

    def for_tool(self) -> ToolContext:
        log = self._log
        return ToolContext(
            conversation=log.conversation.id,
            turn=log.id,
            message=log.turn.reply or "",
            call=self._call,
            cancelled=lambda: log.cancelled is not None,
            ask=self._ask,
            progress=lambda value: log.publish(e.CallProgress(self._call, value)),
            read_output=self._read_output,
            put_file=self._put_file,
            permits=lambda pattern: may_be_shown(self._tool, pattern, self._known_authority()),
            require_permission=self._require_permission,
            complete=self._complete,
            ask_model=self._ask_model,
            files=lambda: files_of_conversation(log),
            seen_version=self._seen_version,
            program=self._program,
            workspace=self._prepared.view.workspace,
            env=self._prepared.services.cage.env,
            user=log.sender,
            deps=self._prepared.view.deps,
        )

    # ── questions ─────────────────────────────────────────────────────────────────────────────────

    async def _ask(
        self,
        text: str,
        choices: Sequence[str] = (),
        schema: dict[str, JsonValue] | None = None,
        *,
        free: bool = False,
    ) -> JsonValue:
        """Ask the tool's question. A repeated call finds the earlier answer."""
        call = self._log.call(self._call)
        while True:  # A withdrawn question is not reused. The tool asks again.
            place = f"{self._asked[text]} {text}"
            self._asked[text] += 1
            question = question_of_tool(
                self._log, call, self._tool, text, choices=choices, free=free, schema=schema, place=place
            )
            known = self._log.questions.get(question.id)
            if known is None or known.closed is None:
                break
        answer = self._known_answer(question) or await self._answer_to(question)
        if answer.verdict == "reject":
            reason = f": {answer.reason.removesuffix('.')}" if answer.reason else ""
            raise ToolFailed(f"The user did not answer{reason}.")
        return answer.value

    async def _require_permission(self, pattern: str, text: str = "", permission: str = "") -> None:
        """Require permission for something new, from a rule or a user. Otherwise, raise ToolFailed.

        `permission` names another permission than the tool's, for access outside the sandbox.
        """
        authority = replace(await self._authority(), mode="auto", pinned=None)
        rule = Rule(permission or self._tool.permission, literal(pattern), "allow")
        verdict = (
            authorize_beyond(rule, authority) if permission else authorize(self._tool, (pattern,), authority)
        )
        match verdict:
            case Refuse():
                raise ToolFailed(f"A rule forbids {rule.permission} on {pattern}.")
            case Ask():
                call = self._log.call(self._call)
                question = question_on_the_way(
                    self._log, call, self._tool, pattern=pattern, text=text, rule=rule
                )
                answer = self._known_answer(question) or await self._answer_to(question)
                if answer.verdict != "allow":
                    reason = f" They said: {answer.reason}" if answer.reason else ""
                    raise ToolFailed(f"A person did not let {self._tool.name} continue to {pattern}.{reason}")

    def _known_answer(self, question: Question) -> Answer | None:
        """Return the answer that a repeated call received earlier.

        An answer that arrived while no process ran the turn is not recorded yet, so it is awaited and
        recorded.
        """
        known = self._log.questions.get(question.id)
        return known.answer if known and not self._prepared.signals.has_answer(question.id) else None

    async def _answer_to(self, question: Question) -> Answer:
        """Ask and wait for the answer.

        If the tool stops waiting (`asyncio.wait_for`), the question is withdrawn. A tool that outlives its
        call gets an error, since no user would answer.
        """
        self._check_running()
        async with self._slot.freed():
            return await self._ask_person(question)

    async def _ask_person(self, question: Question) -> Answer:
        log = self._log
        new = [] if question.id in log.questions else [question]
        try:
            if question.id not in log.turn.calls[self._call].questions:
                asked = ToolAsked(self._call, question.id)
                await log.record(asked, change=Change(calls=[log.call(self._call)], questions=new))
            log.publish(call_asked(question))
            received = await self._answer_or_end(question.id)
        except asyncio.CancelledError:
            self._withdraw(question)
            raise
        answer = received.value
        log.questions[question.id] = replace(question, answer=answer)
        log.publish(e.CallAnswered(self._call, question.id, answer.verdict))
        fact = QuestionAnswered(self._call, question.id, answer.verdict)
        await log.record(fact, change=Change(signals=[received.signal]))
        self._prepared.signals.answer_recorded(question.id)
        return answer

    async def _answer_or_end(self, question: str) -> Received[Answer]:
        over = asyncio.Event()
        unsubscribe = self._log.subscribe(lambda _: None if self._is_running else over.set())
        try:
            signals = self._prepared.signals
            received = await signals.answer_unless(question, over, signals.left)
        finally:
            unsubscribe()
        if received is None:
            raise ToolFailed(_OVER)
        return received

    @property
    def _is_running(self) -> bool:
        return self._log.is_running(self._call)

    def _check_running(self) -> None:
        """Raise ToolFailed if the call is over: a tool that must not be stopped outlives a cancel or its
        timeout."""
        if not self._is_running:
            raise ToolFailed(_OVER)

    def _withdraw(self, question: Question) -> None:
        known = self._log.turn.calls[self._call]
        if question.id in known.questions and not known.state.settled and not self._log.turn.state.ended:
            closed = {question.id: "the tool did not wait for the answer"}
            self._log.record_soon(QuestionWithdrawn(self._call, question.id), change=Change(closed=closed))

    # ── permissions ───────────────────────────────────────────────────────────────────────────────

    async def _authority(self) -> Authority:
        prepared = self._prepared
        return await load_authority(
            prepared.services,
            self._log.conversation,
            prepared.agent,
            prepared.mode,
            sender=self._log.sender,
            workspace=prepared.workspace,
            tool=self._tool,
            givers=prepared.givers,
        )

    def _known_authority(self) -> Authority:
        """Return the authority from when the calls of this reply were planned, for checks of single files."""
        prepared = self._prepared
        by_rules = authority_by_rules(
            prepared.services,
            prepared.agent,
            workspace=prepared.workspace,
            tool=self._tool,
            givers=prepared.givers,
        )
        return replace(by_rules, grants=self._grants)

    # ── other models ──────────────────────────────────────────────────────────────────────────────

    async def _complete(self, request: Request) -> Message:
        """Send a request for a tool. A server does so in a separate task that does not know the call."""
        self._check_running()
        try:
            with within(self._log.trace, "call", self._call):
                reply = await self._prepared.view.complete(request, purpose="tool")
        finally:
            self._log.count_lost(request, self._call)
        if self._is_running and reply.usage is not None and not reply.usage.is_empty:
            await self._log.record(ModelAsked(self._call, reply.model or request.model, reply.usage))
        return reply

    async def _ask_model(
        self, type: ModelType, parts: Sequence[Part], options: dict[str, JsonValue]
    ) -> Message:
        self._check_running()
        prepared = self._prepared
        return await ask_model(
            prepared.services,
            self._log,
            self._call,
            type,
            parts=parts,
            options=options,
            see_request=lambda request: prepared.hooks.see_side_request(request, prepared.view),
        )

    # ── outputs and files ─────────────────────────────────────────────────────────────────────────

    async def _put_file(self, data: bytes, media_type: str, name: str | None = None) -> File:
        blob = await self._log.store.put_blob(data)
        return File(media_type, blob=blob, name=name, size=len(data))

    def _seen_version(self, path: str) -> str | None:
        """Return the last version seen of a file, from stored results of earlier calls."""
        for message in reversed(self._log.path):
            for call in reversed(message.all_calls):
                versions = call.result.metadata.get("versions") if call.result is not None else None
                if isinstance(versions, dict) and isinstance(seen := versions.get(path), str):
                    return seen
        return None

    async def _read_output(self, call: str) -> str:
        """Return the whole output of a call of this conversation, unless a user withheld it."""
        try:
            found, conversation, _ = await self._log.store.call(call)
        except NotFound:
            conversation = ""
        if conversation != self._log.conversation.id:
            raise ToolFailed(f"Unknown call {call!r} in this conversation.")
        if found.state is CallState.WITHHELD or found.result is None:
            raise ToolFailed(f"The output of {call} is not available.")
        if found.result.blob is None:
            return found.result.text
        return (await self._log.store.blob(found.result.blob)).decode()
