"""Collects the options of a send: those stored with the turn, and those kept only in this process."""

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

# Tools that come with one message: its sender's client runs them and delivers their results.


_SPEC: Codec[ToolSpec] = Codec(ToolSpec)
MOST = 512  # Maximum number of tools per message.


def check_client_tools(specs: Any) -> tuple[ToolSpec, ...]:
    """Return the tools as stored with the turn. Raise BadRequest if one of them is invalid."""
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
    """Return the sender's tools by name.

    A tool with the name of one of the runtime's tools replaces it in this turn. The sender's client runs it,
    under a separate permission.
    """
    against = [*rules]
    tools = (_tool(spec) for spec in options.client_tools)
    return {tool.name: tool for tool in tools if not hidden(tool.permission, against)}


def gone_tool(name: str, review: str) -> Tool:
    """Return a placeholder for a client's tool that is no longer defined here.

    It cannot be called. Results of its earlier calls are reviewed as before, or always if the policy is
    unknown.
    """
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


# Validates user messages before they are stored.


def user_message(
    conversation: str,
    said: str | Sequence[Part],
    parent: str | None,
    now: float,
    metadata: Mapping[str, JsonValue] | None = None,
) -> Message:
    """Return the user's message. Raise BadRequest if it is empty or cannot be stored."""
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
    """Prepend texts with titles to a user message.

    They become text files, shown and stored like attachments and sent before the text.
    """
    if not contexts:
        return said
    files = [
        File("text/plain", url=f"data:text/plain;base64,{b64encode(text.encode()).decode()}", name=title)
        for title, text in contexts.items()
    ]
    return [*files, *((Text(said),) if isinstance(said, str) else said)]


def said_parts(said: object) -> tuple[Text | File, ...]:
    """Return the parts of a message that is not a plain string."""
    parts = tuple(said) if isinstance(said, Sequence) else (said,)
    for part in parts:
        if not isinstance(part, Text | File):
            raise BadRequest(sentence("message.kind", part=part))
    return parts


_STORED = ("model", "mode", "system", "options", "agent", "tools", "dialect")
_OVER = ("review", "max_rounds", "continuations", "history", "private", "workspace")


class SendOptions(TypedDict, total=False):
    """Options of one send. They override those of conversation and agent."""

    model: str | None
    mode: Mode | None
    system: str | None
    options: Mapping[str, JsonValue] | None
    disable: Sequence[str]  # plugins disabled for this turn
    agent: str | None
    tools: Mapping[str, bool] | None  # switches of groups (`files`) and tools (`files.grep`, `grep`)
    dialect: str | None  # form of calls: `auto`, `native`, or text such as `xml_tag`
    review: ReviewPolicy | None  # which results a user sees before the model does
    max_rounds: int | None
    continuations: int | None  # maximum number of continuations of a truncated reply
    history: int | None  # number of earlier turns shown to the model
    private: Mapping[str, str] | None  # Texts hidden from all models, by the names that replace them.
    # The folder it works in: a name of Runtime(workspaces=…), or "" for the runtime's main folder.
    workspace: str | None
    compact: bool  # whether to compact earlier messages first
    client_tools: Sequence[ToolSpec]  # Tools that you run: `turn.deliver` takes their results.


@dataclass(slots=True, frozen=True)
class TurnInputs:
    """Objects that a caller passes to a turn in this process. They are never stored.

    If another process resumes the turn, it uses its runtime's dependencies and the schema instead of the
    type.
    """

    deps: Any = None
    output: Output[Any] | None = None


NO_INPUTS = TurnInputs()


_SENT: Codec[tuple[str | None, str | None, bool, tuple[Part, ...], TurnOptions]] = Codec(
    tuple[str | None, str | None, bool, tuple[Part, ...], TurnOptions]
)
_LONGEST_KEY = 255


def send_key(name: str, sent: bytes, now: float) -> SendKey:
    """Return the idempotency key for a send with this content. Raise BadRequest if the key is invalid."""
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
    """Serialize a send, to compare it with another one that has the same key."""
    parts = (Text(said),) if isinstance(said, str) else said_parts(said)
    return _SENT.dump((conversation, parent, queue, parts, options)).encode()


def turn_options(output: OutputSpec | None = None, /, **said: Unpack[SendOptions]) -> TurnOptions:
    """Return the options as stored with the turn. Raise BadRequest if one of them is invalid."""
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
    """Check the types of options: values of other types could not be read from the store."""
    model, disable = said.get("model"), said.get("disable", ())
    if not isinstance(model, str | None):
        hint = sentence("hint.addresses")
        raise BadRequest(sentence("send.model", model=model, hint=hint))
    listed = isinstance(disable, Iterable) and not isinstance(disable, str)
    if not listed or not all(isinstance(name, str) for name in disable):
        raise BadRequest(sentence("send.disable", disable=disable))
    named = {name: said[name] for name in _STORED if said.get(name) is not None}
    checked({name: dict(one) if isinstance(one, Mapping) else one for name, one in named.items()})
