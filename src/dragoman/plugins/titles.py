"""Give a conversation a title: first its beginning, then optionally one by a model."""

from __future__ import annotations

import asyncio

from pydantic import JsonValue

from dragoman.messages.endings import REFUSED
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.sentences import sentence
from dragoman.turn.plugin import Plugin
from dragoman.turn.view import TurnView

LENGTH = 30  # maximum characters of a title from the first words
_PROMPT = "Give the conversation below a title of at most six words. Reply with the title alone.\n\n"
_OPTIONS: dict[str, JsonValue] = {"max_tokens": 40, "reasoning_effort": None, "reasoning_budget": None}


class Titles(Plugin):
    """Sets the beginning as title immediately. If configured, a model suggests a better one."""

    def __init__(self, *, by_model: bool = False, length: int = LENGTH, timeout: float = 20.0) -> None:
        self.by_model = by_model
        self.length = length
        self.timeout = timeout

    async def on_turn_start(self, turn: TurnView) -> None:
        """Set a title at the start of the turn, because a conversation that waits for approval needs one,
        too."""
        if turn.conversation.title is None and (title := self._beginning(turn)):
            await turn.set_title(title)

    async def on_turn_end(self, turn: TurnView) -> None:
        if not self.by_model or not turn.can_complete:
            return
        first = all(message.turn == turn.id for message in turn.path)
        answered = any(message.role == "assistant" for message in turn.messages)
        if not (first and answered) or turn.conversation.title != self._beginning(turn):
            return
        try:
            async with asyncio.timeout(self.timeout):
                await self._better(turn)
        except Exception as error:  # A failing title must not cost the answer.
            turn.notice(sentence("title.failed", error=error), "title_failed")

    async def _better(self, turn: TurnView) -> None:
        said = _first_words(turn)
        answer = next((m.text for m in turn.messages if m.role == "assistant" and m.text), "")
        prompt = f"{_PROMPT}Person: {said[:2000]}\n\nAnswer: {answer[:2000]}"
        request = Request(turn.model, (RequestMessage("user", (Text(prompt),)),), options={**_OPTIONS})
        reply = await turn.complete(request, purpose="title")
        title = " ".join(reply.text.split()).strip("\"'“”*# ")
        if title and reply.finish not in REFUSED:
            await turn.set_title(title[:80])

    def _beginning(self, turn: TurnView) -> str:
        return shortened(_first_words(turn), self.length)


def shortened(text: str, length: int) -> str:
    """Return the first words, up to `length` characters, cut between words if possible."""
    words = " ".join(text.split())
    if len(words) <= length:
        return words
    head, _, _ = words[: length + 1].rpartition(" ")
    return (head if len(head) >= length // 2 else words[:length]).rstrip(" ,;:-") + "…"


def _first_words(turn: TurnView) -> str:
    """Return the text of the first user message that has text."""
    return next((m.text for m in turn.path if m.role == "user" and m.author is None and m.text.strip()), "")
