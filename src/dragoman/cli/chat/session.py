"""Run one user's chat: the current conversation, its turns, and messages that are typed meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from rich.cells import chop_cells
from rich.console import Console, RenderableType
from rich.text import Text

from dragoman.cli.attachments import attach_mentioned, save_made
from dragoman.cli.interrupted import next_queued, resume_turn
from dragoman.cli.model_choice import ChosenModel
from dragoman.cli.terminal.approvals import QuestionMenu
from dragoman.cli.terminal.cards import describe_changes, describe_file
from dragoman.cli.terminal.follow import Tasks, on_interrupt
from dragoman.cli.terminal.forms import Interrupted
from dragoman.cli.terminal.images import show_picture
from dragoman.cli.terminal.keyboard import Keyboard, TypedLine
from dragoman.cli.terminal.screen import DownloadProgress, Screen, print_messages, said_line
from dragoman.cli.terminal.text import count, near_home, one_line, plain
from dragoman.config.project_prompt import Template
from dragoman.errors import BadRequest, DragomanError, NotFound, TurnEnded
from dragoman.messages import events as e
from dragoman.messages.asked import question_in
from dragoman.messages.message import File
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime
from dragoman.store.store import Store, TurnRow
from dragoman.tools.permissions import READS
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.settings import checked, unchecked
from dragoman.workspace.workspaces import Workspace

_WIDTH = 100  # maximum characters of a shown line
_HINT = "Enter: before the next step · Tab: after this turn · Esc: clear"
SHOWN = 6  # messages that are shown of an opened conversation


@dataclass(slots=True)
class Status:
    """The content of the status line. `used` is the number of tokens of the last request and its reply."""

    model: str
    mode: str
    folder: str
    used: int = 0
    context: int | None = None
    cost: float | None = None

    def line(self, width: int) -> str:
        """Return as much of the status as fits, most important first."""
        parts = [one_line(self.model, 60), f"mode {self.mode}"]
        if self.used:
            parts.append(self._fullness())
        if self.cost:
            parts.append(f"${self.cost:.4f}" if self.cost < 1 else f"${self.cost:.2f}")
        parts.append(one_line(self.folder, 80))
        while len(parts) > 1 and len(" · ".join(parts)) > width:
            parts.pop()
        return " · ".join(parts)[:width]

    def _fullness(self) -> str:
        if not self.context:
            return f"{self.used:,} tokens"
        return f"context {100 * self.used / self.context:.0f} % of {_short(self.context)}"

    def add(self, usage: Usage) -> None:
        """Add the usage of a finished step."""
        self.used = usage.input + usage.output or self.used
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost


def _short(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens >= 1000 else str(tokens)


class Interjections:
    """Handles input during one turn. No typed text is lost: the prompt gets what the turn did not take."""

    def __init__(
        self,
        chat: ConversationHandle,
        turn: TurnHandle,
        store: Store,
        notify: Callable[[str, str], None],
        draft: str = "",
    ) -> None:
        self._chat = chat
        self._turn = turn
        self._store = store
        self._notify = notify
        self._steering: list[str] = []  # not yet taken
        self._queued: dict[str, str] = {}  # queued in this session, by turn
        self._tasks = Tasks()
        self.line = TypedLine(
            enter=lambda text: self._say(text, self._steer),
            tab=lambda text: self._say(text, self._queue),
            stop=lambda: self._tasks.start(self.stop()),
        )
        self.line.text = draft

    def lines(self) -> list[Text]:
        """Return the lines below the turn."""
        found = [_line(f"↳ before the next step: {text}") for text in list(self._steering)]
        found += [_line(f"↳ after this turn: {text}") for text in list(self._queued.values())]
        if self.line.text:
            found += [_line(f"» {_end_of(self.line.text)}", "bold cyan"), _line(f"  {_HINT}")]
        return found

    def hear(self, event: e.Event) -> None:
        """Remove a steering message when the turn has taken it."""
        if isinstance(event, e.MessageAdded) and event.message.role == "user":
            text = event.message.text.strip()
            if text in self._steering:
                self._steering.remove(text)

    async def stop(self) -> None:
        """Stop the turn, and return queued messages to the prompt so that they do not begin."""
        for queued in list(self._queued):
            if await self._store.unqueue(queued):
                self._keep(self._queued.pop(queued))
        await self._turn.cancel("interrupted at the keyboard")

    async def close(self) -> str:
        """Return typed text that was not sent, or that was sent but not taken. The turn has ended."""
        await self._tasks.wait()
        for text in self._steering:
            self._keep(text)
        return self.line.text

    def _say(self, text: str, how: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        if text.startswith("/"):
            self.line.text = text
            self._notify("commands work when the turn is over; Ctrl-C stops it", "dim")
        else:
            self._tasks.start(how(text))

    async def _steer(self, text: str) -> None:
        self._steering.append(text)
        try:
            await self._turn.steer(await attach_mentioned(self._store, text, [], self._notify))
        except TurnEnded:
            self._steering.remove(text)
            await self._queue(text)
        except DragomanError as error:
            self._steering.remove(text)
            self._keep(text)
            self._notify(str(error), "red")

    async def _queue(self, text: str) -> None:
        try:
            parts = await attach_mentioned(self._store, text, [], self._notify)
            self._queued[(await self._chat.send(parts, queue=True)).id] = text
        except DragomanError as error:
            self._keep(text)
            self._notify(str(error), "red")

    def _keep(self, text: str) -> None:
        self.line.text = f"{self.line.text}\n{text}".strip()


def _end_of(typed: str) -> str:
    """Return the end of the typed text, as much as fits in the terminal."""
    room = max(10, min(2 * _WIDTH, shutil.get_terminal_size().columns) - 4)
    return chop_cells(typed[::-1], room)[0][::-1]


def _line(text: str, style: str = "dim") -> Text:
    return Text(one_line(text, 2 * _WIDTH) if text.strip() else "", style, no_wrap=True, overflow="ellipsis")


@dataclass(slots=True, frozen=True)
class Undone:
    """An undo of a conversation's first message, after which a new conversation began."""

    conversation: str
    recorded: bool  # whether it can be redone, and not only opened again


class Session:
    """The session that `/commands` work on. The first message creates its conversation."""

    def __init__(
        self,
        runtime: Runtime,
        console: Console,
        keyboard: Keyboard,
        chosen: ChosenModel,
        download: DownloadProgress,
    ) -> None:
        self.runtime = runtime
        self.console = console
        self.keyboard = keyboard
        self.chosen = chosen
        self.chat: ConversationHandle | None = None
        self.attachments: list[File] = []
        self.reasoning = False
        self.templates: Mapping[str, Template] = {}  # custom commands of the user and the project
        self.draft = ""  # typed while a turn ran, and not sent
        self.undone: Undone | None = None  # valid until the next message
        # full cards of the last turn's calls that are shown on one line
        self.folded: list[RenderableType] = []
        self.compact = False  # whether to compact with the next message
        self.outputs: dict[str, str] = {}  # outputs of the user's commands, to send with the next message
        self._download = download
        self._settings: dict[str, JsonValue] = {}  # settings for a conversation that has not begun
        self._seen: set[str] = set()  # calls that are already shown
        self._menu = QuestionMenu(runtime, console, keyboard)

    # ── the conversation ──────────────────────────────────────────────────────────────────────────

    @property
    def here(self) -> ConversationHandle:
        if self.chat is None:
            raise BadRequest("No messages in this conversation yet.")
        return self.chat

    async def settings(self) -> dict[str, JsonValue]:
        return (await self.chat.info()).settings if self.chat is not None else self._settings

    async def workspace(self) -> Workspace | None:
        """Return the workspace of the conversation. If it no longer exists, return that of the runtime."""
        workspaces, name = self.runtime.services.workspaces, (await self.settings()).get("workspace")
        try:
            return workspaces.find(str(name or ""), self.chat.id if self.chat is not None else "")
        except NotFound:
            return workspaces.main

    async def change(self, **settings: JsonValue) -> None:
        if self.chat is not None:
            return await self.chat.change(**unchecked(settings))
        changed = {**self._settings, **settings}
        self._settings = checked({name: value for name, value in changed.items() if value is not None})
        return None

    async def id_for_grants(self) -> str:
        """Return the conversation for a rule. If there is none yet, create it."""
        if self.chat is None:
            self.chat = await self.runtime.conversation(None, user=None, **unchecked(self._settings))
        return self.chat.id

    def start_new(self) -> None:
        """Begin a conversation with the default settings. Attachments are dropped."""
        self.chat, self._settings, self.undone = None, {}, None
        self.attachments.clear()

    async def open(self, conversation: str) -> TurnHandle | None:
        """Show the end of a conversation. Returns the running turn to follow, if any."""
        self.start_new()
        self.chat = await self.runtime.conversation(conversation)
        info, messages = await self.chat.info(), await self.chat.messages()
        self.console.print(Text(f"— {plain(info.title or 'untitled')} · {info.id}", "bold"))
        if len(messages) > SHOWN:
            self.notify(f"{len(messages) - SHOWN} earlier messages: dragoman show {info.id}")
        print_messages(self.console, messages[-SHOWN:], reasoning=self.reasoning)
        self._seen = {call.id for message in messages for call in message.all_calls if call.state.settled}
        live = [row for row in await self.runtime.store.turns(conversation) if row.live]
        return self.chat.turn(live[-1].id) if live else None

    async def send(self, text: str) -> TurnHandle:
        parts = await attach_mentioned(self.runtime.store, text, self.attachments, self.notify)
        if self.chat is None:
            self.chat = await self.runtime.conversation(None, user=None, **unchecked(self._settings))
        turn = await self.chat.send(parts, contexts=self.outputs or None, compact=self.compact)
        self.attachments.clear()
        self.outputs, self.compact = {}, False
        self.undone = None
        return turn

    def notify(self, text: str, style: str = "dim") -> None:
        self.console.print(Text(f"· {plain(text)}", style))

    async def read_status(self) -> Status:
        """Return the status below the prompt. The conversation's settings override those of its agent."""
        settings, workspace, services = await self.settings(), await self.workspace(), self.runtime.services
        agent = services.agents.get(str(settings.get("agent")))
        model = settings.get("model") or (agent.model if agent is not None else None) or self.chosen.name
        mode = settings.get("mode") or (agent.mode if agent is not None else None) or services.mode
        status = Status(
            str(model), str(mode), near_home(workspace.folder if workspace is not None else Path.cwd())
        )
        with suppress(DragomanError):  # The model is gone. The error comes when the next message is sent.
            status.context = services.model(status.model).context
        if self.chat is not None:
            used = [one.usage for one in await self.chat.messages() if one.usage is not None]
            status.used = used[-1].input + used[-1].output if used else 0
            status.cost = (await self.chat.info()).usage.cost
        return status

    # ── a turn ────────────────────────────────────────────────────────────────────────────────────

    async def follow(self, turn: TurnHandle) -> None:
        """Follow a turn to its end. Ctrl-C cancels it. Raises InputClosed if the user leaves at an approval
        request."""
        beside = Interjections(self.here, turn, self.runtime.store, self.notify, self.draft)
        status = await self.read_status()
        screen = Screen(
            self.console,
            reasoning=self.reasoning,
            server_of=self._server_of,
            download=self._download,
            below=lambda: [*beside.lines(), Text(status.line(self.console.width), "dim")],
            folds=self._only_reads,
        )
        ended = asks = False

        async def interrupted() -> None:
            if not asks:  # Otherwise, Ctrl-C was pressed in the editor that was opened for an answer.
                await beside.stop()

        with screen, beside.line.listening(), on_interrupt(interrupted):
            async for event in self._events(turn):
                beside.hear(event)
                if isinstance(event, e.StepEnd):
                    status.add(event.usage)
                if not (isinstance(event, e.CallEnd) and event.call in self._seen):
                    screen.show(event)
                await self._show_files(event)
                question = question_in(event)
                if question is not None:
                    with screen.paused(), beside.line.paused():
                        asks = True
                        try:
                            await self._menu.settle(question, instant=not beside.line.text)
                        except Interrupted:
                            await beside.stop()
                        finally:
                            asks = False
                elif isinstance(event, e.CallStart) and event.client:
                    why = f"{event.tool} runs in the page, and the person is at a terminal"
                    await turn.deliver(event.call, why, failed=True)
                ended = ended or isinstance(event, e.TurnEnd)
        self.folded = screen.folded or self.folded
        self.draft = await beside.close()
        await self._tell_changes(turn)
        if not ended:  # The store could not be written, or another process took the turn over.
            await turn.result()
        self.console.print()

    async def _tell_changes(self, turn: TurnHandle) -> None:
        """Print the file changes of the turn, and how to undo them."""
        with suppress(DragomanError):  # Changes are not recorded here.
            done = await turn.diff()
            if done.files:
                changes = f"{count(len(done.files), 'file')} {describe_changes(done.text)}"
                self.notify(f"{changes} · /diff shows them, /undo takes them back")

    def _only_reads(self, tool: str) -> bool:
        found = self.runtime.services.toolbox.offer().find(tool)
        return found is not None and found[1].permission == READS

    async def _show_files(self, event: e.Event) -> None:
        """Show files of a model in the terminal, if it can show them, and print where they are stored."""
        files: Sequence[File] = ()
        if isinstance(event, e.FileAdded):
            files = (event.file,)
        elif isinstance(event, e.CallEnd) and event.call not in self._seen:
            files = event.result.attachments
        for file in files:
            path = await save_made(self.runtime.store, file, self.chat.id if self.chat else "")
            if path is not None:
                data = await self.runtime.store.blob(file.blob or "")
                show_picture(data, file.media_type, self.console.file, os.environ)
                self.console.print(Text(f"{describe_file(file)} {path}", "cyan"), soft_wrap=True)

    async def next_turn(self, after: TurnHandle) -> TurnHandle | None:
        """Return the turn of the next queued message, which this or another client sent during the
        last turn."""
        found = await next_queued(self.runtime, after.id)
        if found is not None:
            self.console.print(said_line((await found.snapshot()).messages[0].text))
        return found

    async def _events(self, turn: TurnHandle) -> AsyncIterator[e.Event]:
        """Yield the events of this turn, even if another process runs it."""
        row = await self.runtime.store.turn(turn.id)
        here = self.runtime.bus.here(turn.id) is not None or await self.runtime.store.is_queued(turn.id)
        if row.live and not here and not await self._resumed(row):
            self.notify("another program carries this turn on; you can follow and answer here")
        async for event in turn.events():
            yield event

    async def _resumed(self, row: TurnRow) -> bool:
        return await resume_turn(self.runtime, row.conversation, only=row.id) is not None

    def _server_of(self, tool: str) -> str | None:
        found = self.runtime.services.toolbox.offer().find(tool)
        return found[1].server if found is not None else None
