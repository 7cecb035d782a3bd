"""Acts on a turn from outside: start, steer, answer, deliver, cancel. Each call returns after storing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from pydantic import JsonValue

from dragoman.conversation.tree import LOCAL, Conversation, Tree
from dragoman.errors import (
    AlreadyAnswered,
    BadRequest,
    ConfigError,
    DragomanError,
    Forbidden,
    NotFound,
    StoreUnavailable,
    TurnBusy,
    TurnEnded,
    TurnQuarantined,
)
from dragoman.messages.boundary import check_fields, check_json, check_parts
from dragoman.messages.ids import new_id
from dragoman.messages.message import Arguments, CallState, Message, Part, ToolResult
from dragoman.messages.questions import Action, Answer, Grant, Question, Rule
from dragoman.sentences import sentence
from dragoman.store.codecs import MESSAGE, RESULT
from dragoman.store.store import SendKey, SentBefore, Start, Store, TurnRow
from dragoman.tools.authorize import Refuse, Verdict, answer_by_rule, authorize, authorize_beyond
from dragoman.tools.cage.policy import NET, WRITE
from dragoman.tools.permissions import literal
from dragoman.tools.repair import repair_arguments
from dragoman.trace_context import callers_trace
from dragoman.turn.acting_agent import agent_before, agents_of, first_agent
from dragoman.turn.api.approvals import (
    arguments_for_hunks,
    check_answer,
    grant_of,
    waiting_tool,
)
from dragoman.turn.api.message_checks import (
    check_added,
    check_attached,
    check_message,
    check_repeated,
    check_typed_answer,
)
from dragoman.turn.drivers.tasks import Driver
from dragoman.turn.facts import (
    FACT,
    CallChange,
    NodeRules,
    TurnOptions,
    TurnStarted,
    laid_over,
    options_in,
)
from dragoman.turn.machine import replay
from dragoman.turn.send import NO_INPUTS, TurnInputs, user_message
from dragoman.turn.services import Services
from dragoman.turn.settings import check_dialect
from dragoman.turn.steps.authority import Givers, load_authority, load_givers
from dragoman.turn.steps.cancel import cancel_turn, end_quarantined
from dragoman.turn.steps.family import root_of, sender_of
from dragoman.turn.steps.request_layers import options_of
from dragoman.turn.steps.rerun_call import check_change
from dragoman.wire.wire import Model

_log = logging.getLogger("dragoman.turn")
_ENDING = 5.0  # Maximum seconds to wait for the end of a turn that is resumed to be ended.


class Commands:
    """Commands for a turn, which reach it from any process."""

    def __init__(self, services: Services, driver: Driver) -> None:
        self._services = services
        self._store: Store = services.store
        self._driver = driver

    # ── a turn begins ─────────────────────────────────────────────────────────────────────────────

    async def send(
        self,
        conversation: str,
        said: str | Sequence[Part],
        *,
        parent: str | None = None,
        queue: bool = False,
        options: TurnOptions = TurnOptions(),
        inputs: TurnInputs = NO_INPUTS,
        metadata: Mapping[str, JsonValue] | None = None,
        key: SendKey | None = None,
        opens: Conversation | None = None,
        history: Sequence[Message] = (),
        by: str | None = None,
    ) -> str:
        """Store a new message at the leaf, or below `parent`, and start a turn that answers it.

        `metadata` is kept with the message and never shown to a model. A `key` that was used before returns
        the turn started then. `opens` is a new conversation, with its `history`. It is stored together with
        the turn or not at all. `by` is the user who sends, whose rules and limits apply. The default is the
        owner.
        """
        message = user_message(conversation, said, parent, self._services.clock(), metadata)
        return await self._start(
            conversation,
            options,
            inputs,
            message=message,
            queue=queue,
            key=key,
            opens=opens,
            history=history,
            by=by,
        )

    async def edit(
        self,
        message: str,
        said: str | Sequence[Part],
        *,
        options: TurnOptions | None = None,
        inputs: TurnInputs = NO_INPUTS,
        metadata: Mapping[str, JsonValue] | None = None,
        key: SendKey | None = None,
        by: str | None = None,
    ) -> str:
        """Store a new version of a user message and start a turn that answers it. The old version stays.

        Fields missing from `options` are as for the message it replaces.
        """
        old = await self._store.message(message)
        if old.role != "user" or old.author is not None:
            raise BadRequest(sentence("message.not_a_persons", message=message))
        new = user_message(old.conversation, said, old.parent, self._services.clock(), metadata)
        again = await self._as_before(old.turn, options, old.conversation)
        root = old.parent is None
        return await self._start(old.conversation, again, inputs, message=new, root=root, key=key, by=by)

    async def rerun(
        self,
        message: str,
        *,
        options: TurnOptions | None = None,
        inputs: TurnInputs = NO_INPUTS,
        parallel: bool = False,
        key: SendKey | None = None,
        by: str | None = None,
    ) -> str:
        """Start a new version of an answer, or the first one of a user message.

        With `parallel`, it starts even while another version is running. Fields missing from `options` are as
        in the repeated send.
        """
        old = await self._store.message(message)
        messages, _ = await self._store.messages(old.conversation)
        question = Tree(messages).question_of(message)
        again = await self._as_before(old.turn or question.turn, options, old.conversation)
        return await self._start(
            old.conversation, again, inputs, again=question, parallel=parallel, key=key, by=by
        )

    async def rerun_call(
        self,
        change: CallChange,
        *,
        options: TurnOptions | None = None,
        key: SendKey | None = None,
        by: str | None = None,
    ) -> str:
        """Start a new version of the answer that holds a call.

        It is identical up to this call, which gets other arguments or another result. The turn continues from
        there.
        """
        turn, message = await check_change(self._services, change, by)
        again = await self._as_before(turn, options, message.conversation)
        if again.agent is None and turn is not None:  # The conversation may have been handed over since.
            again = replace(again, agent=first_agent(self._services, await self._options(turn)).name or None)
        again = replace(again, again_from=change)
        return await self._start(message.conversation, again, NO_INPUTS, again=message, key=key, by=by)

    async def _as_before(
        self, turn: str | None, options: TurnOptions | None, conversation: str
    ) -> TurnOptions:
        """T14: a repeated send keeps its model, agent, mode, options, prompt and plugins."""
        wanted = options or TurnOptions()
        if turn is None:
            return wanted
        try:
            before = options_in(await self._store.facts(turn))
        except (DragomanError, ValueError):
            return wanted  # The turn is unreadable. Its readable parts are shown anyway.
        again = before.under(wanted)
        if again.agent is None:
            again = replace(again, agent=await agent_before(self._services, conversation, before))
        return again

    async def _start(
        self,
        conversation: str,
        options: TurnOptions,
        inputs: TurnInputs,
        *,
        message: Message | None = None,
        again: Message | None = None,
        root: bool = False,
        queue: bool = False,
        parallel: bool = False,
        key: SendKey | None = None,
        opens: Conversation | None = None,
        history: Sequence[Message] = (),
        by: str | None = None,
    ) -> str:
        sender = by or (opens.owner if opens is not None else await self._store.owner_of(conversation))
        known = await self._store.turn_of_key(sender, key) if key is not None else None
        if known is not None:  # Return it even if something it needs is missing by now.
            return known
        if inputs.deps is not None and self._driver.hands_out:
            raise ConfigError(
                "Another process cannot receive the deps of one send. Pass make_deps to the runtime."
            )
        if inputs.output is not None and inputs.output.checks and self._driver.hands_out:
            raise ConfigError(
                "Another process cannot receive the checks of an output. Put them into its type."
            )
        info = opens or await self._store.conversation(conversation)
        services = await self._services.seen_by(sender)
        options, model = _settled(services, options, info, await root_of(self._store, info))
        if again is not None:
            await check_repeated(self._store, model, again)
        elif message is not None:
            await check_attached(self._store, message)
            above = message.parent or (None if root else info.leaf)
            await check_message(self._store, model, message, above, history if opens is not None else None)
        turn = new_id("turn")
        if message is not None:
            message = replace(message, turn=turn, by=sender)
        at = self._services.clock()
        asked = message or again
        assert asked is not None
        fact = TurnStarted(asked.id, options, at, sender)
        body = FACT.dump(fact)
        start = Start(
            turn,
            conversation,
            body,
            at,
            message,
            again.id if again else None,
            root,
            queue,
            parallel,
            key,
            opens,
            history,
            by,
        )
        starting = asyncio.create_task(self._store_and_start(start, fact, inputs))
        try:
            # A cancelled caller has already started the turn, which must not stay unowned.
            await asyncio.shield(starting)
        except SentBefore as before:  # Another send with this key was stored at the same moment.
            return before.turn
        return turn

    async def _store_and_start(self, start: Start, fact: TurnStarted, inputs: TurnInputs) -> None:
        if (inputs.deps is not None or inputs.output is not None) and not self._driver.hands_out:
            self._services.inputs[start.turn] = inputs  # Otherwise the stored output schema suffices.
        with self._driver.starting():
            try:
                started = await self._store.start(start)
            except BaseException:
                self._services.inputs.pop(start.turn, None)
                raise
            if started is not None:
                await self._driver.start(started, fact)
                return
        await self._driver.start_queued(start.turn)

    async def change_queued(self, turn: str, said: str | Sequence[Part], *, by: str | None = None) -> None:
        """Replace the message of a turn that has not started yet. `by` is the user who sends it."""
        for queued in await self._store.queued(turn=turn):
            _check_sender(by, queued.sender or await self._store.owner_of(queued.conversation))
            message = user_message(queued.conversation, said, None, self._services.clock())
            await check_added(self._services, turn, message)
            if await self._store.change_queued(turn, message.parts):
                return
        row = await self._store.turn(turn)
        raise TurnBusy(turn) if row.live else TurnEnded(turn, row.state)

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────

    async def steer(
        self,
        turn: str,
        said: str | Sequence[Part],
        *,
        metadata: Mapping[str, JsonValue] | None = None,
        by: str | None = None,
    ) -> None:
        """Add a message to a running turn: its next request contains it.

        The turn runs with the rules of its sender, so only that user can steer it (V2).
        """
        row = await self._store.turn(turn)
        sender = await self._check_sender(by, row)
        message = user_message(row.conversation, said, None, self._services.clock(), metadata)
        message = replace(message, by=sender)
        await check_added(self._services, turn, message)
        body = {"message": MESSAGE.to_json(message)}
        if not await self._store.post(turn, "steer", body):
            raise TurnEnded(turn, (await self._store.turn(turn)).state)
        await self._wake(turn)

    async def answer(self, question: str, answer: Answer, *, by: str | None = None) -> Question:
        """Settle an approval request. The first answer counts, whichever client it comes from.

        `by` is the user who answers. Without it, the answer is on behalf of the owner. An answer by another
        user than the sender lets only this call run, unchanged, under the sender's rules. A rule it leaves
        behind is the answering user's.
        """
        asked = await self._store.question(question)
        await check_answer(self._services, asked, answer)
        conversation = await self._store.conversation(asked.conversation)
        sender = await sender_of(self._store, await self._store.turn(asked.turn))
        user = by or conversation.owner
        if user != sender and (answer.arguments is not None or _rewrites(asked, answer)):
            raise Forbidden(sentence("share.sender", user=sender))
        answer = replace(answer, at=self._services.clock(), by=by or answer.by, lent=user != sender)
        granted = await self._grants(asked, answer, conversation, user)
        if not granted:
            answer = replace(answer, scope="once")  # Without a rule, an answer applies only once.
        settled = await self._store.answer(question, answer, granted, by=by)
        await self._wake(asked.turn)
        if granted:
            only_here = answer.scope == "conversation" and answer.verdict == "allow"
            # A denial also applies in the conversation's tasks.
            where = conversation.id if only_here else None
            await self._settle_waiting(answer, where, user)
        return settled

    async def grant(self, rule: Rule, answer: Answer, *, user: str | None, owner: str) -> Grant:
        """Store a rule that a user gives without a request, for as long as the answer specifies.

        An allowing rule applies in the runtime's main folder, as an answer would there. A denying rule
        applies everywhere.
        """
        main = self._services.workspaces.main
        folder = main.path if main is not None and rule.action == "allow" else None
        answer = replace(answer, at=self._services.clock())
        made = grant_of(answer, rule, None, user, folder)
        await self._store.add_grant(made)
        await self._settle_waiting(answer, None, owner)
        return made

    async def arguments_for_hunks(self, question: str, chosen: Mapping[int, str | None]) -> Arguments:
        return await arguments_for_hunks(self._services, question, chosen)

    async def _settle_waiting(self, answer: Answer, where: str | None, user: str) -> None:
        """Settle other requests that wait because of a rule and that the new grant makes unnecessary."""
        # Apply it for as long as the original answer.
        made = Answer(answer.verdict, answer.scope, by=answer.by, at=answer.at)
        for other in await self._store.questions(
            conversation=where, user=None if where else user, shared=True
        ):
            if other.because == "rule" and other.kind == "approve":
                try:
                    if await sender_of(self._store, await self._store.turn(other.turn)) == user:
                        await self._settle_likewise(other, made)
                except (DragomanError, ValueError) as error:
                    # It was answered or deleted meanwhile, or is unreadable.
                    _log.info("question %s stays as it is: %s", other.id, error)

    async def _settle_likewise(self, other: Question, made: Answer) -> None:
        likewise = answer_by_rule(await self._authorized(other, other.patterns), made)
        if likewise is not None:
            await self._store.answer(other.id, likewise)
            await self._wake(other.turn)

    async def _authorized(self, question: Question, patterns: Sequence[str]) -> Verdict | None:
        """Return the current decision about a waiting call. None if its tool or agent is unknown here."""
        tool = await waiting_tool(self._services, question)
        if tool is None or tool.fingerprint != question.fingerprint:
            return None
        conversation = await self._store.conversation(question.conversation)
        try:
            *earlier, agent = await agents_of(self._services, question.turn, before=question.call)
            options = await self._options(question.turn)
            givers = Givers.of(options, earlier)
            givers.add(await load_givers(self._services, conversation))
        except NotFound:
            return None
        authority = await load_authority(
            self._services,
            conversation,
            agent,
            "auto",
            sender=await sender_of(self._store, await self._store.turn(question.turn)),
            workspace=self._services.workspace_of(options),
            tool=tool,
            givers=givers,
            arguments=question.arguments,
        )
        if question.rules[:1] and _is_beyond(question):
            return authorize_beyond(question.rules[0], authority)
        return authorize(tool, patterns, authority)

    async def deliver(
        self, call: str, result: ToolResult, *, failed: bool = False, by: str | None = None
    ) -> None:
        """Deliver the result of a call that a client ran. Only the user who sent the turn can."""
        found, _, _ = await self._store.call(call)
        row = await self._store.turn_of_call(call)
        await self._check_sender(by, row)
        turn = row.id
        if found.state in (CallState.PENDING, CallState.ASKED):
            raise BadRequest(sentence("call.not_running", call=call, state=found.state))
        if found.state is not CallState.RUNNING:
            raise AlreadyAnswered(call, f"the call is {found.state}")
        known = replay([FACT.load(body) for body in await self._store.facts(turn)])
        if not known.calls[call].client:
            raise BadRequest(sentence("call.not_clients", call=call))
        check_json(asdict(result), "the result")
        check_fields(RESULT, result, "the result")
        check_parts(result.attachments)
        body: dict[str, JsonValue] = {"call": call, "failed": failed, "result": RESULT.to_json(result)}
        if not await self._store.post(turn, "result", body):
            raise TurnEnded(turn, (await self._store.turn(turn)).state)
        await self._wake(turn)

    async def cancel(self, turn: str, reason: str = "", *, by: str | None = None) -> bool:
        """Stop a turn, in any state and process. Return False if it was over already."""
        check_json(reason, "the reason")
        if await self._store.is_queued(turn) and await self._store.unqueue(turn):
            self._services.inputs.pop(turn, None)
            return True  # It never starts.
        stopped = await cancel_turn(self._services, self._driver.wake, turn, reason, by)
        if stopped and self._driver.leaves(turn):  # Resume the turn to end it. Earlier decisions still apply.
            try:
                await self._driver.adopt(turn, wanted=True)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ENDING):
                        while (await self._store.turn(turn)).live:  # noqa: ASYNC110 - its runner tells the store
                            await asyncio.sleep(0.01)
            except TurnQuarantined:
                await end_quarantined(self._services, self._driver.wake, turn, reason, by)
        return stopped

    async def _check_sender(self, by: str | None, row: TurnRow) -> str:
        """Return the user who sent a turn. Raise Forbidden if `by` is another user."""
        sender = await sender_of(self._store, row)
        _check_sender(by, sender)
        return sender

    async def _wake(self, turn: str) -> None:
        """Wake the turn. The stored change stays even if waking fails.

        If the turn cannot continue here, the process that resumes it will see the change. A turn deleted
        meanwhile needs no wake-up.
        """
        with suppress(TurnQuarantined, NotFound):
            try:
                await self._driver.wake(turn)
            except StoreUnavailable as error:
                _log.warning("turn %s is woken later: %s", turn, error)

    # ── rules from answers ────────────────────────────────────────────────────────────────────────

    async def _grants(
        self, asked: Question, answer: Answer, conversation: Conversation, by: str
    ) -> list[Grant]:
        """Return the rules an answer leaves for the answering user. If arguments were edited, they cover
        those."""
        if answer.verdict not in ("allow", "reject") or answer.scope == "once" or not asked.rules:
            return []
        only_here = answer.scope == "conversation" or asked.because == "loop"
        folder = (await self._options(asked.turn)).workspace if answer.verdict == "allow" else None
        where, user = conversation.id if only_here else None, None if by == LOCAL else by
        action: Action = "allow" if answer.verdict == "allow" else "deny"
        rules = [replace(rule, action=action) for rule in await self._rules_to_keep(asked, answer)]
        return [grant_of(answer, rule, where, user, folder) for rule in rules]

    async def _options(self, turn: str) -> TurnOptions:
        return options_in(await self._store.facts(turn))

    async def _rules_to_keep(self, asked: Question, answer: Answer) -> tuple[Rule, ...]:
        tool = await waiting_tool(self._services, asked)
        if answer.arguments is None or tool is None or asked.because != "rule":
            return answer.rules or asked.rules
        fitted, _ = repair_arguments(answer.arguments, tool.parameters)
        verdict = await self._authorized(asked, tool.patterns(fitted))
        if isinstance(verdict, Refuse):
            return ()  # The edited call will not run.
        exact, wider = tool.always(fitted), tool.always_wider(fitted)
        return tuple(rule for rule in answer.rules if rule in (*exact, *wider)) or exact


def _text(setting: JsonValue) -> str | None:
    return setting if isinstance(setting, str) else None


def _settled(
    services: Services, options: TurnOptions, conversation: Conversation, root: str
) -> tuple[TurnOptions, Model]:
    """Return the options with everything the turn depends on, to be stored, and its model.

    Options that are known to be wrong are refused before anything is stored.
    """
    settings = laid_over(services.settings_seen(conversation.settings), options.over)
    agent = services.agent(options.agent or _text(settings.get("agent")))
    model = services.model(options.model or _text(settings.get("model")) or agent.model)
    check_json(asdict(options), "what was said of this turn")
    if options.dialect is not None:
        check_dialect(options.dialect)
    for name in options.tools.keys() - {spec.name for spec in options.client_tools}:
        services.toolbox.check_name(name)
    if (check := getattr(model, "check_options", None)) is not None:  # Custom models may lack it.
        check(options_of(services, agent, model, settings, options.options))
    check_typed_answer(model, options)
    plugins = [plugin.name for plugin in services.plugins]
    if unknown := sorted(set(options.disabled) - set(plugins)):
        known = ", ".join(plugins)
        raise BadRequest(sentence("send.no_plugin", unknown=", ".join(unknown), known=known))
    required = {plugin.name for plugin in services.plugins if plugin.required}
    if needed := sorted(required & set(options.disabled)):
        raise BadRequest(sentence("send.needed_plugin", plugins=", ".join(needed)))
    workspace = services.workspaces.find(_text(settings.get("workspace")), root)
    review = services.review
    settled = replace(
        options,
        accepted=NodeRules(
            tuple(services.rules),
            agent.rules,
            services.mode,
            review if isinstance(review, str) else dict(review),
        ),
        workspace=workspace.path if workspace is not None else None,
        settings=settings,
        started_with=model.name,
        traceparent=trace.header if (trace := callers_trace()) is not None else None,
    )
    return settled, model


def _check_sender(by: str | None, sender: str) -> None:
    """Raise Forbidden for other users: messages in a turn run with the rights of its sender."""
    if by is not None and by != sender:
        raise Forbidden(sentence("share.sender", user=sender))


def _rewrites(asked: Question, answer: Answer) -> bool:
    """Return whether the model is to see another result than the tool gave."""
    return asked.kind == "review" and answer.verdict == "release" and answer.value is not None


def _is_beyond(question: Question) -> bool:
    """Return whether a running call requests one resource outside its sandbox."""
    rule = question.rules[0]
    return rule.permission in (NET, WRITE) and [rule.pattern] == [literal(one) for one in question.patterns]
