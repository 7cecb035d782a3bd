"""What people may do in a conversation that several of them share. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias, get_args

from dragoman.errors import BadRequest
from dragoman.sentences import sentence

Role: TypeAlias = Literal["reads", "answers", "takes_part"]
"""What a member may do: read; answer questions, too; send messages and stop turns, too."""

Omitted: TypeAlias = Literal["arguments", "results", "files", "reasoning"]
"""What a read-only link can leave out."""


class Right(IntEnum):
    """What an entry point asks for. Each includes those before it."""

    NONE = 0
    READ = 1
    ANSWER = 2
    TAKE_PART = 3
    OWN = 4

    @property
    def role(self) -> str:
        """In the words of the API: a role, or `owns`."""
        return "owns" if self is Right.OWN else next(role for role in ROLES if ROLES[role] is self)


ROLES: dict[Role, Right] = {"reads": Right.READ, "answers": Right.ANSWER, "takes_part": Right.TAKE_PART}
OMITTED: tuple[Omitted, ...] = get_args(Omitted)


def role_named(name: str) -> Role:
    """BadRequest if there is no such role."""
    for role in ROLES:
        if role == name:
            return role
    raise BadRequest(sentence("share.role", role=name, roles=", ".join(ROLES)))


@dataclass(slots=True, frozen=True)
class Member:
    """A user with whom the owner of a conversation shares it."""

    user: str
    role: Role
    added_by: str = ""
    added: float = 0.0


@dataclass(slots=True, frozen=True)
class Present:
    """A user who has a conversation open. `typing` is when they typed last."""

    conversation: str
    user: str
    typing: float = 0.0


@dataclass(slots=True, frozen=True, kw_only=True)
class Share:
    """An invitation, which makes one user a member, or a link that anyone can read with.

    Of the token only its hash is stored. A frozen link shows `frozen`, whatever happens in the conversation.
    """

    id: str
    conversation: str
    hash: str
    kind: Literal["invitation", "link"]
    role: Role = "reads"
    created_by: str = ""
    created: float = 0.0
    expires: float | None = None
    upto: str | None = None  # the last message that a link shows
    omits: tuple[Omitted, ...] = ()
    frozen: str | None = None  # what a link shows, as JSON


@dataclass(slots=True, frozen=True)
class SharedState:
    """A link that is valid now, and what has changed where it leads."""

    share: Share
    revision: int
    leaf: str | None
    title: str | None
