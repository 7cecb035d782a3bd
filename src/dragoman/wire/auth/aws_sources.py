"""Fetch Amazon's keys: from a container, an instance, a role, a program, or an SSO login."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from pydantic_core import from_json

from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, TokenClient
from dragoman.wire.auth.aws import LONGEST, AwsAuth, AwsKeys, AwsSource, keys_in, no_keys, sign
from dragoman.wire.auth.token import read_secret

INSTANCE = "http://169.254.169.254"
PROCESS_SECONDS = 60.0  # The user may have to touch a security key.
SESSION = "dragoman"
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


@dataclass(slots=True, frozen=True)
class StaticKeys:
    """Existing keys, used to assume a role."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    name: str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.secret_key, *((self.session_token,) if self.session_token else ()))

    async def fetch(self, client: TokenClient) -> AwsKeys:
        return AwsKeys(self.access_key, self.secret_key, self.session_token, client.clock() + LONGEST)


@dataclass(slots=True, frozen=True)
class ContainerKeys:
    """The role of a task or a pod: its agent returns the keys, in some cases only for a token."""

    url: str
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    name: str = "AWS_CONTAINER_CREDENTIALS_FULL_URI"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.token,) if self.token else ()

    async def fetch(self, client: TokenClient) -> AwsKeys:
        token = self.token
        if self.token_file is not None:  # The file is rewritten from time to time.
            token = await read_secret(self.token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        return await _ask(client, self.url, {"Authorization": token} if token else {}, self.name)


@dataclass(slots=True, frozen=True)
class InstanceKeys:
    """The role of an instance, from version 2 of its metadata service."""

    endpoint: str = INSTANCE
    name: str = "the role of this EC2 instance"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AwsKeys:
        base = f"{self.endpoint.rstrip('/')}/latest"
        lives = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
        status, token = await client.ask(f"{base}/api/token", method="PUT", headers=lives)
        if status != 200:
            raise no_keys(sentence("aws.metadata", status=status), self.name, status=status)
        known = {"X-aws-ec2-metadata-token": token.decode("ascii", "replace").strip()}
        roles = f"{base}/meta-data/iam/security-credentials/"
        status, listed = await client.ask(roles, headers=known)
        role = listed.decode("utf-8", "replace").strip().partition("\n")[0]
        if status != 200 or not re.fullmatch(r"[\w+=,.@-]{1,128}", role):
            hint = sentence("hint.role")
            raise no_keys(sentence("aws.no_role"), self.name, status=status, hint=hint)
        return await _ask(client, roles + role, known, self.name)


@dataclass(slots=True, frozen=True)
class WebIdentityKeys:
    """A role assumed with the token of another identity, such as a pod's or a CI job's."""

    role: str
    token_file: Path
    sts: str
    session: str = SESSION
    name: str = "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AwsKeys:
        token = await read_secret(self.token_file, "AWS_WEB_IDENTITY_TOKEN_FILE")
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": self.role,
            "RoleSessionName": self.session,
            "WebIdentityToken": token,
        }
        body = urlencode(form).encode()
        status, answer = await client.ask(self.sts, method="POST", headers=_FORM, body=body)
        return _assumed(status, answer, client.clock(), self.name)


@dataclass(slots=True, frozen=True)
class RoleKeys:
    """A role assumed with other keys: `role_arn` of a profile."""

    role: str
    source: AwsSource
    sts: str
    region: str
    session: str = SESSION
    external_id: str | None = None
    name: str = "AWS_PROFILE"

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.source.secrets

    async def fetch(self, client: TokenClient) -> AwsKeys:
        keys = await self.source.fetch(client)
        form = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": self.role,
            "RoleSessionName": self.session,
            **({"ExternalId": self.external_id} if self.external_id else {}),
        }
        body = urlencode(form).encode()
        signing = AwsAuth(keys.access_key, keys.secret_key, self.region, keys.session_token, "sts", self.name)
        at = datetime.fromtimestamp(client.clock(), UTC)
        signed = sign(signing, Outgoing(self.sts, body), at)
        status, answer = await client.ask(self.sts, method="POST", headers={**_FORM, **signed}, body=body)
        return _assumed(status, answer, client.clock(), self.name)


@dataclass(slots=True, frozen=True)
class ProcessKeys:
    """A user-defined program that prints keys: `credential_process` of a profile."""

    command: str = field(repr=False)
    name: str = "credential_process"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AwsKeys:
        try:
            program = await asyncio.create_subprocess_exec(
                *shlex.split(self.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            raise no_keys(sentence("process.failed", name=self.name, error=error), self.name) from None
        try:
            async with asyncio.timeout(PROCESS_SECONDS):
                printed, _ = await program.communicate()
        except TimeoutError:
            raise no_keys(
                sentence("process.slow", name=self.name, seconds=PROCESS_SECONDS), self.name
            ) from None
        finally:
            if program.returncode is None:
                program.kill()
        if program.returncode != 0:
            raise no_keys(sentence("process.status", name=self.name, status=program.returncode), self.name)
        return keys_in(_json(printed), client.clock(), name=self.name)


@dataclass(slots=True, frozen=True)
class SsoKeys:
    """A user who ran `aws sso login`: the cached token is exchanged for keys."""

    cache: Path
    session: str  # the name of the session, or its start URL if it has none
    account: str
    role: str
    portal: str
    name: str = "aws sso login"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AwsKeys:
        file = self.cache / f"{hashlib.sha1(self.session.encode(), usedforsecurity=False).hexdigest()}.json"
        login = sentence("hint.sso")
        try:
            held = _json(await asyncio.to_thread(file.read_bytes))
        except OSError:
            raise no_keys(sentence("aws.no_sso"), self.name, hint=login) from None
        token = held.get("accessToken")
        ends = str(held.get("expiresAt") or "").replace("UTC", "+00:00").replace("Z", "+00:00")
        try:
            over = datetime.fromisoformat(ends).timestamp() <= client.clock()
        except ValueError:
            over = True
        if not isinstance(token, str) or over:
            raise no_keys(sentence("aws.sso_over"), self.name, hint=login)
        asked = urlencode({"role_name": self.role, "account_id": self.account})
        url = f"{self.portal.rstrip('/')}/federation/credentials?{asked}"
        status, answer = await client.ask(url, headers={"x-amz-sso_bearer_token": token})
        if status != 200:
            raise no_keys(sentence("aws.sso_role", role=self.role), self.name, status=status, hint=login)
        return keys_in(_json(answer).get("roleCredentials"), client.clock(), name=self.name)


async def _ask(client: TokenClient, url: str, headers: Mapping[str, str], name: str) -> AwsKeys:
    status, answer = await client.ask(url, headers=headers)
    if status != 200:
        why = str(_json(answer).get("message") or status)
        raise no_keys(sentence("aws.no_keys", name=name, why=why.splitlines()[0]), name, status=status)
    return keys_in(_json(answer), client.clock(), name=name)


def _assumed(status: int, answer: bytes, now: float, name: str) -> AwsKeys:
    """Return the keys in an answer of STS, which is XML: each of them once, as text."""
    text = answer.decode("utf-8", "replace")
    found = dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]+)</", text))
    if status == 200:
        return keys_in(found, now, name=name)
    why = re.search(r"<Message>([^<]*)</Message>", text)
    raise no_keys(sentence("aws.sts", why=why[1] if why else status), name, status=status)


def _json(answer: bytes) -> dict[str, object]:
    try:
        found = from_json(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
