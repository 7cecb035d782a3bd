"""A PostgreSQL server of the tests' own: in a folder, on a socket, gone afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import PATIENCE

_MARK = "postgres"


def programs() -> Path | None:
    """Where the server's programs are: on the path, or where Debian puts them."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return newest[-1].parent if newest else None


def schema_of(folder: Path) -> str:
    """Return the schema for a folder. Two stores for the same folder share their data."""
    return "t_" + hashlib.sha256(str(folder).encode()).hexdigest()[:20]


def use_postgres(folder: Path, server: Server) -> None:
    """Make every process use this server for stores in the folder and its subfolders."""
    (folder / _MARK).write_text(str(server.folder))


def postgres_of(folder: Path) -> str | None:
    """Return the address of the folder's store, or None if the store is a file."""
    marks = [above / _MARK for above in (folder, folder.parent) if (above / _MARK).exists()]
    return Server(Path(marks[0].read_text())).url(schema_of(folder)) if marks else None


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self._durable = durable
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, schema: str) -> str:
        return f"postgresql://dragoman@/postgres?host={self.folder}&schema={schema}"

    def create(self) -> None:
        self.folder.chmod(0o755)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        options = ("--username=dragoman", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        subprocess.run(
            [*self._program("initdb"), "-D", self._data, *options], check=True, capture_output=True
        )

    def start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "fsync": "on" if self._durable else "off",  # no test cuts the power
            "shared_buffers": "16MB",
        }
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = [*self._program("postgres"), "-D", str(self._data), *flags]
            # In a separate session, because Ctrl-C goes to the test process, which stops the server last.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait()

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash."""
        if self._process is not None:
            stop = [*self._program("pg_ctl"), "stop", "-D", str(self._data), "-m", mode]
            subprocess.run(stop, check=True, capture_output=True)
            self._process.wait(PATIENCE)
            self._process = None

    def _wait(self) -> None:
        look = [*self._program("pg_isready"), "-h", str(self.folder)]
        end = time.monotonic() + PATIENCE
        while subprocess.run(look, capture_output=True, check=False).returncode:
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _program(self, name: str) -> list[str]:
        """It does not run as root."""
        folder = programs()
        assert folder is not None
        return [*(("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()), str(folder / name)]


@contextmanager
def served(*, durable: bool = False) -> Iterator[Server]:
    """Yield a server outside pytest's folder, which only its user can read: the server runs as
    another user."""
    with tempfile.TemporaryDirectory(prefix="dragoman-postgres-") as folder:
        server = Server(Path(folder), durable=durable)
        server.create()
        try:
            server.start()
            yield server
        finally:
            server.stop()
