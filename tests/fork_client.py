"""A command in place of `python …`, for whoever starts a program by a command: hands its words, its folder,
its environment and its three streams to `fork_server.py`, which forks the program, and ends as that does.

Signals are passed on; SIGUSR1 as SIGKILL, which nobody can pass on. It imports next to nothing: that is the
point. `json`, `signal` and `socket` would be two thirds of its time.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stubs
import _socket
import os
import sys

line = _socket.socket(_socket.AF_UNIX)
line.connect(sys.argv[1])


def pass_on(received: int, _: object) -> None:
    line.sendall(bytes([_signal.SIGKILL if received == _signal.SIGUSR1 else received]))


for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGUSR1):
    _signal.signal(number, pass_on)
wanted = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in range(3))
line.sendmsg([b"\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
line.sendall(ascii(wanted).encode() + b"\n")
for stream in range(3):
    os.close(stream)  # from now on a stream ends when the program ends it
status = int(b"".join(iter(lambda: line.recv(64), b"")) or -_signal.SIGKILL)
if status < 0:
    if -status != _signal.SIGKILL:
        _signal.signal(-status, _signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
