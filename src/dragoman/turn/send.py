"""What a send may say of its own turn, beside the message: what is stored with the turn, and what is not."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue
from typing_extensions import TypedDict, Unpack

from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.boundary import check_fields, check_json, check_parts
from dragoman.messages.codec import Codec
from dragoman.messages.ids import new_id
from dragoman.messages.message import File, Message, Part, Text
from dragoman.messages.questions import Mode, Rule
from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.sentences import sentence
from dragoman.store.codecs import MESSAGE
from dragoman.store.turns import KEPT, SendKey
from dragoman.tools.authorize import REVIEWS, ReviewPolicy
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.permissions import hidden
from dragoman.tools.tool import Tool
from dragoman.turn.facts import TurnOptions
from dragoman.turn.output import Output
from dragoman.turn.settings import checked

# Tools that come with one message: its sender runs them, and delivers their results.


_SPEC: Codec[ToolSpec] = Codec(ToolSpec)
MOST = 512  # tools of one message


def check_client_tools(specs: Any) -> tuple[ToolSpec, ...]:
    """As they are stored with the turn. BadRequest where one of them cannot be a tool."""
    found = tuple(specs) if isinstance(specs, Iterable) else (specs,)
    for spec in found:
        if not isinstance(spec, ToolSpec):
            raise BadRequest(sentence("client_tools.kind", spec=spec))
        check_fields(_SPEC, spec, "a tool")
    if len(found) > MOST:
        raise BadRequest(sentence("client_tools.too_many", count=len(found), most=MOST))
    names = [spec.name for spec in found]
    for spec in found:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.name):
            raise BadRequest(sentence("tool.name", name=spec.name))
        if names.count(spec.name) > 1:
            raise BadRequest(sentence("client_tools.twice", name=spec.name))
        try:
            JsonParameters(spec.name, spec.parameters)
        except ConfigError as error:
            raise BadRequest(str(error)) from error
    return found


def client_tools_of(options: TurnOptions, rules: Iterable[Rule] = ()) -> Mapping[str, Tool]:
    """By their names. One that has the name of a tool of ours stands in its place, in this turn alone: what
    it does is done by whoever sent it, under a permission of its own."""
    against = [*rules]
    tools = (_tool(spec) for spec in options.client_tools)
    return {tool.name: tool for tool in tools if not hidden(tool.permission, against)}


def gone_tool(name: str, review: str) -> Tool:
    """In place of one that a client runs and that is no longer defined here: it can be called no more, and
    the result that comes of a call is treated as it would have been. Where that is not known, with care."""
    return Tool(
        name=name,
        description="",
        parameters=JsonParameters(name, {}),
        run=None,
        permission=name,
        patterns=lambda _: (),
        review=next((known for known in REVIEWS if known == review), "always"),
    )


def _tool(spec: ToolSpec) -> Tool:
    return Tool(
        name=spec.name,
        description=spec.description,
        parameters=JsonParameters(spec.name, spec.parameters),
        run=None,
        permission=f"client.{spec.name}",
        patterns=lambda _: (),
        examples=spec.examples,
        brought=True,
    )


# What a person says, checked before it is stored.


def user_message(
    conversation: str,
    said: str | Sequence[Part],
    parent: str | None,
    now: float,
    metadata: Mapping[str, JsonValue] | None = None,
) -> Message:
    """The message of it. BadRequest where nothing is said, or what cannot be kept."""
    parts = (Text(said),) if isinstance(said, str) else said_parts(said)
    for part in parts:
        check_json(asdict(part), "the message")
    given = dict(metadata or {})
    check_json(given, "the metadata of the message")
    message = Message(new_id("msg"), conversation, parent, "user", parts, created=now, metadata=given)
    if not isinstance(said, str):
        check_fields(MESSAGE, message, "the message")
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise BadRequest(sentence("message.blank"))
    check_parts(parts)
    if any(file.blob is None and file.url is None for file in message.files):
        raise BadRequest(sentence("message.empty_file"))
    return message


def with_contexts(said: str | Sequence[Part], contexts: Mapping[str, str]) -> str | Sequence[Part]:
    """What a person says, after texts by their titles: text files, which are shown and stored like
    attachments and sent before the text."""
    if not contexts:
        return said
    files = [
        File("text/plain", url=f"data:text/plain;base64,{b64encode(text.encode()).decode()}", name=title)
        for title, text in contexts.items()
    ]
    return [*files, *((Text(said),) if isinstance(said, str) else said)]


def said_parts(said: object) -> tuple[Text | File, ...]:
    """What a person says, where it is not a plain text."""
    parts = tuple(said) if isinstance(said, Sequence) else (said,)
    for part in parts:
        if not isinstance(part, Text | File):
            raise BadRequest(sentence("message.kind", part=part))
    return parts


_STORED = ("model", "mode", "system", "options", "agent", "tools", "dialect")
_OVER = ("review", "max_rounds", "continuations", "history", "private", "workspace")


class SendOptions(TypedDict, total=False):
    """It comes before what conversation and agent say."""

    model: str | None
    mode: Mode | None
    system: str | None
    options: Mapping[str, JsonValue] | None
    disable: Sequence[str]  # plugins that stay out of it
    agent: str | None
    tools: Mapping[str, bool] | None  # switches of groups (`files`) and tools (`files.grep`, `grep`)
    dialect: str | None  # how calls are made: `auto`, `native`, or as text, such as `xml_tag`
    review: ReviewPolicy | None  # which results a person sees before the model does
    max_rounds: int | None
    continuations: int | None  # how often a reply that was cut off may go on
    history: int | None  # how many turns before this one the model is shown
    private: Mapping[str, str] | None  # texts that no model is to see, by the names they get
    workspace: str | None  # the folder it works in: a name of Runtime(workspaces=…), "" for the runtime's own
    compact: bool  # summarize what came before first
    client_tools: Sequence[ToolSpec]  # tools that you run: `turn.deliver` takes their results


@dataclass(slots=True, frozen=True)
class TurnInputs:
    """What a caller hands to a turn in this process. Never stored: where another process goes on with the
    turn, it has the dependencies of its own runtime, and the schema in place of the type."""

    deps: Any = None
    output: Output[Any] | None = None


NO_INPUTS = TurnInputs()


_SENT: Codec[tuple[str | None, str | None, bool, tuple[Part, ...], TurnOptions]] = Codec(
    tuple[str | None, str | None, bool, tuple[Part, ...], TurnOptions]
)
_LONGEST_KEY = 255


def send_key(name: str, sent: bytes, now: float) -> SendKey:
    """The idempotency key of a send, for what is `sent` with it. BadRequest where it cannot be one."""
    given: object = name
    if not isinstance(given, str) or not 0 < len(given.strip()) <= _LONGEST_KEY or not given.isprintable():
        raise BadRequest(sentence("key.shape", most=_LONGEST_KEY, name=name))
    return SendKey(name, hashlib.sha256(sent).hexdigest(), now - KEPT)


def sent_bytes(
    conversation: str | None,
    said: str | Sequence[Part],
    parent: str | None,
    options: TurnOptions,
    *,
    queue: bool,
) -> bytes:
    """All that a send says, to be compared with what another one with the same key says."""
    parts = (Text(said),) if isinstance(said, str) else said_parts(said)
    return _SENT.dump((conversation, parent, queue, parts, options)).encode()


def turn_options(output: OutputSpec | None = None, /, **said: Unpack[SendOptions]) -> TurnOptions:
    """As they are stored with the turn. BadRequest where one of them cannot be."""
    for name in said:
        if name not in SendOptions.__annotations__:
            near = get_close_matches(name, SendOptions.__annotations__, n=1)
            hint = (
                sentence("hint.did_you_mean", near=near[0])
                if near
                else sentence("hint.there_are", names=", ".join(SendOptions.__annotations__))
            )
            raise BadRequest(sentence("send.no_option", name=name, hint=hint))
    _check_kinds(said)
    over: dict[str, Any] = {name: said[name] for name in _OVER if said.get(name) is not None}  # type: ignore[literal-required]
    return TurnOptions(
        model=said.get("model"),
        mode=said.get("mode"),
        system=said.get("system"),
        options=dict(said.get("options") or {}),
        disabled=tuple(said.get("disable", ())),
        agent=said.get("agent"),
        tools=dict(said.get("tools") or {}),
        dialect=said.get("dialect"),
        over=checked(over),
        output=output,
        compact=bool(said.get("compact")),
        client_tools=check_client_tools(said.get("client_tools", ())),
    )


def _check_kinds(said: Mapping[str, Any]) -> None:
    """What is stored with a turn, and is of another kind, could not be read again."""
    model, disable = said.get("model"), said.get("disable", ())
    if not isinstance(model, str | None):
        hint = sentence("hint.addresses")
        raise BadRequest(sentence("send.model", model=model, hint=hint))
    listed = isinstance(disable, Iterable) and not isinstance(disable, str)
    if not listed or not all(isinstance(name, str) for name in disable):
        raise BadRequest(sentence("send.disable", disable=disable))
    named = {name: said[name] for name in _STORED if said.get(name) is not None}
    checked({name: dict(one) if isinstance(one, Mapping) else one for name, one in named.items()})
