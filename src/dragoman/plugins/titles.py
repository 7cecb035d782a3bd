"""Gives a conversation its title after the first answer."""

from __future__ import annotations

import asyncio

from dragoman.messages.parts import Text
from dragoman.messages.request import Request, Said
from dragoman.turn.plugin import Plugin
from dragoman.turn.view import TurnView

_PROMPT = "Give the conversation below a title of at most six words. Reply with the title alone.\n\n"


class Titles(Plugin):
    """The first thirty characters at once; then, if asked for, what the model would call it."""

    def __init__(self, *, by_model: bool = False, timeout: float = 20.0) -> None:
        self.by_model = by_model
        self.timeout = timeout

    async def on_turn_end(self, turn: TurnView) -> None:
        if turn.conversation.title is not None or not any(m.role == "assistant" for m in turn.messages):
            return
        said = next((m.text for m in turn.path if m.role == "user" and m.text.strip()), "")
        if not said:
            return
        await turn.set_title(" ".join(said.split())[:30])
        if self.by_model:
            try:
                async with asyncio.timeout(self.timeout):
                    await self._better(turn, said)
            except Exception as error:  # a title is never worth an answer
                turn.notice(f"no title from the model: {error}", "title_failed")

    async def _better(self, turn: TurnView, said: str) -> None:
        answer = next((m.text for m in turn.messages if m.role == "assistant" and m.text), "")
        prompt = f"{_PROMPT}Person: {said[:2000]}\n\nAnswer: {answer[:2000]}"
        request = Request(turn.model, (Said("user", (Text(prompt),)),), options={"max_tokens": 40})
        title = " ".join((await turn.complete(request)).text.split()).strip("\"'“”*# ")
        if title:
            await turn.set_title(title[:80])
