"""The folders of a person's own settings and data, as their system has them."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_folder() -> Path:
    """Where a person's own files are, as the system has it."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "dragoman"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dragoman"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "dragoman"


def data_folder() -> Path:
    """Where conversations are stored, unless the settings name another place."""
    if sys.platform in ("win32", "darwin"):
        return user_folder()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoman"
