"""Defines what users may do in a shared conversation. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias, get_args

from dragoman.errors import BadRequest
from dragoman.sentences import sentence

Role: TypeAlias = Literal["reads", "answers", "takes_part"]
"""The permissions of a member: read, then also answer questions, then also send messages and stop turns."""

Omitted: TypeAlias = Literal["arguments", "results", "files", "reasoning"]
"""The parts that a read-only link can omit."""


class Right(IntEnum):
    """The right that an entry point requires. Each includes the previous ones."""

    NONE = 0
    READ = 1
    ANSWER = 2
    TAKE_PART = 3
    OWN = 4

    @property
    def role(self) -> str:
        """Return the API's word: a role, or `owns`."""
        return "owns" if self is Right.OWN else next(role for role in ROLES if ROLES[role] is self)


ROLES: dict[Role, Right] = {"reads": Right.READ, "answers": Right.ANSWER, "takes_part": Right.TAKE_PART}
OMITTED: tuple[Omitted, ...] = get_args(Omitted)


def role_named(name: str) -> Role:
    """Return the role. Raise BadRequest if it is unknown."""
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
    """An invitation, which makes one user a member, or a link with which anyone can read.

    Only a hash of the token is stored. A frozen link shows `frozen`, whatever happens in the conversation.
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
    frozen: str | None = None  # the content of a frozen link, as JSON


@dataclass(slots=True, frozen=True)
class SharedState:
    """A valid link, and the current state of its conversation."""

    share: Share
    revision: int
    leaf: str | None
    title: str | None
