"""Defines a store's operations on conversations, messages and calls, and the values they return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message, ToolCall, ToolResult


@dataclass(slots=True, frozen=True)
class Busy:
    """The activity in a conversation: whether a turn is live, and the number of open questions."""

    live: bool = False
    waiting: int = 0


class ListChange(NamedTuple):
    """An added, changed or removed entry in a user's list of conversations."""

    conversation: str
    reader: str


@dataclass(slots=True, frozen=True)
class Found:
    """A search result: in a message or one of its calls, or (`message` None) in the title."""

    message: str | None
    conversation: str
    title: str | None
    snippet: str


class ConversationStore(Protocol):
    """Conversations without their messages."""

    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        """Add the conversation and its messages in one transaction. Each message follows its parent."""

    async def conversation(self, id: str) -> Conversation:
        """Return a conversation. Raise Unreadable if its settings are damaged: no turn may run with unknown
        settings."""

    async def owner_of(self, conversation: str) -> str:
        """Return the owner, even if nothing else of the conversation is readable."""

    async def conversations(
        self,
        *,
        user: str | None = None,
        limit: int = 50,
        before: tuple[float, str] | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        tag: str | None = None,
        shared: bool = False,
    ) -> list[Conversation]:
        """Return one page, the most recently used first. `before` is `updated` and `id` of the last one seen.

        With `shared`, include those that others share with the user. An unreadable one is listed too: its
        title says so, and its settings are empty.
        """

    async def within(self, conversation: str) -> list[str]:
        """Return a conversation and those that its calls opened, the innermost first."""

    async def opened_by(self, conversation: str, calls: Collection[str]) -> list[Conversation]:
        """Return the conversations these calls opened, including nested ones, the outermost first."""

    async def busy(self, conversations: Sequence[str]) -> dict[str, Busy]:
        """Return the activity in each of these conversations."""

    async def list_changes(self) -> list[ListChange] | None:
        """Return list changes by any process since the last query, each at least once.

        The first query need not return any. None if some changes are no longer known.
        """

    async def tags(self, user: str | None = None, *, shared: bool = False) -> list[str]:
        """Return all tags in use, by name. With `shared`, include conversations shared with the user."""

    async def label_conversation(
        self,
        conversation: str,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Change labels, except those that are None. Starting a turn in an archived conversation unarchives
        it."""

    async def set_title(self, conversation: str, title: str) -> None: ...

    async def replace_title(self, conversation: str, before: str | None, title: str) -> bool:
        """Rename it. Return False without a change if its title is no longer `before`."""

    async def change_settings(
        self, conversation: str, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
    ) -> None:
        """Derive new settings from the old ones atomically. An exception of `change` changes nothing."""

    async def set_leaf(self, conversation: str, leaf: str, at: float, *, before: str | None = None) -> bool:
        """Move to another branch. `at` is the time, which never makes the conversation look older.

        Return False without moving if its leaf is no longer `before`.
        """

    async def delete_conversation(self, id: str) -> None:
        """Delete it with the conversations that its calls opened, and files without other references.

        It disappears immediately for all users, even if the process dies during the deletion. A long one is
        removed in small steps, between which others can write.
        """

    def untouched(self, before: float) -> AsyncIterator[Conversation]:
        """Yield top-level conversations without any activity since then, the oldest first.

        This includes activity in conversations that their calls opened. A running or waiting turn excludes
        them.
        """

    async def delete_untouched(self, before: float) -> list[str]:
        """Delete these conversations, each only if it is still untouched. Return all deleted ones, including
        nested ones.

        If another process is doing this, do nothing.
        """

    async def export_raw(self, conversation: str) -> dict[str, JsonValue]:
        """Return every stored row, readable or not, as the last resort for a damaged conversation."""


class MessageStore(Protocol):
    """Messages and calls: written with turns, read by conversation, searched by words."""

    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        """Return all messages with their calls, oldest first, and the revision at which they were read.

        A message with a single `Error` part replaces an unreadable one.
        """

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        """Return the same as JSON by ID, for callers that pass messages on and need no objects."""

    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]:
        """Return a number for each, which increases with every change of messages or calls."""

    async def message(self, id: str) -> Message: ...

    async def call(self, id: str) -> tuple[ToolCall, str, ToolResult | None]:
        """Return a call, its conversation, and its result if that waits for review. Raise Unreadable if
        damaged."""

    async def search(
        self,
        query: str,
        *,
        user: str | None = None,
        limit: int = 20,
        distinct: bool = False,
        shared: bool = False,
    ) -> list[Found]:
        """Return where all these words occur, also as parts of words: titles first, then the newest messages.

        A query is plain text without operators or special characters. With `distinct`, return only the first
        match of each conversation. With `shared`, include conversations shared with the user.
        """
