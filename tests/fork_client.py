"""Stand in for `python …` when a program is started by a command.

The client sends its arguments, its folder, its environment and its three streams to `fork_server.py`, which
forks the program. The client ends with the status of the program. It forwards signals, and SIGUSR1 as
SIGKILL, which cannot be forwarded. It imports almost nothing on purpose: `json`, `signal` and `socket` would
take two thirds of its time.
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
