"""The user regenerates an answer and edits a message. Both create new versions, whose turns have calls."""

from __future__ import annotations

from dragoman.messages.request import Request
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says
from tests.crash.stage import Stage
from tests.crash.stories.story import Story, heard, made


class _Version(Story):
    """A new version neither overwrites nor loses a message (T10)."""

    def script(self, request: Request, stage: Stage) -> Line:
        if not made(request):
            return calls("reads", n=1) + calls("writes", n=2) + calls("approved", n=3)
        return says(f"Done: {heard(request)[-1]}")

    async def repeat(self, chat: ConversationHandle) -> TurnHandle:
        raise NotImplementedError

    async def play(self, stage: Stage) -> None:
        chat = await stage.conversation()
        first = await stage.send(chat, "go")
        await stage.over(first)
        for message in await chat.messages():
            stage.promises.note(id=message.id, text=message.text)
        stage.clock.wind()
        await stage.over(stage.promised(await self.repeat(chat)))

    async def check(self, stage: Stage) -> None:
        chat = await stage.conversation()
        tree, path = await chat.tree(), await chat.messages()
        first = {line["id"]: line["text"] for line in stage.promises.lines() if "id" in line}
        assert {id: tree[id].text for id in first} == first
        turns = await stage.runtime.store.turns(chat.id)
        assert len(turns) <= 2, "it was repeated once"
        assert len(tree) - len(first) in (0, len(first) - self.shared), "all of the new version, or nothing"
        if len(turns) == 2:
            assert path[-1].turn == turns[1].id, "the newest version is the one that is looked at"

    shared = 0  # messages that both versions have


class Rerun(_Version):
    shared = 1

    async def repeat(self, chat: ConversationHandle) -> TurnHandle:
        return await chat.rerun((await chat.messages())[-1].id)


class Edit(_Version):
    async def repeat(self, chat: ConversationHandle) -> TurnHandle:
        return await chat.edit((await chat.messages())[0].id, "go further")
