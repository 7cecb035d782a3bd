"""Cloud sign-in without a key: pods, instances, roles, SSO, workload and managed identities."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.events import TextDelta
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys, describe_auth
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.wire.clouds import ACCESS, CHAT, CLAUDE_FRAMES, GEMINI, SECRET, SESSION, Cloud, cloud, signed, sse
from tests.wire.identities import NOW, ROLE, SUBJECT, Identities, identities, printing_keys

MODELS = {"bedrock": "bedrock/anthropic.claude-x", "vertex": "vertex/gemini-3-pro", "azure": "azure/mine"}
STREAMS = {"bedrock": CLAUDE_FRAMES, "vertex": sse(*GEMINI), "azure": sse(*CHAT)}
Way = Callable[[Identities, Path], dict[str, str]]


def profile(folder: Path, config: str = "", credentials: str = "", name: str = "talk") -> dict[str, str]:
    (folder / ".aws").mkdir(exist_ok=True)
    (folder / ".aws" / "config").write_text(config)
    (folder / ".aws" / "credentials").write_text(credentials)
    return {"HOME": str(folder), "AWS_PROFILE": name}


def secret_file(folder: Path) -> str:
    (folder / "token").write_text(f"{SUBJECT}\n")
    return str(folder / "token")


# ── Amazon ────────────────────────────────────────────────────────────────────────────────────────


def pod(who: Identities, folder: Path) -> dict[str, str]:
    named = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": secret_file(folder)}
    return {**named, "AWS_ENDPOINT_URL_STS": f"{who.url}/sts"}


def container(who: Identities, folder: Path) -> dict[str, str]:
    uri = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{who.url}/container"}
    return {**uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": secret_file(folder)}


def instance(who: Identities, folder: Path) -> dict[str, str]:
    return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": who.url}


def role(who: Identities, folder: Path) -> dict[str, str]:
    keys = f"[base]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    config = f"[profile talk]\nrole_arn = {ROLE}\nsource_profile = base\n"
    return {**profile(folder, config, keys), "AWS_ENDPOINT_URL_STS": f"{who.url}/sts"}


def role_of_instance(who: Identities, folder: Path) -> dict[str, str]:
    config = f"[profile talk]\nrole_arn = {ROLE}\ncredential_source = Ec2InstanceMetadata\n"
    where = {"AWS_ENDPOINT_URL_STS": f"{who.url}/sts", "AWS_EC2_METADATA_SERVICE_ENDPOINT": who.url}
    return {**profile(folder, config), **where}


def sso(who: Identities, folder: Path) -> dict[str, str]:
    cache = folder / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    file = cache / f"{hashlib.sha1(b'corp').hexdigest()}.json"
    file.write_text(json.dumps({"accessToken": SUBJECT, "expiresAt": who.ends()}))
    config = (
        "[profile talk]\nsso_session = corp\nsso_account_id = 123\nsso_role_name = talker\n"
        "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example\n"
    )
    return {**profile(folder, config), "AWS_ENDPOINT_URL_SSO": f"{who.url}/sso"}


def program(who: Identities, folder: Path) -> dict[str, str]:
    (folder / "keys.py").write_text(f"print({printing_keys(who.ends())!r})")
    return profile(folder, f"[profile talk]\ncredential_process = {sys.executable} {folder}/keys.py\n")


# ── Google, Azure ─────────────────────────────────────────────────────────────────────────────────


def described(folder: Path, **fields: Any) -> dict[str, str]:
    (folder / "adc.json").write_text(json.dumps(fields))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(folder / "adc.json")}


def workload(who: Identities, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{who.url}/exchange",
        "credential_source": source,
        **more,
    }


def workload_file(who: Identities, folder: Path) -> dict[str, str]:
    return described(folder, **workload(who, {"file": secret_file(folder)}))


def workload_address(who: Identities, folder: Path) -> dict[str, str]:
    form = {"type": "json", "subject_token_field_name": "value"}
    source = {"url": f"{who.url}/subject", "headers": {"X-Ask": "me"}, "format": form}
    acts = {"service_account_impersonation_url": f"{who.url}/impersonate"}
    return described(folder, **workload(who, source, **acts))


def google_machine(who: Identities, folder: Path) -> dict[str, str]:
    return {"GCE_METADATA_HOST": who.url.removeprefix("http://")}


def federated(who: Identities, folder: Path) -> dict[str, str]:
    ids = {"AZURE_TENANT_ID": "tenant-1", "AZURE_CLIENT_ID": "client-1", "AZURE_AUTHORITY_HOST": who.url}
    return {**ids, "AZURE_FEDERATED_TOKEN_FILE": secret_file(folder)}


def app_service(who: Identities, folder: Path) -> dict[str, str]:
    return {"IDENTITY_ENDPOINT": f"{who.url}/msi", "IDENTITY_HEADER": "id-header-0123"}


def azure_machine(who: Identities, folder: Path) -> dict[str, str]:
    return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": who.url, "AZURE_CLIENT_ID": "client-1"}


WAYS: list[tuple[str, Way]] = [
    *(("bedrock", way) for way in (pod, container, instance, role, role_of_instance, sso, program)),
    *(("vertex", way) for way in (workload_file, workload_address, google_machine)),
    *(("azure", way) for way in (federated, app_service, azure_machine)),
]
each_way = pytest.mark.parametrize(("provider", "way"), WAYS, ids=[way.__name__ for _, way in WAYS])


def bearer(who: Identities) -> Callable[..., str | None]:
    def check(cloud: Cloud, request: Any, body: bytes) -> str | None:
        right = request.headers.get("Authorization") == f"Bearer ya29.token-{who.given}"
        return None if right else "Request had invalid authentication credentials"

    return check


def models_at(served: Cloud, name: str, environment: dict[str, str], clock: Callable[[], float]) -> Models:
    catalog = load_catalog()
    provider = replace(catalog.providers[name], base_url=f"{served.url}/v1", base_url_from=())
    around = {"HOME": "/nowhere", "AWS_REGION": "eu-west-1", **environment}
    http = HttpClient(retry=Retry(attempts=1), use_environment=False, clock=clock)
    keys = Keys(environment=around, use_keyring=False)
    return Models(catalog=catalog.with_provider(provider), keys=keys, client=http)


async def text_of(models: Models, name: str) -> str:
    question = Request(name, (RequestMessage("user", (Text("Hello?"),)),))
    events = [event async for batch in models(name).stream(question, "msg_1") for event in batch]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@each_way
async def test_every_way_signs_in_once_for_many_and_again_before_it_ends(
    provider: str, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Logs contain no secret (W2)."""
    caplog.set_level(logging.DEBUG)
    now = [NOW]
    async with identities() as who:
        check = signed if provider == "bedrock" else bearer(who)
        async with (
            cloud(stream=STREAMS[provider], check=check) as served,
            models_at(served, provider, way(who, tmp_path), lambda: now[0]) as models,
        ):
            name = MODELS[provider]
            asked = await asyncio.gather(*(text_of(models, name) for _ in range(5)))
            assert (asked, who.wrong, served.refusals) == (["Hello"] * 5, [], [])
            once = len(who.asked)
            assert await text_of(models, f"{name}-2") == "Hello"  # another model of the same account
            assert len(who.asked) == once
            now[0] = who.now = NOW + 3590
            if way not in (program, sso):
                assert await text_of(models, name) == "Hello"
                assert len(who.asked) == 2 * once
    for secret in (SECRET, SESSION, SUBJECT, "ya29.token", "id-header"):
        assert secret not in caplog.text


@each_way
@pytest.mark.parametrize("status", [403, 503])
async def test_who_is_not_let_in_is_told_what_to_look_at(
    provider: str, way: Way, status: int, tmp_path: Path
) -> None:
    """W3: an error of the sign-in, which may pass if the server says so, with no secret in it."""
    if way is program:
        return  # no request to a server
    async with (
        identities(status=status) as who,
        cloud(stream=b"") as served,
        models_at(served, provider, way(who, tmp_path), lambda: NOW) as models,
    ):
        with pytest.raises(ProviderError) as raised:
            await text_of(models, MODELS[provider])
    error = raised.value
    assert (error.kind, error.retryable) == ("auth", status == 503)
    assert error.hint
    assert not served.requests
    for secret in (SECRET, SESSION, SUBJECT, "id-header"):
        assert secret not in f"{error}{error!r}{error.hint}"


@each_way
def test_what_one_signs_in_with_is_told_without_a_secret(provider: str, way: Way, tmp_path: Path) -> None:
    keys = Keys(environment={"HOME": "/nowhere", **way(Identities(url="https://x.example"), tmp_path)})
    told = describe_auth(load_catalog().providers[provider], keys)
    assert told is not None
    assert told.startswith("signs in by ")
    assert SUBJECT not in told


async def test_keys_that_are_refused_are_fetched_anew(tmp_path: Path) -> None:
    """Refused keys can have been revoked (W2)."""
    async with (
        identities() as who,
        cloud(stream=CLAUDE_FRAMES, check=signed) as served,
        models_at(served, "bedrock", instance(who, tmp_path), lambda: NOW) as models,
    ):
        served.region = "us-east-1"  # a signature for another region is refused
        with pytest.raises(ProviderError):
            await text_of(models, MODELS["bedrock"])
        served.region = "eu-west-1"
        assert await text_of(models, MODELS["bedrock"]) == "Hello"
    assert len(who.asked) == 6


@pytest.mark.parametrize(
    ("code", "says"), [("import sys; sys.exit(3)", "ended with status 3"), ("print('no')", "no access keys")]
)
async def test_a_program_that_prints_no_keys_is_named(code: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "keys.py").write_text(code)
    command = f"{sys.executable} {tmp_path}/keys.py"
    environment = profile(tmp_path, f"[profile talk]\ncredential_process = {command}\n")
    async with cloud() as served, models_at(served, "bedrock", environment, lambda: NOW) as models:
        with pytest.raises(ProviderError, match=f"credential_process of the profile talk.*{says}"):
            await text_of(models, MODELS["bedrock"])


async def test_who_has_to_sign_in_with_sso_again_is_told_so(tmp_path: Path) -> None:
    async with identities() as who, cloud() as served:
        environment = sso(who, tmp_path)
        async with models_at(served, "bedrock", environment, lambda: NOW + 7200) as models:
            with pytest.raises(ProviderError, match="the SSO session has ended") as raised:
                await text_of(models, MODELS["bedrock"])
    assert "aws sso login" in (raised.value.hint or "")
    assert not who.asked


@pytest.mark.parametrize(
    ("provider", "environment", "says"),
    [
        ("bedrock", {"AWS_PROFILE": "gone"}, "AWS_PROFILE is 'gone'.*list-profiles"),
        (
            "bedrock",
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://elsewhere.example/keys"},
            "AWS_CONTAINER_CREDENTIALS_FULL_URI names an address for tokens that is not https",
        ),
        (
            "bedrock",
            {
                "AWS_ROLE_ARN": ROLE,
                "AWS_WEB_IDENTITY_TOKEN_FILE": "t",
                "AWS_ENDPOINT_URL_STS": "http://a.example",
            },
            "AWS_ENDPOINT_URL_STS",
        ),
    ],
)
def test_what_cannot_be_right_is_said_before_anything_is_sent(
    provider: str, environment: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        models_at(Cloud(url="https://x.example"), provider, environment, lambda: NOW)(MODELS[provider])


def test_a_token_that_google_cannot_be_shown_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    who = Identities(url="https://x.example")
    environment = described(tmp_path, **workload(who, {"environment_id": "aws1"}))
    with pytest.raises(ConfigError, match=r"in a file or at an address.*GOOGLE_OAUTH_ACCESS_TOKEN"):
        models_at(Cloud(url="https://x.example"), "vertex", environment, lambda: NOW)(MODELS["vertex"])
