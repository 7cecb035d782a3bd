"""What a store does with the members of conversations, and with invitations and links to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dragoman.conversation.sharing import Member, Present, Right, Role, Share, SharedState


class SharingStore(Protocol):
    """Who else than its owner may do what in a conversation. Those that its calls opened belong to it."""

    async def right_of(self, conversation: str, user: str) -> Right:
        """`Right.NONE` for one with whom it is not shared. NotFound if there is no such conversation."""

    async def members(self, conversation: str) -> list[Member]:
        """Without the owner, in the order in which they came."""

    async def set_member(self, conversation: str, member: Member) -> None:
        """Share it with a user, or give a member another role. BadRequest for the owner."""

    async def remove_member(self, conversation: str, user: str) -> list[str]:
        """From here on nothing begins there in this user's name. NotFound if there is no such member. Returns
        the turns that the user sent and that are not over: they are yours to cancel."""

    async def sent_by(self, conversation: str, user: str) -> list[str]:
        """The turns of a member that are not over, or wait to begin, also where calls opened others."""

    async def transfer(self, conversation: str, to: str, at: float) -> None:
        """Make a member the owner, and the owner a member who takes part. NotFound if there is no such
        member."""

    async def add_share(self, share: Share) -> None: ...

    async def shares(self, conversation: str, now: float) -> list[Share]:
        """Invitations that nobody has used, and links, which have not expired; the oldest first."""

    async def share(self, hash: str, now: float) -> SharedState | None:
        """The one with this token, if it is valid now."""

    async def remove_share(self, conversation: str, share: str) -> None: ...

    async def use_invitation(self, hash: str, user: str, now: float) -> str | None:
        """Make this user a member, once: → the conversation. None if it is not valid, or used. A user who may
        do as much there already uses nothing up."""

    async def shared_among(self, conversations: Sequence[str]) -> set[str]:
        """Those of these that have members."""

    async def note_presence(
        self, conversation: str, user: str, seen: float, typing: float | None = None
    ) -> None:
        """A user has it open, and typed then; 0: no longer; None: as before. Nothing if it is not shared."""

    async def presence(self, conversations: Sequence[str], since: float) -> list[Present]:
        """Who has one of these open since then, by name, of those who may read it."""


__all__ = ["Member", "Present", "Right", "Role", "Share", "SharedState", "SharingStore"]
