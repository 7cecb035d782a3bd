"""Lock a file for one program. The system releases the lock when that program dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import StoreUnavailable

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


_GLANCE = 0.01  # seconds between two attempts


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock. Raises StoreUnavailable if another program keeps it for longer than `patience` seconds,
    or locking is impossible."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise unusable(path, error) from error
    try:
        end = time.monotonic() + patience
        while True:
            try:
                _take(file)
                break
            except OSError:
                if time.monotonic() > end:
                    raise StoreUnavailable(
                        "The record of the workspace is in use",
                        "another process has scanned the same folder for too long",
                        retryable=True,
                    ) from None
                time.sleep(_GLANCE)
        yield
    finally:
        os.close(file)


def unusable(path: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable("The record of the workspace cannot be used", f"see to {path} ({error})")
