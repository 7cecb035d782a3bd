"""Which process runs a turn, and whether it still can: a lock that dies with it, and a lease it renews."""

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


_RENEWALS = 4  # in the time of one lease
_LOCK = ".lock"


class Owner:
    """This process, as an owner of turns.

    It is alive as long as its lock is held and its lease is fresh. The lock is the system's, which frees it
    at once, also after `kill -9`. The lease is the lock file's time of change, renewed by a thread: a busy
    event loop keeps it, a stopped process does not. Renewing it syncs nothing.

    How long a lease was not renewed is counted in our own renewals and not by any clock. So a clock that is
    set does no harm, and a machine that slept as a whole, us included, finds everybody alive. After about
    `lease` seconds without a renewal an owner counts as paused.
    """

    def __init__(self, folder: Path, *, lease: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = -1
        _close_in_children()
        _OPEN.add(self)
        while not self._locked_anew():
            pass
        self._leases: dict[str, tuple[int, int]] = {}  # of others: what was seen last, and how often
        self._sweep()
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._renew_regularly, args=(lease / _RENEWALS,), name="dragoman-lease", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._file < 0:
            return  # closed before, or a forked child's copy: the file is the parent's
        self._thread.join()
        self._path(self.name).unlink(missing_ok=True)
        self._close_file()

    def alive(self, name: str) -> bool:
        """Whether the owner of this name still runs, and is not paused."""
        if name == self.name:
            return True
        try:
            file = os.open(self._path(name), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            _lock(file, shared=True)  # shared: others may ask at the same time, and so may a forked child
        except OSError:
            return not self._paused(name, os.fstat(file).st_mtime_ns)
        else:
            return False
        finally:
            os.close(file)

    def others(self) -> list[str]:
        """Every other process that has this store open."""
        names = [path.stem for path in self._folder.glob(f"*{_LOCK}")]
        return [name for name in names if name != self.name and self.alive(name)]

    def renew(self) -> None:
        """Renew our lease, and see who else has renewed theirs since this was last called."""
        with suppress(OSError):  # a file system that is read-only for now: nobody can claim a turn either
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
        """Take a new name, and lock its file. False where somebody swept the file before it was locked."""
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
        """Remove what dead owners left, also those of earlier versions that died while they were born."""
        for path in (*self._folder.glob(f"*{_LOCK}"), *self._folder.glob("*.new")):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR)
                try:
                    _lock(file)
                    path.unlink()  # while it is locked: an owner that is born now sees that its file is gone
                finally:
                    os.close(file)

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        os.close(file)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_LOCK}"


# A lock of this kind belongs to the open file, and a forked child has the same open file: a tool that forks
# (multiprocessing, os.fork) would keep its dead parent's lock for as long as the child lives. So children
# close it. The lock stays the parent's. POSIX locks (`fcntl.lockf`) would not be passed on, but two stores
# of one process could not tell each other's apart, and to look at one would free it. Programs that are
# executed do not get the file at all.
_OPEN: WeakSet[Owner] = WeakSet()


@cache
def _close_in_children() -> None:
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for owner in list(_OPEN):
        if owner._file >= 0:
            owner._close_file()
