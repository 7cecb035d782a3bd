"""The store: everything that outlives a process, as one protocol made of small ones.

It keeps three promises. What one call writes is written whole or not at all. Of two owners of a turn, only
the newer can write. What it has returned from is on disk. `tests/store/conformance` tests any implementation.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from dragoman.messages.message import ProviderFile
from dragoman.messages.usage import Spending
from dragoman.store.conversations import Busy, ConversationStore, Found, ListChange, MessageStore
from dragoman.store.members import SharingStore
from dragoman.store.turns import (
    Change,
    EventStore,
    GrantStore,
    QuestionStore,
    Queued,
    QueueStore,
    Rating,
    SendKey,
    SentBefore,
    Signal,
    SignalKind,
    Signalled,
    SignalStore,
    Start,
    Started,
    StoredEvent,
    TurnRow,
    TurnStore,
    Unread,
)

# ── people ────────────────────────────────────────────────────────────────────────────────────────
# What a store knows of people: their keys, their prompts, what they spent, which tools they pinned.


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody who may use a server."""

    name: str
    created: float
    account: str | None = None  # issuer and subject, of who signs in at a provider


@dataclass(slots=True, frozen=True)
class Identity:
    """The user of an account at an OpenID Connect provider. `epoch` is part of what their sign-ins are signed
    with."""

    person: str
    epoch: str
    new: bool = False  # signed in for the first time


@dataclass(slots=True, frozen=True)
class AuditEntry:
    """A line of the audit log: when and from where a user did what to which object."""

    at: float
    action: str  # a noun and a verb, such as `sign_in.failed`
    person: str = ""
    address: str = ""
    object: str = ""
    details: dict[str, JsonValue] = field(default_factory=dict)
    seq: int = 0  # given by the store


class PeopleStore(Protocol):
    """People who may use a server, and what belongs to one of them."""

    async def add_person(self, name: str, key: str, created: float, *, restore: bool = False) -> None:
        """`key` is a hash: the key itself is nowhere. BadRequest where the name is taken, or was a removed
        user's: with `restore`, what is kept under that name is the new user's."""

    async def identify(
        self, issuer: str, subject: str, *, name: str, key: str, epoch: str, created: float
    ) -> Identity | None:
        """The user of an account, added at the first sign-in under `name`, or under one with a number where
        that is or was another user's. None where the user was removed."""

    async def set_teams(self, person: str, teams: Collection[str]) -> None:
        """The teams of a user by the groups that their provider names, in place of those it named before."""

    async def members_of(self, team: str) -> set[str]:
        """Users for whom the provider named a group like this at their last sign-in."""

    async def epoch_of_identity(self, person: str) -> str | None: ...

    async def end_sessions_of_identity(self, issuer: str, subject: str, epoch: str) -> str | None:
        """Void all sign-ins of an account. Returns its user, None where the account is unknown."""

    async def person_with_key(self, key: str) -> str | None: ...

    async def key_of(self, person: str) -> str | None:
        """The hash of their key, as long as they may come in."""

    async def end_session(self, id: str, expires: float, now: float) -> None:
        """A sign-in is void from now on, at every node. It is remembered until its cookie expires."""

    async def use_once(self, id: str, expires: float, now: float) -> bool:
        """True for the first who comes with this, at any node, and for nobody after that until it expires."""

    async def is_session_ended(self, id: str, other: str = "") -> bool:
        """Whether one of the two is void."""

    async def access_revision(self) -> int:
        """Another number each time somebody lost a right, at any node."""

    async def people(self) -> list[Person]: ...

    async def remove_person(self, name: str) -> None:
        """From now on they can do nothing: no turn of theirs begins, and none that runs may call a tool."""

    async def turns_of_person(self, name: str) -> list[str]:
        """Their turns that are queued, run or wait: the queued ones first."""

    async def is_removed(self, name: str) -> bool: ...

    async def add_audit(self, entry: AuditEntry) -> None: ...

    async def audit(
        self, since: float = 0.0, *, before: int | None = None, limit: int = 1000
    ) -> list[AuditEntry]:
        """The audit log from then on, newest first, up to the entry before this number."""

    async def forget_audit(self, before: float) -> int:
        """Delete what is older. Returns how much that was."""

    async def prompts(self, user: str) -> dict[str, str]:
        """A person's own texts, by name."""

    async def set_prompt(self, user: str, name: str, text: str) -> None: ...

    async def remove_prompt(self, user: str, name: str) -> None: ...

    async def pin(self, user: str, tool: str) -> str | None:
        """The fingerprint of a foreign tool's definition when this person last let it run."""

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None: ...

    async def add_native_model(self, model: str) -> None:
        """This model has made a native call: its text is never read for calls any more."""

    async def native_models(self) -> set[str]: ...

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        """What was answered, and which tools were called, since then, by one person or by all: by day,
        person, model and agent, or tool. Of what was deleted, by whole days."""


# ── files at providers ────────────────────────────────────────────────────────────────────────────
# What a store knows of files that lie at providers.


class ProviderFileStore(Protocol):
    """Blobs that were uploaded: no process uploads one again, and what nobody needs is deleted there."""

    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile:
        """Remember it, and return the one that counts: of several uploads of a blob, the first that a store
        was told of, whatever the clocks of those say who tell it."""

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None:
        """Of several, which were uploaded at the same time, the first. None where it has expired."""

    async def forget_provider_file(self, file: ProviderFile) -> None:
        """It is not there any more."""

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]:
        """Some of those that are still there, and no conversation mentions any more."""


__all__ = [
    "AttachmentStore",
    "AuditEntry",
    "Busy",
    "Change",
    "ConversationStore",
    "EventStore",
    "Found",
    "GrantStore",
    "Identity",
    "ListChange",
    "Mention",
    "MessageStore",
    "PeopleStore",
    "Person",
    "ProviderFileStore",
    "QuestionStore",
    "QueueStore",
    "Queued",
    "Rating",
    "SendKey",
    "SentBefore",
    "SharingStore",
    "Signal",
    "SignalKind",
    "SignalStore",
    "Signalled",
    "Start",
    "Started",
    "Store",
    "StoredEvent",
    "TurnRow",
    "TurnStore",
    "Unread",
    "UploadedFile",
]


@dataclass(slots=True, frozen=True)
class Mention:
    """A row that mentions a blob."""

    noun: str  # message, call, question, queue, signal or upload
    id: str  # Of what is queued or a signal, the turn's. Of an upload, nothing.


@dataclass(slots=True, frozen=True, kw_only=True)
class UploadedFile:
    """A file that a caller names by its ID until it is deleted or expires."""

    id: str
    blob: str
    name: str
    media_type: str
    size: int
    purpose: str
    created: float
    expires: float | None = None


class AttachmentStore(Protocol):
    """Attachments and long outputs: bytes under the SHA-256 of their content, each stored once."""

    async def put_blob(self, data: bytes) -> str:
        """The key of these bytes. They are safe from removal for an hour, until something mentions them."""

    async def put_blob_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        """The same for bytes that are still arriving: their key, and how many there were."""

    async def add_upload(self, blob: str, user: str, now: float) -> None:
        """Remember for a day that this person brought it."""

    async def add_uploaded_file(self, file: UploadedFile, user: str, limit: int) -> bool:
        """False if this user's files would then have more bytes than the limit."""

    async def uploaded_file(self, id: str, user: str, now: float) -> UploadedFile:
        """NotFound if it is missing, another user's, or has expired."""

    async def uploaded_files(self, user: str, now: float) -> list[UploadedFile]:
        """A user's, the oldest first."""

    async def remove_uploaded_file(self, id: str, user: str) -> None:
        """Messages that contain it keep its bytes."""

    async def mentions(self, blob: str, user: str) -> list[Mention]:
        """Every row of conversations that this person may read that mentions it, and whether they uploaded
        it."""

    async def blob(self, key: str) -> bytes:
        """NotFound where there are none. Unreadable where they are not those that were put there."""

    async def blob_size(self, key: str) -> int:
        """How many bytes there are. NotFound where there are none."""

    def blob_pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Those from `start` to before `end`, bit by bit. Where all are read and they are not those that were
        put there, Unreadable comes before the last piece."""


class Store(
    ConversationStore,
    MessageStore,
    SharingStore,
    TurnStore,
    QueueStore,
    EventStore,
    QuestionStore,
    SignalStore,
    GrantStore,
    PeopleStore,
    AttachmentStore,
    ProviderFileStore,
    Protocol,
):
    """The sum of them. Every method may raise StoreUnavailable. What it was to write is then not written."""

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Returns when everything that was handed over is written."""

    async def has_new_writes(self) -> bool:
        """Whether anybody, also another process, has written since this was last asked."""

    async def wait_for_writes(self, seconds: float) -> None:
        """Until somebody may have written. An engine that cannot notify waits no longer than this, and is to
        be asked several times a second."""
