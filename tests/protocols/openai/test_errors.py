"""Check that every invalid request is refused in OpenAI's form, with nothing stored."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.errors import DragomanError, ProviderError, StoreUnavailable, TurnEnded
from dragoman.server.protocols.openai.api_errors import json_response, response_to
from dragoman.wire.scripted import calls, fails, says
from tests.later import Later
from tests.protocols.openai.callers import (
    CHAT_TOOL,
    MODEL,
    RESPONSE_TOOL,
    called,
    client_of,
    conversations,
    user,
    waiting,
)
from tests.server.hostile_values import hostile
from tests.server.site import served
from tests.server.test_every_door import SEED
from tests.sweeps import examples

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow

VALUES = examples(8, 160)

CALLED = {"name": "where", "arguments": "{}"}
CHAT: dict[str, Any] = {"model": MODEL, "messages": [user("Hi")]}
RESPONSE: dict[str, Any] = {"model": MODEL, "input": "Hi"}


async def test_a_wrong_key_and_an_unknown_model_are_the_sdks_own_errors(tmp_path: Path) -> None:
    """F3"""
    async with called(tmp_path, [says("?")]) as (client, site):
        async with client_of(site, "wrong") as stranger:
            with pytest.raises(openai.AuthenticationError) as unknown:
                await stranger.chat.completions.create(**CHAT)
        assert unknown.value.code == "invalid_api_key"
        for asking in (
            client.chat.completions.create(**{**CHAT, "model": "gpt-nothing"}),
            client.responses.create(**{**RESPONSE, "model": "gpt-nothing"}),
        ):
            with pytest.raises(openai.NotFoundError) as missing:
                await asking
            assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
            assert "GET /v1/models" in str(missing.value)
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-nothing")
        with pytest.raises(openai.NotFoundError) as nowhere:
            await client.embeddings.create(model=MODEL, input="Hi")
        assert nowhere.value.code == "unknown_url"
        assert await conversations(site) == []


async def test_a_branch_that_is_busy_says_when_to_try_again(tmp_path: Path) -> None:
    """F3 × T4: a stock client tries again by itself, and gets through."""
    gate = asyncio.Event()
    script = [calls("wait"), says("One."), says("Two.")]
    async with called(tmp_path, script, tools=[waiting(gate)]) as (client, site):
        conversation = await site.conversation()
        await site.say("Hi", conversation)
        named: dict[str, Any] = {"metadata": {"conversation": conversation}}
        with pytest.raises(openai.ConflictError) as busy:
            await client.chat.completions.create(**CHAT, **named)
        assert busy.value.response.headers["retry-after"] == "1"
        gate.set()
        patient = client.with_options(max_retries=10)
        reply = await patient.chat.completions.create(**CHAT, **named)
        assert reply.choices[0].finish_reason == "stop"


NOT_IN_CHAT: list[tuple[str, Any]] = [
    ("n", 2),
    ("logprobs", True),
    ("top_logprobs", 3),
    ("modalities", ["text", "audio"]),
    ("audio", {"voice": "alloy", "format": "wav"}),
    ("functions", [{"name": "f"}]),
    ("logit_bias", {"1": 1}),
    ("nonsense", 1),
    ("temperature", "hot"),
    ("tools", [{"type": "web_search"}]),
    ("tools", [CHAT_TOOL, CHAT_TOOL]),
    ("tool_choice", {"type": "allowed_tools"}),
    (
        "response_format",
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}},
    ),
    ("messages", []),
    ("messages", [{"role": "assistant", "content": "Hi"}]),
    ("messages", [{"role": "function", "content": "Hi"}]),
    ("messages", [{"role": "tool", "tool_call_id": "call_x", "content": "Hi"}]),
    ("messages", [user("  ")]),
    ("messages", [user("Hi"), {"role": "assistant", "content": "Hi", "audio": {"id": "a"}}, user("Hi")]),
    ("messages", [user("Hi"), {"role": "assistant", "content": "Hi", "function_call": CALLED}, user("Hi")]),
]


async def test_what_chat_completions_cannot_do_is_refused(tmp_path: Path) -> None:
    """F3"""
    async with served(tmp_path, [says("?")]) as site:
        for field, value in NOT_IN_CHAT:
            answer = await site.ask("POST", "/v1/chat/completions", {**CHAT, field: value})
            assert answer.status == 400, (field, value, answer.body)
            assert answer.body["error"].keys() == {"message", "type", "param", "code"}, (field, value)
            assert answer.body["error"]["type"] == "invalid_request_error", (field, value)
            assert await conversations(site) == [], (field, value)


NOT_IN_RESPONSES: list[tuple[str, Any]] = [
    ("include", ["message.output_text.logprobs"]),
    ("max_tool_calls", 3),
    ("prompt", {"id": "pmpt_1"}),
    ("truncation", "auto"),
    ("nonsense", 1),
    ("tools", [{"type": "code_interpreter"}]),
    ("tools", [{**RESPONSE_TOOL, "parameters": {"type": "nothing"}}]),
    ("input", []),
    ("input", [{"type": "item_reference", "id": "msg_1"}]),
    ("input", [{"role": "assistant", "content": "Hi"}]),
    ("metadata", {"key": 1}),
]


async def test_what_responses_cannot_do_is_refused(tmp_path: Path) -> None:
    """F3"""
    async with served(tmp_path, [says("?")]) as site:
        for field, value in NOT_IN_RESPONSES:
            answer = await site.ask("POST", "/v1/responses", {**RESPONSE, field: value})
            assert answer.status == 400, (field, value, answer.body)
            assert answer.body["error"].keys() == {"message", "type", "param", "code"}, (field, value)
            assert await conversations(site) == [], (field, value)


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (StoreUnavailable("the store", "see to it", retryable=True), 503, ("retry-after", "1")),
        (StoreUnavailable("the store", "see to it", retryable=False), 503, ("retry-after", "30")),
        (TurnEnded("turn_1", "completed"), 409, ("x-should-retry", "false")),
        (ProviderError("no luck", kind="auth"), 502, ("x-should-retry", "false")),
    ],
)
def test_an_error_says_whether_and_when_to_try_again(
    error: DragomanError, status: int, header: tuple[str, str]
) -> None:
    """F3 × S3"""
    answer = response_to(error)
    assert (answer.status_code, answer.headers[header[0]]) == (status, header[1])


def test_a_lone_surrogate_is_replaced() -> None:
    """F3: half a character is no text, and all others come as they are."""
    assert json_response({"a": "ü\ud800"}).body == '{"a": "ü?"}'.encode()


async def test_fields_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    """F3: a field alone is taken."""
    async with served(tmp_path, [says("Hello!")] * 2) as site:
        for first, second, named in (
            ({"background": True}, {"store": False}, "store"),
            ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, "conversation"),
        ):
            answer = await site.ask("POST", "/v1/responses", {**RESPONSE, **first, **second})
            assert (answer.status, answer.body["error"]["param"]) == (400, named)
            assert answer.body["error"]["code"] == "mutually_exclusive_parameters"
        for field in ({"background": True, "store": True}, {"store": False}):
            assert (await site.ask("POST", "/v1/responses", {**RESPONSE, **field})).status == 200


async def test_requests_that_nobody_would_send_are_errors_in_openais_form(tmp_path: Path) -> None:
    """F3, U2: foreign pages, foreign hosts, other types, too much, and no JSON."""
    async with served(tmp_path, [says("?")]) as site:
        path = "/v1/chat/completions"
        whole = json.dumps(CHAT).encode()
        asked: list[tuple[int, bytes, dict[str, str]]] = [
            (401, whole, {"authorization": ""}),
            (403, whole, {"origin": "https://evil.example"}),
            (403, whole, {"sec-fetch-site": "cross-site"}),
            (421, whole, {"host": "evil.example"}),
            (415, whole, {"content-type": "text/plain"}),
            (413, b" " * 2_200_000, {}),
            (400, b"{", {}),
            (400, b"[" * 100_000, {}),
            (400, b'{"model": "x", "messages": ' + b"[" * 1000 + b"]" * 1000 + b"}", {}),
        ]
        for status, body, headers in asked:
            answer = await site.ask("POST", path, body, headers=headers)
            assert answer.status == status, (headers, answer.body)
            assert answer.body["error"]["message"]
        for method in ("OPTIONS", "PUT"):
            answer = await site.ask(method, path)
            assert (answer.status, answer.body["error"]["code"]) == (404, "unknown_url")
        assert await conversations(site) == []


async def test_what_is_wrong_is_named_as_the_caller_wrote_it(tmp_path: Path) -> None:
    """The error names the place and what would be valid there, not the types that were tried on the
    way (F3)."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    wrong: list[tuple[str, Any, str | None, str]] = [
        (
            "chat/completions",
            {"messages": [user("Hi"), {"role": "user", "content": None}]},
            "messages[1].content",
            "",
        ),
        ("chat/completions", {"messages": [{"role": "user"}]}, "messages[0].content", "you must provide"),
        (
            "chat/completions",
            {"messages": [{"role": "system", "content": [picture]}]},
            "messages[0].content[0]",
            "Only user",
        ),
        (
            "chat/completions",
            {"messages": [user("Hi")], "tools": [{"function": {}}]},
            "tools[0].function.name",
            "",
        ),
        ("responses", {"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]", "items are of type"),
        ("responses", {"input": [user("Hi"), {"role": "user", "content": 1}]}, "input[1].content", ""),
        (
            "responses",
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": 1}]}]},
            "input[0].content[0].text",
            "a valid string",
        ),
        ("responses", {}, "input", "you must provide"),
        ("responses", b"{", None, "JSON"),
        ("responses", b"", None, "you must provide the body"),
    ]
    async with served(tmp_path, [says("?")]) as site:
        for path, body, param, words in wrong:
            sent = body if isinstance(body, bytes) else {"model": MODEL, **body}
            answer = await site.ask("POST", f"/v1/{path}", sent)
            assert (answer.status, answer.body["error"]["param"]) == (400, param), (body, answer.body)
            assert words in answer.body["error"]["message"], (body, answer.body)


async def test_a_page_of_another_origin_reads_whether_to_try_again(tmp_path: Path) -> None:
    """An SDK in a browser would otherwise repeat a failed turn and the effects of its tools (F3 × U2)."""
    origin = "https://app.example"
    async with served(tmp_path, [fails("no luck")], origins=[origin]) as site:
        answer = await site.ask("POST", "/v1/chat/completions", CHAT, headers={"origin": origin})
        assert (answer.status, answer.headers["x-should-retry"]) == (502, "false")
        shown = answer.headers["access-control-expose-headers"].split(", ")
        assert {"x-should-retry", "retry-after", "x-request-id"} <= {*shown}


_PLACES = [
    ("/v1/chat/completions", f'{{"model": "{MODEL}", "messages": VALUE}}'),
    ("/v1/chat/completions", f'{{"model": "{MODEL}", "messages": [VALUE]}}'),
    ("/v1/chat/completions", f'{{"model": "{MODEL}", "messages": [{{"role": "user", "content": VALUE}}]}}'),
    ("/v1/chat/completions", f'{{"model": "{MODEL}", "messages": [{{"role": "user", "content": [VALUE]}}]}}'),
    ("/v1/chat/completions", f'{{"model": VALUE, "messages": {json.dumps([user("Hi")])}}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": VALUE}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": [VALUE]}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "metadata": {{"a": VALUE}}}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "instructions": VALUE}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "previous_response_id": VALUE}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "conversation": VALUE}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "text": {{"format": VALUE}}}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "temperature": VALUE}}'),
    ("/v1/responses", f'{{"model": "{MODEL}", "input": "Hi", "tools": [VALUE]}}'),
    (
        "/v1/responses",
        f'{{"model": "{MODEL}", "input": "Hi", '
        '"tools": [{"type": "function", "name": "f", "parameters": {"properties": VALUE}}]}',
    ),
    ("/v1/responses", "VALUE"),
]


async def test_no_value_in_any_field_breaks_it(tmp_path: Path) -> None:
    """Every value is answered or refused, and everything stored can be read and deleted (U2, F3)."""
    async with served(tmp_path, lambda _: says("Well.")) as site:
        for path, body in _PLACES:
            random = Random(SEED)
            for _ in range(VALUES):
                value = hostile(random)
                sent = body.replace("VALUE", value).encode("utf-8", "replace")
                answer = await site.ask("POST", path, sent)
                assert answer.status < 500, (path, body, value[:200], answer.body)
                assert answer.status == 200 or answer.body["error"]["message"], (path, body, value[:200])
            for conversation in await conversations(site):
                for method, where in (("GET", "/tree"), ("GET", "/export"), ("DELETE", "")):
                    answer = await site.ask(method, f"/api/conversations/{conversation}{where}")
                    assert answer.status < 300, (path, body, where, answer.body)
