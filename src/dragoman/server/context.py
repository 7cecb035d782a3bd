"""Give each route the runtime and the user of its request, limited to the conversations of that user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Request
from pydantic import JsonValue
from starlette.exceptions import HTTPException

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import ConfigError, Forbidden, NotFound, Unreadable
from dragoman.messages.message import File, Message, Part, ToolCall
from dragoman.messages.questions import Answer, Question
from dragoman.providers.choice import NoModel, choose
from dragoman.providers.models import Models
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server.audit import audit
from dragoman.server.auth import SIGN_IN_FIRST, Guesses
from dragoman.server.connections import is_admin_in
from dragoman.server.event_stream import Reader
from dragoman.server.protocols.turn_readers import TurnReaders
from dragoman.server.publisher import Publisher
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.shapes import Begun, CurrentModel
from dragoman.store.store import Queued, SendKey, TurnRow
from dragoman.store.transfer import may_see
from dragoman.turn.send import send_key
from dragoman.turn.services import Services

# The schema is referenced by name: with a model, FastAPI would build a validator of it for every route.
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_REFUSALS: dict[int | str, dict[str, object]] = {
    status: {"description": meaning, "content": _PROBLEM}
    for status, meaning in (
        (400, "The body cannot be read"),
        (401, "Not signed in"),
        (403, "Another page asked, or your role in the conversation does not include it"),
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
    """Return the `responses` of a route that streams these events. `app.py` describes them as stream
    items."""
    return {200: {"model": event, "content": {"text/event-stream": {}}}}


def api_router(tag: str, below: str = "") -> APIRouter:
    """Return a router for one noun of the API."""
    return APIRouter(prefix=f"/api{below}", tags=[tag], responses=_REFUSALS)


Who: TypeAlias = Callable[[Request], Awaitable[str | None]]
Knows: TypeAlias = Callable[[str], Awaitable[bool]]


@dataclass(slots=True, frozen=True, kw_only=True)
class Context:
    """The runtime and the user of one request. Data of other users raises NotFound, so that no user learns
    that it exists."""

    person: str = ""  # the user of the request; empty in the template that requests are made from
    is_admin: bool = False  # whether the user may set the server up and see everybody's usage
    address: str = ""  # the client's IP address
    runtime: Runtime
    publisher: Publisher
    readers: TurnReaders  # turns that other protocols read
    who: Who
    upload_limit: int
    model: CurrentModel | None = None
    needs_password: bool = False
    own_settings: OwnSettings | None = None  # what an admin may change in the web UI
    guesses: Guesses  # limits tries of invitations and shared links
    knows: Knows  # whether a user of this name exists

    async def audit(self, action: str, object: str = "", **details: JsonValue) -> None:
        """Add an entry about this request to the audit log."""
        store, who, where = self.runtime.store, self.person, self.address
        await audit(store, action, person=who, address=where, object=object, **details)

    async def audit_answer(self, asked: Question, given: Answer) -> None:
        """Add an audit entry about an answer, with its scope if it lasts beyond this call."""
        kept: dict[str, JsonValue] = {} if given.scope == "once" else {"scope": given.scope}
        where = {"conversation": asked.conversation, "call": asked.call}
        await self.audit("answer.given", asked.id, verdict=given.verdict, **kept, **where)

    async def services(self) -> Services:
        """Return the services as this user may use them."""
        return await self.runtime.services.seen_by(self.person)

    async def current_model(self) -> CurrentModel | None:
        """Return the default model. If the server started without one, this finds a model that was set up
        since."""
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

    async def check(self, conversation: str, right: Right) -> Right:
        """Return the user's right to a conversation, which is at least `right`. The conversation need not be
        readable.

        Raises NotFound if it is not shared with the user, so that they do not learn that it exists. Raises
        Forbidden if it is shared with a lesser right.
        """
        return await self._check(conversation, right, "conversation", conversation)

    async def may_read(self, conversation: str) -> bool:
        """Return whether the user may still read the conversation, for example in the middle of an answer."""
        try:
            return await self.check(conversation, Right.READ) >= Right.READ
        except NotFound:
            return False

    async def conversation(self, id: str, right: Right) -> Conversation:
        await self.check(id, right)
        return await self.runtime.store.conversation(id)

    async def message(self, id: str, right: Right) -> Message:
        found = await self.runtime.store.message(id)
        await self._check(found.conversation, right, "message", id)
        return found

    async def turn(self, id: str, right: Right) -> TurnRow:
        found = await self.runtime.store.turn(id)
        await self._check(found.conversation, right, "turn", id)
        return found

    async def queued(self, id: str, right: Right) -> Queued | None:
        """Return a turn that has not begun, or None."""
        for found in await self.runtime.store.queued(turn=id):
            await self._check(found.conversation, right, "turn", id)
            return found
        return None

    async def turn_begun_with(self, key: SendKey | None) -> str | None:
        """Return the turn that an earlier request with this key started, or None. The user must still take
        part."""
        if key is None or (turn := await self.runtime.store.turn_of_key(self.person, key)) is None:
            return None
        if await self.queued(turn, Right.TAKE_PART) is None:
            await self.turn(turn, Right.TAKE_PART)
        return turn

    async def begun_with(self, key: SendKey | None) -> Begun | None:
        turn = await self.turn_begun_with(key)
        return await self.begun(turn) if turn is not None else None

    async def call(self, id: str, right: Right) -> ToolCall:
        try:
            found, conversation, _ = await self.runtime.store.call(id)
        except Unreadable:
            row = await self.runtime.store.turn_of_call(id)
            await self._check(row.conversation, right, "call", id)
            raise
        await self._check(conversation, right, "call", id)
        return found

    async def may_see_question(self, id: str) -> bool:
        try:
            return await self.may_read(await self.runtime.store.conversation_of_question(id))
        except NotFound:
            return False

    async def question(self, id: str, right: Right) -> Question:
        conversation = await self.runtime.store.conversation_of_question(id)
        await self._check(conversation, right, "question", id)
        return await self.runtime.store.question(id)

    def reader(self, conversation: str | None) -> Reader | None:
        """Return the user as the reader of a stream."""
        return Reader(self.person, conversation) if conversation is not None else None

    async def adopt(self, turn: TurnRow) -> None:
        """Resume a turn that is not running, if the user may. Raises TurnQuarantined if it cannot resume
        here."""
        if await self.check(turn.conversation, Right.READ) >= Right.TAKE_PART:
            await self.runtime.driver.adopt(turn.id)

    async def delete(self, conversation: str) -> None:
        """Delete a conversation with everything in it, and notify all users who have it in their list."""
        store = self.runtime.store
        inner = await store.within(conversation)
        readers = {self.person, *(member.user for member in await store.members(conversation))}
        await self.runtime.delete(conversation)
        await self.audit("conversation.deleted", conversation)
        for each in inner:
            self.publisher.deleted(each, readers)

    async def check_files(self, content: str | Sequence[Part]) -> None:
        """Raise NotFound if a message names a file of another user: knowing a hash gives no access."""
        for part in () if isinstance(content, str) else content:
            if isinstance(part, File) and part.blob is not None:
                await self.check_blob(part.blob)

    async def check_blob(self, blob: str) -> None:
        if not await may_see(self.runtime.store, blob, self.person):
            raise NotFound("file", blob)

    async def begun(self, turn: str) -> Begun:
        """Return the response to a request that started a turn. A queued turn has no message yet."""
        if (live := self.runtime.bus.here(turn)) is not None:
            return Begun(turn, live.log.turn.message)
        if await self.runtime.store.is_queued(turn):
            return Begun(turn)
        return Begun(turn, (await self.runtime.store.turn(turn)).message)

    async def _check(self, conversation: str, right: Right, noun: str, id: str) -> Right:
        """Return the user's right, or raise. This is the only place that decides what a user may see and do
        (V1)."""
        try:
            has = await self.runtime.store.right_of(conversation, self.person)
        except NotFound:
            has = Right.NONE
        if has is Right.NONE:
            raise NotFound(noun, id)
        if has < right:
            raise Forbidden(sentence("share.right", role=has.role, needed=right.role))
        return has

    @property
    def user(self) -> str | None:
        """The user's name as conversations store it: None for `local`."""
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
    """Yield the settings that an admin may change. Successful changes are written to the audit log."""
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
"""The identity of a request that starts a turn, to recognize repeated requests."""
