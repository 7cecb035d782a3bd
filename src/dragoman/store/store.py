"""Defines the store, which holds everything that outlives a process, as one protocol composed of small ones.

It keeps three promises. One call writes everything or nothing. Of two owners of a turn, only the newer can
write. A write is on disk once its call has returned. `tests/store/conformance` tests any implementation.
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
# Operations on users: their keys, prompts, spending and pinned tools.


@dataclass(slots=True, frozen=True)
class Person:
    """A user of a server."""

    name: str
    created: float
    account: str | None = None  # Issuer and subject, for a user who signs in at a provider.


@dataclass(slots=True, frozen=True)
class Identity:
    """The user of an account at an OpenID Connect provider. `epoch` is part of the signature of their
    sign-ins."""

    person: str
    epoch: str
    new: bool = False  # first sign-in


@dataclass(slots=True, frozen=True)
class AuditEntry:
    """A line of the audit log: when and from where a user did what to which object."""

    at: float
    action: str  # A noun and a verb, such as `sign_in.failed`.
    person: str = ""
    address: str = ""
    object: str = ""
    details: dict[str, JsonValue] = field(default_factory=dict)
    seq: int = 0  # assigned by the store


class PeopleStore(Protocol):
    """Users of a server, and their data."""

    async def add_person(self, name: str, key: str, created: float, *, restore: bool = False) -> None:
        """Add a user. `key` is a hash, since keys are not stored.

        Raise BadRequest if the name is taken, or was a removed user's. With `restore`, the new user gets that
        user's data.
        """

    async def identify(
        self, issuer: str, subject: str, *, name: str, key: str, epoch: str, created: float
    ) -> Identity | None:
        """Return the user of an account, added at the first sign-in as `name`.

        A number is appended if that is or was another user's name. None if the user was removed.
        """

    async def set_teams(self, person: str, teams: Collection[str]) -> None:
        """Replace a user's teams by the groups that the provider names."""

    async def members_of(self, team: str) -> set[str]:
        """Return users with this group at their last sign-in."""

    async def epoch_of_identity(self, person: str) -> str | None: ...

    async def end_sessions_of_identity(self, issuer: str, subject: str, epoch: str) -> str | None:
        """Invalidate all sign-ins of an account. Return its user, None for an unknown account."""

    async def person_with_key(self, key: str) -> str | None: ...

    async def key_of(self, person: str) -> str | None:
        """Return the hash of a user's key, as long as the user has access."""

    async def end_session(self, id: str, expires: float, now: float) -> None:
        """Invalidate a sign-in at every server. This is remembered until its cookie expires."""

    async def use_once(self, id: str, expires: float, now: float) -> bool:
        """Return True for the first use of this ID at any server, and False after that until it expires."""

    async def is_session_ended(self, id: str, other: str = "") -> bool:
        """Return whether one of the two is invalid."""

    async def access_revision(self) -> int:
        """Return a number that changes whenever a user loses a right, at any server."""

    async def people(self) -> list[Person]: ...

    async def remove_person(self, name: str) -> None:
        """Remove a user's access: no turn of this user starts, and running ones cannot call tools."""

    async def turns_of_person(self, name: str) -> list[str]:
        """Return the user's queued, running and waiting turns, the queued ones first."""

    async def is_removed(self, name: str) -> bool: ...

    async def add_audit(self, entry: AuditEntry) -> None: ...

    async def audit(
        self, since: float = 0.0, *, before: int | None = None, limit: int = 1000
    ) -> list[AuditEntry]:
        """Return the audit log since then, newest first, up to the entry before this number."""

    async def forget_audit(self, before: float) -> int:
        """Delete older entries and return their number."""

    async def prompts(self, user: str) -> dict[str, str]:
        """Return a user's prompts by name."""

    async def set_prompt(self, user: str, name: str, text: str) -> None: ...

    async def remove_prompt(self, user: str, name: str) -> None: ...

    async def pin(self, user: str, tool: str) -> str | None:
        """Return the fingerprint of an external tool's definition when this user last allowed it."""

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None: ...

    async def add_native_model(self, model: str) -> None:
        """Note that this model made a native call, so that its text is never parsed for calls."""

    async def native_models(self) -> set[str]: ...

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        """Return replies and tool calls since then, of one user or all, by day, user, model and agent, or
        tool.

        Deleted ones are included by whole days.
        """


# ── files at providers ────────────────────────────────────────────────────────────────────────────
# Operations on files stored by providers.


class ProviderFileStore(Protocol):
    """Uploaded blobs: no process uploads one again, and unneeded ones are deleted at the provider."""

    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile:
        """Record an upload and return the one to use.

        Of several uploads of a blob, it is the first one recorded, whatever the clocks of the processes.
        """

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None:
        """Return the upload of a blob, the first of simultaneous ones. None if it has expired."""

    async def forget_provider_file(self, file: ProviderFile) -> None:
        """Forget a file that no longer exists."""

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]:
        """Return some existing files that no conversation references."""


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
    """A row that references a blob."""

    noun: str  # message, call, question, queue, signal or upload
    id: str  # The turn's ID for a queue entry or a signal. Empty for an upload.


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
        """Store bytes and return their key. They are kept for an hour even without a reference."""

    async def put_blob_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        """Store bytes that are still arriving. Return their key and their number."""

    async def add_upload(self, blob: str, user: str, now: float) -> None:
        """Remember for a day that this user uploaded it."""

    async def add_uploaded_file(self, file: UploadedFile, user: str, limit: int) -> bool:
        """Return False if this user's files would exceed the limit in bytes."""

    async def uploaded_file(self, id: str, user: str, now: float) -> UploadedFile:
        """Return the file. Raise NotFound if it is missing, another user's, or expired."""

    async def uploaded_files(self, user: str, now: float) -> list[UploadedFile]:
        """Return a user's files, the oldest first."""

    async def remove_uploaded_file(self, id: str, user: str) -> None:
        """Remove the file. Messages that contain it keep its bytes."""

    async def mentions(self, blob: str, user: str) -> list[Mention]:
        """Return rows of conversations readable by this user that reference it, and uploads by this user."""

    async def blob(self, key: str) -> bytes:
        """Return the bytes. Raise NotFound if they are missing, and Unreadable if they were altered."""

    async def blob_size(self, key: str) -> int:
        """Return the number of bytes. Raise NotFound if they are missing."""

    def blob_pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to before `end` in chunks.

        If all bytes are read and they were altered, Unreadable is raised before the last chunk.
        """


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
    """All operations together. Every method can raise StoreUnavailable, and then has written nothing."""

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Return when all submitted writes are done."""

    async def has_new_writes(self) -> bool:
        """Return whether any process has written since the last query."""

    async def wait_for_writes(self, seconds: float) -> None:
        """Wait until a write is likely, at most this long.

        An engine without notifications must be polled several times a second.
        """
