"""Provider errors, in their text and in Dragoman's, with the remedy (T8, R7)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pydantic import JsonValue

from dragoman.errors import ContextOverflow, ProviderError
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.http_client.client import Retry
from tests.wire.provider import answers, ask, client, model, provider

pytestmark = pytest.mark.slow


@dataclass
class Refused:
    """A provider's answer, and the text that the user reads."""

    status: int
    body: JsonValue | str
    kind: str
    says: str
    retryable: bool = False


REFUSED = {
    "OpenAI, wrong key": Refused(
        401,
        {"error": {"message": "Incorrect API key provided.", "type": "x", "code": "invalid_api_key"}},
        "auth",
        "Incorrect API key provided (HTTP 401). Check PLAIN_API_KEY",
    ),
    "Google, wrong key": Refused(
        400,
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
                "details": [{"reason": "API_KEY_INVALID"}],
            }
        },
        "auth",
        "Check PLAIN_API_KEY",
    ),
    "Google, not allowed": Refused(
        403,
        {"error": {"code": 403, "message": "Denied.", "status": "PERMISSION_DENIED"}},
        "permission",
        "check its rights",
    ),
    "OpenAI, unknown model": Refused(
        404,
        {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}},
        "unknown_model",
        "Check the model's name",
    ),
    "Ollama, unknown model": Refused(
        404, {"error": "model 'm' not found"}, "unknown_model", "model 'm' not found"
    ),
    "OpenAI, no credit": Refused(
        429,
        {"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota"}},
        "quota",
        "plan and billing",
    ),
    "Anthropic, no credit": Refused(
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to use it.",
            },
        },
        "quota",
        "credit balance is too low",
    ),
    "Anthropic, too fast": Refused(
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}},
        "rate_limit",
        "Slow down (HTTP 429)",
        retryable=True,
    ),
    "Anthropic, overloaded": Refused(
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "overloaded",
        "Overloaded (HTTP 529)",
        retryable=True,
    ),
    "OpenAI, filtered": Refused(
        400,
        {"error": {"message": "The response was filtered", "code": "content_filter"}},
        "filter",
        "content filter",
    ),
    "FastAPI, wrong field": Refused(
        422,
        {"detail": [{"loc": ["body", "top_p"], "msg": "Input should be less than 1"}]},
        "invalid_request",
        "Input should be less than 1: top_p (HTTP 422)",
    ),
    "OpenRouter, the provider behind it": Refused(
        502,
        {
            "error": {
                "message": "Provider returned error",
                "code": 502,
                "metadata": {"raw": '{"error": {"message": "upstream is gone"}}'},
            }
        },
        "server",
        "upstream is gone",
        retryable=True,
    ),
    "a gateway's page": Refused(
        502,
        "<html><head><style>b{}</style><title>502</title></head><body><h1>Bad Gateway</h1></body></html>",
        "server",
        "502 Bad Gateway (HTTP 502)",
        retryable=True,
    ),
    "plain text": Refused(500, "out of order", "server", "out of order (HTTP 500)", retryable=True),
    "nothing": Refused(500, "", "server", "did not say why (HTTP 500)", retryable=True),
    "time-out": Refused(504, "upstream timed out", "timeout", "took too long", retryable=True),
    "conflict": Refused(409, "locked", "server", "locked (HTTP 409)", retryable=True),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
async def test_t8_an_error_says_what_the_provider_said_and_what_may_help(refused: Refused) -> None:
    async with (
        provider(answers(refused.status, refused.body)) as served,
        client(retry=Retry(attempts=1)) as http,
    ):
        with pytest.raises(ProviderError) as raised:
            await ask(model(http, served))
    error = raised.value
    assert (error.kind, error.status, error.retryable) == (refused.kind, refused.status, refused.retryable)
    assert refused.says in str(error)


OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.",
    "OpenAI Responses": "Your input exceeds the context window of this model. Please adjust your input.",
    "Anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "Anthropic, with its answer": "input length and `max_tokens` exceed context limit: 19 + 2 > 20",
    "Google": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "llama.cpp": "the request exceeds the available context size. try increasing it",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Bedrock": "Input is too long for requested model.",
}


@pytest.mark.parametrize("message", OVERFLOWS.values(), ids=OVERFLOWS.keys())
async def test_r7_a_request_that_is_too_long_is_an_overflow_whoever_says_so(message: str) -> None:
    async with provider(answers(400, {"error": {"message": message}})) as served, client() as http:
        with pytest.raises(ContextOverflow, match="Shorten or compact"):
            await ask(model(http, served))
    assert len(served.requests) == 1


async def test_a_missing_key_is_asked_for_by_its_name() -> None:
    async with provider(answers(401, "who are you?")) as served, client() as http:
        with pytest.raises(ProviderError, match="Set PLAIN_API_KEY to your API key"):
            await ask(model(http, served, auth=KeyAuth(name="PLAIN_API_KEY")))


async def test_a_key_is_not_carried_after_a_redirect() -> None:
    moved = answers(308, "", {"Location": "https://other.example/v1/chat"})
    async with provider(moved) as served, client() as http:
        with pytest.raises(ProviderError, match=r"redirects to https://other\.example/v1/chat"):
            await ask(model(http, served))
