"""A command in place of `python …`, for whoever starts a program by a command: hands its words, its folder,
its environment and its three streams to `fork_server.py`, which forks the program, and ends as that does.

Signals are passed on; SIGUSR1 as SIGKILL, which nobody can pass on. It imports next to nothing: that is the
point.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

passed_on: dict[int, int] = {signal.SIGUSR1: signal.SIGKILL}
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda received, _: line.sendall(bytes([passed_on.get(received, received)])))
    wanted = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
    socket.send_fds(line, [b"\n"], [0, 1, 2])
    line.sendall(json.dumps(wanted).encode() + b"\n")
    for stream in range(3):
        os.close(stream)  # from now on a stream ends when the program ends it
    status = int(b"".join(iter(lambda: line.recv(64), b"")) or -signal.SIGKILL)
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
