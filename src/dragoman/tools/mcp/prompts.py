"""The prompts of an MCP server: texts that a person may begin with."""

from __future__ import annotations

from dataclasses import dataclass

import mcp_types as types

LONGEST = 100_000  # characters


@dataclass(slots=True, frozen=True)
class ServerPrompt:
    """`required` and `optional` are the names of what it takes."""

    name: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]


def prompt_of(prompt: types.Prompt) -> ServerPrompt:
    arguments = prompt.arguments or []
    return ServerPrompt(
        prompt.name,
        prompt.description or prompt.title or "",
        tuple(one.name for one in arguments if one.required),
        tuple(one.name for one in arguments if not one.required),
    )


def text_of(result: types.GetPromptResult) -> str:
    """What the person would say: the texts of its messages, what the model would say as quotations."""
    texts = []
    for message in result.messages:
        match message.content:
            case types.TextContent(text=text):
                said = text
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                said = f"[{resource.uri}]\n{resource.text}"
            case other:
                said = f"[{other.type} was left out]"
        texts.append(said if message.role == "user" else "\n".join(f"> {line}" for line in said.splitlines()))
    return "\n\n".join(texts)[:LONGEST]
