"""Tools that come with one message: its sender runs them, and delivers their results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.boundary import check_fields
from dragoman.messages.codec import Codec
from dragoman.messages.questions import Rule
from dragoman.messages.request import ToolSpec
from dragoman.sentences import sentence
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.permissions import hidden
from dragoman.tools.review import REVIEWS
from dragoman.tools.tool import Tool
from dragoman.turn.facts import TurnOptions

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
