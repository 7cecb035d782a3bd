"""Signing in to Azure with Entra: an application's id and secret are exchanged for an access token."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from dragoman.wire.auth.auth import TokenClient
from dragoman.wire.auth.token import AccessToken, check_token_address, fetch_token

AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://cognitiveservices.azure.com/.default"


@dataclass(slots=True, frozen=True)
class EntraApplication:
    """A registered application with a secret (client credentials)."""

    tenant: str
    client: str
    secret: str = field(repr=False)
    authority: str = AUTHORITY  # other clouds have their own
    scope: str = SCOPE
    name: str = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"

    def __post_init__(self) -> None:
        check_token_address(self.authority, name="AZURE_AUTHORITY_HOST")

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.secret,)

    async def fetch(self, client: TokenClient) -> AccessToken:
        url = f"{self.authority.rstrip('/')}/{quote(self.tenant, safe='')}/oauth2/v2.0/token"
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client,
            "client_secret": self.secret,
            "scope": self.scope,
        }
        return await fetch_token(client, url, form, name=self.name)
