"""Read public data sets of tool calls, each in the form in which it was published."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from training.public import Given, Tool
from training.public_kinds import MOST_SEEN
from training.public_utterances import utterances

_LEAD = re.compile(
    r"^(?:then|next|additionally|also|finally|after that|afterwards|furthermore|moreover|lastly|in addition"
    r"|first|firstly|secondly|second|besides|subsequently|meanwhile),? ",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:its?|this|that|these|those|them|their|he|she|obtained|once|result)\b", re.IGNORECASE
)
_SAME = {
    **dict.fromkeys(["get", "retrieve", "fetch", "find", "search", "check"], "get"),
    **dict.fromkeys(["lookup", "view", "show", "list", "query"], "get"),
    **dict.fromkeys(["calculate", "compute", "estimate", "determine"], "calculate"),
    **dict.fromkeys(["create", "add", "make", "generate"], "create"),
    **dict.fromkeys(["info", "information", "details", "detail", "data"], ""),
}  # words that do not distinguish tools
_NEEDED = 0.95  # share of the requests that have a slot for a required parameter


def read_all(folder: Path) -> Iterator[Tool]:
    readers = {
        "Seal-Tools": seal_tools,
        "snips": snips,
        "nlu-evaluation": utterances,
        "home-assistant": home_assistant,
        "glaive": glaive,
    }
    for name, reader in readers.items():
        if (folder / name).is_dir():
            yield from reader(folder / name)


# ── Seal-Tools ────────────────────────────────────────────────────────────────────────────────────


def seal_tools(folder: Path) -> Iterator[Tool]:
    """Four thousand tools, and requests, most of which are for several tools and are split."""
    tools: dict[str, Tool] = {}
    for line in (folder / "tool.jsonl").read_text("utf-8").splitlines():
        found = json.loads(line)
        parameters = {
            name: Given(name, one["type"], one.get("description", ""), name in found["required"])
            for name, one in found["parameters"].items()
        }
        field = found["field"].rpartition("/")[2].lower()
        tool = Tool(field, found["api_name"], found["api_description"], parameters)
        tool.results += _results(found.get("responses") or {})
        tools[tool.name] = tool
    for file in sorted(folder.glob("*.jsonl")):
        if file.name == "tool.jsonl":
            continue
        for line in file.read_text("utf-8").splitlines():
            found = json.loads(line)
            for request, call in _taken_apart(found["query"], found["calling"]):
                tool_called = tools.get(call["api"])
                if tool_called is not None:
                    tool_called.learn(request, call["parameters"])
    return iter(_distinct(tools.values()))


def _distinct(tools: Any) -> list[Tool]:
    """Without tools of a field that have the same words in their names as another."""
    taken: set[tuple[str, frozenset[str]]] = set()
    kept = []
    for tool in sorted(tools, key=lambda one: -len(one.requests["e"])):
        words = re.findall(r"[a-z]+|[A-Z][a-z]*", tool.name)
        content = frozenset(_SAME.get(word.lower(), word.lower().rstrip("s")) for word in words) - {""}
        if (tool.domain, content) not in taken:
            taken.add((tool.domain, content))
            kept.append(tool)
    return kept


def _taken_apart(query: str, calls: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each call with the one sentence that has all its values, and no other call's."""
    if len(calls) == 1:
        yield query, calls[0]
        return
    sentences = re.split(r"(?<=[.!?]) +(?=[A-Z])", query)
    homes: list[tuple[str, dict[str, Any]]] = []
    for call in calls:
        values = [str(value) for value in call["parameters"].values()]
        if not values or any("API_call" in value for value in values):
            continue
        having = [one for one in sentences if all(value.lower() in one.lower() for value in values)]
        if len(having) == 1:
            homes.append((having[0], call))
    shared = Counter(sentence for sentence, _ in homes)
    for sentence, call in homes:
        text = _LEAD.sub("", sentence)
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]{4,}", call["api"])}
        if (
            shared[sentence] == 1
            and not _POINTS_BACK.search(text)
            and any(word in text.lower() for word in words)
        ):
            yield text[:1].upper() + text[1:], call


def _results(responses: dict[str, dict[str, str]]) -> Iterator[str]:
    made = {"int": "int 1 900", "float": "float 0.5 90", "bool": "bool", "str": "title"}
    members = [
        f'"{name}": {{{letter}:{made[one["type"]]}}}'
        if one["type"] != "str"
        else f'"{name}": "{{{letter}:title}}"'
        for letter, (name, one) in zip("abcd", responses.items(), strict=False)
        if one["type"] in made and one["type"] != "bool"
    ]
    if not members:
        return
    (first, one), *others = responses.items()
    sentence = f"The {first.replace('_', ' ')}: {{a}}." if not others and one["type"] != "bool" else "SHOW"
    yield f"{{{', '.join(members)}}} => {sentence}"


# ── Snips ─────────────────────────────────────────────────────────────────────────────────────────

_INTENTS = {
    "AddToPlaylist": ("music", "Add a song or an artist to a playlist."),
    "BookRestaurant": ("restaurants", "Book a table at a restaurant."),
    "GetWeather": ("weather", "Tell the weather at a place and a time."),
    "PlayMusic": ("music", "Play music."),
    "RateBook": ("books", "Rate a book."),
    "SearchCreativeWork": ("works", "Find a book, a film, a game or another work."),
    "SearchScreeningEvent": ("cinema", "Find out where and when a film is shown."),
}
_AS_NUMBER = {"rating_value": "int 0 6", "best_rating": "int 5 10", "party_size_number": "int 2 12"}
_NO_VALUE = frozenset(("playlist_owner", "object_select", "current_location", "object_part_of_series_type"))


def snips(folder: Path) -> Iterator[Tool]:
    """Short requests as people typed them, with the words for each slot."""
    for intent, (domain, about) in _INTENTS.items():
        files = sorted(folder.rglob(f"train_{intent}_full.json"))
        if not files:
            continue
        tool = Tool(domain, intent, about, {})
        pieces = [one["data"] for one in json.loads(files[0].read_bytes().decode("utf-8", "replace"))[intent]]
        slots = Counter(piece["entity"] for one in pieces for piece in one if "entity" in piece)
        for slot, count in slots.items():
            if slot not in _NO_VALUE:
                label = slot.replace("_", " ").replace("timeRange", "time")
                name = "time_range" if slot == "timeRange" else slot
                required = count > _NEEDED * len(pieces)
                tool.parameters[name] = Given(
                    name, "string", f"{label}, as it was said", required, kind=_AS_NUMBER.get(slot, "")
                )
        for one in pieces[::4]:
            _learn_pieces(tool, one)
        yield tool


def _learn_pieces(tool: Tool, pieces: list[dict[str, str]]) -> None:
    names = ["time_range" if one.get("entity") == "timeRange" else one.get("entity") for one in pieces]
    said = [name for name in names if name]
    if len(set(said)) < len(said) or not said or not set(said) <= tool.parameters.keys():
        return
    text = "".join(
        f"{{{name}}}" if name else one["text"] for name, one in zip(names, pieces, strict=True)
    ).strip()
    required = {name for name, one in tool.parameters.items() if one.required}
    if not required <= set(said) or re.search(r"[\[\]\n\ufffd]", text):
        return
    for name, one in zip(names, pieces, strict=True):
        if name:
            tool.parameters[name].seen.append(one["text"].strip())
    tool.requests["e"].append(text)


# ── Home Assistant ────────────────────────────────────────────────────────────────────────────────

_MARKS = {"en": "e", "de": "d", "zh-CN": "z"}
_IMPLIED = frozenset(
    ("domain", "device_class", "state", "media_class", "conversation_command", "unit_of_measurement")
)
_AMOUNTS = {
    **dict.fromkeys(("hours", "start_hours"), "int 1 23"),
    **dict.fromkeys(("minutes", "seconds", "start_minutes", "start_seconds"), "int 2 59"),
    **dict.fromkeys(("brightness", "position", "percentage", "volume_level", "volume_step"), "int 1 100"),
    "temperature": "int 10 30",
}


def home_assistant(folder: Path) -> Iterator[Tool]:
    """Orders to a smart home, in English, German and Chinese, each with the values it was tested for."""
    intents = yaml.safe_load((folder / "intents.yaml").read_text("utf-8"))
    for language, mark in _MARKS.items():
        tools: list[Tool] = []
        for intent, one in sorted(intents.items()):
            tests = sorted((folder / "tests" / language / intent).glob("*.yaml"))
            slots = {name: slot for name, slot in (one.get("slots") or {}).items() if name not in _IMPLIED}
            if not tests or not slots:
                continue
            parameters = {
                name: Given(name, "string", slot.get("description", ""), False, kind=_AMOUNTS.get(name, ""))
                for name, slot in slots.items()
            }
            name = intent.removeprefix("Hass")
            tool = Tool(f"house {mark}", name, one.get("description", name), parameters, language=mark)
            for file in tests:
                for test in yaml.safe_load(file.read_text("utf-8")).get("tests") or ():
                    _learn_test(tool, test, mark)
            tools.append(tool)
        _share_values(tools)
        yield from tools


def _share_values(tools: list[Tool]) -> None:
    """The value that one tool calls an area can also be used for another tool."""
    every: dict[str, dict[str, None]] = {}
    for tool in tools:
        for name, given in tool.parameters.items():
            every.setdefault(name, {}).update(dict.fromkeys(given.seen))
    for tool in tools:
        for name, given in list(tool.parameters.items()):
            given.kind = given.kind or f"like {'|'.join(list(every[name])[:MOST_SEEN])}"
            if given.kind == "like ":
                del tool.parameters[name]


def _learn_test(tool: Tool, test: dict[str, Any], mark: str) -> None:
    slots = test.get("slots") or {}
    if not slots or _IMPLIED & slots.keys() or not slots.keys() <= tool.parameters.keys():
        return
    if any(isinstance(value, list | dict | bool) or "|" in str(value) for value in slots.values()):
        return
    for sentence in test.get("sentences") or ():
        tool.learn(str(sentence), slots, mark)


# ── Glaive ────────────────────────────────────────────────────────────────────────────────────────


def glaive(folder: Path) -> Iterator[Tool]:
    """Conversations with a function call: the first request, and its call."""
    for file in sorted(folder.glob("*.json")):
        mark = "z" if "_zh" in file.name else "e"
        tools: dict[str, Tool] = {}
        for found in json.loads(file.read_text("utf-8")):
            said = [(one["from"], one["value"]) for one in found["conversations"]]
            for one in json.loads(found.get("tools") or "[]"):
                if one["name"] not in tools and (tool := _function(one, mark)) is not None:
                    tools[one["name"]] = tool
            if len(said) > 1 and [who for who, _ in said[:2]] == ["human", "function_call"]:
                call = json.loads(said[1][1])
                tool_called = tools.get(call["name"])
                if tool_called is not None and isinstance(call["arguments"], dict):
                    tool_called.learn(said[0][1], call["arguments"], mark)
        yield from _distinct(tools.values())


def _function(found: dict[str, Any], mark: str) -> Tool | None:
    schema = found.get("parameters") or {}
    required = schema.get("required") or ()
    parameters = {
        name: Given(
            name,
            str(one.get("type")),
            str(one.get("description", "")),
            name in required,
            tuple(str(choice) for choice in one.get("enum") or ()),
        )
        for name, one in (schema.get("properties") or {}).items()
    }
    if not parameters or any(one.required and one.type not in _SIMPLE for one in parameters.values()):
        return None
    return Tool(f"functions {mark}", found["name"], found.get("description", ""), parameters, language=mark)


_SIMPLE = ("string", "integer", "number", "boolean")
