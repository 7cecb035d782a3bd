"""What a person says while a turn runs: it goes in before the next step, or waits for the end of the turn."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from typing import Any

from rich.cells import chop_cells
from rich.text import Text

from dragoman.cli.attachments import attach_mentioned
from dragoman.cli.terminal.text import one_line
from dragoman.cli.terminal.typing import TypedLine
from dragoman.errors import DragomanError, TurnEnded
from dragoman.messages import events as e
from dragoman.store.store import Store
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle

_WIDTH = 100  # characters of a line that is shown
_HINT = "Enter: before the next step · Tab: after this turn · Esc: clear"


class Interjections:
    """Beside one turn. Nothing that was typed gets lost: what the turn did not take stands in the prompt."""

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
        self._steering: list[str] = []  # not taken yet
        self._queued: dict[str, str] = {}  # of here, by turn
        self._tasks: set[asyncio.Task[None]] = set()
        self.line = TypedLine(enter=self._enter, tab=self._tab, stop=lambda: self._start(self.stop()))
        self.line.text = draft

    def lines(self) -> list[Text]:
        """What stands below the turn."""
        found = [_line(f"↳ before the next step: {text}") for text in list(self._steering)]
        found += [_line(f"↳ after this turn: {text}") for text in list(self._queued.values())]
        if self.line.text:
            found += [_line(f"» {_end_of(self.line.text)}", "bold cyan"), _line(f"  {_HINT}")]
        return found

    def hear(self, event: e.Event) -> None:
        """A message that steers is there when the turn has taken it."""
        if isinstance(event, e.MessageAdded) and event.message.role == "user":
            text = event.message.text.strip()
            if text in self._steering:
                self._steering.remove(text)

    async def stop(self) -> None:
        """The person wants all of it to end: what waits comes back to them, and does not begin."""
        for queued in list(self._queued):
            if await self._store.unqueue(queued):
                self._keep(self._queued.pop(queued))
        await self._turn.cancel("interrupted at the keyboard")

    async def close(self) -> str:
        """The turn is over. What was typed and not sent, or sent and not taken."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for text in self._steering:
            self._keep(text)
        return self.line.text

    def _enter(self, text: str) -> None:
        self._say(text, self._steer)

    def _tab(self, text: str) -> None:
        self._say(text, self._queue)

    def _say(self, text: str, how: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        if text.startswith("/"):
            self.line.text = text
            self._notify("commands work when the turn is over; Ctrl-C stops it", "dim")
        else:
            self._start(how(text))

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

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _end_of(typed: str) -> str:
    """As much as the terminal has room for: where one types."""
    room = max(10, min(2 * _WIDTH, shutil.get_terminal_size().columns) - 4)
    return chop_cells(typed[::-1], room)[0][::-1]


def _line(text: str, style: str = "dim") -> Text:
    return Text(one_line(text, 2 * _WIDTH) if text.strip() else "", style, no_wrap=True, overflow="ellipsis")
