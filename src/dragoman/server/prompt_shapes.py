"""What the API shows of the prompts that MCP servers offer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ServerPromptView:
    """`required` and `optional` are the names of what it takes."""

    server: str
    name: str
    description: str
    required: list[str]
    optional: list[str]


@dataclass(slots=True)
class ServerPromptList:
    items: list[ServerPromptView]


@dataclass(slots=True)
class FilledPrompt:
    text: str
