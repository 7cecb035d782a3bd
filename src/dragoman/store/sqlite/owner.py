"""Who runs a turn, and whether that process is still alive: each holds a lock that dies with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from dragoman.messages.ids import new_id

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Owner:
    """This process, as an owner of turns. The system frees the lock at once, also after `kill -9`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.name = f"{new_id('run')}_{os.getpid()}"
        unlocked = folder / f"{self.name}.new"  # under its own name only when it is locked: no one sweeps it
        self._file = unlocked.open("wb")
        _lock(self._file)
        unlocked.rename(self._path(self.name))
        self._sweep()

    def close(self) -> None:
        self._path(self.name).unlink(missing_ok=True)
        self._file.close()

    def alive(self, name: str) -> bool:
        """Whether the owner of this name still runs."""
        if name == self.name:
            return True
        try:
            with self._path(name).open("rb+") as file:
                _lock(file)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def _sweep(self) -> None:
        for file in self._folder.glob("*.lock"):
            if not self.alive(file.stem):
                file.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"
