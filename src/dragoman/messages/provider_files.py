"""A file that lies at a provider, and how it is known there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class ProviderFile:
    """One blob, uploaded to one account."""

    account: str  # whose it is: a provider's name, and a fingerprint of the address and the key
    blob: str
    id: str
    expires: float | None = None  # when the provider deletes it; None where it stays until somebody does
