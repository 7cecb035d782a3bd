"""What every route works with: the runtime, the person who asks, and only what is theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Request
from pydantic import JsonValue
from starlette.exceptions import HTTPException

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import ConfigError, NotFound, Unreadable
from dragoman.messages.message import File, Message, Part, ToolCall
from dragoman.messages.questions import Answer, Question
from dragoman.providers.choice import NoModel, choose
from dragoman.providers.models import Models
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server.audit import audit
from dragoman.server.auth import SIGN_IN_FIRST
from dragoman.server.connections import is_admin_in
from dragoman.server.protocols.turn_readers import TurnReaders
from dragoman.server.publisher import Publisher
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.shapes import Begun, CurrentModel
from dragoman.store.store import Queued, SendKey, TurnRow
from dragoman.store.transfer import may_see
from dragoman.turn.send import send_key

# By its name: with a model, FastAPI would build a validator of it for every route.
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_REFUSALS: dict[int | str, dict[str, object]] = {
    status: {"description": meaning, "content": _PROBLEM}
    for status, meaning in (
        (400, "The body cannot be read"),
        (401, "Not signed in"),
        (403, "Another page asked"),
        (404, "Missing, or another user's"),
        (409, "Another client was first, or the turn is busy or over, or cannot resume here"),
        (413, "Too much"),
        (415, "No JSON"),
        (421, "Not a name of this server"),
        (422, "It cannot be done as asked, or cannot be read; `detail` says why"),
        (503, "The store cannot be used now; `detail` says why, and `Retry-After` when to try again"),
    )
}


LastEventId = Annotated[str | None, Header(max_length=2000)]


def stream_of(event: object) -> dict[int | str, dict[str, object]]:
    """Describes a stream of such events; `app.py` writes that they are its items."""
    return {200: {"model": event, "content": {"text/event-stream": {}}}}


def api_router(tag: str, below: str = "") -> APIRouter:
    """The routes of one noun."""
    return APIRouter(prefix=f"/api{below}", tags=[tag], responses=_REFUSALS)


Who: TypeAlias = Callable[[Request], Awaitable[str | None]]


@dataclass(slots=True, frozen=True, kw_only=True)
class Context:
    """Of one request. Whatever belongs to another person is not there: nobody learns that it exists."""

    person: str = ""  # who asks; nobody, in the one that requests are made from
    is_admin: bool = False  # may set the server up, and see what all use
    address: str = ""  # where the request comes from
    runtime: Runtime
    publisher: Publisher
    readers: TurnReaders  # through other people's protocols
    who: Who
    upload_limit: int
    model: CurrentModel | None = None
    needs_password: bool = False
    own_settings: OwnSettings | None = None  # what the page may change

    async def audit(self, action: str, object: str = "", **details: JsonValue) -> None:
        """Add a line about this request to the audit log."""
        store, who, where = self.runtime.store, self.person, self.address
        await audit(store, action, person=who, address=where, object=object, **details)

    async def audit_answer(self, asked: Question, given: Answer) -> None:
        """The same about an answer, and the rules that it leaves behind."""
        kept: dict[str, JsonValue] = {} if given.scope == "once" else {"scope": given.scope}
        where = {"conversation": asked.conversation, "call": asked.call}
        await self.audit("answer.given", asked.id, verdict=given.verdict, **kept, **where)

    async def current_model(self) -> CurrentModel | None:
        """The model that answers where none is named. A server that started without one finds here what was
        set up since."""
        find = self.runtime.services.model
        if self.own_settings is None or not isinstance(find, Models):
            return self.model
        if self.model is not None and self.model.name == find.default:
            return self.model
        if find.default is None:
            try:
                found = await choose(None, catalog=find.catalog, keys=find.keys)
            except NoModel:
                return None
            find.default = found.name
        return CurrentModel(find.default, find.catalog.traits(*find.catalog.find(find.default)).note or None)

    async def check_owner(self, conversation: str) -> None:
        """NotFound where it is not theirs. One that cannot be read is still somebody's."""
        await self._check(conversation, "conversation", conversation)

    async def conversation(self, id: str) -> Conversation:
        try:
            found = await self.runtime.store.conversation(id)
        except Unreadable:
            await self.check_owner(id)
            raise
        if found.owner != self.person:
            raise NotFound("conversation", id)
        return found

    async def message(self, id: str) -> Message:
        found = await self.runtime.store.message(id)
        await self._check(found.conversation, "message", id)
        return found

    async def turn(self, id: str) -> TurnRow:
        found = await self.runtime.store.turn(id)
        await self._check(found.conversation, "turn", id)
        return found

    async def queued(self, id: str) -> Queued | None:
        """A turn that has not begun."""
        for found in await self.runtime.store.queued(turn=id):
            await self._check(found.conversation, "turn", id)
            return found
        return None

    async def turn_begun_with(self, key: SendKey | None) -> str | None:
        """The turn that a request with the same key has begun."""
        return await self.runtime.store.turn_of_key(self.person, key) if key is not None else None

    async def begun_with(self, key: SendKey | None) -> Begun | None:
        turn = await self.turn_begun_with(key)
        return await self.begun(turn) if turn is not None else None

    async def call(self, id: str) -> ToolCall:
        try:
            found, conversation, _ = await self.runtime.store.call(id)
        except Unreadable:
            row = await self.runtime.store.turn_of_call(id)
            await self._check(row.conversation, "call", id)
            raise
        await self._check(conversation, "call", id)
        return found

    async def question(self, id: str) -> Question:
        conversation = await self.runtime.store.conversation_of_question(id)
        await self._check(conversation, "question", id)
        return await self.runtime.store.question(id)

    async def check_files(self, content: str | Sequence[Part]) -> None:
        """NotFound where a message names a file of somebody else: who knows its hash has not got it yet."""
        for part in () if isinstance(content, str) else content:
            if isinstance(part, File) and part.blob is not None:
                await self.check_blob(part.blob)

    async def check_blob(self, blob: str) -> None:
        if not await may_see(self.runtime.store, blob, self.person):
            raise NotFound("file", blob)

    async def begun(self, turn: str) -> Begun:
        """The answer to who has just started a turn. One that is queued has no message yet."""
        if (live := self.runtime.bus.here(turn)) is not None:
            return Begun(turn, live.log.turn.message)
        if await self.runtime.store.is_queued(turn):
            return Begun(turn)
        return Begun(turn, (await self.runtime.store.turn(turn)).message)

    async def _check(self, conversation: str, noun: str, id: str) -> None:
        if await self.runtime.store.owner_of(conversation) != self.person:
            raise NotFound(noun, id)

    @property
    def user(self) -> str | None:
        """The person, as conversations store them."""
        return None if self.person == LOCAL else self.person


async def _context_of(request: Request) -> Context:
    shared: Context = request.app.state.context
    person = await shared.who(request)
    if person is None:
        raise HTTPException(401, SIGN_IN_FIRST)
    return replace(
        shared,
        person=person,
        is_admin=person == LOCAL or is_admin_in(request.scope),
        address=request.client.host if request.client is not None else "",
    )


TheContext: TypeAlias = Annotated[Context, Depends(_context_of)]


async def _own_settings_of(context: TheContext, request: Request) -> AsyncIterator[OwnSettings]:
    """Only the admin sets the server up. What worked and changed something is in the audit log."""
    if not context.is_admin:
        raise HTTPException(403, sentence("setup.not_yours"))
    if context.own_settings is None:
        raise ConfigError(sentence("setup.embedded"))
    yield context.own_settings
    if request.method != "GET":
        await context.audit("settings.changed", f"{request.method} {request.url.path}")


TheOwnSettings: TypeAlias = Annotated[OwnSettings, Depends(_own_settings_of)]


async def _key_of(
    context: TheContext,
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(description="a request with the same key and body joins the turn of the first")
    ] = None,
) -> SendKey | None:
    if idempotency_key is None:
        return None
    sent = f"{request.url.path} ".encode() + await request.body()
    return send_key(idempotency_key, sent, context.runtime.services.clock())


Key: TypeAlias = Annotated[SendKey | None, Depends(_key_of)]
"""What a request that starts a turn is known by if it comes again."""
