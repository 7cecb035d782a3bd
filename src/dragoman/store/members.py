"""Defines a store's operations on members of conversations, invitations and links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dragoman.conversation.sharing import Member, Present, Right, Role, Share, SharedState


class SharingStore(Protocol):
    """Rights of users other than the owner. Conversations opened by its calls share them."""

    async def right_of(self, conversation: str, user: str) -> Right:
        """Return the user's right, `Right.NONE` without a share.

        Raise NotFound for an unknown conversation.
        """

    async def members(self, conversation: str) -> list[Member]:
        """Return the members without the owner, in the order in which they joined."""

    async def set_member(self, conversation: str, member: Member) -> None:
        """Share it with a user, or give a member another role. Raise BadRequest for the owner."""

    async def remove_member(self, conversation: str, user: str) -> list[str]:
        """Remove a member, so that no further turn starts in this user's name. Raise NotFound for an unknown
        member.

        Return the user's unfinished turns, which the caller must cancel.
        """

    async def sent_by(self, conversation: str, user: str) -> list[str]:
        """Return a member's unfinished and queued turns, also in conversations that calls opened."""

    async def transfer(self, conversation: str, to: str, at: float) -> None:
        """Make a member the owner, and the owner a member who takes part. Raise NotFound for an unknown
        member."""

    async def add_share(self, share: Share) -> None: ...

    async def shares(self, conversation: str, now: float) -> list[Share]:
        """Return unused invitations and links that have not expired, the oldest first."""

    async def share(self, hash: str, now: float) -> SharedState | None:
        """Return the share with this token hash, if it is valid now."""

    async def remove_share(self, conversation: str, share: str) -> None: ...

    async def use_invitation(self, hash: str, user: str, now: float) -> str | None:
        """Make this user a member, once, and return the conversation. None if the invitation is invalid or
        used.

        It stays unused if the user already has these rights.
        """

    async def shared_among(self, conversations: Sequence[str]) -> set[str]:
        """Return those of these conversations that have members."""

    async def note_presence(
        self, conversation: str, user: str, seen: float, typing: float | None = None
    ) -> None:
        """Note that a user has it open, and typed at `typing`. 0: no longer. None: unchanged. Ignored if not
        shared."""

    async def presence(self, conversations: Sequence[str], since: float) -> list[Present]:
        """Return the users who may read one of these conversations and had it open since then, by name."""


__all__ = ["Member", "Present", "Right", "Role", "Share", "SharedState", "SharingStore"]
