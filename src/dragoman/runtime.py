"""Combine a store, models, tools and plugins into a `Runtime`: the composition root."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Literal, Self, overload

from pydantic import JsonValue
from typing_extensions import TypeVar, Unpack

from dragoman.background import Background, in_thread, to_its_end
from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation, Tree
from dragoman.conversation.window import Policy
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.ids import check_ids, new_id
from dragoman.messages.message import File, Part
from dragoman.messages.questions import Answer, Grant, Mode, Question, Rule
from dragoman.messages.usage import Dimension, Spending, group
from dragoman.parameters import (
    AnyModel,
    agents_by_name,
    checked_retention,
    deletes_files,
    listed,
    missing_tools,
    models_for,
    store_at,
    table,
    text_of,
    workspaces_at,
)
from dragoman.plugins.built_in import built_in_plugins
from dragoman.plugins.limits import Team
from dragoman.plugins.snapshots import Snapshots, histories_for
from dragoman.sentences import sentence
from dragoman.store.address import MEMORY, StoreFile, StoreServer
from dragoman.store.store import Found, Store
from dragoman.store.transfer import export_conversation, history_of, import_conversation, markdown
from dragoman.telemetry.observer import Telemetry
from dragoman.tools.authorize import ReviewPolicy
from dragoman.tools.builtin import grouped
from dragoman.tools.cage.policy import CAGE_OFF, PERMISSIONS, CageSettings
from dragoman.tools.deferred import DEFAULT_BUDGET, FIND_PERMISSION, budget_of
from dragoman.tools.permissions import concerns, is_known_later, parse_rule
from dragoman.tools.program import PERMISSION as PROGRAMS
from dragoman.tools.skills import Skills
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Source, TeamSource, Toolbox
from dragoman.turn.agent import Agent
from dragoman.turn.api.commands import Commands
from dragoman.turn.api.conversation_handle import (
    ConversationHandle,
    delete_conversation,
    delete_untouched,
    fork_conversation,
)
from dragoman.turn.api.sharing import Sharing
from dragoman.turn.api.subagents import Subagents, agents_group, exchange_agents
from dragoman.turn.api.turn_handle import Engine, TurnHandle
from dragoman.turn.api.undo import Undo
from dragoman.turn.drivers.jobs import Role, TurnLimits, make_driver
from dragoman.turn.drivers.tasks import Driver
from dragoman.turn.live.event_bus import EventBus
from dragoman.turn.output import OutputType, output_of
from dragoman.turn.plugin import Plugin, check
from dragoman.turn.send import SendOptions
from dragoman.turn.services import LaterDenials, MakeDeps, Services, SharedPrompt, no_later_denials
from dragoman.turn.settings import ConversationOptions, as_json, changed
from dragoman.turn.steps.request_layers import today_by
from dragoman.workspace.states import SnapshotLimits
from dragoman.workspace.workspaces import Workspace

T = TypeVar("T", default=str)
_log = logging.getLogger("dragoman.runtime")
_FILES = 600.0  # seconds between deletions of unneeded files at providers
_RETENTION = 3600.0  # seconds between deletions of old conversations
# These are allowed unless a rule denies them: programs ask about each of their calls, and the others are
# harmless. A function's name has no dot, so no tool of a user can have one of these permissions by its name.
_HARMLESS = ("output.read", PROGRAMS, FIND_PERMISSION, "basics.*")
_CALLER = "given to the runtime"  # the origin of rules that are in no file


class Runtime:
    """Manages conversations. Use it as `async with Runtime("chat.db", model=…, tools=[…]) as runtime:`.

    `model` is a name such as "ollama/qwen3", an address (`OpenAICompatible`), or a list of these: if one
    cannot answer, the next is asked. It can also be a custom model, or a function from names to models. The
    runtime resumes unfinished turns of earlier processes in the store, unless `adopts` is False. Use that for
    programs that only read and answer and lack the tools to resume. Each process that shares a store in
    PostgreSQL has a `role`. `turn_limits` limit how many turns run at the same time. Conversations that are
    unused for `retention` seconds are deleted, unless something waits in them. Entries of the audit log are
    deleted after `audit_retention` seconds. `workspace` is the folder of the file tools and the shell.
    Conversations and sends can name one of `workspaces` instead. With a `cage`, programs that tools start run
    in it. Tools and plugins get `deps` as `context.deps`. `make_deps` creates it for each turn, even for one
    that another process started.
    """

    def __init__(
        self,
        store: str | Path | StoreFile | StoreServer | Store,
        *,
        model: AnyModel = None,
        tools: Iterable[str | Tool | Group | Source | Callable[..., Any]] = (),
        agents: Iterable[Agent] = (),
        plugins: Sequence[Plugin] = (),
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        bounds: Iterable[Rule] = (),
        later_denials: LaterDenials = no_later_denials,
        system: str = "",
        options: Mapping[str, JsonValue] | None = None,
        mode: Mode = "auto",
        on_reject: Literal["continue", "stop"] = "continue",
        review: ReviewPolicy = "never",
        max_rounds: int = 10,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        max_calls: int | None = None,
        max_daily_tokens: int | None = None,
        max_daily_cost: float | None = None,
        teams: Mapping[str, Team] | None = None,
        prompts: Mapping[str, SharedPrompt] | None = None,
        continuations: int | None = None,
        concurrency: int = 16,
        tool_budget: int | str | None = None,
        always_tools: Iterable[str] = (),
        tool_history: Policy = "full",
        history_parts: Sequence[str] | None = None,
        compact_at: float | None = 0.8,
        private: Mapping[str, str] | None = None,
        titles_by_model: bool = False,
        title_length: int = 30,
        small_model: str | None = None,
        workspace: str | Path | Workspace | None = None,
        workspaces: Mapping[str, str | Path | Workspace] | None = None,
        cage: CageSettings | None = None,
        snapshots: bool | SnapshotLimits = True,
        snapshot_folder: str | Path | None = None,
        deps: object = None,
        make_deps: MakeDeps | None = None,
        adopts: bool = True,
        role: Role | None = None,
        turn_limits: TurnLimits | None = None,
        retention: float | None = None,
        audit_retention: float = 365 * 24 * 3600.0,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._temporary = TemporaryDirectory(prefix="dragoman-") if store == MEMORY else None
        if self._temporary is not None:
            store = Path(self._temporary.name) / "dragoman.db"
        self.store = store_at(store)
        self.teams = table("teams", teams)
        self.histories = histories_for(store, snapshots, snapshot_folder)
        folders = workspaces_at(workspace, workspaces, self.histories.folder)
        find_model, self._close_models = models_for(model, self.store)
        built_in = built_in_plugins(
            self.store,
            clock,
            tool_history=tool_history,
            history_parts=history_parts,
            compact_at=compact_at,
            private=table("private", private),
            max_rounds=max_rounds,
            max_tokens=max_tokens,
            max_cost=max_cost,
            max_seconds=max_seconds,
            max_calls=max_calls,
            max_daily_tokens=max_daily_tokens,
            max_daily_cost=max_daily_cost,
            teams=self.teams,
            continuations=continuations,
            titles_by_model=titles_by_model,
            title_length=title_length,
        )
        if self.histories.records and any(folders):
            built_in.append(Snapshots(self.histories))
        known = agents_by_name(agents)
        self._tasks = Subagents(known)
        own_plugins = [check(plugin) for plugin in listed("plugins", plugins)]
        brought = [tool for plugin in own_plugins for tool in plugin.tools]
        groups, sources = grouped([*listed("tools", tools), *brought])
        self._agents_group = agents_group(self._tasks)
        if known:
            groups.append(self._agents_group)
        self.services = Services(
            store=self.store,
            model=find_model,
            small_model=small_model,
            toolbox=Toolbox(groups, sources),
            agents=known,
            agents_now=known,
            prompts=table("prompts", prompts),
            teams={name: team.members for name, team in self.teams.items()},
            plugins=[*built_in, *own_plugins],
            rules=[
                *(Rule(one, "*", "allow", sentence("rule.built_in")) for one in _HARMLESS),
                *rules,
                *(parse_rule(text, "allow", _CALLER) for text in listed("allow", allow)),
                *(parse_rule(text, "ask", _CALLER) for text in listed("ask", ask)),
                *(parse_rule(text, "deny", _CALLER) for text in listed("deny", deny)),
            ],
            bounds=[*listed("bounds", bounds)],
            later_denials=later_denials,
            system=text_of("system", system),
            options=table("options", options),
            mode=mode,
            on_reject=on_reject,
            review=review,
            concurrency=concurrency,
            tool_budget=DEFAULT_BUDGET if tool_budget is None else budget_of(tool_budget),
            always_tools=frozenset(listed("always_tools", always_tools)),
            cage=cage or CAGE_OFF,
            workspaces=folders,
            deps=deps,
            make_deps=make_deps,
            clock=clock,
            today=today_by(clock),
        )
        servers = [one for one in sources if isinstance(one, TeamSource) and not isinstance(one, Skills)]
        self._check_teams([*known.values(), *self.services.prompts.values(), *servers])
        self._is_open = False
        self.background = Background()
        self.bus = EventBus(self.store, self.background)
        self.driver: Driver = make_driver(
            self.services, self.bus, self.background, adopts=adopts, role=role, limits=turn_limits
        )
        self.commands = Commands(self.services, self.driver)
        self._retention = checked_retention(retention) if adopts else None
        self._audit_retention = checked_retention(audit_retention) if adopts else None
        self.telemetry = telemetry
        if telemetry is not None:
            telemetry.join(self.bus, self.background, self.store, private)
        self.undo = Undo(self.store, self.histories, folders)
        self._engine = Engine(self.services, self.store, self.bus, self.driver, self.commands, self.undo)
        self.sharing = Sharing(self._engine)
        self._tasks.join(self.services, self._engine)

    async def __aenter__(self) -> Self:
        if self._is_open:
            raise ConfigError("The runtime is already open. Open it once, and share it.")
        self._is_open = True
        try:
            await self._open()
        except BaseException:
            self._is_open = False
            raise
        return self

    async def _open(self) -> None:
        for rule in self._denials_of_nothing():
            _log.warning("no tool has the permission of the rule %r: it denies nothing", str(rule))
        for missing in missing_tools(self.services.agents.values(), self.services.toolbox):
            _log.warning("%s", missing)
        if unknown := self._teams_of_skills() - self.teams.keys():
            _log.warning("%s", sentence("team.unknown", teams=", ".join(sorted(unknown))))
        await self.store.open()
        self.services.toolbox.open()
        try:
            await self.undo.open()
            await self.driver.open()
        except BaseException:
            await to_its_end(self._close())
            raise
        if self._retention is not None:
            self.background.run("deleting old conversations", self._delete_old)
            self.background.repeat("deleting old conversations", self._delete_old, every=_RETENTION)
        if self._audit_retention is not None:
            self.background.repeat("deleting old audit entries", self._forget_audit, every=_RETENTION)
        if (delete := deletes_files(self.services.model, self.store)) is not None:
            self.background.run("deleting files at providers", delete)
            self.background.repeat("deleting files at providers", delete, every=_FILES)
        if self.telemetry is not None:
            self.telemetry.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await to_its_end(self._close())
        finally:
            self._is_open = False

    async def _close(self) -> None:
        """Close all parts, from the last one here to the first, even if one of them fails to close."""
        async with AsyncExitStack() as parts:
            if self._temporary is not None:
                parts.push_async_callback(in_thread, self._temporary.cleanup)
            if self.telemetry is not None:
                parts.push_async_callback(self.telemetry.close)
            parts.push_async_callback(self._close_models)
            parts.push_async_callback(in_thread, self.histories.close)  # A scan can be running.
            parts.push_async_callback(self.store.close)
            parts.push_async_callback(self.services.toolbox.close)
            parts.push_async_callback(self.driver.close)

    def _denials_of_nothing(self) -> list[Rule]:
        """Return denials that match no permission, because a misspelled denial protects nothing. With
        sources, the permissions are not known yet."""
        toolbox = self.services.toolbox
        known = {
            "loop",
            "hand_off",
            PROGRAMS,
            FIND_PERMISSION,
            *PERMISSIONS,
            *(tool.permission for group in toolbox.groups for tool in group.tools),
        }
        denials = [rule for rule in self.services.rules if rule.action == "deny" and not toolbox.sources]
        idle = [rule for rule in denials if not any(concerns(rule, permission) for permission in known)]
        return [rule for rule in idle if not is_known_later(rule.permission)]

    def _check_teams(self, given: Iterable[Agent | SharedPrompt | TeamSource]) -> None:
        """Raise ConfigError for an unknown team: a misspelled one would hide its items from all users."""
        if unknown := {team for one in given for team in one.teams} - self.teams.keys():
            raise ConfigError(sentence("team.unknown", teams=", ".join(sorted(unknown))))

    def _teams_of_skills(self) -> set[str]:
        """Return the teams of skills. They are not checked: only the admin gets a skill for an unknown
        team."""
        sources = self.services.toolbox.sources
        return {team for one in sources if isinstance(one, Skills) for team in one.teams}

    def use_agents(self, agents: Iterable[Agent]) -> None:
        """Replace all agents. Running turns keep theirs."""
        fresh, toolbox = agents_by_name(agents), self.services.toolbox
        self._check_teams(fresh.values())
        self._agents_group = exchange_agents(self._agents_group, toolbox, self._tasks, fresh)

    # ── conversations ─────────────────────────────────────────────────────────────────────────────

    async def conversation(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        messages: Sequence[Mapping[str, str]] = (),
        **settings: Unpack[ConversationOptions],
    ) -> ConversationHandle:
        """Return the conversation with this ID, or a new one. Settings: model, agent, mode, system, options,
        tools.

        A new one belongs to `user`, and can begin with your `messages`: `{"role": "user", "content": "Hi"}`,
        and those of an `assistant`. Raises NotFound if it exists and `user` may not read it.
        """
        check_ids(id=id, user=user)
        if id is None:
            conversation = self._new_conversation(user, settings)
            id = conversation.id
            history = history_of(messages, conversation)
            leaf = history[-1].id if history else None
            await self.store.add_conversation(replace(conversation, leaf=leaf), history)
        else:
            if user is not None and await self.store.right_of(id, user) < Right.READ:
                raise NotFound("conversation", id)
            await self.store.conversation(id)
            if messages:
                raise ConfigError(f"Conversation {id!r} exists already. Pass messages only for a new one.")
            if settings:
                raise ConfigError(f"Conversation {id!r} exists already. Change its settings with `change`.")
        return ConversationHandle(id, self._engine)

    @overload
    async def send(
        self,
        said: str | Sequence[Part],
        conversation: str | None = None,
        *,
        output_type: OutputType[T],
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[T]: ...
    @overload
    async def send(
        self,
        said: str | Sequence[Part],
        conversation: str | None = None,
        *,
        output_type: None = None,
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle: ...
    async def send(
        self,
        said: str | Sequence[Part],
        conversation: str | None = None,
        *,
        output_type: OutputType[Any] | None = None,
        **options: Any,
    ) -> TurnHandle[Any]:
        """Send a message, in a new conversation if none is named. The new conversation is stored together
        with the turn, or not at all. The options are those of `ConversationHandle.send`."""
        if conversation is not None:
            chat = await self.conversation(conversation)
        else:
            new = self._new_conversation(None, {})
            chat = ConversationHandle(new.id, self._engine, opens=new)
        return await chat.send(said, output_type=output_type, **options)

    def _new_conversation(self, user: str | None, settings: ConversationOptions) -> Conversation:
        now, id = self.services.clock(), new_id("conv")
        stored = changed({}, as_json(settings))
        self.services.workspaces.find(settings.get("workspace"), id)
        self.services.toolbox.check_switches(settings.get("tools"))
        return Conversation(id, user=user, settings=stored, created=now, updated=now)

    async def put_file(self, data: bytes, media_type: str, name: str | None = None) -> File:
        """Store a file and return a part to send. Dragoman can remove it if no message uses it within an
        hour."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise BadRequest(sentence("file.no_bytes", given=data))
        return File(media_type, blob=await self.store.put_blob(data), name=name, size=len(data))

    async def read_file(self, file: File) -> bytes:
        """Return the bytes of a file of a message or a result. Raises NotFound if they are not stored
        here."""
        return await self.store.blob(file.blob or "")

    async def conversations(
        self,
        *,
        user: str | None = None,
        limit: int = 50,
        before: tuple[float, str] | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        tag: str | None = None,
    ) -> list[Conversation]:
        """Return one page, most recently used first. `before` has `updated` and `id` of the last one that you
        received."""
        check_ids(user=user)
        return await self.store.conversations(
            user=user, limit=limit, before=before, pinned=pinned, archived=archived, tag=tag
        )

    async def turns(self, *, user: str | None = None) -> list[TurnHandle]:
        """Return the unfinished turns: after a crash, those that resume here or wait for a user."""
        rows = await self.store.live_turns()
        owners = {row.id: await self.store.owner_of(row.conversation) for row in rows} if user else {}
        return [self.turn(row.id) for row in rows if user is None or owners[row.id] == user]

    async def spending(self, *by: Dimension, since: float = 0.0, user: str | None = None) -> list[Spending]:
        """Return usage and cost since that time, by `day`, `person`, `model`, `agent` or `tool`."""
        check_ids(user=user)
        return group(await self.store.spending(float(since), user), by)

    async def search(self, query: str, *, user: str | None = None, limit: int = 20) -> list[Found]:
        """Return the places that contain all these words: titles first, then the newest messages."""
        check_ids(user=user)
        return await self.store.search(query, user=user, limit=limit)

    async def fork(
        self, conversation: str, message: str, *, own_folder: bool = False, user: str | None = None
    ) -> ConversationHandle:
        """Return a new conversation that begins with the path to this message. With `own_folder`, it works in
        a copy of the folder as it was then. It belongs to `user`, or else to the owner of the original."""
        check_ids(conversation=conversation, message=message, user=user)
        id = await fork_conversation(
            self.services, self.undo, conversation, message, own_folder=own_folder, user=user
        )
        return ConversationHandle(id, self._engine)

    async def delete(self, conversation: str) -> None:
        """Delete the conversation and those that its calls opened. Cancel what runs there first."""
        check_ids(conversation=conversation)
        await delete_conversation(self._engine, conversation)

    async def _delete_old(self) -> None:
        """Delete conversations that were unused for the retention time."""
        assert self._retention is not None
        if deleted := await delete_untouched(self._engine, self.services.clock() - self._retention):
            days = self._retention / (24 * 3600)
            _log.warning("%d conversations were deleted: untouched for %.3g days", deleted, days)

    async def _forget_audit(self) -> None:
        assert self._audit_retention is not None
        await self.store.forget_audit(self.services.clock() - self._audit_retention)

    async def members(self, team: str) -> set[str]:
        """Return the users of a team: its named members, and users in its groups at their provider."""
        if team not in self.teams:
            raise NotFound("team", team)
        return {*self.teams[team].members, *await self.store.members_of(team)}

    async def remove_person(self, name: str) -> int:
        """Remove a user on every server of this store: keys, sign-ins, links, live streams. Cancel their
        turns, which can make no calls until then. Conversations stay. Returns the number of cancelled
        turns."""
        await self.store.remove_person(name)
        self.bus.hear_of_writes()  # Open streams on this server end, too.
        stopped = 0
        for turn in await self.store.turns_of_person(name):
            try:
                stopped += await self.commands.cancel(turn, sentence("turn.user_removed"))
            except NotFound:
                pass  # deleted in the meantime
        return stopped

    async def export(self, conversation: str, *, private: bool = True) -> dict[str, JsonValue]:
        """Return everything as JSON for `import_conversation`, on request without the private texts of its
        settings."""
        check_ids(conversation=conversation)
        return await export_conversation(self.store, conversation, private=private)

    async def export_markdown(self, conversation: str) -> str:
        """Return the path to the leaf, and queued messages, as Markdown."""
        check_ids(conversation=conversation)
        info = await self.store.conversation(conversation)
        queued = [one.message for one in await self.store.queued(conversation=conversation)]
        messages, _ = await self.store.messages(conversation)
        return markdown(info, Tree(messages).path(info.leaf), queued)

    async def import_conversation(
        self, data: Mapping[str, JsonValue], *, user: str | None = None
    ) -> ConversationHandle:
        """Make a copy, with new IDs, of what `export` returned."""
        check_ids(user=user)
        id = await import_conversation(self.store, data, user=user, now=self.services.clock())
        return ConversationHandle(id, self._engine)

    # ── turns, questions, grants ──────────────────────────────────────────────────────────────────

    def turn(self, id: str, output_type: OutputType[T] | None = None) -> TurnHandle[T]:
        """Return a turn by its ID. To read its answer as a type, name the type again."""
        return TurnHandle(id, self._engine, output_of(output_type))

    async def answer(self, question: str | Question, answer: Answer, *, by: str | None = None) -> Question:
        """Answer an approval request. `by` is the answering user, who must have that right in this
        conversation."""
        id = question.id if isinstance(question, Question) else question
        check_ids(question=id, by=by)
        return await self.commands.answer(id, answer, by=by)

    async def questions(self, *, user: str | None = None) -> list[Question]:
        """Return the open approval requests: all, or those that this user may answer."""
        check_ids(user=user)
        return await self.store.questions(user=user, shared=True)

    async def grants(self, *, user: str | None = None) -> list[Grant]:
        """Return the rules that users kept with their answers and have not revoked."""
        check_ids(user=user)
        return await self.store.grants(user=user)

    async def revoke(self, grant: str) -> None:
        check_ids(grant=grant)
        await self.store.revoke(grant)
