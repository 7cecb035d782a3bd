"""Reads tokens that others write into files, and write anew before they end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.errors import ProviderError
from dragoman.sentences import sentence

LARGEST = 64 * 1024  # bytes: no token is larger


async def read_secret(file: Path, name: str) -> str:
    """What is in a file that a variable names. ProviderError where it cannot be read, or is empty."""
    try:
        text = await asyncio.to_thread(_read, file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise _unreadable(sentence("secret.not_read", name=name, file=file, why=why), name) from None
    if not text or not text.isprintable():
        raise _unreadable(f"{name}: {file} holds no token", name)
    return text


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(LARGEST).decode().strip()


def _unreadable(message: str, name: str) -> ProviderError:
    return ProviderError(message, kind="auth", retryable=False, hint=sentence("hint.check", name=name))
