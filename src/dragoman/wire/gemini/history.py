"""The messages of a request as `streamGenerateContent` takes them: contents of two roles, made of parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import CallState, File, Part, ProviderItem, Reasoning, Role, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire import files
from dragoman.wire.files import Attachments
from dragoman.wire.gemini.hosted import asks_for_own_tools
from dragoman.wire.gemini.items import MADE, REPLAYED
from dragoman.wire.gemini.shapes import MEDIA, NAME, NO_SIGNATURE, RESULT_MEDIA, family
from dragoman.wire.lowering import asked_arguments, lower, may_replay, result_files, result_text, safe_name

Body: TypeAlias = dict[str, JsonValue]

ROLES: dict[Role, str] = {"user": "user", "assistant": "model"}
OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."


def contents(request: Request, attachments: Attachments) -> list[Body]:
    turns: list[tuple[Role, list[Body]]] = []
    ids = _Ids(request.model)

    def add(role: Role, parts: list[Body]) -> None:
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, parts))

    for message in lower(request.messages, speaks=lambda part: _may_go_back(part, request)):
        if message.role == "user":
            add("user", [_content_part(part, attachments) for part in message.parts])
            continue
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        named = [ids.next(call) for call in calls]
        results = [_Result(call, request.model, attachments) for call in calls]
        add("assistant", [*_assistant_parts(message, request.model, iter(named), attachments)])
        add("user", [result.response(id) for result, id in zip(results, named, strict=True)])
        for result in results:
            add("user", result.parts_apart())
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"text": OPENING}]))
    if turns[-1][0] == "assistant":
        turns.append(("user", [{"text": GO_ON}]))
    return [{"role": ROLES[role], "parts": [*parts]} for role, parts in turns]


def _assistant_parts(
    message: RequestMessage, model: str, ids: Iterator[str | None], attachments: Attachments
) -> Iterator[Body]:
    """The parts of one reply. A signature alone, in an empty thought, belongs to the text before it."""
    parts: list[Body] = []
    foreign = any(isinstance(part, Reasoning) and _is_foreign(part, model) for part in message.parts)
    called = False
    for part in message.parts:
        match part:
            case Text():
                parts.append({"text": part.text})
            case ToolCall():
                call = _identified({"name": _name(part), "args": {**asked_arguments(part)}}, next(ids))
                theirs = not foreign and part.signed_by in (None, model)
                signature = part.signature if theirs else None
                if signature is None and not called and family(model).signs_calls:
                    signature = NO_SIGNATURE  # the first of a batch must bear one
                parts.append(_signed({"functionCall": call}, signature))
                called = True
            case Reasoning() if may_replay(part, NAME, model):
                if part.text:
                    parts.append(_signed({"text": part.text, "thought": True}, part.signature))
                elif part.signature is not None:
                    before = parts[-1] if parts else {}
                    if before.keys() != {"text"}:
                        before = {"text": ""}
                        parts.append(before)
                    before["thoughtSignature"] = part.signature
            case File():  # the model's own, else `lower` has put it behind
                parts.append(_signed(_content_part(part, attachments), part.signature))
            case ProviderItem(opaque=dict() as own):  # those that may go back, signature and all
                parts.append(own)
            case _:
                pass
    yield from parts


def _may_go_back(part: Part, request: Request) -> bool:
    """Whether it is a part of theirs that they take again: what a model made itself, and what their own tools
    did while they are asked for."""
    if isinstance(part, File):
        return part.made_by == request.model and media_type(part) in MEDIA
    if not isinstance(part, ProviderItem) or not may_replay(part, NAME, request.model):
        return False
    return part.kind in MADE or (part.kind in REPLAYED and asks_for_own_tools(request))


def _is_foreign(thought: Reasoning, model: str) -> bool:
    """Whether its reply came by another wire or model, so that the signatures of its calls are void."""
    return thought.wire not in (None, NAME) or thought.model != model


def _signed(part: Body, signature: str | None) -> Body:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _identified(body: Body, id: str | None) -> Body:
    return body if id is None else {"id": id, **body}


class _Ids:
    """The ids that calls came with, each only once: models that give them out match results by them."""

    def __init__(self, model: str) -> None:
        self._taken = family(model).call_ids
        self._given: set[str] = set()

    def next(self, call: ToolCall) -> str | None:
        if not self._taken or not call.provider_id:
            return None
        id = call.provider_id
        while id in self._given:
            id = f"{id}+"
        self._given.add(id)
        return id


class _Result:
    """The result of a call. What it brought stands inside where the model takes that, else behind it."""

    def __init__(self, call: ToolCall, model: str, attachments: Attachments) -> None:
        self._call = call
        self._parts: list[JsonValue] = []
        self._apart: list[Body] = []
        inside = family(model).files_in_results
        for file in result_files(call):
            part = _content_part(file, attachments)
            if inside and "inlineData" in part and media_type(file) in RESULT_MEDIA:
                self._parts.append(part)
            else:
                self._apart.append(part)

    def response(self, id: str | None) -> Body:
        key = "output" if self._call.state is CallState.COMPLETED else "error"
        body: Body = {"name": _name(self._call), "response": {key: result_text(self._call)}}
        if self._parts:
            body["parts"] = self._parts
        return {"functionResponse": _identified(body, id)}

    def parts_apart(self) -> list[Body]:
        return [{"text": f"[Result of {self._call.tool}]"}, *self._apart] if self._apart else []


def _name(call: ToolCall) -> str:
    name = safe_name(call)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"[:64]


def carries(file: File) -> bool:
    return media_type(file) in MEDIA or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Body:
    if isinstance(part, Text):
        return {"text": part.text}
    assert isinstance(part, File)
    type = media_type(part)
    if type in MEDIA and (id := files.id_of(part, attachments)):
        return {"fileData": {"mimeType": type, "fileUri": id}}
    if type in MEDIA and (data := files.base64_of(part, attachments)):
        return {"inlineData": {"mimeType": type, "data": data}}
    if type in MEDIA and part.url:
        return {"fileData": {"mimeType": type, "fileUri": part.url}}
    return {"text": files.text_of(part, attachments)}
