"""Azure, Bedrock and Vertex work over real HTTP, with servers that check the credentials (W2)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.events import MessageEnd, TextDelta
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.http_client.client import HttpClient, Retry, Timeouts
from tests.wire.aws_frames import chunk, exception, named
from tests.wire.clouds import (
    ACCESS,
    CHAT,
    CLAUDE,
    CLAUDE_FRAMES,
    CLIENT,
    CLIENT_SECRET,
    GEMINI,
    SECRET,
    SESSION,
    TENANT,
    Cloud,
    api_key,
    bearer,
    cloud,
    service_account,
    signed,
    sse,
)

AWS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-west-1"}
ENTRA = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": CLIENT_SECRET}


def models_at(served: Cloud, name: str, environment: dict[str, str], **client: Any) -> Models:
    """The provider of the catalog, moved to the loopback address by its owner."""
    catalog = load_catalog()
    provider = replace(catalog.providers[name], base_url=f"{served.url}/v1", base_url_from=())
    keys = Keys(environment={"HOME": "/nowhere", **environment}, use_keyring=False)
    http = HttpClient(retry=Retry(attempts=1), use_environment=False, **client)
    return Models(catalog=catalog.with_provider(provider), keys=keys, client=http)


async def text_of(models: Models, name: str) -> str:
    question = Request(name, (RequestMessage("user", (Text("Hello?"),)),))
    events = [event async for batch in models(name).stream(question, "msg_1") for event in batch]
    assert isinstance(events[-1], MessageEnd)
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def refusal(models: Models, name: str) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await text_of(models, name)
    for secret in (SECRET, SESSION, CLIENT_SECRET, "ya29.token"):
        assert secret not in f"{raised.value}{raised.value!r}{raised.value.hint}{models.__dict__}"
    return raised.value


# ── Amazon ────────────────────────────────────────────────────────────────────────────────────────

CLAUDE_NAME = "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.mark.parametrize("session", [{}, {"AWS_SESSION_TOKEN": SESSION}], ids=["lasting", "for hours"])
async def test_bedrock_gets_a_signature_that_it_computes_itself(session: dict[str, str]) -> None:
    """The signature covers the path as it is sent, with an encoded colon in the model's name (W2)."""
    async with (
        cloud(stream=CLAUDE_FRAMES, check=signed) as served,
        models_at(served, "bedrock", {**AWS, **session}) as models,
    ):
        assert await text_of(models, CLAUDE_NAME) == "Hello"
    request = served.requests[0]
    name = "eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0"
    assert request.raw_path == f"/v1/model/{name}/invoke-with-response-stream"
    assert request.headers.get("X-Amz-Security-Token") == session.get("AWS_SESSION_TOKEN")
    body = served.bodies[0]
    assert body["anthropic_version"] == "bedrock-2023-05-31"
    assert "model" not in body
    assert "stream" not in body


async def test_a_model_of_bedrock_may_be_an_arn() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-7"
    async with (
        cloud(stream=CLAUDE_FRAMES, check=signed) as served,
        models_at(served, "bedrock", AWS) as models,
    ):
        assert await text_of(models, f"bedrock/{arn}") == "Hello"
    assert "inference-profile%2Feu.anthropic" in served.requests[0].raw_path


async def test_a_bedrock_key_is_a_bearer_and_wins_over_the_access_key() -> None:
    async with cloud(stream=CLAUDE_FRAMES) as served:
        environment = {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-0123"}
        async with models_at(served, "bedrock", environment) as models:
            assert await text_of(models, CLAUDE_NAME) == "Hello"
    assert served.requests[0].headers["Authorization"] == "Bearer bedrock-api-key-0123"
    assert "X-Amz-Date" not in served.requests[0].headers


async def test_other_models_of_bedrock_speak_chat_and_are_signed_as_well() -> None:
    async with (
        cloud(stream=sse(*CHAT), check=signed) as served,
        models_at(served, "bedrock-openai", AWS) as models,
    ):
        assert await text_of(models, "bedrock-openai/openai.gpt-oss-120b-1:0") == "Hello"
    assert served.requests[0].path == "/v1/chat/completions"
    assert served.bodies[0]["model"] == "openai.gpt-oss-120b-1:0"


async def test_keys_of_a_profile_are_used_where_none_are_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"[work]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
    environment = {
        "AWS_PROFILE": "work",
        "AWS_SHARED_CREDENTIALS_FILE": str(file),
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    async with cloud(stream=CLAUDE_FRAMES, check=signed) as served:
        async with models_at(served, "bedrock", environment) as models:
            assert await text_of(models, CLAUDE_NAME) == "Hello"
        async with models_at(served, "bedrock", {**environment, "AWS_PROFILE": "home"}) as models:
            with pytest.raises(ConfigError, match=r"AWS_PROFILE is 'home'.*list-profiles"):
                models(CLAUDE_NAME)


async def test_a_wrong_signature_is_an_error_that_names_what_was_used() -> None:
    async with (
        cloud(check=signed, region="us-east-1") as served,
        models_at(served, "bedrock", {**AWS, "AWS_SESSION_TOKEN": SESSION}) as models,
    ):
        error = await refusal(models, CLAUDE_NAME)
    assert error.status == 403
    assert "signature we calculated does not match" in error.message
    assert error.hint == (
        "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the region eu-west-1, and whether they may use "
        "this model there"
    )


@pytest.mark.parametrize(
    ("kind", "name", "retryable"),
    [
        ("throttlingException", "rate_limit", True),
        ("validationException", "invalid_request", False),
        ("serviceUnavailableException", "overloaded", True),
    ],
)
async def test_an_error_inside_the_stream_comes_after_what_had_arrived(
    kind: str, name: str, retryable: bool
) -> None:
    stream = b"".join(map(chunk, CLAUDE[:3])) + exception(kind, "not now")
    async with cloud(stream=stream) as served, models_at(served, "bedrock", AWS) as models:
        question = Request(CLAUDE_NAME, (RequestMessage("user", (Text("Hello?"),)),))
        texts: list[str] = []

        async def read() -> None:
            async for batch in models(CLAUDE_NAME).stream(question, "msg_1"):
                texts.extend(event.text for event in batch if isinstance(event, TextDelta))

        with pytest.raises(ProviderError, match="not now") as raised:
            await read()
    assert texts == ["Hel"]
    assert raised.value.retryable is retryable
    assert raised.value.kind == name


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (b"".join(map(chunk, CLAUDE[:-1]))[:-300], "unfinished"),
        (b"".join(map(chunk, CLAUDE[:3])), "unfinished"),
        (CLAUDE_FRAMES[:40], "no_stream"),
        (CLAUDE_FRAMES[:-5] + b"\x00" + CLAUDE_FRAMES[-4:], "garbled"),
        (b"\x7f" + CLAUDE_FRAMES[1:], "garbled"),
        (b"", "no_stream"),
        (b"<html>a proxy</html>", "no_stream"),
    ],
    ids=["cut in a frame", "cut between frames", "half a frame", "checksum", "length", "empty", "a page"],
)
async def test_a_stream_of_frames_that_is_cut_or_damaged_is_no_reply(stream: bytes, kind: str) -> None:
    async with cloud(stream=stream) as served, models_at(served, "bedrock", AWS) as models:
        assert (await refusal(models, CLAUDE_NAME)).kind == kind


async def test_a_stream_of_frames_that_stalls_in_a_frame_is_given_up() -> None:
    async with (
        cloud(stream=CLAUDE_FRAMES[:900], stalls=True) as served,
        models_at(served, "bedrock", AWS, timeouts=Timeouts(between_chunks=0.2)) as models,
    ):
        assert (await refusal(models, CLAUDE_NAME)).kind == "timeout"


# ── Converse ──────────────────────────────────────────────────────────────────────────────────────

NOVA = "bedrock/us.amazon.nova-lite-v1:0"
CONVERSE: tuple[dict[str, Any], ...] = (
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": "Hel"}, "contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"text": "lo"}, "contentBlockIndex": 0}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 9, "outputTokens": 5}, "metrics": {"latencyMs": 7}}},
)
CONVERSE_FRAMES = b"".join(map(named, CONVERSE))


@pytest.mark.parametrize("more", [{}, {"AWS_SESSION_TOKEN": SESSION}])
async def test_converse_is_signed_to_the_byte_and_asked_at_the_models_own_address(
    more: dict[str, str],
) -> None:
    """The catalog finds the model's table, and the signature covers the colon in its name (W2)."""
    async with (
        cloud(stream=CONVERSE_FRAMES, check=signed) as served,
        models_at(served, "bedrock-converse", {**AWS, **more}) as models,
    ):
        assert await text_of(models, NOVA) == "Hello"
        assert await text_of(models, "bedrock-converse/arn:aws:bedrock:eu-west-1:1:x/us.y-v1:0") == "Hello"
    assert served.refusals == []
    assert served.requests[0].raw_path == "/v1/model/us.amazon.nova-lite-v1%3A0/converse-stream"
    assert served.bodies[1] == {"messages": [{"role": "user", "content": [{"text": "Hello?"}]}]}


async def test_converse_takes_a_key_of_bedrock() -> None:
    async with (
        cloud(stream=CONVERSE_FRAMES) as served,
        models_at(served, "bedrock-converse", {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-key-0123"}) as models,
    ):
        assert await text_of(models, NOVA) == "Hello"
    assert served.requests[0].headers["Authorization"] == "Bearer bedrock-key-0123"


@pytest.mark.parametrize(
    ("stream", "kind", "retryable"),
    [
        (exception("throttlingException", "Too many tokens, please wait"), "rate_limit", True),
        (exception("modelStreamErrorException", "Model produced invalid sequence"), "server", True),
        (
            exception("validationException", "Input is too long for requested model."),
            "context_overflow",
            False,
        ),
        (exception("internalServerException", "oops"), "server", True),
        (CONVERSE_FRAMES[:300], "unfinished", True),
        (CONVERSE_FRAMES[:150] + b"\x00" + CONVERSE_FRAMES[151:], "garbled", True),
    ],
    ids=["throttled", "model", "overflow", "server", "cut", "damaged"],
)
async def test_an_error_of_converse_is_told_as_what_it_is(stream: bytes, kind: str, retryable: bool) -> None:
    """W3, T8"""
    async with cloud(stream=stream) as served, models_at(served, "bedrock-converse", AWS) as models:
        error = await refusal(models, NOVA)
    assert (error.kind, error.retryable) == (kind, retryable)


# ── Google ────────────────────────────────────────────────────────────────────────────────────────


def google(served: Cloud, folder: Path, **change: Any) -> dict[str, str]:
    file = folder / "account.json"
    file.write_text(json.dumps({**service_account(f"{served.url}/token"), **change}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "GOOGLE_CLOUD_PROJECT": "p1"}


async def test_vertex_serves_gemini_to_a_service_account(tmp_path: Path) -> None:
    async with (
        cloud(stream=sse(*GEMINI), check=bearer) as served,
        models_at(served, "vertex", google(served, tmp_path)) as models,
    ):
        assert await text_of(models, "vertex/gemini-3-pro") == "Hello"
        assert await text_of(models, "vertex/gemini-3-pro") == "Hello"
    path = "/v1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"
    assert [request.path_qs for request in served.requests] == [path] * 2
    assert len(served.forms) == 1  # the token was cached


async def test_vertex_serves_claude_without_its_name_in_the_body(tmp_path: Path) -> None:
    async with (
        cloud(stream=sse(*CLAUDE), check=bearer) as served,
        models_at(served, "vertex-claude", google(served, tmp_path)) as models,
    ):
        assert await text_of(models, "vertex-claude/claude-sonnet-4-5@20250929") == "Hello"
    path = "/v1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"
    assert served.requests[0].path == path
    body = served.bodies[0]
    assert (body["anthropic_version"], body["stream"]) == ("vertex-2023-10-16", True)
    assert "model" not in body


async def test_a_token_is_fetched_anew_before_it_ends(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    async with (
        cloud(stream=sse(*GEMINI), check=bearer) as served,
        models_at(served, "vertex", google(served, tmp_path), clock=lambda: now[0]) as models,
    ):
        for seconds, fetched in ((0, 1), (3400, 1), (100, 2), (3400, 2), (81, 3)):
            now[0] += seconds
            assert await text_of(models, "vertex/gemini-3-pro") == "Hello"
            assert len(served.forms) == fetched


async def test_a_token_that_was_revoked_is_not_used_again(tmp_path: Path) -> None:
    async with (
        cloud(stream=sse(*GEMINI), check=bearer, revoked={"ya29.token-1"}) as served,
        models_at(served, "vertex", google(served, tmp_path)) as models,
    ):
        error = await refusal(models, "vertex/gemini-3-pro")
        assert (error.kind, error.status) == ("auth", 401)
        assert "Check GOOGLE_APPLICATION_CREDENTIALS" in (error.hint or "")
        assert await text_of(models, "vertex/gemini-3-pro") == "Hello"
    assert len(served.forms) == 2


async def test_a_person_who_ran_gcloud_is_signed_in(tmp_path: Path) -> None:
    async with cloud(stream=sse(*GEMINI), check=bearer) as served:
        folder = tmp_path / ".config" / "gcloud"
        folder.mkdir(parents=True)
        (folder / "application_default_credentials.json").write_text(
            json.dumps(
                {
                    "type": "authorized_user",
                    "client_id": "c",
                    "client_secret": "s",
                    "refresh_token": "refresh-1",
                    "token_uri": f"{served.url}/token",
                }
            )
        )
        async with models_at(served, "vertex", {"HOME": str(tmp_path)}) as models:
            assert await text_of(models, "vertex/gemini-3-pro") == "Hello"


async def test_a_token_that_is_ready_is_used_as_it_is() -> None:
    async with (
        cloud(stream=sse(*GEMINI)) as served,
        models_at(served, "vertex", {"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.ready-0123"}) as models,
    ):
        assert await text_of(models, "vertex/gemini-3-pro") == "Hello"
    assert served.requests[0].headers["Authorization"] == "Bearer ya29.ready-0123"
    assert not served.forms


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"token_uri": "http://tokens.example/token"}, "tokens that is not https://"),
        (
            {"type": "gdch_service_account"},
            "type 'gdch_service_account'. Use the key of a service",
        ),
        ({"type": None}, "not support credentials of type None"),
    ],
)
def test_an_account_that_cannot_be_used_is_refused_with_its_variable(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    served = Cloud(url="https://oauth2.example")
    environment = google(served, tmp_path, **change)
    with pytest.raises(ConfigError, match=f"GOOGLE_APPLICATION_CREDENTIALS.*{says}"):
        models_at(served, "vertex", environment)("vertex/gemini-3-pro")


async def test_a_private_key_that_is_none_is_refused_and_not_shown(tmp_path: Path) -> None:
    served = Cloud(url="https://oauth2.example")
    environment = google(served, tmp_path, private_key="-----BEGIN secretsecret")
    async with models_at(served, "vertex", environment) as models:
        with pytest.raises(ConfigError, match="the private key is invalid") as raised:
            await text_of(models, "vertex/gemini-3-pro")
    assert "secretsecret" not in str(raised.value)


# ── Azure ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"])
async def test_azure_takes_a_key_in_its_own_header(name: str) -> None:
    async with (
        cloud(stream=sse(*CHAT), check=api_key) as served,
        models_at(served, "azure", {name: "azure-key-0123", **ENTRA}) as models,
    ):
        assert await text_of(models, "azure/my-deployment") == "Hello"
    assert served.requests[0].path_qs == "/v1/openai/v1/chat/completions"
    assert served.bodies[0]["model"] == "my-deployment"
    assert not served.forms


async def test_azure_takes_a_token_of_entra_for_an_application() -> None:
    async with cloud(stream=sse(*CHAT), check=bearer) as served:
        environment = {**ENTRA, "AZURE_AUTHORITY_HOST": served.url}
        async with models_at(served, "azure", environment) as models:
            assert await text_of(models, "azure/my-deployment") == "Hello"
            assert await text_of(models, "azure/other") == "Hello"
    assert "api-key" not in served.requests[0].headers
    assert len(served.forms) == 1  # both models use one token


async def test_azure_takes_a_token_that_is_ready() -> None:
    async with (
        cloud(stream=sse(*CHAT)) as served,
        models_at(served, "azure", {"AZURE_OPENAI_AD_TOKEN": "entra-token-0123"}) as models,
    ):
        assert await text_of(models, "azure/my-deployment") == "Hello"
    assert served.requests[0].headers["Authorization"] == "Bearer entra-token-0123"


@pytest.mark.parametrize(("status", "retryable"), [(200, False), (503, True)])
async def test_a_secret_that_entra_refuses_is_not_in_the_error(status: int, retryable: bool) -> None:
    async with cloud(check=bearer, token_status=status) as served:
        wrong = {**ENTRA, "AZURE_AUTHORITY_HOST": served.url}
        if status == 200:
            wrong["AZURE_CLIENT_ID"] = "somebody"
        async with models_at(served, "azure", wrong) as models:
            error = await refusal(models, "azure/my-deployment")
    assert (error.kind, error.retryable) == ("auth", retryable)
    assert "gives no access token: AADSTS7000215" in error.message
    assert "Check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET" in (error.hint or "")
    assert not served.requests


# ── nobody is signed in ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "bedrock",
            "AWS_BEARER_TOKEN_BEDROCK .*or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY .*AWS_PROFILE",
        ),
        ("vertex", "GOOGLE_OAUTH_ACCESS_TOKEN or .*GOOGLE_APPLICATION_CREDENTIALS .*gcloud auth"),
        ("azure", "AZURE_OPENAI_API_KEY or AZURE_API_KEY .*AZURE_CLIENT_SECRET .*AZURE_OPENAI_AD_TOKEN"),
    ],
)
def test_the_error_of_who_is_not_signed_in_names_every_variable(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        models_at(Cloud(url="https://x.example"), name, {})(f"{name}/m")
