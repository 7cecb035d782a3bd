"""Find credentials for Amazon where its own programs search: variables, profiles, the machine."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import ProviderAuth
from dragoman.wire.auth.aws import AwsAuth, AwsIdentity, AwsSource
from dragoman.wire.auth.aws_sources import (
    INSTANCE,
    SESSION,
    ContainerKeys,
    InstanceKeys,
    ProcessKeys,
    RoleKeys,
    SsoKeys,
    StaticKeys,
    WebIdentityKeys,
)
from dragoman.wire.auth.token import check_token_address

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME")
AGENT = "http://169.254.170.2"  # of containers
AGENTS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")
DEEPEST = 5  # profiles that refer to each other

WAYS = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN, if there is one), or AWS_PROFILE "
    "to a profile in ~/.aws (keys, a role, credential_process, or `aws sso login`); roles of containers, "
    "pods and instances are found by themselves"
)


def find_aws(
    environment: Mapping[str, str], address: str, service: str, *, machine: str = ""
) -> ProviderAuth | None:
    """Return the credentials that sign requests to this address. None if nothing is set.

    Raises ConfigError if the settings cannot be right. `machine` is what this machine reports about itself:
    on one of Amazon's, its role is the last resort.
    """
    region = _region(environment, address)
    access, secret = (environment.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if access and secret:
        return AwsAuth(access, secret, region, environment.get("AWS_SESSION_TOKEN") or None, service)
    profiles = _Profiles(environment, region)
    named = environment.get("AWS_PROFILE")
    source = profiles.source(named) if named else None
    if named and source is None:
        raise ConfigError(
            sentence("aws.profile", profile=named, credentials=profiles.credentials, config=profiles.config)
        )
    source = source or _pod(environment, region) or profiles.source("default") or _container(environment)
    source = source or _instance(environment, machine)
    if isinstance(source, StaticKeys):
        keys = (source.access_key, source.secret_key, region, source.session_token)
        return AwsAuth(*keys, service, name=source.name)
    return None if source is None else AwsIdentity(source, region, service)


def _pod(environment: Mapping[str, str], region: str) -> AwsSource | None:
    role, file = environment.get("AWS_ROLE_ARN"), environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")
    if not role or not file:
        return None
    session = environment.get("AWS_ROLE_SESSION_NAME") or SESSION
    return WebIdentityKeys(role, Path(file).expanduser(), _sts(environment, region), session)


def _container(environment: Mapping[str, str]) -> AwsSource | None:
    relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    full = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not relative and not full:
        return None
    file = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    return ContainerKeys(
        f"{AGENT}/{relative.lstrip('/')}" if relative else _agent(full or ""),
        environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN") or None,
        Path(file) if file else None,
        f"AWS_CONTAINER_CREDENTIALS_{'RELATIVE' if relative else 'FULL'}_URI",
    )


def _agent(url: str) -> str:
    """Return the URL, if a token may go there: to an agent on this machine, or encrypted."""
    if urlsplit(url).hostname in AGENTS:
        return url
    return check_token_address(url, name="AWS_CONTAINER_CREDENTIALS_FULL_URI")


def _instance(environment: Mapping[str, str], machine: str) -> AwsSource | None:
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT")
    return InstanceKeys(endpoint or INSTANCE) if endpoint or "amazon" in machine.lower() else None


def _sts(environment: Mapping[str, str], region: str) -> str:
    given = environment.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    return f"{check_token_address(given, name='AWS_ENDPOINT_URL_STS').rstrip('/')}/"


def _region(environment: Mapping[str, str], address: str) -> str:
    """Return the region in the address: a request signed for another region is refused."""
    if found := re.search(r"[/.]bedrock(?:-[a-z]+)*\.([a-z]{2}(?:-[a-z]+)+-\d+)\.", address):
        return found[1]
    return next((environment[name] for name in REGIONS if environment.get(name)), "us-east-1")


# ── profiles ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Profiles:
    """The profiles in the two files of Amazon's own programs."""

    environment: Mapping[str, str]
    region: str

    @property
    def folder(self) -> Path:
        return Path(self.environment.get("HOME") or "~").expanduser() / ".aws"

    @property
    def credentials(self) -> Path:
        return Path(self.environment.get("AWS_SHARED_CREDENTIALS_FILE") or self.folder / "credentials")

    @property
    def config(self) -> Path:
        return Path(self.environment.get("AWS_CONFIG_FILE") or self.folder / "config")

    def source(self, name: str, depth: int = 0) -> AwsSource | None:
        """Return the source of a profile's keys. None if the profile has none."""
        section = name if name == "default" else f"profile {name}"
        found = {**_section(self.config, section), **_section(self.credentials, name)}
        said = f"the profile {name} in {self.config if found.get('role_arn') else self.credentials}"
        if (role := found.get("role_arn")) and depth < DEEPEST:
            return self._role(role, found, name, depth)
        if found.get("sso_account_id") and found.get("sso_role_name"):
            return self._sso(found)
        if found.get("aws_access_key_id") and found.get("aws_secret_access_key"):
            return StaticKeys(
                found["aws_access_key_id"],
                found["aws_secret_access_key"],
                found.get("aws_session_token") or None,
                said,
            )
        if command := found.get("credential_process"):
            return ProcessKeys(command, f"credential_process of the profile {name}")
        return None

    def _role(self, role: str, found: Mapping[str, str], name: str, depth: int) -> AwsSource | None:
        sts, session = _sts(self.environment, self.region), found.get("role_session_name") or SESSION
        said = f"the role of the profile {name}"
        if file := found.get("web_identity_token_file"):
            return WebIdentityKeys(role, Path(file).expanduser(), sts, session, said)
        other = found.get("source_profile")
        source: AwsSource | None = None
        if other == name:  # The role is assumed with its own keys.
            source = StaticKeys(found.get("aws_access_key_id", ""), found.get("aws_secret_access_key", ""))
        elif other:
            source = self.source(other, depth + 1)
        else:
            source = self._of(found.get("credential_source", ""))
        if source is None:
            raise ConfigError(sentence("aws.no_source", said=said, source=other or "no source_profile"))
        return RoleKeys(role, source, sts, self.region, session, found.get("external_id"), said)

    def _of(self, kind: str) -> AwsSource | None:
        environment = self.environment
        match kind:
            case "Environment" if environment.get("AWS_ACCESS_KEY_ID"):
                access, secret = (
                    environment["AWS_ACCESS_KEY_ID"],
                    environment.get("AWS_SECRET_ACCESS_KEY", ""),
                )
                return StaticKeys(access, secret, environment.get("AWS_SESSION_TOKEN") or None)
            case "EcsContainer":
                return _container(environment)
            case "Ec2InstanceMetadata":
                return _instance(environment, "amazon")
            case _:
                return None

    def _sso(self, found: Mapping[str, str]) -> AwsSource:
        session = found.get("sso_session", "")
        shared = _section(self.config, f"sso-session {session}") if session else found
        region = shared.get("sso_region") or self.region
        given = self.environment.get("AWS_ENDPOINT_URL_SSO") or f"https://portal.sso.{region}.amazonaws.com"
        return SsoKeys(
            self.folder / "sso" / "cache",
            session or found.get("sso_start_url", ""),
            found["sso_account_id"],
            found["sso_role_name"],
            check_token_address(given, name="AWS_ENDPOINT_URL_SSO"),
        )


def _section(file: Path, name: str) -> Mapping[str, str]:
    reader = configparser.RawConfigParser()
    try:
        reader.read_string(file.read_text())
        return dict(reader[name]) if reader.has_section(name) else {}
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
