"""What a store does with conversations, their messages and calls, and the values it gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message, ToolCall, ToolResult


@dataclass(slots=True, frozen=True)
class Busy:
    """What goes on in a conversation: whether a turn is alive, and how many questions are open."""

    live: bool = False
    waiting: int = 0


class ListChange(NamedTuple):
    """A line of a user's list of conversations that is new, not what it was, or gone."""

    conversation: str
    reader: str


@dataclass(slots=True, frozen=True)
class Found:
    """Where a search found its words: in a message or one of its calls, or (`message` None) in the title."""

    message: str | None
    conversation: str
    title: str | None
    snippet: str


class ConversationStore(Protocol):
    """Conversations: what is known of them besides their messages."""

    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        """Both or neither. Each message comes after its parent."""

    async def conversation(self, id: str) -> Conversation:
        """Unreadable where its settings are damaged: nothing is to run under settings nobody knows."""

    async def owner_of(self, conversation: str) -> str:
        """Whose it is, also where nothing else of it can be read."""

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
        """One page, the most recently used first. `before`: `updated` and `id` of the last one seen. With
        `shared`, also those that others share with the user.

        One that cannot be read is listed too: its title says so, and its settings are empty.
        """

    async def within(self, conversation: str) -> list[str]:
        """A conversation and those that its calls opened, the innermost first."""

    async def opened_by(self, conversation: str, calls: Collection[str]) -> list[Conversation]:
        """What these calls of a conversation opened, and what the calls in there did, the outermost first."""

    async def busy(self, conversations: Sequence[str]) -> dict[str, Busy]:
        """What goes on in each of these."""

    async def list_changes(self) -> list[ListChange] | None:
        """What anybody, also another process, has changed in lists since this was last asked: each line at
        least once. The first time nothing need be told. None where some of it is not known any more."""

    async def tags(self, user: str | None = None, *, shared: bool = False) -> list[str]:
        """Every tag that is in use, by name. With `shared`, also where others share with the user."""

    async def label_conversation(
        self,
        conversation: str,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """What is None stays as it is. A turn that begins in an archived one takes it out of the archive."""

    async def set_title(self, conversation: str, title: str) -> None: ...

    async def replace_title(self, conversation: str, before: str | None, title: str) -> bool:
        """False, and nothing is changed, where it is not called that any more."""

    async def change_settings(
        self, conversation: str, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
    ) -> None:
        """Make new settings of the old ones, with nobody in between. What `change` raises changes nothing."""

    async def set_leaf(self, conversation: str, leaf: str, at: float, *, before: str | None = None) -> bool:
        """Move to another branch. `at` is when; it makes the conversation no older. False, and nothing is
        moved, where it does not stand at `before` any more."""

    async def delete_conversation(self, id: str) -> None:
        """And with it the conversations that its calls opened, and files that nothing else mentions.

        Gone for everybody at once, also where the process dies on the way; a long one is removed in small
        steps between which others write.
        """

    def untouched(self, before: float) -> AsyncIterator[Conversation]:
        """Those that people began, in which nothing has happened since then, the oldest first: nor in those
        that their calls opened. One in which a turn runs, or waits for a person, is none of them."""

    async def delete_untouched(self, before: float) -> list[str]:
        """Delete them, each only if it is still one at that moment. Returns what was deleted, with those that
        calls opened. Where another process is at it, nothing is done."""

    async def export_raw(self, conversation: str) -> dict[str, JsonValue]:
        """Every row of it as it is stored, readable or not: what is left to do with a damaged one."""


class MessageStore(Protocol):
    """Messages and calls: written with turns, read by conversation, found by their words."""

    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        """All of them with their calls, oldest first, and the revision they were read at.

        In place of one that cannot be read stands a message whose only part is an `Error`.
        """

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        """The same as JSON, by id: for who passes them on, and has no use for thousands of objects."""

    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]:
        """A number each, which grows with every change of messages or calls."""

    async def message(self, id: str) -> Message: ...

    async def call(self, id: str) -> tuple[ToolCall, str, ToolResult | None]:
        """A call, its conversation, and its result where that waits for a person. May be Unreadable."""

    async def search(
        self,
        query: str,
        *,
        user: str | None = None,
        limit: int = 20,
        distinct: bool = False,
        shared: bool = False,
    ) -> list[Found]:
        """Where all these words are found, as parts of words too: titles first, then the newest messages.

        A query is text: it has no operators, and no character in it means anything but itself. With
        `distinct`, of each conversation only the first; with `shared`, also where others share with the user.
        """
