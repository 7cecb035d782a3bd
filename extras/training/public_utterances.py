"""Read users' utterances to a home assistant (NLU-Evaluation-Data), whose slots are marked.

An utterance is used only if its marked slots are all parameters of the tool that was written for the intent:
unmarked text is not a value.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from training.public import Given, Tool

_SLOT = re.compile(r"\[(\w+) : ([^\]]+)\]")
# Each line: intent; domain; name; description; parameters (slot: kind = description).
_TOOLS = Path(__file__).with_name("material") / "utterances.list"
_IGNORED = frozenset(("media_type", "order_type", "player_setting", "transport_type", "business_type"))


def utterances(folder: Path) -> Iterator[Tool]:
    for line in _TOOLS.read_text("utf-8").splitlines():
        intent, domain, name, about, *parameters = line.split("; ")
        tool = Tool(domain, name, about, {})
        for one in parameters:
            left, _, said = one.partition("= ")
            slot, _, kind = left.partition(":")
            given = slot.rstrip("?")
            tool.parameters[given] = Given(given, "string", said, not slot.endswith("?"), kind=kind.strip())
        for file in sorted(folder.rglob(f"trainset/{intent}.csv")):
            for row in csv.DictReader(file.open(encoding="utf-8"), delimiter=";"):
                _learn(tool, row["answer_annotation"])
        for found in tool.parameters.values():
            found.kind = found.kind or f"like {'|'.join(list(dict.fromkeys(found.seen))[:80])}"
        tool.parameters = {key: one for key, one in tool.parameters.items() if one.kind != "like "}
        yield tool


def _learn(tool: Tool, annotated: str) -> None:
    marked = [
        (slot, value.strip())
        for slot, value in _SLOT.findall(annotated)
        if slot in tool.parameters or slot not in _IGNORED
    ]
    slots = [slot for slot, _ in marked]
    required = {name for name, one in tool.parameters.items() if one.required}
    if not slots or len(set(slots)) < len(slots) or not required <= set(slots) <= tool.parameters.keys():
        return
    text = _SLOT.sub(lambda match: f"{{{match[1]}}}" if match[1] in slots else match[2].strip(), annotated)
    if re.search(r"[\[\]|\n]|\b(?:next|the|this|every) \{date\}|\bin \{time\}", text) or any(
        "|" in value for _, value in marked
    ):
        return
    for slot, value in marked:
        tool.parameters[slot].seen.append(value)
    tool.requests["e"].append(" ".join(text.split()))
