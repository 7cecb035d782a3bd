"""Access tokens: fetched once for many, held no longer than they live, believed only as tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from dragoman.errors import ConfigError, ProviderError
from dragoman.wire.auth.auth import Outgoing
from dragoman.wire.auth.entra import EntraApplication
from dragoman.wire.auth.token import EARLY, TokenAuth

REQUEST = Outgoing("https://a.example/x")


@dataclass
class Bank:
    """A client whose token server sends the prepared answer."""

    answer: tuple[int, bytes] = (200, b'{"access_token": "t", "expires_in": 3600}')
    now: float = 1000.0
    forms: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        self.forms.append((url, dict(form)))
        await asyncio.sleep(0)
        return self.answer

    async def ask(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        raise AssertionError("a form is all that this one sends")


def application() -> TokenAuth:
    return TokenAuth(EntraApplication("tenant/1", "c", "very-secret-0123"))


async def test_many_requests_at_once_fetch_one_token() -> None:
    bank, auth = Bank(), application()
    got = await asyncio.gather(*(auth.headers(REQUEST, bank) for _ in range(20)))
    assert got == [{"Authorization": "Bearer t"}] * 20
    assert [url for url, _ in bank.forms] == [
        "https://login.microsoftonline.com/tenant%2F1/oauth2/v2.0/token"
    ]


@pytest.mark.parametrize(
    ("lives", "held"),
    [
        (b"3600", 3600 - EARLY),
        (b'"3600"', 3600 - EARLY),
        (b"null", 0),
        (b"-5", 0),
        (b'"soon"', 0),
        (b"1e99", 24 * 3600 - EARLY),
        (b"NaN", 0),
        (b'"nan"', 0),
    ],
)
async def test_a_token_is_held_until_shortly_before_its_end_and_not_for_ever(
    lives: bytes, held: float
) -> None:
    bank, auth = Bank((200, b'{"access_token": "t", "expires_in": ' + lives + b"}")), application()
    await auth.headers(REQUEST, bank)
    if held:
        bank.now += held - 1
        await auth.headers(REQUEST, bank)
        assert len(bank.forms) == 1
        bank.now += 1
    await auth.headers(REQUEST, bank)
    assert len(bank.forms) == 2


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, b'{"error": "invalid_grant"}', "gives no access token: invalid_grant"),
        (200, b"<html>sign in here</html>", "sign in here"),
        (200, b'{"access_token": 5}', "gives no access token"),
        (200, b'{"access_token": "two\\nlines"}', "gives no access token"),
        (200, b"[]", "gives no access token"),
        (302, b"", "gives no access token"),
    ],
)
async def test_what_is_no_token_is_an_error_in_the_servers_words(status: int, body: bytes, says: str) -> None:
    with pytest.raises(ProviderError, match=says) as raised:
        await application().headers(REQUEST, Bank((status, body)))
    assert (raised.value.kind, raised.value.hint) == (
        "auth",
        "Check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
    )


async def test_no_secret_and_no_token_is_printed() -> None:
    bank = Bank((200, b'{"access_token": "token-0123", "expires_in": 3600}'))
    auth = application()
    await auth.headers(REQUEST, bank)
    assert "very-secret" not in repr(auth) + repr(auth.source)
    assert "token-0123" not in repr(auth)
    assert set(auth.secrets) == {"token-0123", "very-secret-0123"}


def test_a_secret_is_never_sent_in_clear_to_another_machine() -> None:
    with pytest.raises(ConfigError, match=r"AZURE_AUTHORITY_HOST .* not https://"):
        EntraApplication("t", "c", "s", authority="http://login.example")
    EntraApplication("t", "c", "s", authority="http://127.0.0.1:9")
