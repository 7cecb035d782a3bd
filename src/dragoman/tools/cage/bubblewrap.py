"""Programs in bubblewrap's namespaces: what is shown, what can be written, and whether that works here."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

from dragoman.sentences import sentence
from dragoman.tools.cage.policy import READ, WRITE, Cage, Protected, find_hidden
from dragoman.tools.cage.seccomp import is_known, refusing

# Folders that are shown, all read-only. A list of what is secret would miss the next program's secrets.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap"),
    *("/run/current-system", "/sys/devices/system/cpu"),
)
_TOOLS = (  # below HOME: compilers and interpreters, without what signs in
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".bun/bin", ".deno/bin", ".sdkman", ".asdf", ".rustup"),
    *(".cargo/bin", "go/bin", ".ghcup", ".juliaup", ".local/bin", ".local/lib", ".local/share/uv"),
    *(".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".local/pipx", ".local/share/pipx"),
)
_PRIVATE = ("/tmp", "/var/tmp")
_SIZE = 1 << 30  # bytes of each private folder
_FILE_BLOCKS = 16 << 20  # 8 GiB in one file
_PROCESSES = 512
# Inside, where processes are counted anew. dash has another letter for them than bash.
_LIMITS = f"""\
ulimit -c 0; ulimit -f {_FILE_BLOCKS}; ulimit -d "$1"; shift
if (ulimit -u) >/dev/null 2>&1; then ulimit -u {_PROCESSES}; else ulimit -p {_PROCESSES}; fi
exec "$@"
"""
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_PATIENCE = 10.0  # seconds for a try


def arguments(cage: Cage, protected: Protected, filter: int) -> list[str]:
    """bwrap and its options, before the words of the command."""
    home, work = Path.home(), str(cage.workspace)
    words = [_program() or "bwrap", *_NAMESPACES, "--seccomp", str(filter)]
    words += _system()
    words += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    for path in dict.fromkeys((*_PRIVATE, str(home), os.path.realpath(home))):
        words += ["--size", str(_SIZE), "--tmpfs", path]
    for shown in _shown(home, os.environ.get("PATH", ""), os.environ.get("HOMEBREW_PREFIX", "")):
        words += ["--ro-bind", shown, shown]
    for opened in cage.opened(READ):
        words += ["--ro-bind", str(opened), str(opened)]
    for opened in cage.opened(WRITE):
        words += ["--bind", str(opened), str(opened)]
    for git in _git_folders(cage.workspace):
        words += ["--ro-bind", str(git), str(git)]
    words += ["--bind", work, work]
    closed = sorted(
        path for path, (kind, _) in protected.entries.items() if kind != "link" and not cage.may_write(path)
    )
    # Each folder on the way is mounted on itself, else it could be moved with what is protected in it.
    above = {"/".join(path.split("/")[:end]) for path in closed for end in range(1, path.count("/") + 1)}
    for path in sorted(above.difference(closed)):
        words += ["--bind", f"{work}/{path}", f"{work}/{path}"]
    for path in closed:
        words += ["--ro-bind", f"{work}/{path}", f"{work}/{path}"]
    for secret in find_hidden(cage.workspace, cage.bounds):
        words += _mask(secret)
    return [*words, "--remount-ro", "/", "--chdir", work, "--"]


def limited(words: Sequence[str]) -> list[str]:
    """The command within limits of processes, memory and files."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return ["/bin/sh", "-c", _LIMITS, "/bin/sh", str(memory >> 10), *words]


def make_group() -> Path | None:
    """A control group for one command of root, whom no other limit of processes binds. None where there is
    none to be had, and where none is needed."""
    if os.geteuid() != 0:
        return None
    for old in [*_groups]:
        remove_group(old)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        top = Path("/sys/fs/cgroup", *(["pids"] if controllers else []))
        above = top / own.strip("/") if (top / own.strip("/")).is_dir() else top
        if controllers not in ("pids", ""):
            continue
        group = above / f"dragoman-{uuid4().hex}"
        try:
            group.mkdir()
            (group / "pids.max").write_text(str(_PROCESSES))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        return group
    return None


_groups: set[Path] = set()  # that could not be removed yet: one who dies holds its own a moment longer


def remove_group(group: Path) -> None:
    try:
        group.rmdir()
        _groups.discard(group)
    except OSError:
        _groups.add(group)


def in_group(group: Path, words: Sequence[str]) -> list[str]:
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *words]


def interpreter() -> str:
    """The Python that the first program inside runs on: ours, without its environment."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def write_filter(program: bytes) -> int:
    """A descriptor that bwrap reads a filter from."""
    reading, writing = os.pipe()
    os.write(writing, program)  # far less than a pipe holds
    os.close(writing)
    return reading


@cache
def why_none() -> str:
    """Why nothing can be caged here; empty where a program was, a moment ago."""
    if sys.platform != "linux" or not is_known():
        return sentence("cage.other_system")
    if _program() is None:
        return sentence("cage.not_installed")
    with tempfile.TemporaryDirectory(prefix="dragoman-cage-") as folder:
        filter = write_filter(refusing())
        try:
            tried = subprocess.run(
                [*arguments(Cage(Path(folder).resolve()), Protected(), filter), *limited(["/bin/true"])],
                pass_fds=[filter],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return sentence("cage.fails", why=error)
        finally:
            os.close(filter)
    return (
        sentence("cage.fails", why=tried.stderr.decode(errors="replace").strip()[-300:])
        if tried.returncode
        else ""
    )


def why_not_in(workspace: Path) -> str:
    """Why a folder cannot be a workspace in a cage: everything in it is shown, and can be written."""
    home = Path(os.path.realpath(Path.home()))
    if home.is_relative_to(workspace) or any(
        Path(one).is_relative_to(workspace) for one in ("/usr", "/etc", "/tmp")
    ):
        return sentence("cage.home")
    return ""


@cache
def _program() -> str | None:
    return shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin")


@cache
def _system() -> tuple[str, ...]:
    """Where /bin is a link into /usr, it is one inside: each mount costs every command its time."""
    words: list[str] = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    for secret in _closed_in_etc():
        words += _mask(secret)
    return tuple(words)


@cache
def _shown(home: Path, search: str, brew: str) -> tuple[str, ...]:
    """Where programs are that PATH leads to, and what they need: also environments of Python, and Homebrew's
    folder, in which they are links."""
    found = [home / one for one in _TOOLS]
    for folder in map(Path, search.split(os.pathsep)):
        if folder.is_absolute() and folder.name in ("bin", "sbin", "shims") and os.access(folder, os.R_OK):
            found.append(folder.parent if (folder.parent / "pyvenv.cfg").is_file() else folder)
    found += [Path(sys.prefix), Path(sys.base_prefix), *([Path(brew)] if brew.startswith("/") else [])]
    shown = list(map(Path, _SYSTEM))
    for path in sorted(found):
        known = any(path.is_relative_to(one) for one in shown)
        if (
            os.access(path, os.R_OK | os.X_OK)
            and path.is_dir()
            and not known
            and not home.is_relative_to(path)
            and path.parent != path
        ):
            shown.append(path)
    return tuple(map(str, shown[len(_SYSTEM) :]))


@cache
def _closed_in_etc() -> tuple[Path, ...]:
    """What we may read there and not everybody may: as root, the passwords and keys of the machine."""
    closed = []
    for above, folders, files in os.walk("/etc"):
        for name in (*folders, *files):
            path = Path(above, name)
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            if not stat.S_ISLNK(mode) and not mode & stat.S_IROTH and os.access(path, os.R_OK):
                closed.append(path)
        folders[:] = [name for name in folders if Path(above, name) not in closed]
    return tuple(closed)


def _mask(path: Path) -> list[str]:
    if path.is_dir() and not path.is_symlink():
        return ["--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def _git_folders(workspace: Path) -> Iterator[Path]:
    """Of a worktree, the repository that it belongs to, if that says so, too: anybody can write a file that
    points somewhere."""
    file = workspace / ".git"
    try:
        if file.is_symlink() or not file.is_file():
            return
        pointed = Path(os.path.normpath(workspace / file.read_text().removeprefix("gitdir:").strip()))
        if Path((pointed / "gitdir").read_text().strip()).resolve() != file.resolve():
            return
        common = Path(os.path.normpath(pointed / (pointed / "commondir").read_text().strip()))
        if pointed.parent.parent == common and (common / "HEAD").is_file():
            yield common
    except (OSError, ValueError):
        return
