"""Amazon's signature, against the vectors that Amazon publishes for it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dragoman.errors import ConfigError
from dragoman.wire.auth.auth import Outgoing, outgoing_to
from dragoman.wire.auth.aws import AwsAuth, sign
from dragoman.wire.http_client.payload import FileContent, InBase64, Payload

AUTH = AwsAuth(
    "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region="us-east-1", service="service"
)
AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "signature"),
    [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
    ids=["get-vanilla", "post-vanilla", "get-vanilla-query-order-key-case"],
)
def test_the_published_vectors_hold(method: str, path: str, signature: str) -> None:
    headers = sign(AUTH, Outgoing(f"https://example.amazonaws.com{path}", method=method), AT)
    assert headers == {
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={signature}",
    }


def test_body_address_time_and_session_are_all_signed() -> None:
    request = Outgoing("https://a.example/x", b"body")
    other = AwsAuth("AKIDEXAMPLE", AUTH.secret_key, "us-east-1", "session", "service")
    signatures = {
        sign(auth, one, at)["Authorization"].rpartition("=")[2]
        for auth, one, at in [
            (AUTH, request, AT),
            (AUTH, Outgoing("https://a.example/x", b"other"), AT),
            (AUTH, Outgoing("https://a.example/y", b"body"), AT),
            (AUTH, Outgoing("https://b.example/x", b"body"), AT),
            (AUTH, request, AT.replace(second=1)),
            (other, request, AT),
        ]
    }
    assert len(signatures) == 6


async def test_a_body_with_files_in_it_is_signed_as_the_bytes_it_is_sent_as() -> None:
    body = Payload([b"before ", InBase64(FileContent.of(b"a picture")), b" after"])
    request = await outgoing_to("https://a.example/x", body, AUTH)
    same = Outgoing("https://a.example/x", b"before YSBwaWN0dXJl after")
    assert sign(AUTH, request, AT) == sign(AUTH, same, AT)


@pytest.mark.parametrize("spoiled", [{"secret_key": "abc\n"}, {"session_token": "a\r\nb"}])
def test_a_key_with_a_line_break_is_refused_by_name_and_not_shown(spoiled: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"AWS_ACCESS_KEY_ID .* line break") as raised:
        AwsAuth(**{"access_key": "AKID", "secret_key": "s", "region": "us-east-1", **spoiled})
    assert "abc" not in str(raised.value)


def test_no_secret_is_printed() -> None:
    auth = AwsAuth("AKIDEXAMPLE", AUTH.secret_key, "us-east-1", "session-token")
    assert AUTH.secret_key not in repr(auth)
    assert "session-token" not in repr(auth)
    assert {AUTH.secret_key, "session-token"} <= set(auth.secrets)
