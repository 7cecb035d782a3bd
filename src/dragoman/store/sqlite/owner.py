"""Tracks which process runs a turn, and whether it still can: a lock that dies with it, and a lease it
renews."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from weakref import WeakSet

from dragoman.messages.ids import new_id

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, *, shared: bool = False) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int, *, shared: bool = False) -> None:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


_RENEWALS = 4  # Number of renewals per lease.
_LOCK = ".lock"


class Owner:
    """This process as an owner of turns.

    It is alive while its lock is held and its lease is fresh. The operating system frees the lock
    immediately, even after `kill -9`. The lease is the modification time of the lock file, renewed by a
    thread. A busy event loop keeps it, and a stopped process does not. Renewing it does not sync the disk.

    The age of another lease is counted in this process's renewals, not by a clock. Setting the clock is
    therefore harmless, and after a machine's sleep all owners are still alive. After about `lease` seconds
    without a renewal, an owner counts as paused.
    """

    def __init__(self, folder: Path, *, lease: float) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._file = -1
        _close_in_children()
        _OPEN.add(self)
        while not self._locked_anew():
            pass
        # Other owners' leases: the value last seen, and how often it was seen.
        self._leases: dict[str, tuple[int, int]] = {}
        self._sweep()
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._renew_regularly, args=(lease / _RENEWALS,), name="dragoman-lease", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._file < 0:
            return  # It was closed before, or this is a forked child's copy of the parent's file.
        self._thread.join()
        self._path(self.name).unlink(missing_ok=True)
        self._close_file()

    def alive(self, name: str) -> bool:
        """Return whether the owner of this name is running and not paused."""
        if name == self.name:
            return True
        try:
            file = os.open(self._path(name), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            # A shared lock lets other processes, and forked children, check at the same time.
            _lock(file, shared=True)
        except OSError:
            return not self._paused(name, os.fstat(file).st_mtime_ns)
        else:
            return False
        finally:
            os.close(file)

    def others(self) -> list[str]:
        """Return all other processes that have this store open."""
        names = [path.stem for path in self._folder.glob(f"*{_LOCK}")]
        return [name for name in names if name != self.name and self.alive(name)]

    def renew(self) -> None:
        """Renew this process's lease, and check which others were renewed since the last call."""
        # The file system may be read-only for now, and then no process can claim a turn.
        with suppress(OSError):
            os.utime(self._path(self.name))
        seen = {}
        for path in self._folder.glob(f"*{_LOCK}"):
            with suppress(OSError):
                lease = path.stat().st_mtime_ns
                before, times = self._leases.get(path.stem, (0, 0))
                seen[path.stem] = (lease, times + 1 if lease == before else 0)
        self._leases = seen

    def _paused(self, name: str, lease: int) -> bool:
        before, times = self._leases.get(name, (lease, 0))
        return lease == before and times >= _RENEWALS

    def _renew_regularly(self, every: float) -> None:
        while not self._closed.wait(every):
            self.renew()

    # ── files ─────────────────────────────────────────────────────────────────────────────────────

    def _locked_anew(self) -> bool:
        """Lock the file of a new name. Return False if the file was swept before it was locked."""
        self.name = f"{new_id('run')}_{os.getpid()}"
        path = self._path(self.name)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _lock(self._file)
            if os.path.samestat(os.fstat(self._file), path.stat()):
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        self._close_file()
        return False

    def _sweep(self) -> None:
        """Remove files of dead owners, including earlier versions that died during creation."""
        for path in (*self._folder.glob(f"*{_LOCK}"), *self._folder.glob("*.new")):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR)
                try:
                    _lock(file)
                    # The file is locked here, so an owner that just created it notices that it is gone.
                    path.unlink()
                finally:
                    os.close(file)

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        os.close(file)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_LOCK}"


# A lock of this kind belongs to the open file, which a forked child shares. If a tool forks (multiprocessing,
# os.fork), the child would keep its dead parent's lock alive, so children close the file. The lock stays the
# parent's. POSIX locks (`fcntl.lockf`) are not inherited. But two stores of one process could not distinguish
# theirs, and checking one would free it. Executed programs do not inherit the file at all.
_OPEN: WeakSet[Owner] = WeakSet()


@cache
def _close_in_children() -> None:
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for owner in list(_OPEN):
        if owner._file >= 0:
            owner._close_file()
