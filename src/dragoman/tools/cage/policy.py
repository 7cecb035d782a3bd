"""Define what a cage allows: its settings, the rules that open it, and the paths that it protects."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeAlias

from dragoman.messages.questions import Rule
from dragoman.sentences import sentence
from dragoman.tools.permissions import is_protected, literal, matches
from dragoman.visible_text import visible
from dragoman.workspace.ignore import MADE

Use: TypeAlias = Literal["auto", "always", "off"]
WRITE, READ, NET, OUTSIDE = "cage.write", "cage.read", "cage.net", "cage.outside"
PERMISSIONS = frozenset((WRITE, READ, NET, OUTSIDE))
"""Permissions of rules that open the cage. A rule on everything does not include these."""


@dataclass(slots=True, frozen=True)
class CageSettings:
    """Settings of the cage.

    `auto`: use a cage if one works. `always`: run nothing without one. `unasked`: whether caged calls run
    without an approval request. `env`: variables passed on in addition to the usual ones. `watch`: whether to
    report exactly what the cage refuses, which costs each command some milliseconds.
    """

    use: Use = "auto"
    unasked: bool = False
    env: tuple[str, ...] = ()
    watch: bool = True


_WILD = r"(?<!\[)[*?]|[*?](?!\])"  # `[*]` and `[?]` are the characters themselves
_BY_DEFAULT = CageSettings()
CAGE_OFF = CageSettings("off")


@dataclass(slots=True, frozen=True)
class Cage:
    """The part of the permit that says how the programs of one call are confined."""

    workspace: Path
    settings: CageSettings = _BY_DEFAULT
    # of the workspace: what no tool writes, or reads, without an approval request
    bounds: tuple[Rule, ...] = ()
    missing: str = ""  # why no cage works here
    doubt: str = ""  # why the user is asked first although a cage works
    rules: tuple[Rule, ...] = ()  # rules that open it, and close it again: the last match wins

    @property
    def runs_unasked(self) -> bool:
        return self.settings.unasked and not self.missing and not self.doubt

    def opened(self, permission: str) -> list[Path]:
        """Return existing paths outside the workspace that rules make visible or writable.

        A link on the way is not followed: anyone who can write there could make one.
        """
        found = []
        for place, rule in enumerate(self.rules):
            base = _base(rule.pattern) if rule.permission == permission and rule.action == "allow" else None
            path = _expanded(base or "")
            if (
                path.is_absolute()
                and path.exists()
                and ".." not in path.parts
                and not _is_too_wide(path)
                and _below(path, Path.home()) == Path(os.path.realpath(path))
                and not self._is_closed(permission, path, place)
            ):
                found.append(path)
        return found

    def opens(self, rule: Rule) -> bool:
        """Return whether no denial keeps a rule of this cage from opening what it names."""
        base = _base(rule.pattern) if rule.permission in (READ, WRITE) else None
        if base is None:
            return True
        path = Path(os.path.normpath(self.workspace / _expanded(base)))
        return not self._is_closed(rule.permission, path, self.rules.index(rule))

    def may_write(self, within: str) -> bool:
        """Return whether rules open a protected path of the workspace."""
        for place, rule in enumerate(self.rules):
            base = _base(rule.pattern) if rule.permission == WRITE and rule.action == "allow" else None
            covers = base is not None and (base == within or within.startswith(f"{base}/"))
            if covers and not self._is_closed(WRITE, self.workspace / within, place):
                return True
        return False

    def _is_closed(self, permission: str, path: Path, since: int) -> bool:
        """Return whether a later rule denies a path or asks about it, or about anything that may be below it.

        A missing path or a pattern below it cannot be mounted separately, so it closes the whole path.
        """
        for rule in self.rules[since:]:
            if rule.action != "allow" and matches(rule.permission, permission):
                start, *rest = re.split(r"[*?\[]", rule.pattern, maxsplit=1)
                denied = os.path.normpath(self.workspace / _expanded(start)) if start else "/"
                if Path(denied).is_relative_to(path) or path.is_relative_to(denied):
                    return True
                if rest and not start.endswith("/") and str(path).startswith(denied):
                    return True
        return False


@dataclass(slots=True, frozen=True)
class Refusal:
    """Something that the cage refused, and the rule that would allow it."""

    kind: Literal["write", "lost", "net", "held", "stays"]
    what: str
    rule: Rule | None  # None: no rule would allow it, but it is possible outside the cage

    @property
    def asks(self) -> str:
        """The refusal as a call names it in `beyond`."""
        return f"{self.rule.permission}:{self.rule.pattern}" if self.rule is not None else "cage.outside"

    def __str__(self) -> str:
        what, rule = visible(self.what), visible(self.asks)
        match self.kind:
            case "net":
                return sentence("cage.refused_net", what=what, rule=rule)
            case "write":
                return sentence("cage.refused_write", what=what, rule=rule)
            case "lost":
                return sentence("cage.refused_lost", what=what, rule=rule)
            case "stays":
                return sentence("cage.refused_stays", what=what)
            case "held":
                return sentence("cage.refused_held", what=what, rule=rule)


def beyond_of(words: Iterable[str], line: Sequence[str]) -> list[Rule]:
    """Return the rules that a call requests: `write:~/.cargo/*`, `net:example.org`, or `outside` for its
    line."""
    rules = []
    for word in words:
        kind, _, pattern = word.removeprefix("cage.").partition(":")
        if kind == "outside":
            rules += [Rule(OUTSIDE, one, "allow") for one in line]
        elif f"cage.{kind}" in PERMISSIONS and pattern:
            rules.append(Rule(f"cage.{kind}", pattern, "allow"))
    return rules


def settle_beyond(cage: Cage, rules: Iterable[Rule]) -> tuple[list[Rule], str]:
    """Return the rules that a call requests, as what they really open, and why one cannot be opened
    at all."""
    settled: list[Rule] = []
    for rule in rules:
        word = f"{rule.permission}:{rule.pattern}"
        base = _base(rule.pattern)
        if rule.permission != OUTSIDE and base is None:
            return [], sentence("cage.not_one", asked=word)
        if rule.permission in (READ, WRITE) and base is not None:
            try:
                opening = opening_of(cage, base, rule.permission)
            except ValueError as error:
                return [], str(error)
            settled += [opening] if opening is not None and opening not in settled else []
        else:
            settled.append(rule)
    return settled, ""


def opening_of(cage: Cage, base: str, permission: str = WRITE) -> Rule | None:
    """Return the rule that opens a path: the target of its links, or the folder in which it would be made.

    None if nothing closes the path. Raises ValueError if no rule can open it.
    """
    path = Path(os.path.realpath(cage.workspace / _expanded(base)))
    if path.is_relative_to(cage.workspace):
        closed = _protected_above(path.relative_to(cage.workspace).as_posix(), cage.bounds)
        return Rule(WRITE, f"{literal(closed)}/*", "allow") if closed and permission == WRITE else None
    there = path
    while not os.access(there, os.F_OK) and permission == WRITE:
        there = there.parent
    if not os.access(there, os.F_OK) or (there != path and _is_too_wide(there)):
        raise ValueError(sentence("cage.not_there", path=visible(str(path))))
    if _is_too_wide(there):
        raise ValueError(sentence("cage.too_wide", path=visible(str(path))))
    home = Path(os.path.realpath(Path.home()))
    text = f"~/{there.relative_to(home)}" if there.is_relative_to(home) else str(there)
    return Rule(permission, literal(text) + ("/*" if there.is_dir() else ""), "allow")


def _is_too_wide(path: Path) -> bool:
    """Return whether a path contains more than an opened folder should: all of home, processes, or
    devices."""
    kernels = any(path.is_relative_to(one) for one in ("/proc", "/sys", "/dev"))
    home = Path(os.path.realpath(Path.home()))
    return (kernels and not path.is_relative_to("/dev/shm")) or home.is_relative_to(path)


def host_patterns(host: str, port: int) -> tuple[str, str]:
    """Return the patterns of rules on `cage.net`: one port of a host, or all."""
    return f"{host}:{port}", host


def path_patterns(pattern: str) -> tuple[str, ...]:
    """Return a path pattern with and without `~`, and a folder also by its name alone."""
    full = literal(str(Path.home())) + pattern[1:] if pattern.startswith("~/") else pattern
    return tuple(dict.fromkeys(name for one in (pattern, full) for name in (one, one.removesuffix("/*"))))


def _base(pattern: str) -> str | None:
    """Return `~/.cargo` for `~/.cargo/*`. None if other wildcards remain: a pattern cannot be mounted."""
    base = pattern.removesuffix("/*").rstrip("/") or "/"
    return None if re.search(_WILD, base) else re.sub(r"\[([*?])\]", r"\1", base)


def _expanded(text: str) -> Path:
    """Expand `~` to home. Another user's home is not ours."""
    return Path.home() / text[2:] if text == "~" or text.startswith("~/") else Path(text)


def _below(path: Path, home: Path) -> Path:
    """Resolve home, which may itself be a link."""
    return Path(os.path.realpath(home)) / path.relative_to(home) if path.is_relative_to(home) else path


# ── paths that stay read-only ─────────────────────────────────────────────────────────────────────
# Existing entries are mounted read-only. A missing entry cannot be: an empty file would be left on the host.
# So its name is searched for before and after a call, and a new entry is held back until the user allows it.

Identity: TypeAlias = tuple[str, str]  # the kind of entry, and its identity (for a link, its target)

HELD = ".dragoman-held"  # This folder is protected itself, so nothing in it is scanned again.
_NAME = 200  # bytes of a name that are kept for a held entry
_MOST = 100_000  # maximum number of folders scanned
_SETTLED = 0.1  # seconds after which a change of a folder is visible in its ctime
# Below the top level, these names are too common. Dragoman loads nothing from there without trust.
_ONLY_AT_TOP = frozenset(("tools", "plugins", "skills"))


@dataclass(slots=True)
class _Listing:
    stamp: tuple[int, int, int]
    names: tuple[str, ...]
    folders: tuple[str, ...]


_listings: dict[str, _Listing] = {}


@dataclass(slots=True)
class Protected:
    """Existing protected paths of a workspace, relative to it, and those of them that are links."""

    entries: dict[str, Identity] = field(default_factory=dict)
    whole: bool = False  # everything in it is protected

    @property
    def links(self) -> list[str]:
        return [path for path, (kind, _) in self.entries.items() if kind == "link"]

    def new_since(self, before: Protected) -> list[str]:
        """Return entries that are new or replaced. For a new folder, return only the folder."""
        new = [path for path, identity in self.entries.items() if before.entries.get(path) != identity]
        return [path for path in new if not any(path.startswith(f"{other}/") for other in new)]


def find_protected(workspace: Path, bounds: Sequence[Rule], *, after: bool = False) -> Protected:
    """Find protected paths by name, anywhere in the workspace, and by the settings that name programs.

    Raises OverflowError if there are too many folders to scan. With `after` a call, its new entries are never
    too many, and a closed folder is opened.
    """
    found = Protected()
    for within in _named(workspace, after=after):
        found.entries[within] = _identity(workspace / within)
    for within, _ in _paths(bounds, "files.write", ("ask", "deny")):
        if within in ("", "."):
            found.whole = True
            continue
        steps = within.split("/")
        for end in range(1, len(steps) + 1):
            path = "/".join(steps[:end])
            identity = _identity(workspace / path)
            if identity[0] == "none":
                break
            if identity[0] == "link" or end == len(steps):
                found.entries[path] = identity
                break
    return found


def find_hidden(workspace: Path, bounds: Sequence[Rule]) -> list[Path]:
    """Return the paths in the workspace that no tool may read: the store, keys."""
    found: list[Path] = []
    for within, prefix in _paths(bounds, "files.read", ("deny",)):
        path = workspace / within
        if prefix and path.parent.is_dir():
            found += [one for one in path.parent.iterdir() if one.name.startswith(path.name)]
        elif path.exists() and path != workspace:
            found.append(path)
    return found


def hold_back(workspace: Path, within: str, before: Protected) -> str:
    """Move a new entry out of its protected place, where it would run later. Return its new path.

    A link that was there before is restored.
    """
    with ExitStack() as opened:
        top, folder, name = _open_above(opened, workspace, within)
        # Keep the end of a long name, so that the new name is not too long for the file system.
        aside = f"{token_hex(4)}-{os.fsencode(name)[-_NAME:].decode(errors='replace')}"
        if within == HELD:  # The command made an entry at the holding folder's path.
            os.rename(name, aside, src_dir_fd=top, dst_dir_fd=top)
            name = aside
        with suppress(FileExistsError):
            os.mkdir(HELD, 0o700, dir_fd=top)
        held = _open_folder(HELD, top)
        opened.callback(os.close, held)
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=held)
        kind, target = before.entries.get(within, ("none", ""))
        if kind == "link":
            os.symlink(target, name, dir_fd=folder)
    return f"{HELD}/{aside}"


def put_back(workspace: Path, held: str, within: str) -> None:
    """Move an allowed entry to its place and nowhere else, even if a command has made a link meanwhile."""
    with ExitStack() as opened:
        _, source, aside = _open_above(opened, workspace, held)
        _, folder, name = _open_above(opened, workspace, within)
        os.rename(aside, name, src_dir_fd=source, dst_dir_fd=folder)


def _open_above(opened: ExitStack, workspace: Path, within: str) -> tuple[int, int, str]:
    """Return the workspace, the folder of a path in it, and the name there.

    Each step goes through a descriptor, so no link is followed. Only two are open at a time, so no path is
    too deep.
    """
    *above, name = within.split("/")
    top = _open_folder(workspace)
    opened.callback(os.close, top)
    folder = os.dup(top)
    for step in above:
        try:
            below = _open_folder(step, folder)
        finally:
            os.close(folder)
        folder = below
    opened.callback(os.close, folder)
    return top, folder, name


def _open_folder(path: Path | str, above: int | None = None) -> int:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    mode = os.fstat(folder).st_mode
    if mode & 0o700 != 0o700:
        os.fchmod(folder, mode | 0o700)  # A command may have closed it.
    return folder


def _paths(bounds: Sequence[Rule], permission: str, actions: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """For each rule that names one path, or everything below one, yield the path and whether it is a name
    prefix."""
    for rule in bounds:
        if rule.permission == permission and rule.action in actions:
            base = rule.pattern.removesuffix("/*")
            prefix = base == rule.pattern and base.endswith("*") and base != "*"
            base = "" if base == "*" else base[:-1] if prefix else base
            if not re.search(_WILD, base):
                yield re.sub(r"\[([*?])\]", r"\1", base), prefix


def _protected_above(within: str, bounds: Sequence[Rule]) -> str | None:
    """Return the protected path that is or contains this one, even if it does not exist yet."""
    started = {path for path, _ in _paths(bounds, "files.write", ("ask", "deny"))}
    steps = within.split("/")
    for place, name in enumerate(steps):
        path = "/".join(steps[: place + 1])
        common = place > 0 and name.casefold() in _ONLY_AT_TOP
        if path in started or (not common and is_protected(name)):
            return path
    return None


def _named(workspace: Path, *, after: bool) -> Iterator[str]:
    """Yield entries with a name that programs execute or obey.

    Folders of installed packages are left out: no cage can contain what the user runs from there.
    """
    waiting = [""]
    seen = 0
    while waiting:
        within = waiting.pop()
        seen += 1
        if seen > _MOST and not after:
            raise OverflowError(f"{workspace} has more than {_MOST:,} folders")
        folder = workspace / within if within else workspace
        try:
            if after and not os.access(folder, os.R_OK | os.X_OK):
                # the folder is ours, and was closed to hide its content
                folder.chmod(folder.lstat().st_mode | 0o500)
            listing = _list(folder, top=not within)
        except OSError:
            continue  # missing, or another user's
        below = f"{within}/" if within else ""
        yield from (below + name for name in listing.names)
        waiting += [below + name for name in listing.folders]


def _list(folder: Path, *, top: bool) -> _Listing:
    """List a folder again only if an entry was added, removed or renamed: its ctime cannot be forged."""
    status = folder.lstat()
    stamp = (status.st_ctime_ns, status.st_ino, status.st_dev)
    known = _listings.get(str(folder))
    if known is not None and known.stamp == stamp:
        return known
    names, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            common = not top and entry.name.casefold() in _ONLY_AT_TOP
            if not common and is_protected(entry.name):
                names.append(entry.name)
            elif entry.name not in MADE and entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    listing = _Listing(stamp, tuple(sorted(names)), tuple(folders))
    if time.time() - status.st_ctime > _SETTLED:
        if len(_listings) > 2 * _MOST:
            _listings.clear()
        _listings[str(folder)] = listing
    return listing


def _identity(path: Path) -> Identity:
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return "link", str(path.readlink())
    except (OSError, ValueError):
        return "none", ""
    return "folder" if stat.S_ISDIR(status.st_mode) else "file", f"{status.st_dev}:{status.st_ino}"
