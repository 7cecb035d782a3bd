"""Manage the files at providers, for all accounts that models use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dragoman.errors import ConfigError
from dragoman.messages.message import ProviderFile
from dragoman.providers.catalog import Provider
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.uploads import SERVICES, KeepsProviderFiles, Uploads
from dragoman.wire.http_client.client import HttpClient


class ProviderUploads:
    """One `Uploads` for each provider that stores files. `reach` returns its address and key.

    With `lasting`, the store of a conversation remembers its uploads longer than this process.
    """

    def __init__(self, client: HttpClient, reach: Callable[[Provider], Endpoint]) -> None:
        self.lasting = True
        self._client = client
        self._reach = reach
        self._present: dict[str, Uploads] = {}  # by provider
        self._former: list[Uploads] = []  # of former keys and addresses

    def of(self, provider: Provider) -> Uploads | None:
        """Return the uploads there, of all its models. None if it stores no files."""
        if provider.files.upload_above is None or provider.wire not in SERVICES:
            return None
        if provider.name not in self._present:
            self._present[provider.name] = Uploads(
                self._client, self._reach(provider), provider.wire, provider.name, lasting=self.lasting
            )
        return self._present[provider.name]

    def forget(self, provider: str) -> None:
        """Handle a changed key or address of a provider."""
        if (uploads := self._present.pop(provider, None)) is not None:
            self._former.append(uploads)

    async def delete_unwanted(
        self, store: KeepsProviderFiles, find: Callable[[str], Provider | None]
    ) -> None:
        """Delete what was uploaded for deleted conversations, as far as its account is reachable."""
        by_account: dict[str, list[ProviderFile]] = {}
        for file in await store.unwanted_provider_files(self._client.clock()):
            by_account.setdefault(file.account, []).append(file)
        for account, files in by_account.items():
            provider = find(account.partition(":")[0])
            with suppress(ConfigError):  # its key was removed
                if provider is not None:
                    self.of(provider)
            for uploads in (*self._present.values(), *self._former):
                if uploads.account == account:
                    await uploads.delete(files, store)
                    break

    async def close(self) -> None:
        for uploads in (*self._present.values(), *self._former):
            await uploads.close()
