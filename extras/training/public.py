"""Convert public data sets of tool calls to material, in the notation of `tools.py`.

    python -m training.public FOLDER > public.txt

The folder has one folder for each set, as published (see README.md). The values of each request become slots,
so that others can be inserted: the model learns the position of a value, not the value. A request is omitted
if it lacks a value of its call, or if the call lacks a required argument or has one that the tool lacks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.public_kinds import kind_of, without_examples
from training.texts import vocabulary

MOST_REQUESTS = 400  # of one tool
RARE = 4  # requests of a tool: with so few, each occurs several times
OFTEN = 20  # with so many, no others are needed
LONGEST_REQUEST = 240  # characters
LONGEST_ABOUT = 160

_ASKING = ("retrieve", "get", "fetch", "find", "display", "provide", "show", "list", "view", "search")
_ARTICLE = r"(?:(?:a|an|the)(?: (?:specific|specified|given|particular|certain))?|specific|specified)"
_VAGUE = re.compile(r"\b(?:a|an|the|some) (?:specific|specified|given|particular|certain) ", re.IGNORECASE)


@dataclass(slots=True)
class Given:
    """A parameter as a data set has it."""

    name: str
    type: str
    about: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    seen: list[str] = field(default_factory=list)
    kind: str = ""  # set if the reader knows better than the other fields show


@dataclass(slots=True)
class Tool:
    """A tool as a data set has it, with requests whose values are slots: `{name}`."""

    domain: str
    name: str
    about: str
    parameters: dict[str, Given]
    requests: dict[str, list[str]] = field(default_factory=lambda: {"e": [], "d": [], "z": []})
    results: list[str] = field(default_factory=list)
    language: str = "e"  # the language of its names for things

    def learn(self, request: str, arguments: dict[str, Any], language: str = "e") -> bool:
        """Keep a request with slots for its values, if that is possible."""
        phrase = phrase_of(request, arguments, self.parameters)
        if phrase is None:
            return False
        for name, value in arguments.items():
            self.parameters[name].seen.append(str(value))
        self.requests[language].append(phrase)
        return True


def phrase_of(request: str, arguments: dict[str, Any], parameters: dict[str, Given]) -> str | None:
    """Return the request with a slot for each value, or nothing if that requires guessing."""
    text = " ".join(request.split())
    required = {name for name, one in parameters.items() if one.required}
    if len(text) > LONGEST_REQUEST or re.search(r"[{}\[\]]", text):
        return None
    if not required <= arguments.keys() <= parameters.keys():
        return None
    for name, value in sorted(arguments.items(), key=lambda item: -len(str(item[1]))):
        found = _places(text, value)
        if len(found) != 1:
            return None
        begin, end = found[0]
        text = f"{text[:begin]}{{{name}}}{text[end:]}"
    return text


def _places(text: str, value: Any) -> list[tuple[int, int]]:
    if isinstance(value, bool | list | dict) or value is None:
        return []
    spelled = re.escape(str(value).strip().rstrip("."))
    if not spelled:
        return []
    before, after = (r"(?<![\w.{])", r"(?![\w}]|\.\d)") if str(value).isascii() else ("", "")
    return [match.span() for match in re.finditer(f"{before}{spelled}{after}", text, re.IGNORECASE)]


# ── in the notation of the material ───────────────────────────────────────────────────────────────


def lines_of(tools: Iterable[Tool]) -> Iterator[str]:
    domain = ""
    for tool in sorted(tools, key=lambda one: one.domain):
        kinds = {
            name: one.kind or kind_of(name, one.type, one.about, one.seen, one.choices)
            for name, one in tool.parameters.items()
        }
        if any(one.required and not kinds[name] for name, one in tool.parameters.items()):
            continue
        block = list(_block(tool, {name: kind for name, kind in kinds.items() if kind}))
        if not any(line.startswith(("e ", "d ", "z ")) for line in block):
            continue
        if tool.domain != domain:
            domain = tool.domain
            yield f"# {domain} (public)"  # must not be confused with the material's tools
        yield from block


def _block(tool: Tool, kinds: dict[str, str]) -> Iterator[str]:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool.name).lower().replace(" ", "_")
    names = [snake] if snake == tool.name else [snake, tool.name]
    yield f"@ {', '.join(names)} :: {_clean(tool.about)}"
    for name, kind in kinds.items():
        one = tool.parameters[name]
        about, short = _clean(one.about), _clean(without_examples(one.about))
        if kind == "date":
            about = short = f"YYYY-MM-DD, {short}" if "YYYY" not in short else short
        elif "|" in kind and not kind.startswith("like"):
            about = short
        abouts = " / ".join(dict.fromkeys((short, about)))
        yield f". {name}{'' if one.required else '?'}: {kind} = {abouts}"
    for language, requests in tool.requests.items():
        fitting = [one for one in dict.fromkeys(requests) if _slots(one) <= kinds.keys()]
        yield from (f"{language} {_without_marks(one, kinds)}" for one in fitting[:MOST_REQUESTS])
        if (
            tool.language == "e" and len(fitting) <= RARE
        ):  # used in preference to a phrase made from the description
            yield from (f"{language} {_without_marks(one, kinds)}" for one in fitting * RARE)
    if tool.language == "e" and len(tool.requests["e"]) <= OFTEN:
        yield from _plain_requests(tool, kinds)
    if not any(tool.requests.values()):
        yield "~"
    yield from (f"= {result}" for result in tool.results)


def _plain_requests(tool: Tool, kinds: dict[str, str]) -> Iterator[str]:
    """Return the request of a user who has read the tool's description: that text, and the values by
    parameter name."""
    about = _VAGUE.sub("the ", without_examples(tool.about).rstrip("."))
    about = re.sub(
        r"\s+based on .*| given .*| using the .*| for the (?:location|region|country|area|city)$", "", about
    )
    if about.split(" ", 1)[0].lower() not in vocabulary("verbs") or len(about) > 100:
        return
    low = about[0].lower() + about[1:]
    needed = [name for name in kinds if tool.parameters[name].required] or list(kinds)[:1]
    if not needed or any(kinds[name] == "bool" for name in needed):
        return
    yield from _within(tool.about, needed)
    said = [f"{_label(name)} {{{name}}}" for name in needed]
    last = f"{', '.join(said[:-1])} and {said[-1]}" if said[1:] else said[0]
    yield f"e {about}, {', '.join(said)}"
    yield f"e {about} with {last}"
    yield f"e {about}: {', '.join(said)}"
    yield f"e I need you to {low}. {' '.join(f'The {_label(name)} is {{{name}}}.' for name in needed)}"
    if not said[1:]:
        yield f"e {about} for {{{needed[0]}}}"
        yield f"e {low}: {{{needed[0]}}}"
    yield f"e can you {low}? {', '.join(f'{_label(name)}: {{{name}}}' for name in needed)}"
    if len(needed) <= 2 and tool.parameters[needed[0]].required:
        rest = f", {_label(needed[1])} {{{needed[1]}}}" if needed[1:] else ""
        yield f"? {needed[0]} ; {about}{rest} ; What is the {_label(needed[0])}?"
        yield f"? {needed[0]} ; I'd like to {low}{rest} ; Please tell me the {_label(needed[0])}."


def _within(about: str, needed: list[str]) -> Iterator[str]:
    """ "… of a country" with the country in its place, and the others after it."""
    about = without_examples(about).rstrip(".")
    left = []
    for name in needed:
        label = _label(name)
        thing = re.sub(r" (?:name|title|ID|type|number|code)$", "", label)
        found = re.search(rf"{_ARTICLE} ((?:\w+ )?{re.escape(thing)})\b", about, re.IGNORECASE)
        if found is None or "{" in found[0]:
            left.append(name)
            continue
        kept = f"{found[1]} " if thing != label else ""
        about = f"{about[: found.start()]}{kept}{{{name}}}{about[found.end() :]}"
    if len(left) == len(needed):
        return
    rest = "".join(f", {_label(name)} {{{name}}}" for name in left)
    about = _VAGUE.sub("the ", about)
    verb, _, what = about.partition(" ")
    low = about[0].lower() + about[1:]
    yield from (f"e {text}{rest}" for text in (about, low, f"please {low}", f"I want to {low}"))
    if verb.lower() in _ASKING and what:
        bare = re.sub(r"^(?:the|information (?:about|on|of)|details (?:about|of)) ", "", what)
        yield from (
            f"e {begin} {what}{rest}"
            for begin in ("show me", "tell me", "give me", "I need", "I'm looking for")
        )
        yield from (f"e {bare}{rest}", f"e {bare}{rest}?", f"e What about {bare}{rest}?")
        if what.startswith("the "):
            many = re.match(r"the (?:[a-z]+ )?[a-z]+[^s]s (?:of|for|in)", what)
            yield f"e What {'are' if many else 'is'} {what}{rest}?"


def _label(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("_", " ").strip()
    return re.sub(r"\bid\b", "ID", words)


def _slots(phrase: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", phrase))


def _without_marks(phrase: str, kinds: dict[str, str]) -> str:
    """A quotation brings its marks along."""
    for name in _slots(phrase):
        if kinds[name] == "quoted":
            phrase = re.sub(rf"[\"'“‘]?\{{{name}\}}[.]?[\"'”’]?", f"{{{name}}}", phrase)
        else:
            phrase = re.sub(rf"([\"'])\{{{name}\}}(?!['\"])", f"{{{name}}}", phrase)  # half a pair
    return phrase


def _clean(text: str) -> str:
    text = " ".join(text.split()).replace(" / ", " or ").replace(" :: ", ": ").replace(" = ", " is ")
    return text[:LONGEST_ABOUT].rstrip()


def main() -> None:
    from training.public_sets import read_all

    for line in lines_of(read_all(Path(sys.argv[1]))):
        print(line)


if __name__ == "__main__":
    main()
