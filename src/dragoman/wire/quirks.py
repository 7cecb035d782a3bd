"""In what a provider differs from the wire it speaks: plain data, written in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

IdShape: TypeAlias = Literal["ours", "mistral", "kimi"]


@dataclass(slots=True, frozen=True)
class Quirks:
    """Each default is what the wire's own provider takes."""

    max_tokens_field: str = "max_completion_tokens"  # older servers know only `max_tokens`
    tool_ids: IdShape = "ours"  # Mistral: nine letters or digits; Kimi was taught `functions.NAME:COUNT`
    reasoning_field: str | None = None  # where thoughts are sent back, with the calls they led to
    call_signatures: bool = False  # Gemini, behind the chat wire: wants the mark on a call back
    reply_after_results: bool = False  # Mistral: after results the assistant speaks, before the user may
    no_strict: bool = False  # refuses the word `strict` in tools and schemas
    no_forced_choice: bool = False  # refuses any tool choice but `auto` and `none`
    no_stream_usage: bool = False  # refuses `stream_options`
    no_parallel_flag: bool = False  # refuses `parallel_tool_calls`
    no_encrypted_reasoning: bool = False  # cannot hand its thoughts out in sealed form


NO_QUIRKS = Quirks()
