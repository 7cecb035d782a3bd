"""Opens files that only the user who runs the program can read."""

from __future__ import annotations

import os


def open_private(path: str, flags: int) -> int:
    """For `open(…, opener=open_private)`: nobody else can read the file, not even while it is made."""
    return os.open(path, flags, 0o600)
