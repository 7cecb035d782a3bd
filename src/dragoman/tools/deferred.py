"""Let a model find tools when it needs them, if all definitions would take too much of its context.

Above a budget, a request contains `find_tools` instead of the tools of MCP servers and other sources. Tools
found are offered from the next request on. The messages alone determine which tools are loaded: the results
of `find_tools`, and the calls that were made.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.message import Message
from dragoman.messages.request import FIND_TOOLS, found_by
from dragoman.tools.schema import Parameters
from dragoman.tools.tool import Tool, ToolContext, ToolOutput
from dragoman.tools.toolbox import Offer

LETTERS = 4  # of a token, about
FOUND = 5  # tools that one search loads
FIND_PERMISSION = "tools.find"  # Not a valid function name, so a rule on it concerns no other tool.
NAMED = 120  # letters of the names of a server's tools in the description
PURPOSE = 160  # letters of a server's description of itself
_SHOWN = 300  # letters of a description in a result: the definition has all of it

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_K, _B = 1.2, 0.6  # of BM25: how fast repeated words lose weight, and how much long texts are discounted
_BEGINNING = 5  # letters
_WEIGHTS = {"name": 3.0, "description": 1.0, "parameters": 0.5}


@dataclass(slots=True, frozen=True)
class ToolBudget:
    """The limits for definitions: a number of tools, and a share of the context. None sets no limit."""

    tools: int | None = 40
    share: float | None = 0.1

    def allows(self, tools: Iterable[Tool], context: int | None) -> bool:
        sizes = [size_of(tool) for tool in tools]
        if self.tools is not None and len(sizes) > self.tools:
            return False
        return self.share is None or context is None or sum(sizes) <= self.share * context * LETTERS


DEFAULT_BUDGET = ToolBudget()


def budget_of(setting: object) -> ToolBudget:
    """Return the budget: `40` tools, `"10%"` of the context, or `"off"` to offer everything immediately."""
    if setting == "off":
        return ToolBudget(None, None)
    if isinstance(setting, int) and not isinstance(setting, bool) and setting >= 0:
        return ToolBudget(setting, None)
    share = re.fullmatch(r"(\d{1,2}|100)\s*%", setting) if isinstance(setting, str) else None
    if share is None:
        raise ConfigError(
            f'\'tool_budget\' must be a number of tools, a share such as "10%", or "off", not {setting!r}.'
        )
    return ToolBudget(None, int(share[1]) / 100)


def size_of(tool: Tool) -> int:
    """Return the letters of a tool's definition."""
    return len(tool.description) + tool.parameters.size


# ── loaded tools ──────────────────────────────────────────────────────────────────────────────────


def defer(
    offer: Offer, budget: ToolBudget, context: int | None, always: Collection[str], path: Iterable[Message]
) -> Offer:
    """Return the offer with `find_tools` instead of the tools that exceed the budget.

    Found and called tools follow in the order in which that happened, so that a provider's cache stays valid.
    """
    if not offer.sources or FIND_TOOLS in offer.tools or budget.allows(offer.tools.values(), context):
        return offer
    hidden = {
        name: tool
        for name, tool in offer.tools.items()
        if name in offer.sources and not {name, tool.name, offer.sources[name]} & {*always}
    }
    if not hidden:
        return offer
    shown = {name: tool for name, tool in offer.tools.items() if name not in hidden}
    whole = {offer.sources[name] for name in shown if name in offer.sources}
    servers = dict.fromkeys(dict.fromkeys(offer.sources[name] for name in hidden), "")
    servers |= {group: offer.texts[group] for group in servers if group in offer.texts}
    texts = {group: text for group, text in offer.texts.items() if group not in servers or group in whole}
    shown[FIND_TOOLS] = find_tools_tool(hidden, offer.sources, servers)
    shown |= {name: hidden[name] for name in loaded_in(path) if name in hidden}
    return Offer(shown, texts, offer.sources, hidden)


def loaded_in(messages: Iterable[Message]) -> dict[str, Literal["found", "called"]]:
    """Return the names of tools that were found or called, in the order of their first occurrence."""
    names: dict[str, Literal["found", "called"]] = {}
    for message in messages:
        for call in message.all_calls:
            if call.tool != FIND_TOOLS:
                names.setdefault(call.tool, "called")
            for name in found_by(call) if call.tool == FIND_TOOLS else ():
                names.setdefault(name, "found")
    return names


# ── the search ────────────────────────────────────────────────────────────────────────────────────


class ToolSearch:
    """Ranks tools by the words of a request (BM25 over names, descriptions and parameters)."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        fields = {name: _fields_of(name, tool) for name, tool in tools.items()}
        mean = {
            field: sum(one[field].total() for one in fields.values()) / max(1, len(tools)) or 1.0
            for field in _WEIGHTS
        }
        self._weights = {name: _weights_in(one, mean) for name, one in fields.items()}
        self._tools_with = Counter(word for weights in self._weights.values() for word in weights)

    def find(self, query: str, most: int = FOUND) -> list[str]:
        """Return the best first. A name that appears in the request comes before all others."""
        said = set(re.split(r"[\s,;\"'`()]+", query))
        exact = [name for name in self._weights if name in said]
        rarities = {word: self._rarity(word) for word in {*_words(query)} if word in self._tools_with}
        scores = {
            name: sum(rarity * weights[word] for word, rarity in rarities.items() if word in weights)
            for name, weights in self._weights.items()
        }
        ranked = sorted((name for name in scores if scores[name] > 0), key=lambda name: -scores[name])
        return list(dict.fromkeys([*exact, *ranked]))[:most]

    def _rarity(self, word: str) -> float:
        return math.log((len(self._weights) + 1) / (self._tools_with[word] + 0.5))


def _weights_in(fields: Mapping[str, Counter[str]], mean: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each word of a tool."""
    counts: Counter[str] = Counter()
    for field, weight in _WEIGHTS.items():
        shortness = weight / (1 - _B + _B * fields[field].total() / mean[field])
        for word, count in fields[field].items():
            counts[word] += count * shortness  # type: ignore[assignment]  # a sum of shares
    return {word: count * (_K + 1) / (count + _K) for word, count in counts.items()}


def _fields_of(name: str, tool: Tool) -> dict[str, Counter[str]]:
    return {
        "name": Counter(_words(f"{name} {tool.server or ''}")),
        "description": Counter(_words(tool.description)),
        "parameters": Counter(_words(" ".join(_texts_in(tool.parameters.schema.get("properties"))))),
    }


def _texts_in(schema: JsonValue) -> Iterable[str]:
    """Yield the names, descriptions and choices of parameters."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if isinstance(value, dict):
                yield name
                yield from _texts_in(value)
            elif name in ("description", "title") and isinstance(value, str):
                yield value
            elif name == "enum" and isinstance(value, list):
                yield from (one for one in value if isinstance(one, str))
            elif name in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
                for one in value:
                    yield from _texts_in(one)


def _words(text: str) -> list[str]:
    """Return the stemmed words, and the prefixes of long ones: `genetics` and `genetically` share one."""
    words = [_stem(word.lower()) for word in _WORD.findall(text)]
    return [*words, *(f"{word[:_BEGINNING]}-" for word in words if len(word) > _BEGINNING)]


def _stem(word: str) -> str:
    """`searching`, `searches` and `searched` become `search`."""
    for ending, least in (("ings", 4), ("ing", 4), ("ies", 3), ("ed", 4), ("es", 4), ("s", 3), ("e", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


# ── the tool ──────────────────────────────────────────────────────────────────────────────────────


class FindTools(BaseModel):
    """The arguments of `find_tools`."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[
        str, Field(min_length=1, max_length=1000, description="what the tool has to do, or its name")
    ]


_parameters = cache(lambda: Parameters(FIND_TOOLS, FindTools))


def find_tools_tool(tools: Mapping[str, Tool], sources: Mapping[str, str], said: Mapping[str, str]) -> Tool:
    """Return the tool. `said` has each source's description of its tools."""

    def run(arguments: BaseModel, _: ToolContext) -> ToolOutput:
        assert isinstance(arguments, FindTools)
        names = ToolSearch(tools).find(arguments.query)
        found: list[JsonValue] = [
            {"name": name, "description": tools[name].description[:_SHOWN]} for name in names
        ]
        if not found:
            return ToolOutput({"tools": found, "note": "No tool fits. Use other words, or do without."})
        rules = [said[source] for source in dict.fromkeys(sources[name] for name in names)]
        return ToolOutput({"tools": found, "rules": "\n\n".join(filter(None, rules))})

    return Tool(
        name=FIND_TOOLS,
        description=_description(tools, sources, said),
        parameters=_parameters(),
        run=run,
        permission=FIND_PERMISSION,
        patterns=lambda _: (),
        threaded=True,
        replay="safe",
        writes="nothing",
    )


def _description(tools: Mapping[str, Tool], sources: Mapping[str, str], said: Mapping[str, str]) -> str:
    """Describe the sources, their purpose, and some of their tools. Does not depend on which were loaded."""
    lines = [
        f"Find and load tools. You can call what was found in your next step. There are {len(tools)} more:"
    ]
    for source, text in said.items():
        names = [name for name in tools if sources[name] == source]
        purpose = " ".join(text.partition(": ")[2].split())[:PURPOSE]
        lines.append(f"- {source}{f' ({purpose})' if purpose else ''}: {_listed(names)}")
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name in names:
        if shown and sum(map(len, shown)) + len(name) > NAMED:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)
