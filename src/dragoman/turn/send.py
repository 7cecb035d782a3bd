"""What a send may say of its own turn, beside the message: what is stored with the turn, and what is not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue
from typing_extensions import TypedDict, Unpack

from dragoman.errors import BadRequest
from dragoman.messages.codec import Codec
from dragoman.messages.message import Part, Text
from dragoman.messages.questions import Mode
from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.sentences import sentence
from dragoman.store.turns import KEPT, SendKey
from dragoman.tools.review import ReviewPolicy
from dragoman.turn.client_tools import check_client_tools
from dragoman.turn.facts import TurnOptions
from dragoman.turn.output import Output
from dragoman.turn.said import said_parts
from dragoman.turn.settings import checked

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
