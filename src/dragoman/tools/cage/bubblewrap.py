"""Run programs in bubblewrap's namespaces: choose what they see and write, and check that it works here."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from uuid import uuid4

from dragoman.sentences import sentence
from dragoman.tools.cage.policy import READ, WRITE, Cage, Protected, find_hidden
from dragoman.tools.cage.seccomp import is_known, refusing

# Folders visible inside, all read-only. A list of secret paths instead would miss the next program's secrets.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap"),
    *("/run/current-system", "/sys/devices/system/cpu"),
)
_TOOLS = (  # below HOME: compilers and interpreters, without credentials
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".bun/bin", ".deno/bin", ".sdkman", ".asdf", ".rustup"),
    *(".cargo/bin", "go/bin", ".ghcup", ".juliaup", ".local/bin", ".local/lib", ".local/share/uv"),
    *(".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".local/pipx", ".local/share/pipx"),
)
_PRIVATE = ("/tmp", "/var/tmp")
_SIZE = 1 << 30  # bytes of each private folder
_FILE_BLOCKS = 16 << 20  # 8 GiB in one file
_PROCESSES = 512
# A cage has its own process count, so the limit is set inside, unless a control group does it (which also
# binds root). dash uses another letter for this limit than bash.
_LIMIT_PROCESSES = f"""\
if (ulimit -u) >/dev/null 2>&1; then ulimit -u {_PROCESSES}; else ulimit -p {_PROCESSES}; fi
exec "$@"
"""
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
    *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_PATIENCE = 10.0  # seconds for one try


def holder(cage: Cage, protected: Protected) -> tuple[list[str], list[int]]:
    """Return the bwrap words that go before the command, and the files for bwrap: its options and the filter.

    The options are not passed as words: words are visible inside and would reveal paths outside.
    """
    filter = _file(refusing())
    options = _file("\0".join(_options(cage, protected, filter)).encode(errors="surrogateescape"))
    return [_program() or "bwrap", "--args", str(options), "--"], [filter, options]


def _options(cage: Cage, protected: Protected, filter: int) -> list[str]:
    home, work = Path.home(), str(cage.workspace)
    words = [*_NAMESPACES, "--seccomp", str(filter), *_system()]
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
    # Mount each folder on the way on itself. Otherwise it could be moved together with the protected entry in
    # it.
    above = {"/".join(path.split("/")[:end]) for path in closed for end in range(1, path.count("/") + 1)}
    for path in sorted(above.difference(closed)):
        words += ["--bind", f"{work}/{path}", f"{work}/{path}"]
    for path in closed:
        words += ["--ro-bind", f"{work}/{path}", f"{work}/{path}"]
    for secret in find_hidden(cage.workspace, cage.bounds):
        words += _mask(secret)
    return [*words, "--remount-ro", "/", "--chdir", work]


def limits(groups: Sequence[Path]) -> str:
    """Return shell code that joins these groups and limits memory and files before a command starts.

    A separate program for this would cost every command a millisecond.
    """
    joins = "".join(f"echo $$ > {shlex.quote(str(one / 'cgroup.procs'))} || exit 125\n" for one in groups)
    return f"{joins}ulimit -c 0; ulimit -f {_FILE_BLOCKS}; ulimit -d {_memory() >> 10}\n"


def limited(words: Sequence[str], groups: Sequence[Path]) -> list[str]:
    """Return the command with a limit on its number of processes."""
    if any((group / "pids.max").exists() for group in groups):
        return [*words]
    return ["/bin/sh", "-c", _LIMIT_PROCESSES, "/bin/sh", *words]


def make_groups() -> list[Path]:
    """Make control groups for one command. They limit all its processes together, including those of root.

    Empty if no group can be made.
    """
    for old in [*_left]:
        remove_group(old)
    made = []
    for above, limits in _group_places():
        group = above / f"dragoman-{os.getpid()}-{uuid4().hex}"
        try:
            group.mkdir()
            for name, limit in limits:
                (group / name).write_text(limit)
        except OSError:
            remove_group(group)
        else:
            made.append(group)
    return made


@cache
def _group_places() -> tuple[tuple[Path, list[tuple[str, str]]], ...]:
    """Return, by trying, the parents where groups can be made, and the limits available there.

    In version 2, a group that contains processes cannot limit its child groups, so ours is made next to it.
    """
    wanted = {"pids.max": str(_PROCESSES)}
    wanted |= dict.fromkeys(("memory.max", "memory.limit_in_bytes"), str(_memory())) | {
        "memory.oom.group": "1"
    }
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        top = Path("/sys/fs/cgroup", controllers)
        for above in dict.fromkeys((top / own.strip("/"), (top / own.strip("/")).parent, top)):
            group = above / f"dragoman-{os.getpid()}-{uuid4().hex}"
            if not above.is_relative_to(top) or not (above / "cgroup.procs").exists():
                continue
            try:
                group.mkdir()
                limits = [(name, limit) for name, limit in wanted.items() if (group / name).exists()]
                group.rmdir()
            except OSError:
                continue
            if limits:
                found.append((above, limits))
                _sweep(above)
                break
    return tuple(found)


def _sweep(above: Path) -> None:
    """Remove groups of processes that were killed."""
    for group in above.glob("dragoman-*-*"):
        if not Path("/proc", group.name.split("-")[1]).exists():
            remove_group(group)


# groups that could not be removed yet: a dying process stays in its group for a moment
_left: set[Path] = set()


def remove_group(group: Path) -> None:
    try:
        group.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        _left.add(group)
        return
    _left.discard(group)


@cache
def _memory() -> int:
    """The bytes of memory that a command can use: half of the machine's."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def interpreter() -> str:
    """Return the Python interpreter for the first program inside: ours, without its environment."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _file(data: bytes) -> int:
    """Return a descriptor from which bwrap reads this."""
    file = os.memfd_create("cage")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


@cache
def why_none() -> str:
    """Return why nothing can be caged here. Empty if a test program has just run in a cage."""
    if sys.platform != "linux" or not is_known():
        return sentence("cage.other_system")
    if _program() is None:
        return sentence("cage.not_installed")
    with tempfile.TemporaryDirectory(prefix="dragoman-cage-") as folder:
        words, files = holder(Cage(Path(folder).resolve()), Protected())
        try:
            tried = subprocess.run(
                [*words, *limited(["/bin/true"], ())],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return sentence("cage.fails", why=error)
        finally:
            for file in files:
                os.close(file)
    return (
        sentence("cage.fails", why=tried.stderr.decode(errors="replace").strip()[-300:])
        if tried.returncode
        else ""
    )


def why_not_in(workspace: Path) -> str:
    """Return why a folder cannot be a caged workspace: everything in it would be visible and writable."""
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
    """If /bin is a link into /usr, make it a link inside too: each mount makes every command slower."""
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
    """Return the folders of programs that PATH leads to, and the folders that these programs need.

    This includes Python environments, and Homebrew's folder, to which its programs are links.
    """
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
    """Return what we can read in /etc and not everybody can: for root, the machine's passwords and keys."""
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
    """Yield the repository of a worktree, if the repository confirms it: anybody can write a file that points
    anywhere."""
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
