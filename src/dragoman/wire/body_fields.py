"""The fields of a body: what they are called, which of them an error is about, and how one is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, cast

from pydantic import JsonValue

Body: TypeAlias = dict[str, JsonValue]

_NEEDED = frozenset(
    {
        *("model", "messages", "input", "contents", "stream", "tools", "toolConfig.tools"),
        *("system", "instructions", "systemInstruction"),
        # who asked for a form must not get another
        *("response_format", "text", "output_config.format", "outputConfig.textFormat"),
        *("generationConfig.responseSchema", "generationConfig.responseJsonSchema"),
        "generationConfig.responseMimeType",
    }
)
_GROUPS = (  # whose fields can be left out one by one
    *("generationConfig", "reasoning", "output_config"),
    *("inferenceConfig", "additionalModelRequestFields", "outputConfig", "toolConfig"),
)
_OF_MESSAGES = {  # fields of a reply that is sent back which not all servers know
    "messages": frozenset({"reasoning_content", "reasoning", "reasoning_details"}),
    "input": frozenset({"phase"}),
}
_BLOCKS = "blocks"  # what stands for content that is made of objects with one field each
_OF_BLOCKS = frozenset({"reasoningContent", "cachePoint"})
_PLAIN = ("temperature", "seed")  # words that mean nothing else in such an error


def fields_of(body: Mapping[str, JsonValue]) -> frozenset[str]:
    """The names of what stands in a body; of groups, with what they hold: `reasoning.effort`."""
    names = set(body)
    for group in _GROUPS:
        if isinstance(held := body.get(group), dict):
            names |= {f"{group}.{name}" for name in held}
    for group, inner in _OF_MESSAGES.items():
        if isinstance(messages := body.get(group), list):
            names |= {
                f"{group}.{name}" for one in messages if isinstance(one, dict) for name in inner & one.keys()
            }
    for blocks in _block_lists(body):
        names |= {f"{_BLOCKS}.{name}" for one in blocks for name in _OF_BLOCKS & one.keys()}
    return frozenset(names)


def _block_lists(body: Mapping[str, JsonValue]) -> Iterator[list[Body]]:
    """The lists of blocks in a body of Converse: what is said, the system prompt, the tools."""
    tools, messages = body.get("toolConfig"), body.get("messages")
    turns = messages if isinstance(messages, list) else []
    said = [turn.get("content") for turn in turns if isinstance(turn, dict)]
    for blocks in (body.get("system"), tools.get("tools") if isinstance(tools, dict) else None, *said):
        if isinstance(blocks, list) and all(isinstance(one, dict) for one in blocks):
            yield cast("list[Body]", blocks)


def named_field(message: str, fields: Iterable[str]) -> str | None:
    """The field that a message is about: the first it names, the longer name before its beginning."""
    names = frozenset(fields)
    found: list[tuple[int, int, str]] = []
    for one in names:
        place = _place(message, one)
        if place is not None and one not in _NEEDED and f"{one}.tools" not in names:
            found.append((place, -len(one), one))
    return min(found)[2] if found else None


def is_optional(name: str) -> bool:
    """Whether a request makes sense without this field."""
    return bool(name) and name not in _NEEDED and name != "toolConfig"


def _place(message: str, name: str) -> int | None:
    last = name.rpartition(".")[2]
    spelled = re.sub(r"_|(?<=[a-z])(?=[A-Z])", "[_ ]?", re.escape(last).replace(r"\_", "_"))
    for pattern in (
        rf"['\"`\[(.]{spelled}['\"`\])]",
        rf"(?:parameter|argument|field|property|option|name|body)s?[:.]? +{spelled}\b",
        rf"(?<![\w.]){spelled}:",
        rf"(?<![\w.]){spelled} (?:is|are|parameter|field|option)\b",
        rf"\b{spelled}\b" if "_" in last or last in _PLAIN or not last.islower() else r"(?!)",
    ):
        if match := re.search(pattern, message, re.IGNORECASE):
            return match.start()
    return None


# ── leaving out ───────────────────────────────────────────────────────────────────────────────────


def drop_field(body: Body, name: str) -> None:
    """Leave out what `fields_of` calls so."""
    group, _, inner = name.rpartition(".")
    if group == _BLOCKS:
        for blocks in _block_lists(body):  # none of them stands alone: there is a text or a call beside each
            blocks[:] = [one for one in blocks if inner not in one]
        return
    held = body.get(group) if group else body
    for one in held if isinstance(held, list) else ():
        if isinstance(one, dict):
            one.pop(inner, None)
    if isinstance(held, dict):
        held.pop(inner, None)
        if group and not held:
            body.pop(group)


def loosen_tools(body: Body) -> None:
    """Take the tools out of strict mode: on Messages without the word, which for OpenAI would mean strict."""
    config = body.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function", tool.get("toolSpec", tool)) if isinstance(tool, dict) else None
        if isinstance(function, dict) and not function.keys().isdisjoint({"input_schema", "inputSchema"}):
            function.pop("strict", None)
        elif isinstance(function, dict) and function.get("strict"):
            function["strict"] = False
