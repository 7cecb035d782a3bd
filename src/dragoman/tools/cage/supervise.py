"""Serve a cage from outside: a proxy to the hosts that rules allow, and a record of refused writes."""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import os
import re
import select
import socket
import stat
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from dragoman.background import in_thread
from dragoman.errors import ToolFailed
from dragoman.messages.questions import Rule
from dragoman.sentences import sentence
from dragoman.tools.cage.policy import NET, WRITE, Cage, Refusal, host_patterns, opening_of
from dragoman.tools.cage.seccomp import PATHS, Place, number
from dragoman.tools.cage.stage import PORT
from dragoman.tools.permissions import literal
from dragoman.wire.http_client.network import is_public
from dragoman.workspace.ignore import MADE

Gate: TypeAlias = Callable[[str, str, str], Awaitable[None]]
"""(pattern, question, permission) → returns if a rule or a user allows it. Otherwise raises ToolFailed."""

_HEAD = 8192  # bytes of a request to the proxy
_PIECE = 1 << 16
_PATIENCE = 30.0  # seconds to reach a host
_GRACE = 1.0  # seconds until the kernel has reported that all processes have ended
_MOST_TOLD = 20
_TARGET = re.compile(rb"CONNECT ([A-Za-z0-9._-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):(\d{1,5}) HTTP/1\.[01]")
_NAMED = re.compile(rb"\S+ (?:https?://)?([^\s/@]{1,300})")
_RECEIVE, _SEND, _SIZE = 0xC0502100, 0xC0182101, 80
_CONTINUE = 1
_AT_FOLDER, _NO_FOLLOW = -100, 0x100
_CREATES = os.O_CREAT
_IN_ROOT = 0x10


def proxy_variables() -> dict[str, str]:
    address = f"http://127.0.0.1:{PORT}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    own = dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
    return {name: address for one in names for name in (one, one.upper())} | own


@dataclass(slots=True)
class Supervisor:
    """The supervisor of one running cage. `refused` is what the cage has refused so far."""

    cage: Cage
    gate: Gate
    protected: Sequence[str] = ()  # read-only paths of the workspace
    refused: list[Refusal] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _watching: asyncio.Future[None] | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _decided: dict[str, bool] = field(default_factory=dict)
    _streams: set[asyncio.Task[None]] = field(default_factory=set)
    _calls: dict[int, str] = field(default_factory=dict)
    _opened: Sequence[Path] = ()
    _root: int | None = None  # of the file system inside

    async def attend(self, control: socket.socket) -> None:
        """Wait for what the first program inside passes out, and serve it. Nothing arrives if that program
        failed."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(control, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(control)
        _, files, _, _ = socket.recv_fds(control, 16, 2)
        if not files:
            return
        listener = socket.socket(fileno=files[0])
        listener.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_HEAD)
        if len(files) > 1:
            known = {name: number(name) for name in PATHS}
            self._calls = {found: name for name, found in known.items() if found is not None}
            self._opened = self.cage.opened(WRITE)
            self._watching = asyncio.ensure_future(in_thread(partial(self._watch, files[1])))

    async def end(self) -> None:
        """Stop serving, when the cage has no process left."""
        if self._watching is not None:
            await asyncio.wait([self._watching], timeout=_GRACE)
        if self._server is not None:
            self._server.close()
        for task in self._streams:
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

    # ── the proxy ─────────────────────────────────────────────────────────────────────────────────

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            over = (asyncio.CancelledError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
            with suppress(OSError, *over):  # This task is the stream's.
                await self._serve(reader, writer)
        finally:
            self._streams.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first = head.partition(b"\r\n")[0]
        wanted = _TARGET.fullmatch(first)
        if wanted is None:
            named = _NAMED.match(first)
            host = named[1].decode("latin-1") if named else "?"
            self._refuse(
                Refusal("net", sentence("cage.only_tls", host=host), Rule(NET, literal(host), "allow"))
            )
            writer.write(b"HTTP/1.1 405 The cage passes CONNECT alone\r\n\r\n")
            return
        host, port = wanted[1].decode().lower().rstrip(".").strip("[]"), int(wanted[2])
        address = await self._address(host, port) if await self._allows(host, port) else None
        if address is None:
            writer.write(b"HTTP/1.1 403 The cage refuses this host\r\n\r\n")
            return
        async with asyncio.timeout(_PATIENCE):
            far_reader, far_writer = await asyncio.open_connection(address, port)
        try:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer))
                both.create_task(_pump(far_reader, writer))
        finally:
            far_writer.close()

    async def _allows(self, host: str, port: int) -> bool:
        """Ask only once for each host: a program opens many connections to one."""
        pattern = host_patterns(host, port)[0]
        async with self._asking:
            if pattern not in self._decided:
                try:
                    await self.gate(pattern, sentence("cage.ask_net", host=pattern), NET)
                    self._decided[pattern] = True
                except ToolFailed:
                    self._decided[pattern] = False
                    self._refuse(Refusal("net", pattern, Rule(NET, literal(pattern), "allow")))
        return self._decided[pattern]

    async def _address(self, host: str, port: int) -> str | None:
        """Return the address of a name. If it is on this machine or its network, the address itself must be
        allowed."""
        with suppress(ValueError):
            return str(ipaddress.ip_address(host))
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        address = str(found[0][4][0])
        return address if is_public(address) or await self._allows(address, port) else None

    # ── attempted writes ──────────────────────────────────────────────────────────────────────────

    def _watch(self, notifications: int) -> None:
        """Watch calls in a thread, as long as the cage has processes. A waiting call always continues.

        The mounts decide. The path comes from the command's memory, so it is only reported.
        """
        libc, waiting = _libc(), select.poll()
        waiting.register(notifications, select.POLLIN)
        buffer = ctypes.create_string_buffer(_SIZE)
        try:
            while not any(event & ~select.POLLIN for _, event in waiting.poll()):
                ctypes.memset(buffer, 0, _SIZE)
                if libc.ioctl(notifications, _RECEIVE, buffer) < 0:
                    continue  # The waiting process is gone.
                ident, process, _, call, _, _, *given = struct.unpack("=QIIiIQ6Q", buffer.raw)
                with suppress(OSError, ValueError, KeyError, OverflowError):
                    for place in PATHS[self._calls[call]]:
                        self._look(process, given, place)
                libc.ioctl(notifications, _SEND, struct.pack("=QqiI", ident, 0, 0, _CONTINUE))
        finally:
            os.close(notifications)
            if self._root is not None:
                os.close(self._root)

    def _look(self, process: int, given: Sequence[int], place: Place) -> None:
        """Report a call if the cage's mounts, as seen from inside, will refuse it."""
        folder, name, what, flags = place
        at = given[folder] if folder is not None else None
        asked = _path(process, at, given[name] if name is not None else 0)
        follow = what in ("open", "change") and not (
            what == "change" and flags is not None and given[flags] & _NO_FOLLOW
        )
        if self._root is None:
            self._root = os.open(f"/proc/{process}/root", os.O_PATH | os.O_DIRECTORY)
        found = _open_inside(self._root, asked, follow=follow)
        there, rest = found is not None, ""
        while found is None and asked != "/":
            asked, _, step = asked.rpartition("/")
            asked, rest = asked or "/", f"/{step}{rest}"
            found = _open_inside(self._root, asked, follow=True)
        assert found is not None
        try:
            path = str(Path(f"/proc/self/fd/{found}").readlink()).rstrip("/") + rest
            closed = os.fstatvfs(found).f_flag & os.ST_RDONLY
            if there and what == "name" and not closed and stat.S_ISDIR(os.fstat(found).st_mode):
                closed = _is_mounted(self._root, path, found)
        finally:
            os.close(found)
        makes = what in ("make", "into") or (what == "open" and flags is not None and given[flags] & _CREATES)
        hidden = rest.count("/") > 1  # the folder that would contain it
        if hidden or (what != "make" if there else makes):
            self._tell(path, closed=bool(closed))

    def _tell(self, path: str, *, closed: bool) -> None:
        work, home = f"{self.cage.workspace}/", os.path.realpath(Path.home())
        if not MADE.isdisjoint(path.split("/")):
            return  # A cache: programs work without it.
        if path.startswith(work):
            within = path.removeprefix(work)
            known = next((one for one in self.protected if _is_in(within, one) or _is_in(one, within)), None)
            if closed:
                rule = Rule(WRITE, f"{literal(known)}/*", "allow") if known is not None else None
                self._refuse(Refusal("write", within, rule))
        elif closed and not _is_in(path, "/proc"):
            self._refuse(Refusal("write", path, self._opening(str(Path(path).parent))))
        elif _is_in(path, home) and not any(_is_in(path, os.path.realpath(one)) for one in self._opened):
            steps = path.removeprefix(f"{home}/").split("/")
            top = "/".join(("~", *steps[: 2 if steps[0] in (".config", ".cache", ".local") else 1]))
            self._refuse(Refusal("lost", top, self._opening(top)))

    def _opening(self, path: str) -> Rule | None:
        with suppress(ValueError):
            return opening_of(self.cage, path)
        return None

    def _refuse(self, refusal: Refusal) -> None:
        """Report each place once: paths below a reported one are not reported again."""
        known = any(
            one.kind == refusal.kind
            and (one.rule == refusal.rule if refusal.rule is not None else one.what == refusal.what)
            for one in self.refused
        )
        if not known and len(self.refused) < _MOST_TOLD:
            self.refused.append(refusal)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _path(process: int, folder: int | None, address: int) -> str:
    """Return the path that a waiting process names. Without a name, return its folder."""
    name = b""
    if address:
        memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
        try:
            name = os.pread(memory, 4096, address).partition(b"\0")[0]
        finally:
            os.close(memory)
    if name.startswith(b"/"):
        return os.fsdecode(name).rstrip("/") or "/"
    at = ctypes.c_int(folder & 0xFFFFFFFF).value if folder is not None else _AT_FOLDER
    base = Path(f"/proc/{process}/cwd" if at == _AT_FOLDER else f"/proc/{process}/fd/{at}").readlink()
    return f"{base}/{os.fsdecode(name)}".rstrip("/")


def _open_inside(root: int, path: str, *, follow: bool) -> int | None:
    """Open what a path leads to below a root. Links stay below that root. None if the path leads nowhere."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), 0, _IN_ROOT)
    found: int = _libc().syscall(number("openat2"), root, os.fsencode(path), how, len(how))
    return found if found >= 0 else None


def _is_mounted(root: int, path: str, found: int) -> bool:
    """Return whether this name is a mount point: then it cannot be moved or removed."""
    above = _open_inside(root, str(Path(path).parent), follow=True)
    if above is None:
        return False
    try:
        mounts = [
            re.search(r"mnt_id:\s*(\d+)", Path(f"/proc/self/fdinfo/{one}").read_text())
            for one in (above, found)
        ]
    finally:
        os.close(above)
    return mounts[0] is not None and mounts[1] is not None and mounts[0][1] != mounts[1][1]


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p)
    return libc
