"""A reply generates an image with previews, and the store keeps its bytes separate from the message."""

from __future__ import annotations

from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, makes, says
from tests.crash.stage import Stage
from tests.crash.stories.story import Story

DATA = b"\x89PNG the whole picture"


class Picture(Story):
    """In the end the answer has the image once, and no preview, whenever the process dies (M3)."""

    def script(self, request: Request, stage: Stage) -> Line:
        return says("There.") + makes(DATA, partials=[b"\x89PNG half", b"\x89PNG nearly"])

    async def play(self, stage: Stage) -> None:
        stage.clock.wind()
        await stage.over(await stage.send(await stage.conversation(), "draw"))

    async def check(self, stage: Stage) -> None:
        chat = await stage.conversation()
        answers = [message for message in await chat.tree() if message.role == "assistant"]
        if stage.promises.all("turn"):
            ((file,),) = [message.files for message in answers]
            assert await stage.runtime.store.blob(file.blob or "") == DATA
