"""Validates the settings of a conversation, and refuses unknown names and wrong types."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import cast

from pydantic import JsonValue
from typing_extensions import TypedDict

from dragoman.dialects.dialect import NAMES, NATIVE
from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_json
from dragoman.messages.questions import MODES, Mode
from dragoman.sentences import sentence
from dragoman.tools.authorize import ReviewPolicy, wrong_with
from dragoman.wire.options import merge_options

_KINDS: dict[str, type | UnionType] = {
    "model": str,
    "agent": str,
    "mode": str,
    "system": str,
    "options": dict,
    "tools": dict,
    "review": str | dict,
    "max_rounds": int,
    "continuations": int,
    "history": int,
    "private": dict,
    "dialect": str,
    "workspace": str,
    "metadata": dict,
    "always_tools": list,
}
_WORDS: dict[type | UnionType, str] = {
    str: "string",
    dict: "table",
    int: "whole number of 0 or more",
    list: "list of names",
    str | dict: "string or a table",
}
AUTO = "auto"


class ConversationOptions(TypedDict, total=False):
    """The settings of a conversation, for type checkers. None removes a setting."""

    model: str | None
    agent: str | None
    mode: Mode | None
    system: str | None
    options: dict[str, JsonValue] | None
    tools: dict[str, bool] | None  # switches of groups (`files`) and tools (`files.grep`, `grep`)
    review: ReviewPolicy | None
    max_rounds: int | None
    continuations: int | None
    history: int | None
    private: dict[str, str] | None
    dialect: str | None
    workspace: str | None  # a name of Runtime(workspaces=…)
    metadata: dict[str, str] | None  # application data that Dragoman does not read
    always_tools: list[str] | None  # source tools offered even above the limit (`tool_budget`)


def unchecked(settings: Mapping[str, JsonValue]) -> ConversationOptions:
    """Cast settings from outside for a conversation, which validates them before storing."""
    return cast("ConversationOptions", settings)


def as_json(settings: ConversationOptions) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", settings)


def known(settings: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the settings if all names are known. Values are not checked, since None removes a setting."""
    for name in settings:
        if name not in _KINDS:
            raise BadRequest(sentence("settings.unknown", name=name, known=", ".join(_KINDS)))
    return settings


def changed(before: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the new settings.

    None removes one. Tables are merged, and keep a None that removes an option.
    """
    after = dict(before)
    for name, value in known(changes).items():
        old = after.get(name)
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            after[name] = merge_options(old, value) if name == "options" else _merged(old, value)
        else:
            after[name] = value
    return checked(after)


def _merged(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in {**old, **new}.items() if value is not None}


def checked(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    check_json(dict(settings), "the settings of the conversation")
    for name, value in known(settings).items():
        kind = _KINDS[name]
        if not _is(value, kind):
            raise BadRequest(sentence("settings.kind", name=name, kind=_WORDS[kind], value=value))
    if settings.get("mode", "auto") not in MODES:
        raise BadRequest(sentence("mode.unknown", mode=settings["mode"], modes=", ".join(MODES)))
    if wrong := wrong_with(settings.get("review", "never")):
        raise BadRequest(wrong)
    if (dialect := settings.get("dialect")) is not None:
        check_dialect(str(dialect))
    private = settings.get("private")
    if isinstance(private, dict) and not all(
        name.strip() and isinstance(value, str) and value.strip() for name, value in private.items()
    ):
        raise BadRequest(sentence("settings.private"))
    metadata = settings.get("metadata")
    if isinstance(metadata, dict) and not all(isinstance(value, str) for value in metadata.values()):
        raise BadRequest(sentence("settings.metadata"))
    tools = settings.get("tools")
    if isinstance(tools, dict) and not all(isinstance(on, bool) for on in tools.values()):
        raise BadRequest(sentence("settings.tools"))
    return dict(settings)


def check_dialect(name: str) -> None:
    if name not in (AUTO, NATIVE, *NAMES):
        raise BadRequest(sentence("dialect.unknown", name=name, dialects=", ".join((AUTO, NATIVE, *NAMES))))


def _is(value: JsonValue, kind: type | UnionType) -> bool:
    if kind is int:  # Integer settings are counts.
        return type(value) is int and value >= 0
    return isinstance(value, kind)
