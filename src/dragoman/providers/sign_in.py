"""Finds out how a person signs in to a provider: with a key, or as the clouds have it.

A key that is set is what is sent. Else, by the provider's `auth`: an Amazon access key, a Google account, an
application of Entra, each from where its own programs look for it. All of it goes to the address of the
catalog or of the person's own settings, and nowhere else (`tables.py`).
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic_core import from_json

from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider
from dragoman.providers.keys import SERVICE, Key, Keys
from dragoman.providers.tables import AuthKind
from dragoman.wire.auth.auth import ProviderAuth
from dragoman.wire.auth.aws import AwsAuth
from dragoman.wire.auth.entra import AUTHORITY, SCOPE, EntraApplication
from dragoman.wire.auth.google import google_credentials, read_google_credentials
from dragoman.wire.auth.key import KeyAuth
from dragoman.wire.auth.token import TokenAuth
from dragoman.wire.endpoint import Endpoint

_ENTRA = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
_ENTRA_TOKENS = ("AZURE_OPENAI_AD_TOKEN", "AZURE_AD_TOKEN")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME")
_GOOGLE = ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_CREDENTIALS", "VERTEX_CREDENTIALS")

# What is looked at beside the keys, for who has none of it.
_WAYS: dict[AuthKind, str] = {
    "key": "",
    "aws": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN, if there is one), or "
    "AWS_PROFILE to a profile with keys in ~/.aws/credentials (for others there is "
    "`aws configure export-credentials`)",
    "google": f"{_GOOGLE[0]} to the file of a service account, or run "
    "`gcloud auth application-default login`",
    "entra": f"{', '.join(_ENTRA[:2])} and {_ENTRA[2]} of an application, "
    f"or {' or '.join(_ENTRA_TOKENS)} to a token",
}


def reach(provider: Provider, keys: Keys) -> Endpoint:
    """The endpoint of a provider, signed in. ConfigError says what is missing, and where it was sought."""
    address = provider.address(keys.environment)
    return provider.reached(address, sign_in(provider, keys, address))


def sign_in(provider: Provider, keys: Keys, address: str) -> ProviderAuth:
    """How requests to the provider are signed. ConfigError names every variable that was looked at."""
    found = find_auth(provider, keys, address)
    if found is not None:
        return found
    if provider.local or not (provider.keys or provider.auth != "key"):
        named = next(iter(provider.keys), None)
        return replace(_key_shape(provider), name=named)
    names = " or ".join(provider.keys)
    ways = f", or {_WAYS[provider.auth]}" if _WAYS[provider.auth] else ""
    stored = f", or store it with `keyring set {SERVICE} {provider.keys[0]}`" if provider.keys else ""
    raise ConfigError(f"there is no key for {provider.title}: set {names} in the environment{stored}{ways}")


def find_auth(provider: Provider, keys: Keys, address: str = "") -> ProviderAuth | None:
    """What the person has set for this provider; None where there is nothing."""
    key = keys.find(provider)
    environment = keys.environment
    if key is not None:
        return _with_key(provider, key)
    match provider.auth:
        case "aws":
            mantle = "//bedrock-mantle." in f"{provider.base_url} {address}"  # signs under its own name
            return _aws(environment, address, "bedrock-mantle" if mantle else "bedrock")
        case "google":
            return _google(environment)
        case "entra":
            return _entra(environment)
        case "key":
            return None


def describe_auth(provider: Provider, keys: Keys) -> str | None:
    """For a list: what was found, in words without a secret. None where there is nothing."""
    if (key := keys.find(provider)) is not None:
        return f"key found in the {key.source} ({key.name})" if key.source != "given" else "key given"
    try:
        found = find_auth(provider, keys)
    except ConfigError as error:
        return f"cannot sign in: {error}"
    return None if found is None else f"signs in by {found.name}"


def _key_shape(provider: Provider) -> KeyAuth:
    shaped = provider.shape.auth
    return shaped if isinstance(shaped, KeyAuth) else KeyAuth()


def _with_key(provider: Provider, key: Key) -> KeyAuth:
    return replace(_key_shape(provider), key=key.value, name=key.name)


# ── Amazon ────────────────────────────────────────────────────────────────────────────────────────


def _aws(environment: Mapping[str, str], address: str, service: str) -> AwsAuth | None:
    access, secret = (environment.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if access and secret:
        token = environment.get("AWS_SESSION_TOKEN") or None
        return AwsAuth(access, secret, _region(environment, address), token, service)
    profile = environment.get("AWS_PROFILE")
    home = Path(environment.get("HOME") or "~").expanduser()
    file = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    held = _profile(file, profile or "default")
    if held.get("aws_access_key_id") and held.get("aws_secret_access_key"):
        return AwsAuth(
            held["aws_access_key_id"],
            held["aws_secret_access_key"],
            _region(environment, address),
            held.get("aws_session_token") or None,
            service,
            name=f"the profile {profile or 'default'} in {file}",
        )
    if profile:
        raise ConfigError(
            f"AWS_PROFILE is {profile!r}, but {file} has no keys for it: run `aws configure "
            f"export-credentials --profile {profile} --format env`, and set what it prints"
        )
    return None


def _profile(file: Path, name: str) -> Mapping[str, str]:
    reader = configparser.RawConfigParser()
    try:
        reader.read_string(file.read_text())
        return dict(reader[name]) if reader.has_section(name) else {}
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}


def _region(environment: Mapping[str, str], address: str) -> str:
    """The one in the address: a request that is signed for another region is refused."""
    if found := re.search(r"[/.]bedrock(?:-[a-z]+)*\.([a-z]{2}(?:-[a-z]+)+-\d+)\.", address):
        return found[1]
    return next((environment[name] for name in _REGIONS if environment.get(name)), "us-east-1")


# ── Google ────────────────────────────────────────────────────────────────────────────────────────


def _google(environment: Mapping[str, str]) -> TokenAuth | None:
    for name in _GOOGLE:
        if given := environment.get(name):
            if given.lstrip().startswith("{"):
                return TokenAuth(google_credentials(_json(given, name), name=name))
            return TokenAuth(read_google_credentials(Path(given).expanduser(), name=name))
    home = Path(environment.get("HOME") or "~").expanduser()
    folder = Path(environment.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
    file = folder / "application_default_credentials.json"
    if not file.is_file():
        return None
    return TokenAuth(read_google_credentials(file, name="gcloud auth application-default login"))


def _json(text: str, name: str) -> object:
    try:
        found: object = from_json(text)
    except ValueError:
        raise ConfigError(f"{name} begins as JSON, and is none") from None
    return found


# ── Entra ─────────────────────────────────────────────────────────────────────────────────────────


def _entra(environment: Mapping[str, str]) -> ProviderAuth | None:
    for name in _ENTRA_TOKENS:
        if token := environment.get(name):
            return KeyAuth(token, name)
    given = [environment.get(name) for name in _ENTRA]
    if all(given):
        tenant, client, secret = (value or "" for value in given)
        return TokenAuth(
            EntraApplication(
                tenant,
                client,
                secret,
                _authority(environment.get("AZURE_AUTHORITY_HOST")),
                environment.get("AZURE_SCOPE") or SCOPE,
            )
        )
    return None


def _authority(host: str | None) -> str:
    """People set it with and without https://."""
    return AUTHORITY if not host else host if "://" in host else f"https://{host}"
