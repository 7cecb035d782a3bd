"""Fork programs that other code starts by a command from a process that has imported everything.

Code that takes a command (an editor's SDK, an MCP client, our settings) gets `python fork_client.py …`. That
client starts immediately, and runs as long as the program that is forked here for it.
"""

from __future__ import annotations

import atexit
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
from ast import literal_eval
from collections.abc import Iterable
from functools import cache
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from tests.forks import FORKS

KILL = signal.SIGUSR1  # kills the program itself, and is over when it is dead
_NAME = "TESTS_FORK_SERVER"
_CLIENT = Path(__file__).with_name("fork_client.py")


def python(*words: str) -> tuple[str, ...]:
    """A command that runs what `python -m …`, `python -c …` or `python FILE …` would."""
    return (sys.executable, "-I", "-S", str(_CLIENT), _address(), *words)


@cache
def _address() -> str:
    """Where it listens. One server for each process that runs tests, and for what it starts."""
    if _NAME in os.environ:
        return os.environ[_NAME]
    folder = tempfile.mkdtemp(prefix="forks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(64)
        FORKS.Process(target=_serve, args=(listener,), daemon=True).start()
    os.environ[_NAME] = f"{folder}/socket"
    return os.environ[_NAME]


def _serve(listener: socket.socket) -> None:
    """Fork a program for each client, pass signals on to it, and tell how it ended."""
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    tests = parent_process()
    assert tests is not None
    with selectors.DefaultSelector() as selector:
        selector.register(tests.sentinel, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == tests.sentinel:
                    _close(listener, running)
                elif key.fileobj is listener:
                    line, _ = listener.accept()
                    program = _open(line, close=(listener, ended, wake, *running.values()))
                    running[program] = line
                    selector.register(line, selectors.EVENT_READ, program)
                elif key.fileobj is ended:
                    ended.recv(4096)
                elif key.data in running:
                    for number in _heard(running[key.data]):
                        os.kill(key.data, number)
            while running and (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                line = running.pop(found[0])
                selector.unregister(line)
                _tell(line, os.waitstatus_to_exitcode(found[1]))


def _close(listener: socket.socket, running: Iterable[int]) -> None:
    """Kill all programs and exit, because no client is left, not even for cleanup."""
    for program in running:
        os.kill(program, signal.SIGKILL)
    shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)
    os._exit(0)


def _heard(line: socket.socket) -> bytes:
    """Return the received signals. If the client is gone, it was killed, so the program is killed, too."""
    try:
        return line.recv(64) or bytes([signal.SIGKILL])
    except ConnectionResetError:
        return bytes([signal.SIGKILL])


def _tell(line: socket.socket, status: int) -> None:
    with line:
        try:
            line.sendall(str(status).encode())
        except OSError:
            pass  # the client was killed


def _open(line: socket.socket, close: tuple[socket.socket, ...]) -> int:
    _, streams, _, _ = socket.recv_fds(line, 1, 3)
    wanted = b""
    while not wanted.endswith(b"\n"):
        wanted += line.recv(1 << 16)
    program = os.fork()
    if not program:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (line, *close):
            one.close()
        _become(streams, **literal_eval(wanted.decode()))
    for stream in streams:
        os.close(stream)
    return program


def _become(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Run the program to its end in a separate process."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding=encoding, closefd=False) for number, mode in enumerate("rww")
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup make test`
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os._exit(_run(words))


def _run(words: list[str]) -> int:
    try:
        _run_main(words)
    except SystemExit as leaving:
        return _status(leaving.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                pass  # the reader is gone
    return 0


def _run_main(words: list[str]) -> None:
    how, *rest = words
    if how == "-m":
        sys.path.insert(0, "")
        sys.argv = rest
        for name in (rest[0], f"{rest[0]}.__main__"):
            if not hasattr(sys.modules.get(name), "__path__"):
                sys.modules.pop(name, None)  # imported before: it is to run
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, str(Path(how).parent))
        sys.argv = words
        runpy.run_path(how, run_name="__main__")


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    sys.stderr.write(f"{code}\n")
    return 1
