"""A caller that hears nothing sends again, with the same key and without a conversation."""

from __future__ import annotations

from dragoman.messages.request import Request
from dragoman.turn.machine import State
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage
from tests.crash.stories.story import Story, made

_SAID, _KEY = "go", "the only one"


class SentAgain(Story):
    """The store has the conversation, the turn and the key, or none of them. Either way the repeated send
    leads to one turn, whose call runs once (key × crash)."""

    def script(self, request: Request, stage: Stage) -> Line:
        return says("Done") if made(request) else calls("writes", n=1)

    async def play(self, stage: Stage) -> None:
        stage.clock.wind()
        turn = stage.promised(await stage.runtime.send(_SAID, key=_KEY))
        await stage.over(turn)

    async def check(self, stage: Stage) -> None:
        before = await stage.runtime.conversations()
        for conversation in before:
            assert len(await stage.runtime.store.turns(conversation.id)) == 1
        again = await stage.runtime.send(_SAID, key=_KEY)
        await again.result()
        (conversation,) = await stage.runtime.conversations()
        (row,) = await stage.runtime.store.turns(conversation.id)
        assert row.id == again.id
        assert row.state == State.COMPLETED
        assert stage.promises.all("turn") in ([], [again.id])
        assert [one.id for one in before] in ([], [conversation.id])
