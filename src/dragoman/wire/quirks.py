"""How a provider differs from the protocol of its wire: plain data, written in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

IdShape: TypeAlias = Literal["ours", "mistral", "kimi"]


@dataclass(slots=True, frozen=True)
class Quirks:
    """Each default is what the wire's own provider takes."""

    max_tokens_field: str = "max_completion_tokens"  # older servers know only `max_tokens`
    seed_field: str = "seed"  # Mistral: `random_seed`
    tool_ids: IdShape = "ours"  # Mistral: nine characters of [A-Za-z0-9]; Kimi: `functions.NAME:COUNT`
    reasoning_field: str | None = None  # where thoughts must be sent back with calls; else as they came
    call_signatures: bool = False  # wants every mark on a call back, also where nobody knows whose it is
    reply_after_results: bool = False  # Mistral: a reply must stand between results and the next user message
    no_strict: bool = False  # refuses the word `strict` in tools and schemas
    no_examples: bool = False  # Anthropic: refuses `input_examples`, so that they stand in the description
    strict_tools: bool = False  # makes the arguments of calls fit for certain, where a schema can be strict
    no_forced_choice: bool = False  # refuses any tool choice but `auto` and `none`
    no_stream_usage: bool = False  # refuses `stream_options`
    no_parallel_flag: bool = False  # refuses `parallel_tool_calls`
    no_tool_parts: bool = False  # Vertex: refuses to be asked what Google's own tools did
    no_json_schema: bool = False  # Gemini: reads only OpenAPI's schemas, whatever the model
    no_encrypted_reasoning: bool = False  # cannot return its thoughts encrypted
    image_data: str = "b64_json"  # `response_format` of pictures: Together says `base64`; "" leaves it out
    json_edits: bool = False  # xAI: a picture to be changed comes in JSON, not in a form


NO_QUIRKS = Quirks()
