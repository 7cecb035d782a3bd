"""Shares conversations: members, invitations and links, and the end of a removed member's turns."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dragoman.conversation.sharing import (
    OMITTED,
    ROLES,
    Member,
    Omitted,
    Right,
    Role,
    Share,
    role_named,
)
from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, DragomanError
from dragoman.messages.ids import new_id
from dragoman.sentences import sentence
from dragoman.turn.api.shared_view import shown_to_anyone
from dragoman.turn.api.turn_handle import Engine

WEEK = 7 * 24 * 3600.0  # Default lifetime of an invitation or a link, in seconds.
_LONGEST = 365  # days
_MOST = 100  # Maximum number of members, invitations and links of one conversation.


@dataclass(slots=True, frozen=True)
class NewShare:
    """An invitation or a link, with its token, which is not stored."""

    share: Share
    token: str


def token_hash(token: str) -> str:
    """Return the stored form of a token. Tokens are 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Sharing:
    """Actions of an owner to share a conversation. `by` is the owner, or a member who leaves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store

    async def add(self, conversation: str, user: str, role: str, *, by: str) -> Member:
        """Share it with a user, or give a member another role."""
        member = Member(user, role_named(role), by, self._now())
        await self._check_count(conversation)
        await self._store.set_member(conversation, member)
        if ROLES[member.role] < Right.TAKE_PART:
            await self._stop(await self._store.sent_by(conversation, user), by)
        return member

    async def remove(self, conversation: str, user: str, *, by: str) -> None:
        """Remove a member, for whom the conversation then does not exist, and cancel that user's
        turns in it."""
        if user == await self._store.owner_of(conversation):
            raise BadRequest(sentence("share.owner", user=user))
        await self._stop(await self._store.remove_member(conversation, user), by)

    async def transfer(self, conversation: str, user: str) -> None:
        """Make a member the owner. The previous owner stays, as a member who takes part."""
        await self._store.transfer(conversation, user, self._now())

    async def invite(
        self, conversation: str, role: str, *, by: str, seconds: float | None = None
    ) -> NewShare:
        """Create a token that makes the first user who uses it a member."""
        return await self._new(conversation, "invitation", by, seconds, role_named(role))

    async def link(
        self,
        conversation: str,
        *,
        by: str,
        seconds: float | None = None,
        upto: str | None = None,
        frozen: bool = False,
        omits: Sequence[str] = (),
    ) -> NewShare:
        """Create a token with which anyone can read the branch that the conversation shows.

        `upto` ends it at a message. `frozen` fixes it as it is now.
        """
        for part in omits:
            if part not in OMITTED:
                raise BadRequest(sentence("share.omit", part=part, parts=", ".join(OMITTED)))
        info = await self._store.conversation(conversation)
        messages, _ = await self._store.messages(conversation)
        path = Tree(messages).path(info.leaf)
        if upto is not None and upto not in {message.id for message in path}:
            raise BadRequest(sentence("share.upto", message=upto))
        left_out = tuple(one for one in OMITTED if one in omits)
        shown = shown_to_anyone(info, path, upto, left_out, frozen=True) if frozen else None
        return await self._new(
            conversation, "link", by, seconds, "reads", upto=upto, omits=left_out, frozen=shown
        )

    async def accept(self, token: str, user: str) -> str | None:
        """Return the conversation that the user joins. None if the invitation is invalid or used."""
        return await self._store.use_invitation(token_hash(token), user, self._now())

    async def shares(self, conversation: str) -> list[Share]:
        return await self._store.shares(conversation, self._now())

    async def revoke(self, conversation: str, share: str) -> None:
        await self._store.remove_share(conversation, share)

    async def _new(
        self,
        conversation: str,
        kind: str,
        by: str,
        seconds: float | None,
        role: Role,
        *,
        upto: str | None = None,
        omits: tuple[Omitted, ...] = (),
        frozen: str | None = None,
    ) -> NewShare:
        lifetime = WEEK if seconds is None else seconds
        if not 1 <= lifetime <= _LONGEST * 24 * 3600:
            raise BadRequest(sentence("share.expires", seconds=seconds, most=_LONGEST))
        await self._check_count(conversation)
        token, now = secrets.token_urlsafe(32), self._now()
        share = Share(
            id=new_id("share"),
            conversation=conversation,
            hash=token_hash(token),
            kind="link" if kind == "link" else "invitation",
            role=role,
            created_by=by,
            created=now,
            expires=now + lifetime,
            upto=upto,
            omits=omits,
            frozen=frozen,
        )
        await self._store.add_share(share)
        return NewShare(share, token)

    async def _check_count(self, conversation: str) -> None:
        members, shares = await self._store.members(conversation), await self.shares(conversation)
        if len(members) + len(shares) >= _MOST:
            raise BadRequest(sentence("share.too_many", most=_MOST))

    async def _stop(self, turns: Sequence[str], by: str) -> None:
        """Cancel a removed member's turns.

        Their calls are denied already, and no model may receive further requests on the user's behalf.
        """
        for turn in turns:
            with suppress(DragomanError):
                await self._engine.commands.cancel(turn, "the sender was removed", by=by)

    def _now(self) -> float:
        return self._engine.services.clock()
