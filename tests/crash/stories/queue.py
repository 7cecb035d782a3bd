"""Two turns are queued after a running one, which is then cancelled. Each of them has a call."""

from __future__ import annotations

from dragoman.messages.request import Request
from dragoman.turn.machine import State
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage, texts, until
from tests.crash.stories.story import Story, heard, made

_SAID = ("go", "then this", "last this")


class Queue(Story):
    """Each queued turn starts once, in order (T4)."""

    def script(self, request: Request, stage: Stage) -> Line:
        told, done = len(heard(request)), {call.arguments["n"] for call in made(request)}
        if told not in done:
            return calls("waits" if told == 1 else "writes", n=told)
        return says(f"Answer {told}")

    async def play(self, stage: Stage) -> None:
        chat = await stage.conversation()
        first = await stage.send(chat, _SAID[0])
        await until(first, ("call.start", "waits"))
        stage.clock.wind()
        queued = [await stage.send(chat, said, queue=True) for said in _SAID[1:]]
        if await first.cancel("enough"):
            stage.promises.note(cancelled=first.id)
        await stage.over(first, *queued)

    async def check(self, stage: Stage) -> None:
        chat = await stage.conversation()
        rows = await stage.runtime.store.turns(chat.id)
        promised = stage.promises.all("turn")
        assert [row.id for row in rows][: len(promised)] == promised
        states = [(await stage.runtime.turn(row.id).turn()).state for row in rows]
        assert states[1:] == [State.COMPLETED] * (len(rows) - 1)
        if stage.promises.all("cancelled"):
            assert states[0] is State.CANCELLED
        said = [text for text in texts(await chat.messages()) if text in _SAID]
        assert said == list(_SAID[: len(rows)])
