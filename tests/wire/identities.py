"""A server on the loopback address that tells machines, pods and people who they are, and checks who asks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.wire.clouds import ACCESS, SECRET, SESSION, expected_signature

NOW = 1_800_000_000.0
SUBJECT = "eyJ.subject-token.0123456789"  # of another identity
ROLE = "arn:aws:iam::123456789012:role/talker"


@dataclass
class Identities:
    """Returns keys and tokens valid for an hour. `asked` lists the requested paths, `wrong` the invalid
    requests."""

    url: str = ""
    now: float = NOW
    status: int = 200
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    given: int = 0  # tokens

    def ends(self) -> str:
        return datetime.fromtimestamp(self.now + 3600, UTC).isoformat().replace("+00:00", "Z")

    def keys(self) -> dict[str, Any]:
        return {"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": SESSION, "Expiration": self.ends()}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        body = await request.read()
        right, answer = self.right(request, body.decode())
        if not right:
            self.wrong.append(request.path_qs)
        if not right or self.status != 200:
            status = self.status if right else 403
            return web.Response(text=f"<Error><Message>not {SECRET[:4]}…</Message></Error>", status=status)
        if isinstance(answer, str):
            return web.Response(text=answer)
        return web.json_response(answer)

    def right(self, request: web.Request, body: str) -> tuple[bool, Any]:
        headers, query = request.headers, request.query
        match request.path:
            case "/container":
                return headers.get("Authorization") == SUBJECT, self.keys()
            case "/latest/api/token":
                lives = headers.get("X-aws-ec2-metadata-token-ttl-seconds")
                return request.method == "PUT" and lives == "21600", "imds-token"
            case "/latest/meta-data/iam/security-credentials/":
                return headers.get("X-aws-ec2-metadata-token") == "imds-token", "talker"
            case "/latest/meta-data/iam/security-credentials/talker":
                known = headers.get("X-aws-ec2-metadata-token") == "imds-token"
                return known, {"Code": "Success", **self.keys()}
            case "/sts/":
                return self.sts(request, body)
            case "/sso/federation/credentials":
                known = headers.get("x-amz-sso_bearer_token") == SUBJECT
                role = {"accessKeyId": ACCESS, "secretAccessKey": SECRET, "sessionToken": SESSION}
                asked = dict(query) == {"role_name": "talker", "account_id": "123"}
                return known and asked, {"roleCredentials": {**role, "expiration": (self.now + 3600) * 1000}}
            case "/computeMetadata/v1/instance/service-accounts/default/token":
                return headers.get("Metadata-Flavor") == "Google", self.token()
            case "/subject":
                return headers.get("X-Ask") == "me", {"value": SUBJECT}
            case "/exchange":
                return f"subject_token={SUBJECT}" in body and "token-exchange" in body, self.token()
            case "/impersonate":
                known = headers.get("Authorization", "").startswith("Bearer ya29.token-")
                self.given += 1
                made = {"accessToken": f"ya29.token-{self.given}", "expireTime": self.ends()}
                return known and "cloud-platform" in body, made
            case "/tenant-1/oauth2/v2.0/token":
                return f"client_assertion={SUBJECT}" in body and "client_id=client-1" in body, self.token()
            case "/msi" | "/metadata/identity/oauth2/token":
                app = headers.get("X-IDENTITY-HEADER") == "id-header-0123"
                known = app if request.path == "/msi" else headers.get("Metadata") == "true"
                wanted = query["resource"] == "https://cognitiveservices.azure.com"
                token = {**self.token(), "expires_on": str(int(self.now + 3600))}
                token.pop("expires_in")
                return known and wanted, token
            case _:
                return False, None

    def sts(self, request: web.Request, body: str) -> tuple[bool, str]:
        credentials = (
            f"<Credentials><AccessKeyId>{ACCESS}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
            f"<SessionToken>{SESSION}</SessionToken><Expiration>{self.ends()}</Expiration></Credentials>"
        )
        role = "arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Ftalker" in body
        if "Action=AssumeRoleWithWebIdentity" in body:
            return role and f"WebIdentityToken={SUBJECT}" in body, credentials
        signed = expected_signature(request, body.encode(), "eu-west-1", "sts")
        return role and request.headers.get("Authorization") == signed, credentials

    def token(self) -> dict[str, Any]:
        self.given += 1
        return {"access_token": f"ya29.token-{self.given}", "expires_in": 3600}


@asynccontextmanager
async def identities(**settings: Any) -> AsyncIterator[Identities]:
    served = Identities(**settings)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    server = TestServer(app)
    await server.start_server()
    served.url = str(server.make_url("/")).rstrip("/")
    try:
        yield served
    finally:
        await server.close()


def printing_keys(expires: str) -> str:
    """Return the output of a `credential_process`."""
    keys = {"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "SessionToken": SESSION}
    return json.dumps({"Version": 1, **keys, "Expiration": expires})
