"""What every route works with: the runtime, the person who asks, and only what is theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import NotFound
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.auth import SIGN_IN_FIRST
from dragoman.server.publisher import Publisher
from dragoman.server.shapes import CurrentModel
from dragoman.store.store import Queued, TurnRow

T = TypeVar("T")
Who: TypeAlias = Callable[[Request], Awaitable[str | None]]


@dataclass(slots=True, frozen=True, kw_only=True)
class Context:
    """Whatever belongs to somebody else is not there: nobody learns that it exists."""

    runtime: Runtime
    publisher: Publisher
    who: Who
    upload_limit: int
    model: CurrentModel | None = None
    needs_password: bool = False

    async def conversation(self, id: str, person: str) -> Conversation:
        found = await self.runtime.store.conversation(id)
        if found.owner != person:
            raise NotFound("conversation", id)
        return found

    async def message(self, id: str, person: str) -> Message:
        found = await self.runtime.store.message(id)
        return await self._if_own(found, "message", id, found.conversation, person)

    async def turn(self, id: str, person: str) -> TurnRow:
        found = await self.runtime.store.turn(id)
        return await self._if_own(found, "turn", id, found.conversation, person)

    async def queued(self, id: str, person: str) -> Queued | None:
        """A turn that has not begun."""
        for found in await self.runtime.store.queued(turn=id):
            return await self._if_own(found, "turn", id, found.conversation, person)
        return None

    async def call(self, id: str, person: str) -> ToolCall:
        found, conversation, _ = await self.runtime.store.call(id)
        return await self._if_own(found, "call", id, conversation, person)

    async def question(self, id: str, person: str) -> Question:
        found = await self.runtime.store.question(id)
        return await self._if_own(found, "question", id, found.conversation, person)

    async def _if_own(self, found: T, noun: str, id: str, conversation: str, person: str) -> T:
        if (await self.runtime.store.conversation(conversation)).owner != person:
            raise NotFound(noun, id)
        return found

    @staticmethod
    def user(person: str) -> str | None:
        """As conversations store it."""
        return None if person == LOCAL else person


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


async def person_of(request: Request) -> str:
    person = await context_of(request).who(request)
    if person is None:
        raise HTTPException(401, SIGN_IN_FIRST)
    return person


TheContext: TypeAlias = Annotated[Context, Depends(context_of)]
Person: TypeAlias = Annotated[str, Depends(person_of)]
