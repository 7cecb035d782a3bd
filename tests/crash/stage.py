"""Define one life of a chat program: its runtime, tools that note their work, and a caller that notes what it
was promised. The next life, in the same folder, finds the store and both diaries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import AlreadyAnswered, Runtime, ScriptedModel, ToolContext, tool
from dragoman.messages.events import Event
from dragoman.messages.message import Message
from dragoman.tools.tool import Replay, Tool
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from tests.crash.clockwork import Clockwork, deadly_store
from tests.crash.diary import Diary

if TYPE_CHECKING:
    from tests.crash.stories.story import Story


class Stage:
    """The setting of a story, which runs until the clockwork strikes, or to its end."""

    def __init__(self, folder: Path, story: Story, clockwork: Clockwork, *, again: bool) -> None:
        self.story = story
        self.clock = clockwork
        self.again = again  # an earlier life was killed
        self.work = Diary(folder / "work.log")
        self.promises = Diary(folder / "promises.log")
        self.gate = asyncio.Event()  # the tool `waits` waits for it
        if again:
            self.gate.set()
        self.model = ScriptedModel(lambda request: story.script(request, self))
        self.runtime = Runtime(
            deadly_store(folder, clockwork),
            model=self.model,
            tools=[*self._tools(), *story.groups()],
            plugins=story.plugins(),
            agents=story.agents(),
            allow=["*"],
            ask=["approved"],
        )
        self._watching: dict[str, asyncio.Task[None]] = {}

    # ── what a caller does ────────────────────────────────────────────────────────────────────────

    async def send(self, chat: ConversationHandle, said: str, *, queue: bool = False) -> TurnHandle:
        return self.promised(await chat.send(said, queue=queue))

    def promised(self, turn: TurnHandle) -> TurnHandle:
        """Note that the caller has the turn, so it must not be lost. The caller then watches it and answers
        questions."""
        self.promises.note(turn=turn.id)
        self._watching[turn.id] = asyncio.create_task(self._watch(turn))
        return turn

    async def over(self, *turns: TurnHandle) -> None:
        """Wait until these turns are over and their watchers know it."""
        await asyncio.gather(*(self._watching[turn.id] for turn in turns))

    async def finish(self) -> None:
        """See everything to its end that an earlier life left behind."""
        while left := await self._unfinished():
            await asyncio.gather(*(self._watch(self.runtime.turn(turn)) for turn in left))

    async def _unfinished(self) -> list[str]:
        # first: a turn that starts in between is among the live ones
        queued = await self.runtime.store.queued()
        return [row.id for row in await self.runtime.store.live_turns()] + [one.turn for one in queued]

    async def conversation(self) -> ConversationHandle:
        """The one there is, or a new one."""
        found = [one for one in await self.runtime.conversations() if one.parent is None]
        return await self.runtime.conversation(found[0].id if found else None)

    async def _watch(self, turn: TurnHandle) -> None:
        for question in (await turn.snapshot()).questions:
            await self._answer(turn, question.id, question.kind)
        async for event in turn.events():
            self._note(event)
            if event.type == "call.asked":
                await self._answer(turn, event.question, event.kind)

    def _note(self, event: Event) -> None:
        match event.type:
            case "call.end":
                self.promises.note(call=event.call, state=event.state, text=event.result.text)
            case "message.end":
                self.promises.note(message=event.message)
            case "message.added":
                self.promises.note(message=event.message.id)
            case _:
                pass

    async def _answer(self, turn: TurnHandle, question: str, kind: str) -> None:
        answer = self.story.answer(kind, self)
        if answer is not None:
            try:
                await turn.answer(question, answer)
            except AlreadyAnswered:
                return
            self.promises.note(answered=question)

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────

    def _tools(self) -> list[Tool]:
        return [
            self._tool("reads", replay="safe"),
            self._tool("writes"),
            self._tool("careful", replay="ask"),
            self._tool("approved"),
            self._tool("reviewed", review="always"),
            self._tool("waits", cancellable=True),
        ]

    def _tool(self, name: str, replay: Replay = "never", **options: Any) -> Tool:
        @tool(name=name, description=name, replay=replay, **options)
        async def run(n: int, context: ToolContext) -> str:
            self._does(name, context, n, "starts")
            await (self.gate.wait() if name == "waits" else asyncio.sleep(0))
            self._does(name, context, n, "works")
            self._does(name, context, n, "ends")
            return f"{name} {n} done"

        return run

    def _does(self, name: str, context: ToolContext, n: int, what: str) -> None:
        self.work.note(call=context.call, tool=name, n=n, what=what)
        self.clock.tick("tool")


@asynccontextmanager
async def opened(
    folder: Path, story: Story, clockwork: Clockwork | None = None, *, again: bool = False
) -> AsyncIterator[Stage]:
    stage = Stage(folder, story, clockwork or Clockwork(), again=again)
    async with stage.runtime:
        yield stage


async def until(turn: TurnHandle, *wanted: tuple[str, str]) -> None:
    """Wait for events of these types, each with this tool or text somewhere in it."""
    missing = set(wanted)
    async for event in turn.events():
        missing -= {(type, word) for type, word in missing if event.type == type and word in repr(event)}
        if not missing:
            return
    raise AssertionError(f"the turn was over before {sorted(missing)}")


def texts(path: list[Message]) -> list[str]:
    return [message.text for message in path]
