"""Learn from a model's errors what its server does not accept, so that it refuses each thing only once.

Servers that imitate a protocol differ in the fields, roles and files they accept. Newer models of one
provider accept other fields than older ones. An error that names what it refuses is a lesson: the request is
sent again without it, and so are all later requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.media import IN_WORDS, Modality, modality
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.sentences import sentence
from dragoman.wire.files.file_parts import files_of, without_files

# Name the fields of a body, find which one an error is about, and leave one out.


Body: TypeAlias = dict[str, JsonValue]

_NEEDED = frozenset(
    {
        *("model", "messages", "input", "contents", "stream", "tools", "toolConfig.tools"),
        *("system", "instructions", "systemInstruction"),
        # a requested output format must not be replaced
        *("response_format", "text", "output_config.format", "outputConfig.textFormat"),
        *("generationConfig.responseSchema", "generationConfig.responseJsonSchema"),
        "generationConfig.responseMimeType",
    }
)
_GROUPS = (  # groups whose fields can be left out individually
    *("generationConfig", "reasoning", "output_config"),
    *("inferenceConfig", "additionalModelRequestFields", "outputConfig", "toolConfig"),
)
_OF_MESSAGES = {  # fields of a replayed reply that not all servers know
    "messages": frozenset({"reasoning_content", "reasoning", "reasoning_details"}),
    "input": frozenset({"phase"}),
}
_BLOCKS = "blocks"  # represents content made of objects with one field each
_OF_BLOCKS = frozenset({"reasoningContent", "cachePoint"})
_PLAIN = ("temperature", "seed")  # plain words that have no other meaning in such an error


def fields_of(body: Mapping[str, JsonValue]) -> frozenset[str]:
    """Return the names of the fields in a body. In groups, include the fields inside: `reasoning.effort`."""
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
    """Yield the lists of blocks in a Converse body: messages, the system prompt, the tools."""
    tools, messages = body.get("toolConfig"), body.get("messages")
    turns = messages if isinstance(messages, list) else []
    said = [turn.get("content") for turn in turns if isinstance(turn, dict)]
    for blocks in (body.get("system"), tools.get("tools") if isinstance(tools, dict) else None, *said):
        if isinstance(blocks, list) and all(isinstance(one, dict) for one in blocks):
            yield cast("list[Body]", blocks)


def named_field(message: str, fields: Iterable[str]) -> str | None:
    """Return the field that a message is about: the first it names, longer names before their prefixes."""
    names = frozenset(fields)
    found: list[tuple[int, int, str]] = []
    for one in names:
        place = _place(message, one)
        if place is not None and one not in _NEEDED and f"{one}.tools" not in names:
            found.append((place, -len(one), one))
    return min(found)[2] if found else None


def is_optional(name: str) -> bool:
    """Return whether a request makes sense without this field."""
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
    """Remove the field that `fields_of` names."""
    group, _, inner = name.rpartition(".")
    if group == _BLOCKS:
        for blocks in _block_lists(body):  # None of them is alone: each list also contains a text or a call.
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
    """Turn off strict mode for tools. On Messages, remove the keyword. OpenAI would take its absence as
    strict."""
    config = body.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function", tool.get("toolSpec", tool)) if isinstance(tool, dict) else None
        if isinstance(function, dict) and not function.keys().isdisjoint({"input_schema", "inputSchema"}):
            function.pop("strict", None)
        elif isinstance(function, dict) and function.get("strict"):
            function["strict"] = False


MOST_LESSONS = 8  # of one request
CANNOT_TAKE = "which this model cannot be shown"

_SILENT = frozenset({"auth", "quota", "rate_limit", "filter", "context_overflow", "timeout"})
_STATUSES = frozenset({None, 400, 404, 405, 415, 422, 500, 501})

# ── wordings of servers ───────────────────────────────────────────────────────────────────────────


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)


_REFUSES = _words(
    *(r"unsupported", r"not (?:\w+ )?support", r"n't support", r"only supported", r"only the default"),
    *(r"unknown", r"unrecogni[sz]ed", r"unexpected", r"not (?:permitted|allowed|enabled|available|accepted)"),
    *(r"cannot find field", r"no such", r"deprecated", r"additional propert", r"cannot both be"),
    r"invalid (?:parameter|argument|field|property)",
)
# The value is wrong in this case, but the field is accepted, so there is nothing to remember.
_OF_VALUE = _words(
    r"\b(?:supported|allowed|valid|possible|accepted) values?\b",
    r"(?:must|should) be (?:one of|between|at (?:most|least)|less|greater)",
    r"expected one of",
    r"unsupported value(?!.*only the default)",
)
_TOOLS = _words(
    r"does(?:n't| not) support (?:tools?|function)",
    r"tool choice requires",
    r"no endpoints found that support tool",
    r"tool (?:use|calling)`? is not supported",
    r"function calling is not (?:enabled|supported)",
    r"tools param requires --jinja",
)
_SYSTEM = _words(
    r"system (?:role|message|prompt|instruction)s?.{0,30}not (?:supported|enabled|allowed)",
    r"developer instruction is not enabled",
    r"only user and assistant roles",
    r"does(?:n't| not) support (?:the )?[`'\"]?system",
    r"(?:unsupported|unknown|invalid) role:? ?[`'\"]?system",
)
_THINKING = _words(
    r"(?:thinking|reasoning)(?: (?:level|mode|effort|budget|config))? (?:is|are) not (?:supported|enabled)",
    r"(?:not|n't) support(?: \w+)? (?:thinking|reasoning|effort)\b",
    r"unable to .{0,60}thinking is not",
)
_SUMMARIES = _words(r"verified to generate reasoning summar")
_ENCRYPTED = _words(r"encrypted content is not supported")
_CACHING = _words(
    r"did not allow prompt caching", r"not support prompt caching", r"cache[ _]?point.{0,40}not"
)
# Enforced schemas are compiled into one grammar, which can become too large.
_STRICT = _words(
    r"invalid schema for function",
    r"schema(?:s|\(s\))? (?:is|are) too complex",
    r"too many (?:strict|optional|union)",
    r"compiled grammar is too large",
    r"strict (?:mode|tools?|schemas?)? ?(?:is|are)? ?not (?:\w+ )?(?:support|enabl|allow|permit|available)",
    r"tools\.\d+(?:\.\w+)*\.strict",
    r"structured outputs?.{0,60}not (?:\w+ )?(?:support|enabl|allow|available)",
)
_SCHEMA = _words(  # of the answer
    *(r"response_?format", r"json_?schema", r"json[ _]mode", r"structured[ _]outputs?", r"output_?config"),
    *(
        r"response_?(?:json_?)?schema",
        r"response_? ?mime_? ?type",
        r"text\.format",
        r"guided_?(?:json|decoding)",
    ),
)
_BROKEN_FILE = _words(
    r"(?:unsupported|invalid|corrupt\w*|broken|empty) (?:image|audio|video|file|pdf|document)\b",
    r"(?:could|can) ?not (?:be )?(?:process|read|decode|identif|open|download|parse)\w*.{0,40}"
    r"(?:image|audio|video|file|pdf|document)",
    r"(?:unable|failed) to (?:process|read|decode|download|parse|fetch|load).{0,30}"
    r"(?:image|audio|video|file|pdf|document)",
    r"(?:image|audio|video|file|pdf|document).{0,40}"
    r"(?:could not be|cannot be|is not (?:a )?valid|too (?:large|small))",
)
_NOT_SHOWN: dict[Modality, re.Pattern[str]] = {
    "image": _words(
        r"image.{0,60}(?:not (?:\w+ )?(?:support|enabl|allow)|only supported|unsupported)",
        r"(?:not|n't) (?:\w+ )?support.{0,30}(?:image|vision|multimodal)",
        r"unknown variant .?image",
        r"not a multimodal model",
        r"endpoints found that support image",
        r"at most 0 image",
        r"missing data required for image",
        r"content.{0,20}(?:must be|expected) a string",
        r"invalid content type.{0,20}image",
    ),
    "audio": _words(
        r"audio.{0,60}(?:not (?:\w+ )?(?:support|enabl|allow)|only supported|unsupported)",
        r"(?:not|n't) (?:\w+ )?support.{0,30}audio",
        r"unknown variant .?input_audio",
        r"at most 0 audio",
    ),
    "video": _words(
        r"video.{0,60}(?:not (?:\w+ )?(?:support|enabl|allow)|only supported|unsupported)",
        r"(?:not|n't) (?:\w+ )?support.{0,30}video",
        r"at most 0 video",
    ),
    "file": _words(
        r"(?:file|pdf|document)s?\b.{0,60}(?:not (?:\w+ )?(?:support|enabl|allow)|unsupported)",
        r"(?:not|n't) (?:\w+ )?support.{0,30}(?:file|pdf|document)",
        r"unknown variant .?file",
    ),
}

_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OF_THINKING = (
    *("reasoning_effort", "reasoning", "thinking", "output_config.effort"),
    *("generationConfig.thinkingConfig", "outputConfig.effort"),
    *(f"additionalModelRequestFields.{name}" for name in ("thinking", "reasoningConfig", "reasoning_effort")),
)

# ── lessons ───────────────────────────────────────────────────────────────────────────────────────


def may_teach(error: ProviderError) -> bool:
    """Return whether an error names what the request must not contain, so that repeating it is useless."""
    if error.kind in _SILENT or error.status not in _STATUSES:
        return False
    others = (_SCHEMA, _TOOLS, _SYSTEM, _THINKING, _SUMMARIES, _STRICT, _ENCRYPTED, _CACHING)
    if any(words.search(error.message) for words in (*others, *_NOT_SHOWN.values())):
        return True
    return _is_of_field(error.message) and named_field(error.message, error.sent) is not None


def _is_of_field(message: str) -> bool:
    return _REFUSES.search(message) is not None and _OF_VALUE.search(message) is None


_FLAGS = {
    "no_system": sentence("lesson.no_system"),
    "no_tools": sentence("lesson.no_tools"),
    "no_schema": sentence("lesson.no_schema"),
    "no_strict": sentence("lesson.no_strict"),
}


def in_words(word: str) -> str:
    """Return a lesson in words for users, to follow the model's name."""
    kind, _, name = word.partition(" ")
    match kind:
        case "rename":
            return sentence("lesson.rename", name=name, other=_LIMITS.get(name, "another name"))
        case "lacks":
            shown = next((words for one, words in IN_WORDS.items() if one == name), name)
            return sentence("lesson.lacks", shown=shown)
        case "drop":
            return sentence("lesson.drop", name=name)
        case _:
            return _FLAGS.get(word, word)


@dataclass(slots=True)
class Learned:
    """The lessons about one model, in addition to the catalog. Shared by all turns that use it."""

    # Replaced, never changed in place: a thread may trim a large body while another turn learns.
    dropped: frozenset[str] = frozenset()  # fields that are left out
    renamed: Mapping[str, str] = field(default_factory=dict)
    lacks: set[Modality] = field(default_factory=set)
    no_system: bool = False
    no_tools: bool = False
    no_schema: bool = False  # has no schema mode: the prompt describes the form of an answer
    no_strict: bool = False  # refuses a tool's schema as strict, although it looked valid
    lessons: int = 0  # so far: a caller that asked before one may ask again

    def learn(
        self, error: ProviderError, request: Request, *, wire: str, may_write_calls: bool
    ) -> str | None:
        """Learn from an error. Return what is done differently from now on, in words for users. None if
        nothing."""
        if not may_teach(error):
            return None
        if request.output is not None and not self.no_schema and _SCHEMA.search(error.message):
            self.no_schema = True
            self.lessons += 1
            return _FLAGS["no_schema"]
        text = self._of_request(error.message, request, may_write_calls) or self._of_fields(error, wire)
        self.lessons += text is not None
        return text

    @property
    def words(self) -> frozenset[str]:
        """All lessons, each in a form that can be stored: `drop temperature`."""
        return frozenset(
            {
                *(name for name in _FLAGS if getattr(self, name)),
                *(f"drop {name}" for name in self.dropped),
                *(f"rename {old}" for old in self.renamed),
                *(f"lacks {kind}" for kind in self.lacks),
            }
        )

    def recall(self, words: Iterable[str]) -> tuple[str, ...]:
        """Restore earlier lessons. Return them in words for users. Invalid ones are skipped."""
        told: list[str] = []
        for word in words:
            kind, _, name = word.partition(" ")
            if word in _FLAGS:
                setattr(self, word, True)
            elif kind == "drop" and is_optional(name):
                self.dropped = self.dropped | {name}
            elif kind == "rename" and name in _LIMITS:
                self.renamed = {**self.renamed, name: _LIMITS[name]}
            elif kind == "lacks" and name in _NOT_SHOWN:
                self.lacks.update(one for one in _NOT_SHOWN if one == name)
            else:
                continue
            told.append(in_words(word))
        return tuple(told)

    def _of_request(self, message: str, request: Request, may_write_calls: bool) -> str | None:
        if _TOOLS.search(message):
            if not may_write_calls or not request.tools or self.no_tools:
                return None
            self.no_tools = True
            return _FLAGS["no_tools"]
        if _SYSTEM.search(message) and request.system and not self.no_system:
            self.no_system = True
            return _FLAGS["no_system"]
        if is_broken_file(message):
            return None
        held = {modality(file) for file in files_of(request)} - self.lacks
        for kind, words in _NOT_SHOWN.items():
            if kind in held and words.search(message):
                self.lacks.add(kind)
                return in_words(f"lacks {kind}")
        return None

    def _of_fields(self, error: ProviderError, wire: str) -> str | None:
        if _STRICT.search(error.message):
            if self.no_strict or not {"tools", "toolConfig.tools"} & error.sent:
                return None
            self.no_strict = True
            return _FLAGS["no_strict"]
        sent = error.sent - {"max_tokens"} if wire == "anthropic_messages" else error.sent
        names: tuple[str, ...] = ()
        if _ENCRYPTED.search(error.message):
            names = ("include",)
        elif _CACHING.search(error.message):
            names = ("blocks.cachePoint",)
        elif _SUMMARIES.search(error.message):
            names = ("reasoning.summary",)
        elif _THINKING.search(error.message):
            names = _OF_THINKING
        elif _is_of_field(error.message) and (name := named_field(error.message, sent)) is not None:
            names = (name,)
        names = tuple(name for name in names if name in sent and name not in self.dropped)
        if not names:
            return None
        (first, *_) = names
        if first in _LIMITS and first not in self.renamed.values():
            self.renamed = {**self.renamed, first: _LIMITS[first]}
            return in_words(f"rename {first}")
        self.dropped = self.dropped.union(names)
        return in_words(f"drop {', '.join(names)}")

    # ── requests ──────────────────────────────────────────────────────────────────────────────────

    def fit(self, request: Request, takes: Callable[[Modality], bool]) -> Request:
        """Return the request as this model can take it: its files, and the place of its system prompt."""
        request = without_files(request, lambda file: not takes(modality(file)), CANNOT_TAKE)
        if not self.no_system or not request.system.strip():
            return request
        system = Text(request.system)
        first, *others = request.messages or (RequestMessage("user", ()),)
        opening = (
            (RequestMessage("user", (system, *first.parts)),)
            if first.role == "user"
            else (RequestMessage("user", (system,)), first)
        )
        return replace(request, system="", messages=(*opening, *others))

    def trim(self, body: dict[str, JsonValue], only: frozenset[str] | None = None) -> dict[str, JsonValue]:
        """Return a body without the refused fields, or only without those in `only`, and with
        accepted names."""
        for old, new in self.renamed.items():
            if old in body:
                body[new] = body.pop(old)
        if self.no_strict:
            loosen_tools(body)
        for name in self.dropped if only is None else self.dropped & only:
            drop_field(body, name)
        return body


def is_broken_file(message: str) -> bool:
    """Return whether a server could not read one of the files, which does not affect others."""
    return _BROKEN_FILE.search(message) is not None
