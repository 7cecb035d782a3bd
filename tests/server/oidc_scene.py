"""A provider of OpenID Connect that lies in whatever way a test wants, and a browser that signs in there."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dragoman.server.oidc import OidcSettings
from tests.server.site import Answer, Site

CLIENT = "dragoman"
SECRET = "the secret of the client"
EVENT = "http://schemas.openid.net/event/backchannel-logout"

Claims = dict[str, Any]


@cache
def key(name: str) -> rsa.RSAPrivateKey:
    """The same for the same name: keys take long to make."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(name: str) -> bytes:
    return key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Provider:
    """Answers as it should, until a test changes one of its fields."""

    url: str = ""
    kid: str = "first"  # ID of the signing key
    published: list[str] = field(default_factory=lambda: ["first"])
    metadata: Claims = field(default_factory=dict)  # laid over what it says of itself
    claims: Claims = field(default_factory=dict)  # override the claims of a token (None removes a claim)
    header: Claims = field(default_factory=dict)
    user_info: Claims | None = None
    sign: Callable[[Claims, Claims], str] | None = None  # in place of its key
    keys: Callable[[], web.StreamResponse] | None = None
    slow: float = 0.0  # seconds before the keys come
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)  # code → nonce, challenge
    asked: list[str] = field(default_factory=list)

    def settings(self, **more: Any) -> OidcSettings:
        more = {"allowed_groups": frozenset({"*"}), **more}
        return OidcSettings(issuer=self.url, client_id=CLIENT, client_secret=SECRET, **more)

    def authorize(self, address: str) -> dict[str, str]:
        """Sign the user in at this address and return the parameters that the browser brings back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query["nonce"], query["code_challenge"]
        return {"code": code, "state": query["state"], "iss": self.url}

    def token(self, nonce: str | None = None, **more: Any) -> str:
        now = int(time.time())
        claims: Claims = {"iss": self.url, "aud": CLIENT, "sub": "sub-ada", "iat": now, "exp": now + 300}
        claims |= {} if nonce is None else {"nonce": nonce, "preferred_username": "ada", "sid": "sid-1"}
        claims = {name: value for name, value in (claims | more | self.claims).items() if value is not None}
        header = {"kid": self.kid, **self.header}
        if self.sign is not None:
            return self.sign(claims, header)
        return jwt.encode(claims, key(self.kid), "RS256", headers=header)

    def notice(self, **more: Any) -> str:
        """A logout token."""
        self.header = {"typ": "logout+jwt"}
        token = self.token(**{"jti": f"jti-{len(self.asked)}", "events": {EVENT: {}}, **more})
        self.header = {}
        return token

    # ── what it answers ───────────────────────────────────────────────────────────────────────────

    async def _discover(self, request: web.Request) -> web.Response:
        self.asked.append("discovery")
        said = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/end",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return web.json_response(said | self.metadata)

    async def _authorize(self, request: web.Request) -> web.Response:
        """Redirect back to the client, since the provider already knows the user."""
        raise web.HTTPFound(f"{request.query['redirect_uri']}?{urlencode(self.authorize(str(request.url)))}")

    async def _end(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(request.query["post_logout_redirect_uri"])

    async def _keys(self, request: web.Request) -> web.StreamResponse:
        self.asked.append("keys")
        await asyncio.sleep(self.slow)
        if self.keys is not None:
            return self.keys()
        algorithm = jwt.algorithms.RSAAlgorithm
        listed = [
            {**algorithm.to_jwk(key(kid).public_key(), as_dict=True), "kid": kid, "use": "sig"}
            for kid in self.published
        ]
        return web.json_response({"keys": listed})

    async def _token(self, request: web.Request) -> web.Response:
        self.asked.append("token")
        form = await request.post()
        nonce, challenge = self.codes.pop(str(form.get("code")), ("", ""))
        made = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
        wanted = aiohttp.encode_basic_auth(CLIENT, SECRET.replace(" ", "%20"))
        if base64.urlsafe_b64encode(made).rstrip(b"=").decode() != challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        in_form = (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        if request.headers.get("authorization") != wanted and not in_form:
            return web.json_response({"error": "invalid_client"}, status=401)
        return web.json_response({"id_token": self.token(nonce), "access_token": "access", "expires_in": 60})

    async def _user_info(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"] == "Bearer access"
        return web.json_response(self.user_info)


@asynccontextmanager
async def provider(name: str = "127.0.0.1") -> AsyncIterator[Provider]:
    """Run a provider on loopback that uses this name as its host name."""
    made = Provider()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", made._discover)
    app.router.add_get("/authorize", made._authorize)
    app.router.add_get("/end", made._end)
    app.router.add_get("/keys", made._keys)
    app.router.add_post("/token", made._token)
    app.router.add_get("/userinfo", made._user_info)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await (site := web.TCPSite(runner, "127.0.0.1", 0)).start()
    assert site._server is not None
    made.url = f"http://{name}:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    try:
        yield made
    finally:
        await runner.cleanup()


@dataclass
class Browser:
    """A browser that keeps cookies and follows redirects."""

    site: Site
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"authorization": "", "cookie": sent, **self.headers, **more.pop("headers", {})}
        data = io(body, headers)
        async with self.site.http.request(
            method,
            self.site.url + path,
            headers={k: v for k, v in headers.items() if v},
            data=data,
            allow_redirects=False,
            **more,
        ) as response:
            for cookie in response.headers.getall("set-cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
                if value in ("", '""'):
                    del self.cookies[name]
            raw = await response.read()
            is_json = "json" in response.headers.get("content-type", "")
            given = {name.lower(): value for name, value in response.headers.items()}
            self.site.http.cookie_jar.clear()
            return Answer(response.status, json.loads(raw) if is_json and raw else raw, given)

    async def begin(self, to: str = "/") -> str:
        """The address at the provider to which the sign-in leads."""
        answer = await self.ask("GET", "/oidc/login", params={"to": to})
        assert answer.status == 303, answer.body
        return answer.headers["location"]

    async def come_back(self, returned: dict[str, str]) -> Answer:
        return await self.ask("GET", "/oidc/callback", params=returned)

    async def sign_in(self, provider: Provider, to: str = "/") -> Answer:
        return await self.come_back(provider.authorize(await self.begin(to)))

    async def who(self) -> str | None:
        answer = await self.ask("GET", "/api/me")
        return answer.body["user"] if answer.status == 200 else None


def io(body: Any, headers: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    headers.setdefault("content-type", "application/json")
    return body if isinstance(body, bytes) else json.dumps(body).encode()
