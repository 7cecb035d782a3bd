"""Find how to authenticate at a provider: with a key, or in the way of a cloud.

A key that is set is sent. Otherwise, by the provider's `auth`: an identity of Amazon's (`aws_sign_in.py`), an
account of Google's, an application or a machine of Azure's, each from where its own programs search for it.
All of it goes only to the address of the catalog or of the user's own settings (`tables.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic_core import from_json

from dragoman.errors import ConfigError
from dragoman.providers.aws_sign_in import WAYS, find_aws
from dragoman.providers.catalog import Provider
from dragoman.providers.catalog_tables import AuthKind
from dragoman.sentences import sentence
from dragoman.stored_keys import SERVICE, keys
from dragoman.wire.auth.auth import KeyAuth, ProviderAuth
from dragoman.wire.auth.entra import (
    AUTHORITY,
    MACHINE,
    SCOPE,
    EntraApplication,
    FederatedApplication,
    ManagedIdentity,
)
from dragoman.wire.auth.google import METADATA, GoogleMachine, google_credentials, read_google_credentials
from dragoman.wire.auth.token import TokenAuth
from dragoman.wire.endpoint import Endpoint

# Find the key of a provider: from the caller, from the environment, or from the key store.


__all__ = ["SERVICE", "Key", "KeySource", "Keys"]

KeySource: TypeAlias = Literal["given", "environment", "keyring", "file"]


@dataclass(slots=True, frozen=True)
class Key:
    """A key that was found. It is never printed. `name` is where the user keeps it."""

    value: str = field(repr=False)
    name: str
    source: KeySource


class Keys:
    """Searches for keys, again each time: a key that is set later is found later.

    `given` has keys by provider. The keyring is asked only if its package is installed and nothing else has
    the key. A locked or broken keyring has none. The file with keys for systems without a keyring comes last.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        use_keyring: bool = True,
        use_file: bool | None = None,
    ) -> None:
        """Set up the search. Without a keyring the file is not used either, unless requested."""
        self._given = dict(given or {})
        self.environment = environment
        self._use_keyring = use_keyring
        self._use_file = use_keyring if use_file is None else use_file

    def __repr__(self) -> str:
        return f"Keys(given for {', '.join(self._given) or 'nobody'})"

    def at_hand(self) -> Keys:
        """Return the same search without the keyring, which may be slow, or locked and prompt the user."""
        return Keys(self._given, environment=self.environment, use_keyring=False, use_file=self._use_file)

    def find(self, provider: Provider) -> Key | None:
        if given := self._given.get(provider.name):
            return Key(given, "the API key", "given")
        for name in provider.keys:
            if value := self.environment.get(name):
                return Key(value, name, "environment")
        for name in provider.keys if self._use_keyring else ():
            if value := keys().in_keyring(name):
                return Key(value, name, "keyring")
        for name in provider.keys if self._use_file else ():
            if value := keys().in_file(name):
                return Key(value, name, "file")
        return None


_ENTRA = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
_FEDERATED = "AZURE_FEDERATED_TOKEN_FILE"
_ENTRA_TOKENS = ("AZURE_OPENAI_AD_TOKEN", "AZURE_AD_TOKEN")
_GOOGLE = ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_CREDENTIALS", "VERTEX_CREDENTIALS")

_FIRMWARE = Path("/sys/class/dmi/id")

# The settings to check besides the keys, for the message if nothing is found.
_WAYS: dict[AuthKind, str] = {
    "key": "",
    "aws": WAYS,
    "google": f"{_GOOGLE[0]} to the file of a service account or of a workload identity, or run "
    "`gcloud auth application-default login`; the account of a machine in Google's cloud is found by itself",
    "entra": f"{', '.join(_ENTRA[:2])} and {_ENTRA[2]} of an application (or {_FEDERATED} in place of the "
    f"secret), or {' or '.join(_ENTRA_TOKENS)} to a token; managed identities are found by themselves",
}


def reach(provider: Provider, keys: Keys) -> Endpoint:
    """Return the endpoint of a provider, authenticated. ConfigError names what is missing, and where it was
    searched."""
    address = provider.address(keys.environment)
    return provider.reached(address, sign_in(provider, keys, address))


def sign_in(provider: Provider, keys: Keys, address: str) -> ProviderAuth:
    """Return the authentication for the provider. ConfigError names every variable that was checked."""
    found = find_auth(provider, keys, address)
    if found is not None:
        return found
    if provider.local or not (provider.keys or provider.auth != "key"):
        named = next(iter(provider.keys), None)
        return replace(_key_shape(provider), name=named)
    names = provider.keys[0] if provider.keys else ""
    for other in provider.keys[1:]:
        names = sentence("either", one=names, other=other)
    ways = f", or {_WAYS[provider.auth]}" if _WAYS[provider.auth] else ""
    stored = f", or store it with `dragoman keys set {provider.name}`" if provider.keys else ""
    raise ConfigError(
        sentence("provider.no_key", provider=provider.title, names=names, stored=stored, ways=ways)
    )


def find_auth(provider: Provider, keys: Keys, address: str = "") -> ProviderAuth | None:
    """Return what the user has set for this provider. None if nothing."""
    key = keys.find(provider)
    environment = keys.environment
    if key is not None:
        return _with_key(provider, key)
    match provider.auth:
        case "aws":
            mantle = "//bedrock-mantle." in f"{provider.base_url} {address}"  # signs under its own name
            service = "bedrock-mantle" if mantle else "bedrock"
            return find_aws(environment, address, service, machine=_machine(environment))
        case "google":
            return _google(environment)
        case "entra":
            return _entra(environment)
        case "key":
            return None


def describe_auth(provider: Provider, keys: Keys) -> str | None:
    """Return what was found, in words without a secret, for a list. None if nothing."""
    if (key := keys.find(provider)) is not None:
        return f"key found in the {key.source} ({key.name})" if key.source != "given" else "key given"
    try:
        found = find_auth(provider, keys)
    except ConfigError as error:
        return f"cannot sign in: {error}"
    return None if found is None else f"signs in by {found.name}"


def _machine(environment: Mapping[str, str]) -> str:
    """Return the machine's vendor from its firmware. Empty if another environment is examined."""
    if environment is not os.environ:
        return ""
    try:
        return " ".join(
            Path("/sys/class/dmi/id", name).read_text() for name in ("sys_vendor", "product_name")
        )
    except OSError:
        return ""


def _http(host: str) -> str:
    return host if "://" in host else f"http://{host}"


def _key_shape(provider: Provider) -> KeyAuth:
    shaped = provider.shape.auth
    return shaped if isinstance(shaped, KeyAuth) else KeyAuth()


def _with_key(provider: Provider, key: Key) -> KeyAuth:
    return replace(_key_shape(provider), key=key.value, name=key.name)


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
        host = environment.get("GCE_METADATA_HOST")
        here = host or environment.get("K_SERVICE") or "google" in _machine(environment).lower()
        return TokenAuth(GoogleMachine(_http(host) if host else METADATA)) if here else None
    return TokenAuth(read_google_credentials(file, name="gcloud auth application-default login"))


def _json(text: str, name: str) -> object:
    try:
        found: object = from_json(text)
    except ValueError:
        raise ConfigError(sentence("google.no_json", name=name)) from None
    return found


# ── Entra ─────────────────────────────────────────────────────────────────────────────────────────


def _entra(environment: Mapping[str, str]) -> ProviderAuth | None:
    for name in _ENTRA_TOKENS:
        if token := environment.get(name):
            return KeyAuth(token, name)
    tenant, client, secret = (environment.get(name) or "" for name in _ENTRA)
    authority = _authority(environment.get("AZURE_AUTHORITY_HOST"))
    scope = environment.get("AZURE_SCOPE") or SCOPE
    if tenant and client and secret:
        return TokenAuth(EntraApplication(tenant, client, secret, authority, scope))
    if tenant and client and (file := environment.get(_FEDERATED)):
        return TokenAuth(FederatedApplication(tenant, client, Path(file), authority, scope))
    endpoint, header = environment.get("IDENTITY_ENDPOINT"), environment.get("IDENTITY_HEADER")
    if endpoint and header:
        return TokenAuth(ManagedIdentity(endpoint, header, client or None, scope))
    host = environment.get("AZURE_POD_IDENTITY_AUTHORITY_HOST")
    said = _machine(environment).lower()
    if host or ("microsoft" in said and "virtual machine" in said):
        machine = _http(host) if host else MACHINE
        return TokenAuth(ManagedIdentity(client=client or None, scope=scope, machine=machine))
    return None


def _authority(host: str | None) -> str:
    """Return the authority as a URL: users set it with and without https://."""
    return AUTHORITY if not host else host if "://" in host else f"https://{host}"
