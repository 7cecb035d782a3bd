"""Tools of the material: read their notation, and create from each the tools that conversations offer.

A block begins with `@ names :: descriptions`; parameters follow, `. names: kind = abouts` (`?` for optional
ones), then requests (`e` English, `d` German, `z` Chinese), follow-ups (`f`, `fd`, `fz`), questions back (`?
PARAMETER ; REQUEST ; QUESTION`, `?d`, `?z`), and results (`= RESULT => SENTENCE`). `#` names the domain; `~`
says that a rule generated the requests.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from training import texts
from training.additions import telegram, with_more
from training.material.clashes import GENERAL_WORDS
from training.material.families import family_lines
from training.scene import Language, Scene, Value
from training.values import free_text, make_value, schema_of

FOLDER = Path(__file__).with_name("material")
MOST_OFTEN = 12  # how much more often a tool with many requests is chosen
HELD_OUT = 14  # one in this number of tools is only for the examination
_SLOT = re.compile(r"\{(\w+)\}")
_SET = re.compile(r"\[(\w+)=(\w+):([^\]]+)\]")
_NEW = re.compile(r"\{(\w+):([^}]+)\}")
_ENDS = re.compile(r"\{\w+\}$")
_ON = re.compile(
    r"\bon (?=today|tomorrow|yesterday|the day after|in \w+ (?:days|weeks?)|next |this )"
    r"|\bam (?=heute|gestern|morgen|übermorgen|in |nächsten )"
)
_LANGUAGES: dict[str, Language] = {"e": "en", "d": "de", "z": "zh", "f": "en", "fd": "de", "fz": "zh"}


@dataclass(slots=True)
class Parameter:
    names: list[str]
    kind: str
    abouts: list[str]
    required: bool


@dataclass(slots=True)
class Idea:
    """A tool with all its names, descriptions and phrases. A parameter is identified by its first name."""

    domain: str
    names: list[str]
    abouts: list[str]
    parameters: list[Parameter] = field(default_factory=list)
    requests: dict[Language, list[str]] = field(default_factory=lambda: {"en": [], "de": [], "zh": []})
    follow_ups: dict[Language, list[str]] = field(default_factory=lambda: {"en": [], "de": [], "zh": []})
    questions: dict[Language, list[tuple[str, str, str]]] = field(
        default_factory=lambda: {"en": [], "de": [], "zh": []}
    )
    results: list[tuple[str, str]] = field(default_factory=list)
    of_family: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The subjects that its names mention."""
        return _content_words(tuple(self.names))

    def alike(self, other: Idea) -> bool:
        """Return whether both could be right for a request. Within a domain they were written to differ."""
        return self.domain != other.domain and bool(self.words & other.words)

    @property
    def held(self) -> bool:
        return zlib.crc32(self.names[0].encode()) % HELD_OUT == 0


@dataclass(slots=True)
class Offered:
    """A tool as one conversation offers it, with the names that were chosen."""

    name: str
    description: str
    schema: dict[str, Any]
    idea: Idea | None = None
    called: dict[str, str] = field(default_factory=dict)  # the included parameters, by their first name
    abouts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Wish:
    """A user's request, and the correct call for it."""

    request: str
    tool: Offered
    arguments: dict[str, Any]
    values: dict[str, Value]
    result: str = ""
    reply: str = ""  # a sentence about the result; "" if the result is shown unchanged
    open_end: bool = False  # the request ends with a free text: nothing can follow


@cache
def _content_words(names: tuple[str, ...]) -> frozenset[str]:
    found = {word for name in names for word in re.split(r"[._-]", name.lower())}
    return frozenset(word.removesuffix("s") for word in found if len(word) > 2) - GENERAL_WORDS


@dataclass(slots=True, frozen=True)
class Stock:
    """Tools that conversations choose from, and the same by their domains."""

    ideas: tuple[Idea, ...]
    by_hand: tuple[Idea, ...]
    domains: dict[str, list[Idea]]


@cache
def stock(held: bool, public: str = "") -> Stock:
    """The material's tools, or those of a file that `public.py` made: all but those held out, or these."""
    found = tuple(idea for idea in (_read_public(public) if public else _all()) if idea.held == held)
    domains: dict[str, list[Idea]] = {}
    for idea in found:
        domains.setdefault(idea.domain, []).append(idea)
    by_hand = [idea for idea in found if not idea.of_family]
    if public:  # a few tools have most of the users' utterances
        by_hand = [
            idea for idea in by_hand for _ in range(1 + min(len(idea.requests["en"]) // 8, MOST_OFTEN))
        ]
    return Stock(found, tuple(by_hand), domains)


@cache
def _all() -> tuple[Idea, ...]:
    lines = [line for file in sorted(FOLDER.glob("*.txt")) for line in file.read_text("utf-8").split("\n")]
    return (*_read(lines), *_read(list(family_lines()), of_family=True))


@cache
def _read_public(file: str) -> tuple[Idea, ...]:
    return tuple(_read(Path(file).read_text("utf-8").split("\n")))


def _read(lines: list[str], *, of_family: bool = False) -> list[Idea]:
    found: list[Idea] = []
    domain = ""
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "#":
            domain = rest
        elif mark == "@":
            names, _, abouts = rest.partition(" :: ")
            found.append(Idea(domain, names.split(", "), abouts.split(" / "), of_family=of_family))
        elif mark:
            _read_line(found[-1], mark, rest)
    return found


def _read_line(idea: Idea, mark: str, rest: str) -> None:
    if mark == ".":
        left, _, about = rest.partition(" = ")
        names, _, kind = left.partition(": ")
        spelled = [name.strip().rstrip("?") for name in names.split(",")]
        idea.parameters.append(Parameter(spelled, kind, about.split(" / "), "?" not in names))
    elif mark in ("e", "d", "z"):
        idea.requests[_LANGUAGES[mark]].append(rest)
    elif mark in ("f", "fd", "fz"):
        idea.follow_ups[_LANGUAGES[mark]].append(rest)
    elif mark == "~":
        idea.of_family = True
    elif mark[0] == "?":
        parameter, request, question = rest.split(" ; ")
        idea.questions[_LANGUAGES.get(mark[1:], "en")].append((parameter, request, question))
    elif mark == "=":
        result, _, sentence = rest.partition(" => ")
        idea.results.append((result.replace("\\n", "\n"), "" if sentence == "SHOW" else sentence))
    else:
        raise ValueError(f"what is this line? {mark} {rest}")


_LONGER = (
    *(
        "Use this tool to {0}.",
        "{1} Returns a short text.",
        "This function can {0}.",
        "{1} The result is JSON.",
    ),
    *(
        "{1} Use it when the user asks for that.",
        "Tool: {0}",
        "{1} Requires no login.",
        "A tool that lets you {0}.",
    ),
    "{1} Do not call it twice.",
)


# ── offered ───────────────────────────────────────────────────────────────────────────────────────


def offer(scene: Scene, idea: Idea, taken: set[str]) -> Offered | None:
    """The tool under one of its names, with or without some of its optional parameters."""
    name = _styled(scene, scene.pick(idea.names), idea.domain)
    nameless = scene.maybe(0.05)
    if nameless:  # a name without meaning: the description has to be read
        name = scene.pick(
            [
                f"tool_{scene.chance.randint(1, 40)}",
                texts.name(scene).lower(),
                "".join(texts.some_words(scene, 1, 1)),
                f"fn{scene.chance.randint(1, 99)}",
            ]
        )
    if name in taken:
        return None
    called: dict[str, str] = {}
    abouts: dict[str, str] = {}
    properties: dict[str, Any] = {}
    for parameter in idea.parameters:
        if not parameter.required and scene.maybe(0.15):
            continue
        first = parameter.names[0]
        spelled = scene.pick(parameter.names) if scene.maybe(0.5) else first
        if spelled in properties:
            spelled = first
        wordless = scene.maybe(0.04) and bool(parameter.abouts[0])
        if wordless:
            spelled = scene.pick(
                [f"arg{len(properties) + 1}", f"p{len(properties)}", scene.pick(texts.vocabulary("words"))]
            )
        elif scene.maybe(0.08):
            spelled = _renamed(scene, spelled)
        if spelled in properties:
            spelled = f"{first}{len(properties)}"
        called[first], abouts[first] = spelled, scene.pick(parameter.abouts)
        schema = schema_of(parameter.kind)
        if abouts[first] and (
            "YYYY" in abouts[first] or "HH" in abouts[first] or wordless or scene.maybe(0.8)
        ):
            schema["description"] = abouts[first]
        elif parameter.kind in ("date", "time") and "YYYY" not in abouts[first]:
            abouts[first] = ""
        properties[spelled] = schema
    required = [called[one.names[0]] for one in idea.parameters if one.required]
    if scene.maybe(0.2):  # their order must not be learned
        order = list(properties)
        scene.chance.shuffle(order)
        properties = {spelled: properties[spelled] for spelled in order}
    description = scene.pick(idea.abouts)
    draw = scene.chance.random()
    if draw < 0.15:
        description = description.rstrip(".")
    elif draw < 0.2 and not nameless:
        description = ""
    elif draw < 0.3:
        description = scene.pick(_LONGER).format(description.rstrip(".").lower(), description)
    schema = {"type": "object", "properties": properties, "required": required}
    return Offered(name, description, schema, idea, called, abouts)


def _renamed(scene: Scene, spelled: str) -> str:
    """Return the name in another style: camelCase, or with a word before or after."""
    words = spelled.split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return str(
        scene.pick([camel, camel, f"{spelled}_value", f"the_{spelled}", f"input_{spelled}", spelled.upper()])
    )


def _styled(scene: Scene, name: str, domain: str) -> str:
    draw = scene.chance.random()
    words = name.split("_")
    if draw < 0.1:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if draw < 0.13:
        return name.replace("_", "-")
    if draw < 0.16:
        return f"{domain.split(' ', maxsplit=1)[0]}.{name}"
    if draw < 0.2:
        server = scene.pick(["mcp", "my", "acme", "api", domain.split(" ", maxsplit=1)[0]])
        return f"{server}{scene.pick(['__', '_'])}{name}"
    return name


# ── asked for ─────────────────────────────────────────────────────────────────────────────────────


def wish_for(scene: Scene, tool: Offered, before: Wish | None = None) -> Wish | None:
    """Return a request for this tool. After another request for it, it can change only a value."""
    idea = tool.idea
    assert idea is not None
    following = before is not None and before.tool is tool and bool(idea.follow_ups[scene.language])
    phrases = idea.follow_ups[scene.language] if following else idea.requests[scene.language]
    fitting = [phrase for phrase in phrases if _slots(phrase) <= tool.called.keys()]
    if not fitting:
        return None
    phrase = scene.pick(fitting)
    kinds = {one.names[0]: one.kind for one in idea.parameters}
    values = dict(before.values) if following and before is not None else {}
    for name in sorted(_slots(phrase), key=phrase.index):
        values[name] = make_value(scene, kinds[name], tool.abouts[name])
    open_end = bool(_ENDS.search(phrase)) and kinds.get(phrase.rpartition("{")[2][:-1]) == "quoted"
    if open_end and scene.maybe(0.6):
        text = free_text(scene)
        values[phrase.rpartition("{")[2][:-1]] = Value("\n" + text if "\n" in text else text, text)
    else:
        open_end = False
    for name, word, spoken in _SET.findall(phrase):
        number = int(word) if kinds[name].startswith(("int", "float")) else word
        values[name] = Value(spoken, {"true": True, "false": False}.get(word, number))
        phrase = phrase.replace(f"[{name}={word}:{spoken}]", spoken)
    request = _without_on(_SLOT.sub(lambda match: values[match[1]].spoken, phrase))
    if not following and not open_end:
        if scene.language == "en" and scene.maybe(0.05) and (short := telegram(scene, tool)) is not None:
            request, values = short
        elif scene.maybe(0.22) and not request.endswith((".", '"', "'")):
            request = with_more(scene, tool, request, values)
    written = [str(value.written) for value in values.values() if not isinstance(value.written, bool)]
    if len(set(written)) < len(written):
        return None  # from Rome to Rome
    arguments = {tool.called[name]: values[name].written for name in values}
    in_order = {spelled: arguments[spelled] for spelled in tool.schema["properties"] if spelled in arguments}
    result, reply = _result(scene, idea, values)
    return Wish(request, tool, in_order, values, result, reply, open_end)


def _without_on(request: str) -> str:
    """Not "on tomorrow", nor "am morgen"."""
    return _ON.sub("", request)


def question_for(scene: Scene, tool: Offered) -> tuple[str, str, Wish | None] | None:
    """A request that lacks something, the question back, and the answer with the call that it allows."""
    assert tool.idea is not None
    choices = tool.idea.questions[scene.language]
    if not choices:
        return None
    missing, request, question = scene.pick(choices)
    kinds = {one.names[0]: one.kind for one in tool.idea.parameters}
    slots = _SLOT.findall(request)
    if missing not in tool.called or not set(slots) <= tool.called.keys():
        return None
    values = {name: make_value(scene, kinds[name], tool.abouts[name]) for name in [*slots, missing]}
    said = _SLOT.sub(lambda match: values[match[1]].spoken, request)
    needed = {one.names[0] for one in tool.idea.parameters if one.required}
    if needed > values.keys():
        return said, question, None
    written = {tool.called[name]: value.written for name, value in values.items()}
    arguments = {spelled: written[spelled] for spelled in tool.schema["properties"] if spelled in written}
    result, reply = _result(scene, tool.idea, values)
    return said, question, Wish(values[missing].spoken, tool, arguments, values, result, reply)


def _slots(phrase: str) -> set[str]:
    return {*_SLOT.findall(phrase), *(name for name, _, _ in _SET.findall(phrase))}


def _result(scene: Scene, idea: Idea, values: dict[str, Value]) -> tuple[str, str]:
    if not idea.results:
        return "", ""
    result, sentence = scene.pick(idea.results)
    english = Scene(scene.chance, "en", scene.today, False)
    plain = {name: make_value(english, kind) for name, kind in _NEW.findall(result)}

    def fill(match: re.Match[str]) -> str:
        found = plain.get(match[1])
        if found is not None:
            return str(found.written)
        return values[match[1]].spoken if match[1] in values else ""

    result = _SLOT.sub(fill, _NEW.sub(r"{\1}", result))
    needs = set(_SLOT.findall(sentence))
    if not needs <= {*plain, *values}:
        return result, ""
    return result, _SLOT.sub(fill, sentence)
