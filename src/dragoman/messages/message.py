"""A message: its author, its place in the tree, and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from dragoman.messages.parts import Error, File, Part, ProviderItem, Reasoning, Text, ToolCall
from dragoman.messages.usage import Usage

Role: TypeAlias = Literal["user", "assistant"]

# Items of a provider's own that are an answer: pictures and sounds that the model made.
MADE_ITEMS = frozenset({"inlineData", "fileData", "image_generation_call"})


@dataclass(slots=True, frozen=True)
class Message:
    """One message of a conversation's tree. An assistant's message is one model reply."""

    id: str
    conversation: str
    parent: str | None
    role: Role
    parts: tuple[Part, ...]
    turn: str | None = None
    author: str | None = None  # the plugin that appended it; None for the person and the model
    model: str | None = None
    finish: str | None = None  # how the reply ended: a word of `messages/endings.py`
    usage: Usage | None = None
    created: float = 0.0
    metadata: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(part for part in self.parts if isinstance(part, File))

    @property
    def answers(self) -> bool:
        """Whether there is anything in it for a person, or for us to do."""
        made = any(isinstance(part, ProviderItem) and part.kind in MADE_ITEMS for part in self.parts)
        return bool(self.text.strip() or self.calls or self.files or made)

    @property
    def says_nothing(self) -> bool:
        """True for placeholders and bare errors: there is nothing in it that a model could be sent."""
        return all(
            isinstance(part, Error) or (isinstance(part, Text) and not part.text) for part in self.parts
        )
