"""K1, K2, P12: nothing gets out of the cage, and nothing of it stays on the host."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.messages.questions import Rule
from dragoman.tools.builtin.shell import ShellOutput, run_program
from dragoman.tools.cage.bubblewrap import interpreter, why_none
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import HELD, Cage, CageSettings, find_protected
from tests.sweeps import WHOLE
from tests.tools.cage.escapes import ESCAPES, Escape

CORPUS = Path(os.environ.get("DRAGOMAN_RECORDINGS", "/nowhere"), "../cage/escapes.py").resolve()
NO_CAGE = why_none() if sys.platform == "linux" else "there is no bubblewrap here"
needs_cage = pytest.mark.skipif(bool(NO_CAGE), reason=NO_CAGE)
BOUNDS = [
    *(
        Rule("files.write", one, "ask")
        for one in ("dragoman.toml", "srv", "srv/*", "srv/server.py", "tools", "tools/*")
    ),
    *(Rule(f"files.{what}", "store.db*", "deny") for what in ("read", "write")),
]


class World:
    """A home with secrets, a workspace, a neighbour, listeners, and another process."""

    def __init__(self, root: Path) -> None:
        self.token = secrets.token_hex(12)
        self.home, self.work, self.other, self.tmp = (root / one for one in ("home", "work", "other", "tmp"))
        for file in (".npmrc", ".docker/config.json", ".bash_history", ".kube/config", ".ssh/id", ".profile"):
            self._put(self.home / file, f"token {self.token}\n")
        self._put(self.home / ".mozilla/cookies.sqlite", self.token)
        (self.home / ".local/bin").mkdir(parents=True)
        self.tmp.mkdir()
        self._put(self.other / "notes.txt", self.token)
        self._put(self.work / "srv/server.py", "#")
        self._put(self.work / "dragoman.toml", "#")
        for name in ("store.db", "store.db-wal"):
            self._put(self.work / name, self.token)
        (self.work / "link-out").symlink_to(self.other)
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        made = "git init -q && git add dragoman.toml && git -c user.name=a -c user.email=a@b commit -qm first"
        subprocess.run(made, shell=True, check=True, cwd=self.work, env=environment)
        self.heard: list[bytes] = []
        self.sockets = [socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)]
        for one in self.sockets[:2]:
            one.bind(("127.0.0.1", 0))
        folder = os.open(self.work, os.O_RDONLY)
        self.sockets[2].bind(f"/proc/self/fd/{folder}/dev.sock")  # its whole path may be too long for one
        os.close(folder)
        for one in (self.sockets[0], self.sockets[2]):
            one.listen(9)
        for one in self.sockets:
            threading.Thread(target=self._listen, args=[one], daemon=True).start()
        with (self.other / "notes.txt").open() as opened:
            secret = {"SECRET": self.token, "PATH": os.environ["PATH"]}
            words = ["sh", "-c", "sleep 600; :", self.token]
            self.victim = subprocess.Popen(
                words, cwd=self.home, env=secret, stdin=opened, start_new_session=True
            )
        self.before = self.outside(), self.planted()

    def end(self) -> None:
        os.killpg(self.victim.pid, signal.SIGKILL)
        self.victim.wait()
        for one in self.sockets:
            one.close()

    def _put(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _listen(self, one: socket.socket) -> None:
        with suppress(OSError):
            while True:
                if one.type == socket.SOCK_DGRAM:
                    self.heard.append(one.recv(99))
                    continue
                connection, _ = one.accept()
                connection.settimeout(2)
                with suppress(OSError), connection:
                    self.heard.append(connection.recv(99))

    def outside(self) -> dict[str, object]:
        """Return everything outside the workspace, with type and content."""
        root = self.home.parent
        found: dict[str, object] = {"": sorted(one.name for one in root.iterdir())}
        for path in (*self.home.rglob("*"), *self.other.rglob("*"), *self.tmp.rglob("*")):
            status = path.lstat()
            text = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (status.st_mode, status.st_mtime_ns, text)
        return found

    def planted(self) -> dict[str, object]:
        """Return files that run later because of their name or their permissions."""
        found = find_protected(self.work, BOUNDS, after=True).entries
        shown: dict[str, object] = {path: kind for path, (kind, _) in found.items() if path != HELD}
        for path in self.work.rglob("*"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o6000 and HELD not in path.parts:
                shown[str(path)] = "runs as its owner"
        for top in (".git", "srv", "dragoman.toml"):
            for path in (self.work / top, *(self.work / top).rglob("*")):
                if path.is_file():
                    shown[str(path)] = path.read_bytes()
        return shown

    async def attack(self, escape: Escape, cage: Cage | None) -> tuple[bool, str]:
        """Return whether the attack escaped, and its output."""
        names = {name: getattr(self, name) for name in ("home", "work", "other", "tmp")}
        names["port"], names["udp"] = (one.getsockname()[1] for one in self.sockets[:2])
        text = escape.python or escape.shell
        for name, value in {**names, "victim": self.victim.pid}.items():
            text = text.replace(f"{{{name}}}", str(value))
        text = text.replace("{{", "{").replace("}}", "}") if escape.shell else text
        words = [interpreter(), "-c", text] if escape.python else ["/bin/sh", "-c", text]
        output = ShellOutput()
        names_of_env = ["CAGE_TEST_SECRET"] if cage is None else []
        await run_program(words, self.work, output, lambda piece: None, cage=cage, env=names_of_env)
        out = output.text()
        match escape.kind:
            case "prints":
                return self.token in out, out
            case "changes":
                return self.outside() != self.before[0], out
            case "plants":
                return self.planted() != self.before[1], out
            case "reaches":
                await asyncio.sleep(0.05)
                return b"in" in self.heard, out
            case "does":
                return "DONE" in out, out


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("CAGE_TEST_SECRET", made.token)
    yield made
    made.end()


@needs_cage
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda one: one.name)
async def test_k1_nothing_gets_out(world: World, escape: Escape) -> None:
    settings = CageSettings(watch=escape.kind in ("reaches", "prints"))
    cage = cage_in(world.work, settings, BOUNDS, look=True)
    assert not cage.missing
    out, said = await world.attack(escape, cage)
    assert not out, said
    assert [one.name for one in world.work.parent.iterdir() if one.name.startswith("work")] == ["work"]


@pytest.mark.skipif(sys.platform != "linux", reason="the attempts are made for Linux")
@pytest.mark.parametrize("escape", [one for one in ESCAPES if one.control], ids=lambda one: one.name)
async def test_without_a_cage_it_gets_out(world: World, escape: Escape) -> None:
    """Else it would prove nothing that the cage holds it."""
    assert (await world.attack(escape, None))[0]


@needs_cage
async def test_k2_a_cage_leaves_no_empty_files_on_the_host(world: World) -> None:
    """P12 × names that do not exist yet: no placeholder is created for them."""
    names = sorted(str(path) for path in world.work.rglob("*"))
    for watch in (False, True):
        cage = cage_in(world.work, CageSettings(watch=watch), BOUNDS, look=True)
        status, refused = await run_program(
            ["/bin/true"], world.work, ShellOutput(), lambda _: None, cage=cage
        )
        assert (status, refused) == (0, [])
    assert sorted(str(path) for path in world.work.rglob("*")) == names


@needs_cage
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_file(), reason="the corpus of escapes is not here")
@pytest.mark.parametrize(
    "group", ["read", "write", "later", "net", "process", "limits"] if WHOLE else ["limits"]
)
def test_k1_the_corpus_is_held(tmp_path: Path, group: str) -> None:
    """137 more escapes, one group of them in `make test`. Each is a separate program."""
    root = Path(__file__).parents[3]
    runner = [
        sys.executable,
        "-m",
        "tests.tools.cage.runner",
        "--allow",
        "{allowed}",
        "--protect",
        "fmt.sh",
        "--",
    ]
    path = ["env", f"PYTHONPATH={root}:{root / 'src'}", *runner]
    short = Path(*tmp_path.parts[:3])  # addresses of sockets are short
    with tempfile.TemporaryDirectory(prefix="w-", dir=short) as place:
        words = [sys.executable, str(CORPUS), "--world", place, "--only", group, "--", *path]
        tried = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert tried.returncode == 0, tried.stdout[-3000:] + tried.stderr[-2000:]
    assert "0 through" in tried.stdout
