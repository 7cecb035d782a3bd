"""One person's chat: which conversation they are in, the messages they send, and the turns that answer."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from dragoman.cli.attachments import attach_mentioned
from dragoman.cli.chat.interjections import Interjections
from dragoman.cli.chat.menu import QuestionMenu
from dragoman.cli.chat.status import Status, read_status
from dragoman.cli.interrupted import next_queued, resume_turn
from dragoman.cli.made_files import save_made
from dragoman.cli.model_choice import ChosenModel
from dragoman.cli.terminal.cards import describe_file
from dragoman.cli.terminal.follow import on_interrupt
from dragoman.cli.terminal.keyboard import Interrupted, Keyboard
from dragoman.cli.terminal.pictures import show_picture
from dragoman.cli.terminal.screen import DownloadProgress, Screen, said_line
from dragoman.cli.terminal.text import plain
from dragoman.cli.terminal.transcript import print_messages
from dragoman.config.project_prompt import Template
from dragoman.errors import BadRequest, NotFound
from dragoman.messages import events as e
from dragoman.messages.asked import question_in
from dragoman.messages.message import File
from dragoman.runtime import Runtime
from dragoman.store.store import TurnRow
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.settings import checked, unchecked
from dragoman.workspace.workspaces import Workspace

SHOWN = 6  # messages of a conversation that is opened


@dataclass(slots=True, frozen=True)
class Undone:
    """A conversation whose first message was taken back, so that another one began."""

    conversation: str
    recorded: bool  # it can be done again, and not only gone back to


class Session:
    """What `/commands` work on. A conversation is made with the first message in it."""

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
        self.thoughts = False
        self.templates: Mapping[str, Template] = {}  # commands of the person's own, and of the project
        self.draft = ""  # typed while a turn ran, and not sent
        self.undone: Undone | None = None  # until something is said here
        self._download = download
        self._settings: dict[str, JsonValue] = {}  # of a conversation that is yet to begin
        self._seen: set[str] = set()  # calls that are on the screen already
        self._menu = QuestionMenu(runtime, console, keyboard)

    # ── the conversation ──────────────────────────────────────────────────────────────────────────

    @property
    def here(self) -> ConversationHandle:
        if self.chat is None:
            raise BadRequest("nothing has been said in this conversation yet")
        return self.chat

    async def settings(self) -> dict[str, JsonValue]:
        return (await self.chat.info()).settings if self.chat is not None else self._settings

    async def workspace(self) -> Workspace | None:
        """The one that tools work in here. The runtime's own, where the one that was named is no more."""
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
        """The conversation a rule is to hold in: it begins with it, if nothing was said yet."""
        if self.chat is None:
            self.chat = await self.runtime.conversation(None, user=None, **unchecked(self._settings))
        return self.chat.id

    def start_new(self) -> None:
        """A conversation with the default settings; what was attached is dropped."""
        self.chat, self._settings, self.undone = None, {}, None
        self.attachments.clear()

    async def open(self, conversation: str) -> TurnHandle | None:
        """Show the end of it. Returns the turn that is to be followed, if one is under way."""
        self.start_new()
        self.chat = await self.runtime.conversation(conversation)
        info, messages = await self.chat.info(), await self.chat.messages()
        self.console.print(Text(f"— {plain(info.title or 'untitled')} · {info.id}", "bold"))
        if len(messages) > SHOWN:
            self.notify(f"{len(messages) - SHOWN} earlier messages: dragoman show {info.id}")
        print_messages(self.console, messages[-SHOWN:], thoughts=self.thoughts)
        self._seen = {call.id for message in messages for call in message.calls if call.state.settled}
        live = [row for row in await self.runtime.store.turns(conversation) if row.live]
        return self.chat.turn(live[-1].id) if live else None

    async def send(self, text: str) -> TurnHandle:
        parts = await attach_mentioned(self.runtime.store, text, self.attachments, self.notify)
        if self.chat is None:
            self.chat = await self.runtime.conversation(None, user=None, **unchecked(self._settings))
        turn = await self.chat.send(parts)
        self.attachments.clear()
        self.undone = None
        return turn

    def notify(self, text: str, style: str = "dim") -> None:
        self.console.print(Text(f"· {plain(text)}", style))

    async def read_status(self) -> Status:
        """For the line below the prompt."""
        messages = await self.chat.messages() if self.chat is not None else ()
        spent = (await self.chat.info()).usage if self.chat is not None else None
        settings = await self.settings()
        workspace = await self.workspace()
        return read_status(
            self.runtime,
            settings,
            chosen=self.chosen.name,
            folder=workspace.folder if workspace is not None else None,
            messages=messages,
            spent=spent,
        )

    # ── a turn ────────────────────────────────────────────────────────────────────────────────────

    async def follow(self, turn: TurnHandle) -> None:
        """To its end. Ctrl-C cancels it. `InputClosed` where the person leaves while it asks."""
        beside = Interjections(self.here, turn, self.runtime.store, self.notify, self.draft)
        status = await self.read_status()
        screen = Screen(
            self.console,
            thoughts=self.thoughts,
            server_of=self._server_of,
            download=self._download,
            below=lambda: [*beside.lines(), Text(status.line(self.console.width), "dim")],
        )
        ended = asks = False

        async def interrupted() -> None:
            if not asks:  # else by a Ctrl-C in the editor that was opened to answer
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
                            await self._menu.settle(question)
                        except Interrupted:
                            await beside.stop()
                        finally:
                            asks = False
                elif isinstance(event, e.CallStart) and event.client:
                    why = f"{event.tool} runs in the page, and the person is at a terminal"
                    await turn.deliver(event.call, why, failed=True)
                ended = ended or isinstance(event, e.TurnEnd)
        self.draft = await beside.close()
        if not ended:  # the store could not be written, or another program took the turn over
            await turn.result()
        self.console.print()

    async def _show_files(self, event: e.Event) -> None:
        """What a model made: in the terminal, if that can show it, and where it lies."""
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
        """What was said while the turn before it ran, here or by another client, and is answered next."""
        found = await next_queued(self.runtime, after.id)
        if found is not None:
            self.console.print(said_line((await found.snapshot()).messages[0].text))
        return found

    async def _events(self, turn: TurnHandle) -> AsyncIterator[e.Event]:
        """Of this turn, also where another process runs it."""
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
