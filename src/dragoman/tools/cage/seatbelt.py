"""Write profiles for macOS's sandbox. They are tested as text: no test has run them on a Mac."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dragoman.sentences import sentence
from dragoman.tools.cage.policy import READ, WRITE, Cage, Protected, find_hidden

_PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/System", "/Library", "/opt", "/private/etc", "/dev", "/private/var/db"),
    *("/Applications/Xcode.app", "/private/var/select"),
)
_HEAD = """\
(version 1)
(deny default)
(allow process-fork process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero"))
"""


def why_none() -> str:
    return "" if shutil.which(_PROGRAM) else sentence("cage.other_system")


def arguments(cage: Cage, protected: Protected) -> list[str]:
    """Return the words that go before the command."""
    return [_PROGRAM, "-p", profile(cage, protected), "--"]


def profile(cage: Cage, protected: Protected) -> str:
    """Return the profile. The last matching rule decides, so protected paths come after their workspace.

    The cage has no network, because nothing brings a proxy into it.
    """
    work = os.fspath(cage.workspace)
    closed = [f"{work}/{path}" for path in sorted(protected.entries) if not cage.may_write(path)]
    above = {os.fspath(up) for path in closed for up in Path(path).parents if up.is_relative_to(work)}
    hidden = [os.fspath(path) for path in find_hidden(cage.workspace, cage.bounds)]
    lines = [
        *(f"(allow file-read* {_below(path)})" for path in (*_SYSTEM, work)),
        *(f"(allow file-read* {_below(os.fspath(path))})" for path in cage.opened(READ)),
        *(f"(allow file-read* file-write* {_below(os.fspath(path))})" for path in cage.opened(WRITE)),
        f"(allow file-write* {_below(work)})",
        *(f"(deny file-write* {_below(path)})" for path in closed),
        *(f"(deny file-write-unlink (literal {_quoted(path)}))" for path in sorted(above)),
        *(f"(deny file-read* file-write* {_below(path)})" for path in hidden),
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _below(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
