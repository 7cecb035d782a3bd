"""What a store knows of files that lie at providers."""

from __future__ import annotations

from typing import Protocol

from dragoman.messages.provider_files import ProviderFile


class ProviderFileStore(Protocol):
    """Blobs that were uploaded: no process uploads one again, and what nobody needs is deleted there."""

    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile:
        """Remember it, and return the one that counts: of several uploads of a blob, the first that a store
        was told of, whatever the clocks of those say who tell it."""

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None:
        """Of several, which were uploaded at the same time, the first. None where it has expired."""

    async def forget_provider_file(self, file: ProviderFile) -> None:
        """It is not there any more."""

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]:
        """Some of those that are still there, and no conversation mentions any more."""
