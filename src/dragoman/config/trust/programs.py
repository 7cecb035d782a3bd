"""Finds the files that settings start, as programs or as arguments of programs.

It has two users: a folder's trust covers these files, and no tool writes them without approval.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from dragoman.workspace.ignore import MADE, VERSION_CONTROL

# A file is code by its executable bit, by `#!`, or by its name: interpreters, compilers and build programs
# load these without either. Data (JSON, logs, databases) must not count: servers write it while they run.
CODE_SUFFIXES = (
    *(".py", ".pyw", ".pyc", ".pyx", ".pth", ".so", ".pyd", ".dll", ".dylib", ".wasm", ".jar", ".class"),
    *(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"),
    *(".sh", ".bash", ".zsh", ".fish", ".ksh", ".ps1", ".psm1", ".bat", ".cmd", ".awk", ".tcl", ".lua"),
    *(".rb", ".rake", ".pl", ".pm", ".php", ".r", ".jl", ".ex", ".exs", ".erl", ".clj", ".hs", ".ml"),
    *(".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".fs", ".swift", ".java", ".kt", ".kts"),
    *(".scala", ".groovy", ".gradle", ".mk", ".cmake", ".nix", ".el", ".vim"),
)
CODE_NAMES = (
    *("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Rakefile", "Gemfile", "Procfile"),
    *("Dockerfile", "package.json", "pyproject.toml", "setup.cfg", "tox.ini", "Cargo.toml", "deno.json"),
    *(".npmrc", ".yarnrc.yml", "uv.toml", "Taskfile.yml", "compose.yaml", "docker-compose.yml"),
)
# Programs that run code which their command need not name. Given a file, they run that file. Otherwise, their
# other arguments or files of the folder decide.
_LAUNCHERS = frozenset(
    (
        *("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "pwsh", "powershell", "cmd"),
        *("python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "java", "tclsh"),
        *("make", "gmake", "ninja", "just", "task", "rake", "bundle", "npm", "pnpm", "yarn", "uv", "poetry"),
        *("pdm", "hatch", "rye", "pipenv", "tox", "nox", "cargo", "go", "gradle", "mvn", "sbt", "dotnet"),
        *("docker-compose", "nix", "mise", "direnv"),
    )
)
# Programs that run a package. Before they run it, they read only these files of the folder.
_PACKAGE_RUNNERS = {
    **dict.fromkeys(("npx", "bunx", "pnpx"), ("node_modules", "package.json", ".npmrc")),
    **dict.fromkeys(("uvx", "pipx"), ("uv.toml", "pyproject.toml", ".venv")),
}
_WRAPPERS = frozenset(("env", "nohup", "nice", "time", "timeout", "sudo", "stdbuf", "setsid", "exec"))
_INLINE = re.compile(r"-[A-Za-z]*[cem]|--eval|--print|--call|-p|/[cCkK]|-[Cc]ommand|-[Ee]ncoded[Cc]ommand")
_SPLIT = re.compile(r"[\s;&|()<>'\"`,]+")
# Everything a command names is reviewed with it, whatever its name, except data that no interpreter runs.
DATA_SUFFIXES = (
    *(".json", ".jsonl", ".csv", ".tsv", ".db", ".sqlite", ".sqlite3", ".log", ".md", ".parquet", ".pdf"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".zip", ".gz", ".lock", ".pid", ".sock"),
)
_LARGEST = 1_000_000  # Maximum bytes of a JSON file with servers, or of a git configuration.
_MOST_CONFIGS = 60  # Maximum number of files included by a git configuration, and of folders above.
_MOST = 200_000  # Maximum number of files of a folder searched for code.
_CACHES = MADE - {"node_modules", ".venv"} | {".cache"}  # written while programs run


@dataclass(slots=True)
class Programs:
    """The files and folders that are started, existing or not, as keys in the order in which they
    were found."""

    files: dict[Path, None] = field(default_factory=dict)  # programs and scripts
    folders: dict[Path, None] = field(default_factory=dict)  # folders of scripts, from which they import
    code: dict[Path, None] = field(default_factory=dict)  # folders whose code may all run
    named: dict[Path, None] = field(default_factory=dict)  # paths named by other words of the commands
    unknown: dict[str, None] = field(default_factory=dict)  # command lines that do not reveal what they run
    # Git files that were read for this, if they exist.
    sources: dict[Path, None] = field(default_factory=dict)


def find_programs(
    tables: Mapping[str, Any],
    folder: Path,
    workspace: Path,
    servers: Mapping[str, Any] | None = None,
    *,
    editor: str = "",
    look_up: bool = False,
) -> Programs:
    """Find what the tables of a settings file start, with MCP servers of other files.

    The result covers paths in the settings' folder or the workspace, both given without links. `look_up` also
    resolves programs through the current PATH. Tables may be malformed, since they need not be trusted yet.
    """
    found = Programs()
    roots = (folder, workspace)
    # Include servers that are currently off.
    for server in {**(servers or {}), **_table(tables, "mcp")}.values():
        if isinstance(server, dict) and server.get("command"):
            base = Path(os.path.normpath(folder / _expand(str(server.get("cwd") or ""))))
            words = [str(server["command"]), *_texts(server.get("args"))]
            _add_command(found, words, (base,), roots, look_up=look_up)
            for value in _values(server.get("env")):
                _add_word(found, value, (base,), roots, folders=True)
    for formatter in _table(tables, "formatters").values():
        words = _texts(formatter.get("command")) if isinstance(formatter, dict) else []
        if words and formatter.get("enabled") is not False:
            _add_command(found, words, (workspace, folder), roots, look_up=look_up)
    for plugin in _table(tables, "plugins").values():
        module = str(plugin.get("use") or "") if isinstance(plugin, dict) else ""
        if name := module.partition(":")[0].partition(".")[0]:
            found.folders |= dict.fromkeys(root / name for root in roots)
            found.files |= dict.fromkeys(root / f"{name}.py" for root in roots)
    if words := [word for word in _SPLIT.split(editor) if word]:
        _add_command(found, words, (workspace,), roots, look_up=look_up)
    return found


def read_json_servers(file: Path) -> dict[str, Any]:
    """Return the current servers of a JSON file, none if it is unreadable."""
    try:
        content = json.loads(_read_regular(file).decode())
        servers = content.get("mcpServers") or content.get("servers") or {}
        return dict(servers)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def find_git_programs(workspace: Path) -> Programs:
    """Find the programs of the workspace's repository outside of `.git`.

    They are hooks, filters and helpers that its configuration names, files that it includes, and the folder
    that a `.git` file points to.
    """
    found = Programs()
    top = next((up for up in (workspace, *workspace.parents) if (up / ".git").exists()), workspace)
    own = shared = top / ".git"
    try:
        if own.is_file():
            own = shared = _led_to(top, own, "gitdir:")
            found.folders[own] = None
            shared = _led_to(own, own / "commondir")  # A linked worktree has its configuration there.
    except (OSError, ValueError):
        pass
    found.sources = dict.fromkeys(up / ".git" for up in (workspace, *workspace.parents))
    files = [shared / "config", own / "config.worktree"]
    for file in files:
        if file in found.sources or len(found.sources) > _MOST_CONFIGS:
            continue
        found.sources[file] = None
        try:
            text = _read_regular(file).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        for line in text.splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            # A dot is a branch of this repository.
            if (value := value.strip("\"'").lstrip("!")) in ("", "."):
                continue
            _add_word(found, value, (top,), (workspace,), folders=True)
            # It may belong to an `include`, which is relative to its own folder.
            if key.casefold().endswith("path"):
                _add_word(found, value, (file.parent,), (workspace,))
                files.append(Path(os.path.normpath(file.parent / _expand(value))))
    return found


def _led_to(folder: Path, file: Path, before: str = "") -> Path:
    """Return the folder that a git file names."""
    return Path(os.path.normpath(folder / _read_regular(file).decode().removeprefix(before).strip()))


def _add_command(
    found: Programs, words: Sequence[str], bases: Sequence[Path], roots: Sequence[Path], *, look_up: bool
) -> None:
    """Add the words of one command, which runs in one of the folders `bases`."""
    start = next((place for place, word in enumerate(words) if not _is_wrapper(word)), 0)
    launcher, is_program = _stem(words[start]), re.search(r"[/\\]", words[start]) is not None
    launches = launcher in _LAUNCHERS
    runs = is_program and _add_word(found, words[start], bases, roots, program=True)
    if look_up and not is_program and (at := shutil.which(words[start])) is not None:
        runs = _add_word(found, at, bases, roots, program=True)
    inside = [base for base in bases if any(base.is_relative_to(root) for root in roots)]
    for package in _PACKAGE_RUNNERS.get(launcher, ()):
        found.folders |= dict.fromkeys(base / package for base in inside)
    named = inline = False
    for word in words[start + 1 :]:
        inline = inline or (launches and not named and _INLINE.fullmatch(word) is not None)
        first = launches and not named and not inline  # The word is the script, whatever its name.
        named |= _add_word(found, word, bases, roots, folders=launches, script=first)
    if not inside or (runs and not launches):
        return
    if inline or (launches and not named):
        found.code |= dict.fromkeys(inside)
    if inline or (launches and not named) or launcher in _PACKAGE_RUNNERS:
        found.unknown[" ".join(words)] = None


def _is_wrapper(word: str) -> bool:
    """Return whether the word belongs to a wrapper: `env A=1 timeout 5 python x.py` starts `python`."""
    return _stem(word) in _WRAPPERS or word.startswith("-") or "=" in word or word.isdecimal()


def _add_word(
    found: Programs,
    word: str,
    bases: Sequence[Path],
    roots: Sequence[Path],
    *,
    program: bool = False,
    script: bool = False,
    folders: bool = False,
) -> bool:
    """Add the paths in a word. Return whether one is a program or script of these folders.

    `script` counts an existing file as a script. `folders` searches folders named by the word for code.
    """
    runs = False
    tokens = [word, *_SPLIT.split(word), *word.split(os.pathsep), word.partition("=")[2]]
    for token in dict.fromkeys(tokens):
        if not token or token.startswith("-") or "{file}" in token or "://" in token or "\0" in token:
            continue
        for base in bases:
            path = Path(os.path.normpath(base / _expand(token)))
            for place in dict.fromkeys((path, Path(os.path.realpath(path)))):
                root = next((root for root in roots if place.is_relative_to(root)), None)
                if root is not None:
                    is_script = program or is_code(place) or (script and place.is_file())
                    runs |= _add_path(found, place, roots, root, runs=is_script, folders=folders)
    return runs


def _add_path(
    found: Programs, place: Path, roots: Sequence[Path], root: Path, *, runs: bool, folders: bool
) -> bool:
    below = [up for up in (place, *place.parents) if up != root and up.is_relative_to(root)]
    if made := [up for up in below if up.name in MADE]:
        found.folders[made[-1]] = None  # A program of an environment can import all of it.
        return runs
    if place.is_dir():
        if folders:
            found.code[place] = None
        return folders and place not in roots
    if not runs:
        found.named[place] = None
        return False
    found.files[place] = None
    # A script can import the files next to it.
    beside = found.code if place.parent in roots else found.folders
    beside[place.parent] = None
    return True


def _read_regular(file: Path, most: int = _LARGEST) -> bytes:
    """Return the start of a regular file. Raise OSError for other files: reading a pipe or device could
    block."""
    with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        return opened.read(most)


def _stem(word: str) -> str:
    """`/usr/bin/python3.11` → `python`"""
    name = re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe")
    return re.sub(r"[\d.]+$", "", name)


def _expand(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def _values(value: object) -> list[str]:
    return [str(one) for one in value.values()] if isinstance(value, dict) else []


# ── code ──────────────────────────────────────────────────────────────────────────────────────────


def is_code(path: Path) -> bool:
    """Return whether it is code, by name. For existing files, check the executable bit and `#!` too."""
    if path.suffix.lower() in CODE_SUFFIXES or path.name in CODE_NAMES:
        return True
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return False
        if mode & 0o111 and os.name != "nt":
            return True
        if path.suffix:
            return False
        return _read_regular(path, 2) == b"#!"
    except (OSError, ValueError):
        return False


def code_below(folder: Path, within: Path) -> tuple[list[Path], list[Path]]:
    """Return the code files of a folder, and its folders of installed packages, which are too large to read.

    Version control and caches are skipped. Links are followed as long as they stay `within`. Raise
    OverflowError for too many files.
    """
    made: list[Path] = []
    return [path for path in _walk(folder, within, made) if is_code(path)], made


def fingerprint(folder: Path, within: Path) -> str:
    """Hash the names, sizes, times and modes of the code below, or of all files of installed packages.

    This serves folders with too much content to read.
    """
    digest = sha256()
    for path in _walk(folder, within) if folder.name in MADE else code_below(folder, within)[0]:
        try:
            found = path.stat()
        except OSError:
            continue
        name = os.fsencode(path.relative_to(folder))
        digest.update(b"%s\0%d %d %o\n" % (name, found.st_size, found.st_mtime_ns, found.st_mode))
    return digest.hexdigest()


def _walk(folder: Path, within: Path, made: list[Path] | None = None) -> Iterator[Path]:
    """Yield files below in order, each folder once. Package folders go to `made`, if it is given."""
    count, seen = 0, {os.path.realpath(folder)}
    skipped = VERSION_CONTROL | _CACHES if made is None else VERSION_CONTROL | _CACHES | MADE
    for above, folders, names in os.walk(folder, followlinks=True):
        if made is not None:
            made += [Path(above, name) for name in sorted(folders) if name in MADE - _CACHES]
        kept = []
        for name in sorted(folders):
            real = Path(os.path.realpath(Path(above, name)))
            if name not in skipped and str(real) not in seen and real.is_relative_to(within):
                seen.add(str(real))
                kept.append(name)
        folders[:] = kept
        count += len(names) + len(folders)
        if count > _MOST:
            raise OverflowError(f"'{folder}' has more than {_MOST:,} files")
        yield from (Path(above, name) for name in sorted(names))
