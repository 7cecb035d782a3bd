"""Check that every part type of a protocol is read, or refused in that protocol's form (F3)."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from typing_extensions import is_typeddict

from dragoman.wire.scripted import says
from tests.npm import installed
from tests.protocols.published import CLIENTS
from tests.runtimes import model_of
from tests.server.site import Site, served

pytestmark = pytest.mark.slow
DATA = "data:text/plain;base64,c2FpZA=="  # "said"


async def fate(site: Site, path: str, body: dict[str, Any]) -> str:
    """Return the outcome of a request: refused, read by the model, or for the page only."""
    before = len(model_of(site.runtime).requests)
    answer = await site.ask("POST", path, body)
    if answer.status >= 400:
        assert answer.status in (400, 422), answer.body
        refused = answer.body.get("error", answer.body)
        assert refused.get("message") or refused.get("detail"), answer.body
        return "refused"
    (request,) = model_of(site.runtime).requests[before:]
    sent = [str(request.system), *(repr(message) for message in request.messages)]
    return "read" if any("said" in one or "File(" in one for one in sent) else "for the page"


# ── AI SDK ──────────────────────────────────────────────────────────────────────────────────────────────────

CALL = {"toolCallId": "c", "toolName": "add", "input": {}, "state": "output-available", "output": "said"}
UI_PARTS: dict[
    str, tuple[dict[str, Any], str, str]
] = {  # a part, then its outcome in a user's message and in an answer
    "text": ({"text": "said"}, "read", "read"),
    "file": ({"url": DATA, "mediaType": "text/plain"}, "read", "read"),
    "reasoning": ({"text": "said"}, "refused", "read"),
    "reasoning-file": ({"url": DATA, "mediaType": "text/plain"}, "refused", "read"),
    "tool-": (CALL, "refused", "read"),
    "dynamic-tool": (CALL, "refused", "read"),
    "data-": ({"data": "said"}, "for the page", "for the page"),
    "source-url": ({"sourceId": "s", "url": "https://said.example"}, "refused", "for the page"),
    "source-document": ({"sourceId": "s", "mediaType": "a/b", "title": "said"}, "refused", "for the page"),
    "step-start": ({}, "refused", "for the page"),
    "custom": ({"kind": "a.b"}, "refused", "refused"),
    "steering-message": ({"id": "s", "parts": [{"type": "text", "text": "said"}]}, "refused", "refused"),
}


def ui_kinds() -> Iterator[str]:
    """Of all three versions, from their types."""
    for version in ("ai5", "ai6", "ai7"):
        text = (installed(CLIENTS) / "node_modules" / version / "dist" / "index.d.ts").read_text("utf-8")
        (union,) = re.findall(r"^type UIMessagePart<.*?> = (.*);$", text, re.MULTILINE)
        for name in re.findall(r"\w+", re.sub(r"<\w+>", "", union)):
            (body,) = re.findall(rf"^type {name}\b.*?= (.*?)^}}", text, re.MULTILINE | re.DOTALL)
            yield re.findall(r"type: ['`]([a-z-]+)", body)[0]


@pytest.mark.parametrize("kind", UI_PARTS)
async def test_every_part_of_the_ai_sdk_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    assert set(UI_PARTS) == {*ui_kinds()}
    more, from_a_person, in_an_answer = UI_PARTS[kind]
    part = {"type": f"{kind}add" if kind.endswith("-") else kind, **more}
    hello = [{"type": "text", "text": "Hello."}]
    asked = [{"id": "1", "role": "user", "parts": [*hello, part]}]
    answered = [
        {"id": "1", "role": "user", "parts": hello},
        {"id": "2", "role": "assistant", "parts": [part]},
        {"id": "3", "role": "user", "parts": hello},
    ]
    async with served(tmp_path, [says("Hi."), says("Hi.")]) as site:
        assert await fate(site, "/api/ai-sdk/chat", {"id": "a", "messages": asked}) == from_a_person
        assert await fate(site, "/api/ai-sdk/chat", {"id": "b", "messages": answered}) == in_an_answer
        for one in await site.runtime.conversations():
            assert all(message.parts for message in (await site.runtime.store.messages(one.id))[0])


# ── AG-UI ───────────────────────────────────────────────────────────────────────────────────────────────────

SOURCES = {
    "data": ({"value": "c2FpZA==", "mimeType": "text/plain"}, "read"),
    "url": ({"value": DATA, "mimeType": "text/plain"}, "read"),
    "file": ({"value": "file_said", "mimeType": "text/plain"}, "refused"),
}
MESSAGES: dict[str, dict[str, Any]] = {
    "developer": {"content": "said by developer"},
    "system": {"content": "said by system"},
    "reasoning": {"content": "said by reasoning"},
    "activity": {"activityType": "a", "content": {"a": "said"}},
    "assistant": {
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "a", "arguments": "{}"}}]
    },
    "tool": {"toolCallId": "c", "content": [{"type": "text", "text": "said by tool"}]},
    "user": {"content": "said by user"},
}


def ag_ui_union(name: str) -> list[str]:
    """The kinds of a union of the types, by their tag."""
    folder = installed(CLIENTS) / "node_modules" / "@ag-ui" / "core" / "dist"
    (text,) = (path.read_text("utf-8") for path in folder.glob("version-*.d.ts"))
    (union,) = re.findall(rf"^type {name} = (.*?);$", text, re.MULTILINE | re.DOTALL)
    bodies = [
        re.findall(rf"^type {one} = {{(.*?)^}}", text, re.MULTILINE | re.DOTALL)[0]
        for one in re.findall(r"\w+", union)
    ]
    return [re.findall(r'(?:type|role): "(\w+)"', body)[0] for body in bodies]


def run_of(*messages: dict[str, Any]) -> dict[str, Any]:
    numbered = [{"id": str(number), **message} for number, message in enumerate(messages)]
    return {
        "threadId": str(hash(repr(messages))),
        "runId": "1",
        "messages": numbered,
        "tools": [],
        "context": [],
    }


async def test_every_part_of_ag_ui_is_read_or_refused(tmp_path: Path) -> None:
    kinds = ag_ui_union("ContentPart")
    assert set(SOURCES) == {*ag_ui_union("PartSource")}
    async with served(tmp_path, [says("Hi.")] * 20) as site:
        said = run_of({"role": "user", "content": [{"type": "text", "text": "said"}]})
        assert await fate(site, "/api/ag-ui", said) == "read"
        for kind in {*kinds} - {"text"}:
            for source, (more, expected) in SOURCES.items():
                part = {"type": kind, "source": {"type": source, **more}}
                body = run_of({"role": "user", "content": [part]})
                assert await fate(site, "/api/ag-ui", body) == expected, part


async def test_every_message_of_ag_ui_is_read(tmp_path: Path) -> None:
    """Activities alone are for the page."""
    assert set(MESSAGES) == {*ag_ui_union("Message")}
    hello = {"role": "user", "content": "Hello."}
    said = [{"role": role, **more} for role, more in MESSAGES.items()]
    async with served(tmp_path, [says("Hi.")]) as site:
        assert await fate(site, "/api/ag-ui", run_of(hello, *said, hello)) == "read"
        (request,) = model_of(site.runtime).requests
        shown = str(request.system) + "".join(repr(message) for message in request.messages)
        read = {role for role in MESSAGES if f"said by {role}" in shown}
        assert read == {*MESSAGES} - {"activity", "assistant"}  # the assistant's has a call, no text


async def test_an_unknown_field_that_brings_something_is_refused(tmp_path: Path) -> None:
    hello = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}], "content": "Hello."}
    chat: dict[str, Any] = {"id": "a", "messages": [hello]}
    run = run_of({"role": "user", "content": "Hello."})
    talk: dict[str, Any] = {"model": "scripted/model", "messages": [{"role": "user", "content": "Hello."}]}
    thing = {"attachments": [{"url": DATA}]}
    async with served(tmp_path, [says("Hi.")]) as site:
        for path, body in (("/api/ai-sdk/chat", chat), ("/api/ag-ui", run), ("/v1/chat/completions", talk)):
            inside = {**body, "messages": [{**body["messages"][0], **thing}]}
            for wrong in ({**body, **thing}, inside):
                assert await fate(site, path, wrong) == "refused"


# ── OpenAI ──────────────────────────────────────────────────────────────────────────────────────────────────


def sample(kind: Any) -> Any:
    """A value of a type, with all its fields."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if is_typeddict(kind):
        return {name: sample(hint) for name, hint in typing.get_type_hints(kind).items()}
    if origin is Literal:
        return inner[0]
    if origin in (typing.Required, typing.NotRequired, typing.Annotated):
        return sample(inner[0])
    if origin is dict or kind is object:
        return {"a": "said"}
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        return sample(next(one for one in inner if one is not type(None)))
    if origin is not None:  # a list, or anything that one goes through
        return [sample(inner[0])]
    return {str: "said", int: 1, float: 1.0, bool: True}.get(kind, "said")


HELLO, ANSWER = {"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


# Audio is read: "said" is base64. Images and files with this address are not read.
READ = {
    *(
        "ChatCompletionContentPartTextParam",
        "ChatCompletionContentPartInputAudioParam",
        "ResponseInputTextParam",
    ),
    *(
        "ChatCompletionDeveloperMessageParam",
        "ChatCompletionSystemMessageParam",
        "ChatCompletionUserMessageParam",
    ),
    *("EasyInputMessageParam", "Message", "ResponseOutputMessageParam"),
}


def unions() -> list[tuple[Any, str, Any]]:
    """Where each goes. The SDK takes a second to import: for this test alone."""
    from openai.types.chat.chat_completion_content_part_param import ChatCompletionContentPartParam
    from openai.types.chat.chat_completion_message_param import ChatCompletionMessageParam
    from openai.types.responses.response_input_content_param import ResponseInputContentParam
    from openai.types.responses.response_input_item_param import ResponseInputItemParam

    return [
        (
            ChatCompletionContentPartParam,
            CHAT,
            lambda one: {"messages": [{"role": "user", "content": [one]}]},
        ),
        (ResponseInputContentParam, RESPONSES, lambda one: {"input": [{"role": "user", "content": [one]}]}),
        (ChatCompletionMessageParam, CHAT, lambda one: {"messages": [HELLO, one, ANSWER, HELLO]}),
        (ResponseInputItemParam, RESPONSES, lambda one: {"input": [HELLO, one, ANSWER, HELLO]}),
    ]


async def test_every_part_of_openai_is_read_or_refused(tmp_path: Path) -> None:
    """Each field has a value. An answer with audio, a call without a result, a result without its call and an
    item that is not stored are refused, too."""
    async with served(tmp_path, [says("Hi.")] * 20) as site:
        for union, path, around in unions():
            for kind in typing.get_args(union):
                body = {"model": "scripted/model", **around(sample(kind))}
                expected = "read" if kind.__name__ in READ else "refused"
                assert await fate(site, path, body) == expected, kind
