"""Clouds on the loopback address: they check every signature and token themselves, as the real ones would."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.wire.aws_frames import chunk

ACCESS, SECRET, SESSION = "AKIDEXAMPLE0123", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token=="
TENANT, CLIENT, CLIENT_SECRET = "tenant-1", "client-1", "very~secret~0123456789"

# ── Claude's events, as recorded ──────────────────────────────────────────────────────────────────

CLAUDE: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {
            "id": "msg_bdrk_1",
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
GEMINI: tuple[dict[str, Any], ...] = (
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]},
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5},
    },
)
CHAT: tuple[dict[str, Any], ...] = (
    {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


CLAUDE_FRAMES = b"".join(map(chunk, CLAUDE))

# ── Amazon's signature, computed from the bytes that came ─────────────────────────────────────────


def expected_signature(request: web.Request, body: bytes, region: str, service: str = "bedrock") -> str:
    """Return the required Authorization header by Amazon's rules, from signed values only."""
    sent = request.headers["Authorization"]
    names = sent.partition("SignedHeaders=")[2].partition(",")[0]
    path, _, query = request.raw_path.partition("?")
    head = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
    steps = [quote(step, safe="-_.~") for step in path.split("/")]
    hashed = hashlib.sha256(body).hexdigest()
    canonical = "\n".join(
        [request.method, "/".join(steps), "&".join(sorted(query.split("&"))), head, names, hashed]
    )
    at = request.headers["X-Amz-Date"]
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={ACCESS}/{scope}, SignedHeaders={names}, Signature={signature}"


# ── Google's account ──────────────────────────────────────────────────────────────────────────────


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account(token_uri: str) -> dict[str, str]:
    """The file of an account, as Google writes it."""
    pem = rsa_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "client_email": "robot@project.iam.gserviceaccount.com",
        "private_key": pem.decode(),
        "private_key_id": "key-7",
        "token_uri": token_uri,
    }


def _part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# ── the server ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Cloud:
    """Answers models with `stream`, and token requests with a token. `refusals` lists the requests it
    refused."""

    stream: bytes = b""
    region: str = "eu-west-1"
    check: Callable[[Cloud, web.Request, bytes], str | None] = field(default=lambda *_: None)
    expires_in: object = 3600
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    revoked: set[str] = field(default_factory=set)
    token_status: int = 200
    stalls: bool = False  # after the stream, instead of its end

    async def model(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(request)
        self.bodies.append(json.loads(body) if body else None)
        if (why := self.check(self, request, body)) is not None:
            self.refusals.append(why)
            status = 403 if "signature" in why else 401
            return web.json_response({"message": why}, status=status)
        response = web.StreamResponse()
        await response.prepare(request)
        for at in range(0, len(self.stream), 100):
            await response.write(self.stream[at : at + 100])
        if self.stalls:
            await asyncio.Event().wait()
        return response

    async def google_token(self, request: web.Request) -> web.StreamResponse:
        form = {str(name): str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        if form["grant_type"] == "refresh_token":
            return self._token(form["refresh_token"] == "refresh-1")
        head, claims, signature = form["assertion"].split(".")
        try:
            rsa_key().public_key().verify(
                _part(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return self._token(False)
        read, named = json.loads(_part(claims)), json.loads(_part(head))
        return self._token(
            named == {"alg": "RS256", "typ": "JWT", "kid": "key-7"}
            and read["iss"] == "robot@project.iam.gserviceaccount.com"
            and read["aud"] == f"{self.url}/token"
            and read["scope"] == "https://www.googleapis.com/auth/cloud-platform"
            and read["exp"] == read["iat"] + 3600
        )

    async def entra_token(self, request: web.Request) -> web.StreamResponse:
        form = {str(name): str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        wanted = {
            "grant_type": "client_credentials",
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
            "scope": "https://cognitiveservices.azure.com/.default",
        }
        return self._token(form == wanted)

    def _token(self, right: bool) -> web.Response:
        if not right or self.token_status != 200:
            status = self.token_status if self.token_status != 200 else 401
            report = {"error": "invalid_client", "error_description": f"AADSTS7000215: not {CLIENT_SECRET}"}
            return web.json_response(report, status=status)
        return web.json_response(
            {"access_token": f"ya29.token-{len(self.forms)}", "expires_in": self.expires_in}
        )


def signed(cloud: Cloud, request: web.Request, body: bytes) -> str | None:
    if request.headers.get("Authorization") != expected_signature(request, body, cloud.region):
        return "The request signature we calculated does not match the signature you provided"
    return None


def bearer(cloud: Cloud, request: web.Request, body: bytes) -> str | None:
    token = f"ya29.token-{len(cloud.forms)}"
    if token in cloud.revoked or request.headers.get("Authorization") != f"Bearer {token}":
        return "Request had invalid authentication credentials"
    return None


def api_key(cloud: Cloud, request: web.Request, body: bytes) -> str | None:
    right = request.headers.get("api-key") == "azure-key-0123" and "Authorization" not in request.headers
    return None if right else "Access denied due to invalid subscription key"


@asynccontextmanager
async def cloud(**settings: Any) -> AsyncIterator[Cloud]:
    served = Cloud(**settings)
    app = web.Application()
    app.router.add_post("/token", served.google_token)
    app.router.add_post("/" + TENANT + "/oauth2/v2.0/token", served.entra_token)
    app.router.add_route("*", "/{path:.*}", served.model)
    server = TestServer(app)
    await server.start_server()
    served.url = str(server.make_url("/")).rstrip("/")
    try:
        yield served
    finally:
        await server.close()
