"""Keys, proxies and certificates reach a provider, and no log prints a secret."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import traceback
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, ProviderError
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http_client.client import Retry
from dragoman.wire.http_client.http_model import HttpModel
from tests.wire.provider import (
    HELLO,
    KEY,
    Handler,
    Plain,
    answers,
    ask,
    client,
    dies,
    frame,
    model,
    provider,
    streams,
    text_of,
)

pytestmark = pytest.mark.slow

# ── keys ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "handler",
    [
        answers(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        answers(500, f"header was {KEY}"),
        answers(200, f"<html>{KEY}</html>", media_type="text/html"),
        answers(302, "", {"Location": f"https://example.org/?key={KEY}"}),
        streams(frame(say="Hi"), frame(error=f"bad key {KEY}")),
        streams(frame(say="Hi"), f"data: {KEY}\n\n".encode()),
        dies,
    ],
    ids=["refused", "plain", "page", "redirect", "in the stream", "garbled", "no answer"],
)
async def test_a_key_is_never_printed(handler: Handler) -> None:
    async with provider(handler) as served, client(retry=Retry(attempts=2)) as http:
        asked = model(http, served, headers={"X-Secret": f"also {KEY}"})
        with pytest.raises(ProviderError) as raised:
            await ask(asked)
        printed = [
            str(raised.value),
            repr(raised.value),
            "".join(traceback.format_exception(raised.value)),
            repr(raised.value.__cause__),
            repr(raised.value.__context__),
            repr(asked),
            repr(asked._endpoint),
            repr(http),
        ]
    assert not [text for text in printed if KEY in text]


def test_a_key_with_a_line_break_is_refused_by_name_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="MY_KEY contains characters") as raised:
        KeyAuth(f"{KEY}\n", "MY_KEY")
    assert KEY not in str(raised.value)


# ── proxies and certificates ──────────────────────────────────────────────────────────────────────


async def test_a_proxy_is_used_when_it_is_given() -> None:
    async with provider(streams(HELLO)) as proxy, client(proxy=proxy.url.removesuffix("/v1")) as http:
        asked = HttpModel(http, Plain(), Endpoint("http://provider.invalid/v1", "chat"), model="small")
        assert await text_of(asked) == "Hello"
    assert proxy.requests[0].headers["Host"] == "provider.invalid"


async def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(streams(HELLO)) as proxy, client() as http:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        asked = HttpModel(http, Plain(), Endpoint("http://provider.invalid/v1", "chat"), model="small")
        assert await text_of(asked) == "Hello"


def test_the_environments_proxy_is_passed_by_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "direct.invalid")
    assert client()._proxy_for("https://provider.invalid/v1") == "http://proxy.invalid:3128"
    assert client()._proxy_for("https://direct.invalid/v1") is None
    assert client(use_environment=False)._proxy_for("https://provider.invalid/v1") is None


async def test_a_model_on_this_machine_is_never_asked_through_the_environments_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with provider(streams(HELLO)) as served, client() as http:
        assert await text_of(model(http, served)) == "Hello"


async def test_a_proxy_of_a_kind_we_cannot_use_is_refused_without_its_password() -> None:
    async with client(proxy="socks5://me:secret@127.0.0.1:1080") as http:
        with pytest.raises(ConfigError, match=r"the proxy for provider\.invalid must be") as raised:
            await ask(HttpModel(http, Plain(), Endpoint("http://provider.invalid"), model="small"))
    assert "secret" not in str(raised.value)


@pytest.fixture
def own_certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Return a certificate for this machine that no other machine trusts, and its key."""
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
async def test_a_certificate_of_ones_own_is_trusted_when_it_is_named(
    own_certificate: tuple[Path, Path],
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*own_certificate)
    async with provider(streams(HELLO), tls=tls) as served:
        async with client(ca=own_certificate[0]) as http:
            assert await text_of(model(http, served)) == "Hello"
        async with client() as http:
            with pytest.raises(ProviderError, match="name its file as `ca`") as raised:
                await ask(model(http, served))
    assert not raised.value.retryable


async def test_certificates_that_are_not_there_are_named() -> None:
    async with provider(streams(HELLO)) as served, client(ca="/nowhere/ca.pem") as http:
        with pytest.raises(ConfigError, match=r"/nowhere/ca\.pem"):
            await ask(model(http, served))
