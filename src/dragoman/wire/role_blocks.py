"""A message as APIs have it whose contents are blocks: Anthropic's, and Bedrock's Converse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue


@dataclass(slots=True)
class RoleBlocks:
    """The roles must alternate, and the user's comes first."""

    role: Literal["user", "assistant"]
    blocks: list[dict[str, JsonValue]]
