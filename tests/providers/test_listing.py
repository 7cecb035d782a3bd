"""Read `/v1/models` of any server, in any format of the list."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from dragoman.errors import ProviderError
from dragoman.providers.listing import ListedModel, list_models, read_list
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.auth.aws import AwsAuth
from dragoman.wire.endpoint import ENDPOINTS, SHAPES, Endpoint
from tests.wire.clouds import ACCESS, SECRET, cloud, signed
from tests.wire.provider import KEY, answers, client, provider, waits


@pytest.mark.parametrize(
    ("answer", "models"),
    [
        (
            {"object": "list", "data": [{"id": "a", "context_length": 5}, {"id": "b"}]},
            [ListedModel("a", 5), ListedModel("b")],
        ),
        ({"data": [{"id": "a", "max_model_len": 7}]}, [ListedModel("a", 7)]),
        ([{"id": "a", "context_length": 9}], [ListedModel("a", 9)]),
        (
            {"models": [{"name": "models/gemini-3", "inputTokenLimit": 10}]},
            [ListedModel("gemini-3", 10)],
        ),
        ({"models": ["a", "a", 5, None, {"id": ""}]}, [ListedModel("a")]),
        ({"data": [{"id": "a", "context_window": "big"}]}, [ListedModel("a")]),
        ({"object": "list", "data": None}, []),
        ({"error": "no"}, None),
        ("a", None),
        (None, None),
    ],
)
def test_every_shape_of_a_list_is_read(answer: Any, models: list[ListedModel] | None) -> None:
    assert read_list(answer) == models


async def test_a_server_that_nobody_knows_is_asked_with_its_key() -> None:
    listed: Any = {"object": "list", "data": [{"id": "b"}, {"id": "a", "context_length": 4096}]}
    async with provider(answers(200, listed)) as served, client() as http:
        endpoint = Endpoint(served.url, "chat/completions", auth=KeyAuth(KEY, "MY_KEY"))
        assert await list_models(http, endpoint) == [ListedModel("a", 4096), ListedModel("b")]
    assert served.requests[0].path == "/v1/models"
    assert served.requests[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_anthropic_and_azure_are_asked_in_their_own_way() -> None:
    async with provider(answers(200, {"data": []})) as served, client() as http:
        for shape in (ENDPOINTS["anthropic_messages"], SHAPES["azure_v1", "openai_chat"]):
            await list_models(http, with_key(shape, served.url))
    first, second = served.requests
    assert (first.path_qs, first.headers["x-api-key"]) == ("/v1/models?limit=1000", KEY)
    assert first.headers["anthropic-version"]
    assert (second.path_qs, second.headers["api-key"]) == ("/v1/openai/v1/models", KEY)


async def test_a_list_is_asked_for_with_a_signature_where_requests_have_one() -> None:
    async with cloud(check=signed, stream=b'{"data": [{"id": "m"}]}') as served, client() as http:
        auth = AwsAuth(ACCESS, SECRET, "eu-west-1")
        assert await list_models(http, Endpoint(served.url, "x", auth=auth)) == [ListedModel("m")]
    assert not served.refusals


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, {"error": "who?"}, "refuses the key"),
        (404, {"error": "no"}, "has no such list"),
        (302, "", "has no such list"),
        (200, "<html>", "not a list of models"),
        (200, {"status": "ok"}, "not a list of models"),
    ],
)
async def test_who_has_no_list_is_an_error(status: int, body: Any, says: str) -> None:
    async with provider(answers(status, body)) as served, client() as http:
        with pytest.raises(ProviderError, match=says):
            await list_models(http, Endpoint(served.url, "chat"))


async def test_who_does_not_answer_is_not_waited_for() -> None:
    async with provider(waits) as served, client() as http:
        with pytest.raises(ProviderError, match=r"no list arrived within 0\.2 s"):
            await asyncio.wait_for(list_models(http, Endpoint(served.url, "chat"), seconds=0.2), 20)


async def test_who_lists_at_another_address_is_not_asked() -> None:
    async with client() as http:
        with pytest.raises(ProviderError, match="no list of models at such an address"):
            await list_models(http, SHAPES["bedrock_invoke", "anthropic_messages"])


def with_key(shape: Endpoint, url: str) -> Endpoint:
    assert isinstance(shape.auth, KeyAuth)
    return replace(shape, base_url=url, auth=replace(shape.auth, key=KEY))
