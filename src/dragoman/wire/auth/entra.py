"""Authenticate at Azure with Entra: as an application with a secret or another identity's token, or with the
managed identity of a machine in Azure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from dragoman.wire.auth.auth import TokenClient
from dragoman.wire.auth.token import AccessToken, ask_token, check_token_address, fetch_token, read_secret

AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://cognitiveservices.azure.com/.default"
MACHINE = "http://169.254.169.254"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(slots=True, frozen=True)
class EntraApplication:
    """A registered application with a secret (client credentials)."""

    tenant: str
    client: str
    secret: str = field(repr=False)
    authority: str = AUTHORITY  # other clouds use a different one
    scope: str = SCOPE
    name: str = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"

    def __post_init__(self) -> None:
        check_token_address(self.authority, name="AZURE_AUTHORITY_HOST")

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.secret,)

    async def fetch(self, client: TokenClient) -> AccessToken:
        url = _token_url(self.authority, self.tenant)
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client,
            "client_secret": self.secret,
            "scope": self.scope,
        }
        return await fetch_token(client, url, form, name=self.name)


@dataclass(slots=True, frozen=True)
class FederatedApplication:
    """An application without a secret that presents the token of another identity, such as a pod's."""

    tenant: str
    client: str
    token_file: Path
    authority: str = AUTHORITY
    scope: str = SCOPE
    name: str = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE"

    def __post_init__(self) -> None:
        check_token_address(self.authority, name="AZURE_AUTHORITY_HOST")

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AccessToken:
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client,
            "client_assertion_type": ASSERTION,
            "client_assertion": await read_secret(self.token_file, "AZURE_FEDERATED_TOKEN_FILE"),
            "scope": self.scope,
        }
        return await fetch_token(client, _token_url(self.authority, self.tenant), form, name=self.name)


@dataclass(slots=True, frozen=True)
class ManagedIdentity:
    """The identity of a machine or an app in Azure. `client` chooses one of several."""

    endpoint: str = ""  # of an app; a machine uses its metadata service
    header: str = field(default="", repr=False)
    client: str | None = None
    scope: str = SCOPE
    machine: str = MACHINE
    name: str = "the managed identity of this machine"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.header,) if self.header else ()

    async def fetch(self, client: TokenClient) -> AccessToken:
        version = "2019-08-01" if self.endpoint else "2018-02-01"
        asked = {"api-version": version, "resource": self.scope.removesuffix("/.default")}
        if self.client:
            asked["client_id"] = self.client
        base = self.endpoint or f"{self.machine.rstrip('/')}/metadata/identity/oauth2/token"
        url = f"{base}{'&' if '?' in base else '?'}{urlencode(asked)}"
        headers = {"X-IDENTITY-HEADER": self.header} if self.endpoint else {"Metadata": "true"}
        return await ask_token(client, url, headers, name=self.name)


def _token_url(authority: str, tenant: str) -> str:
    return f"{authority.rstrip('/')}/{quote(tenant, safe='')}/oauth2/v2.0/token"
