"""Bodies that are no stream: replies that come whole, on every wire, and errors."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_core import to_json

from dragoman.errors import ProviderError
from dragoman.messages.message import Text
from dragoman.messages.usage import Usage
from dragoman.wire import anthropic_messages, gemini, openai_chat, openai_responses
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http_client.client import Retry
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.scripted import collect_reply
from dragoman.wire.wire import Wire
from tests.wire.anthropic_messages import bodies as claude
from tests.wire.gemini import bodies as google
from tests.wire.openai_chat.test_decode import REPLY as CHAT
from tests.wire.provider import (
    KEY,
    answers,
    ask,
    client,
    model,
    provider,
    question,
    streams,
)
from tests.wire.replies import decode, sse
from tests.wire.wholes import WHOLE, frames_of, read_whole

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("body", "media_type", "says"),
    [
        (
            "<!doctype html><title>Sign in</title>",
            "text/html",
            "a web page arrived instead of a stream: '<!doctype",
        ),
        ({"answer": {"content": "Hi"}}, "application/json", "a single JSON body .*answer"),
        ({"error": None, "output": []}, "text/event-stream", "a single JSON body .*output"),
        ("all is well", "text/event-stream", "had no event, only 'all is well'"),
        ("", "text/event-stream", "the reply has no contents"),
    ],
    ids=["HTML", "JSON", "JSON under a false name", "text", "nothing"],
)
async def test_a_body_that_is_no_stream_is_shown(body: JsonValue | str, media_type: str, says: str) -> None:
    handler = answers(200, body, media_type=media_type)
    async with provider(handler) as served, client(retry=Retry(attempts=1)) as http:
        with pytest.raises(ProviderError, match=says) as raised:
            await ask(model(http, served))
    assert raised.value.kind == "no_stream"


@pytest.mark.parametrize(
    "made",
    [
        {"reasoning": "hm", "tool_calls": [{"id": "c", "function": {"name": "clock", "arguments": "{}"}}]},
        {"reasoning": "hm", "function_call": {"name": "clock", "arguments": "{}"}},
    ],
    ids=["calls", "the one call of old"],
)
async def test_a_reply_that_comes_whole_is_a_reply(made: dict[str, JsonValue]) -> None:
    """Some servers never stream, even if the request asks for it (W1)."""
    body: JsonValue = {
        "object": "chat.completion",
        "choices": [
            {"index": 1, "message": {"content": "not this"}},
            {
                "index": 0,
                "message": {"content": "Hi", "reasoning": "hm", **made},
                "finish_reason": "tool_calls",
            },
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    async with provider(answers(200, body, media_type="application/json")) as served, client() as http:
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        chat = HttpModel(http, openai_chat.WIRE(), endpoint, model="small", name="plain/small")
        message = await collect_reply(chat, question())
    assert (message.text, message.reasoning, message.finish) == ("Hi", "hm", "tool_calls")
    assert [call.tool for call in message.calls] == ["clock"]
    assert message.usage == Usage(input=3, output=2)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "with an error"])
async def test_a_response_that_comes_whole_is_a_reply(broken: bool) -> None:
    """W1: and one that failed is its error."""
    said: JsonValue = [{"type": "output_text", "text": "Hi"}]
    body: JsonValue = {
        "object": "response",
        "status": "failed" if broken else "completed",
        "output": [{"type": "message", "content": said, "phase": "final_answer"}],
        "error": {"code": "server_error", "message": "It broke."} if broken else None,
    }
    async with (
        provider(answers(200, body, media_type="application/json")) as served,
        client(retry=Retry(attempts=1)) as http,
    ):
        endpoint = Endpoint(served.url, "responses", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        asked = HttpModel(http, openai_responses.WIRE(), endpoint, model="small", name="plain/small")
        if broken:
            with pytest.raises(ProviderError, match="It broke"):
                await collect_reply(asked, question())
        else:
            assert (await collect_reply(asked, question())).parts == (Text("Hi", phase="final_answer"),)


@pytest.mark.parametrize("wrapped", [False, True], ids=["object", "Google's list"])
async def test_an_error_that_comes_with_a_status_of_success_is_an_error(wrapped: bool) -> None:
    error: dict[str, JsonValue] = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    async with provider(answers(200, [error] if wrapped else error)) as served, client() as http:
        with pytest.raises(ProviderError, match="no credit") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "quota"


CLAUDE: JsonValue = {
    "type": "message",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "clock", "input": {"zone": "UTC"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
_PARTS: JsonValue = [{"text": "Hi"}, {"functionCall": {"name": "clock", "args": {"zone": "UTC"}}}]
_LAST: dict[str, JsonValue] = {
    "candidates": [{"content": {"parts": _PARTS}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
}
_THOUGHT: dict[str, JsonValue] = {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]}


@pytest.mark.parametrize("waiting", [b"", b"\n", b"\n\n \r\n"], ids=["at once", "a blank", "more blanks"])
@pytest.mark.parametrize(
    ("wire", "body"),
    [(anthropic_messages.WIRE(), CLAUDE), (gemini.WIRE(), [_THOUGHT, _LAST])],
    ids=["anthropic", "gemini, a list of chunks"],
)
async def test_a_reply_of_any_wire_may_come_whole_and_after_empty_lines(
    wire: Wire, body: JsonValue, waiting: bytes
) -> None:
    """W1: some servers do not stream, and send empty lines while one waits."""
    pieces = [*([waiting] if waiting else ()), to_json(body)[:20], to_json(body)[20:]]
    async with provider(streams(*pieces)) as served, client() as http:
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        asked = HttpModel(http, wire, endpoint, model="small", name="plain/small")
        message = await collect_reply(asked, question())
    assert (message.text, message.reasoning, message.finish) == ("Hi", "hm", "tool_calls")
    assert [(call.tool, call.arguments) for call in message.calls] == [("clock", {"zone": "UTC"})]
    assert message.usage == Usage(input=3, output=2)


_CITED = sse(
    *claude.text_block("It says: "),
    claude.start(1, "text", text="", citations=[]),
    claude.delta(1, "citations_delta", citation={"type": "char_location", "cited_text": "rain"}),
    claude.delta(1, "text_delta", text="rain"),
    claude.stop(1),
    claude.ended("end_turn"),
)


@pytest.mark.parametrize(
    ("name", "wire", "stream"),
    [
        ("anthropic", anthropic_messages.WIRE(), claude.REPLY),
        ("anthropic", anthropic_messages.WIRE(), _CITED),
        ("gemini", gemini.WIRE(), google.REPLY),
        ("openai_chat", openai_chat.WIRE(), CHAT),
    ],
    ids=["thoughts and calls", "citations", "gemini", "chat"],
)
def test_a_whole_reply_is_the_message_that_its_stream_is(name: str, wire: Wire, stream: bytes) -> None:
    """W1: with citations, signatures, usage and how it ended."""
    whole, streamed = read_whole(wire, WHOLE[name](frames_of(stream))), decode(wire, [stream])
    assert whole.parts == streamed.parts
    assert (whole.end, whole.finish_word) == (streamed.end, streamed.finish_word)


REPORTS: list[dict[str, JsonValue]] = [
    {"detail": "no credit"},
    {"code": 1001, "msg": "no credit"},
    {"base_resp": {"status_code": 1004, "status_msg": "no credit"}},
    {"type": "error", "message": "no credit"},
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("wire", [anthropic_messages, gemini, openai_responses, openai_chat])
def test_t8_an_error_of_a_gateway_is_told_on_every_wire(wire: Any, report: JsonValue) -> None:
    """The error has the gateway's format, whichever API is used through it."""
    for told in (report, {"error": report}, {"error": "no credit"}):
        with pytest.raises(ProviderError, match=r"^no credit"):
            [*wire.WIRE().decoder("msg_r").feed(to_json(told))]


@pytest.mark.parametrize("report", REPORTS)
async def test_t8_an_error_that_comes_with_a_status_of_success_is_one(report: JsonValue) -> None:
    """The error can be the whole body or come in a started stream, whose text stays but is not an answer."""
    began = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: ' + to_json(report) + b"\n\n"
    for handler in (answers(200, report), streams(began)):
        async with provider(handler) as served, client() as http:
            endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
            chat = HttpModel(http, openai_chat.WIRE(), endpoint, model="small", name="plain/small")
            with pytest.raises(ProviderError, match=r"^no credit"):
                await ask(chat)


async def test_a_choice_that_a_filter_kept_back_is_a_filtered_answer() -> None:
    """W1: Azure leaves the message out."""
    results: JsonValue = {"violence": {"filtered": True, "severity": "high"}}
    body: JsonValue = {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": results}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 0},
    }
    async with provider(answers(200, body, media_type="application/json")) as served, client() as http:
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        chat = HttpModel(http, openai_chat.WIRE(), endpoint, model="small", name="plain/small")
        message = await collect_reply(chat, question())
    assert (message.parts, message.finish) == ((), "filter")
    assert "violence" in str(message.metadata["reason"])
