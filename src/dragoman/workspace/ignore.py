"""Decide which files are not scanned: by the project's `.gitignore` and `.ignore` files, and by default."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.errors import ToolFailed
from dragoman.workspace.folder import BESIDE, OpenFolder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


IGNORE_FILES = (".gitignore", ".ignore")  # the later one wins
# never ours to touch, even if an ignore file includes it
VERSION_CONTROL = frozenset((".git", ".hg", ".svn", ".jj"))
# Folders with content that tools generate: left out unless an ignore file includes them.
MADE = frozenset(("node_modules", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"))
_LONGEST = 1_000_000  # bytes of an ignore file


@dataclass(slots=True, frozen=True)
class IgnoreRules:
    """The rules for one folder: those of the folders above, then its own. The last match wins."""

    chain: tuple[tuple[int, GitIgnoreSpec], ...]  # the length of the path above the file, and its rules

    def same_as(self, other: IgnoreRules | None) -> bool:
        """Return whether both were read from the same texts, so that they ignore the same files."""
        if self is other:
            return True
        if other is None or len(self.chain) != len(other.chain):
            return False
        return all(one[1] is two[1] for one, two in zip(self.chain, other.chain, strict=True))

    def ignored(self, path: str, folder: bool) -> bool:
        name = path.rpartition("/")[2]
        if name in VERSION_CONTROL or name.startswith(BESIDE):
            return True
        shown = f"{path}/" if folder else path
        for length, spec in reversed(self.chain):
            verdict = spec.check_file(shown[length:]).include
            if verdict is not None:
                return verdict
        return folder and name in MADE


@dataclass(slots=True)
class IgnoreReader:
    """Reads the rules of folders on the way down. An unchanged file is not parsed again.

    With `earlier`, that reader's rules apply in the folders it has seen. A turn's changes to an ignore file
    must not hide its own work, nor make old files look new (B4).
    """

    earlier: IgnoreReader | None = None
    parsed: dict[bytes, GitIgnoreSpec] = field(default_factory=dict)  # shared by the scans of one folder
    by_folder: dict[str, IgnoreRules] = field(default_factory=dict)
    outdated: bool = False  # whether an ignore file has changed since the earlier reader
    walk: object = field(default_factory=object)  # the same for all readers that continue from one whole walk
    whole: bool = False  # whether it has seen every folder
    unlisted: bool = False  # whether folders that are not in `by_folder` were seen, and had no ignore file

    def dump(self) -> str:
        """Return a text from which `load_rules` makes a reader in another process."""
        texts = {id(spec): text.decode("latin-1") for text, spec in self.parsed.items()}
        own = {
            path: [texts[id(spec)] for length, spec in rules.chain if length == len(path)]
            for path, rules in self.by_folder.items()
        }
        whole = self.whole or self.unlisted
        listed = {path: one for path, one in own.items() if one or not whole or not path}
        return json.dumps({"whole": whole, "own": listed})

    def held(self, path: str, above: IgnoreRules) -> IgnoreRules | None:
        """Return a folder's rules from the time it was seen. None if it was not seen."""
        return self.by_folder.get(path, above if self.unlisted else None)

    def add(self, other: IgnoreReader) -> None:
        """Add the folders that another reader has seen and this one has not."""
        for path, rules in other.by_folder.items():
            self.by_folder.setdefault(path, rules)

    def root(self, folder: OpenFolder, names: Collection[str]) -> IgnoreRules:
        text = _read_exclude(folder) if ".git" in names else None
        chain = ((0, self._spec(text)),) if text is not None else ()
        return self._within(folder, "", names, IgnoreRules(chain))

    def below(self, above: IgnoreRules, folder: OpenFolder, path: str, names: Collection[str]) -> IgnoreRules:
        """Return the rules in a folder. `path` ends with a slash."""
        return self._within(folder, path, names, above)

    def _within(
        self, folder: OpenFolder, path: str, names: Collection[str], above: IgnoreRules
    ) -> IgnoreRules:
        rules = above
        for name in IGNORE_FILES:
            if name in names and (text := _read(folder, name)) is not None:
                rules = IgnoreRules((*rules.chain, (len(path), self._spec(text))))
        if self.earlier is not None and (held := self.earlier.held(path, above)) is not None:
            self.outdated = self.outdated or not rules.same_as(held)
            rules = held
        self.by_folder[path] = rules
        return rules

    def _spec(self, text: bytes) -> GitIgnoreSpec:
        if text not in self.parsed:
            self.parsed[text] = _parse(text)
        return self.parsed[text]


def load_rules(text: str, parsed: dict[bytes, GitIgnoreSpec]) -> IgnoreReader:
    """Return the reader that `dump` wrote."""
    told = json.loads(text)
    reader = IgnoreReader(parsed=parsed, unlisted=told["whole"])
    for path, texts in sorted(told["own"].items()):  # a folder before those in it
        above = next(
            (reader.by_folder[one] for one in _folders_above(path) if one in reader.by_folder),
            IgnoreRules(()),
        )
        own = tuple((len(path), reader._spec(one.encode("latin-1"))) for one in texts)
        reader.by_folder[path] = IgnoreRules((*above.chain, *own))
    return reader


def _folders_above(path: str) -> Iterator[str]:
    """Yield `a/b/`, `a/` and the root for `a/b/c/`."""
    steps = path.rstrip("/").split("/") if path else []
    for end in range(len(steps) - 1, -1, -1):
        yield "".join(f"{step}/" for step in steps[:end])


def _parse(text: bytes) -> GitIgnoreSpec:
    lines = text.decode(errors="replace").splitlines()
    try:
        return _spec_of(lines)
    except ValueError:  # One invalid line must not invalidate the others.
        return _spec_of([line for line in lines if _understood(line)])


def _understood(line: str) -> bool:
    try:
        _spec_of([line])
    except ValueError:
        return False
    return True


def _spec_of(lines: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    from dragoman.workspace.ignore_patterns import IgnorePattern

    return GitIgnoreSpec.from_lines(lines, IgnorePattern, backend="simple")


def _read(folder: OpenFolder, name: str) -> bytes | None:
    try:
        return folder.read(name, _LONGEST)
    except (OSError, ToolFailed):
        return None


def _read_exclude(folder: OpenFolder) -> bytes | None:
    """Return the ignore file for this clone only."""
    opened: list[OpenFolder] = []
    try:
        for step in (".git", "info"):
            opened.append((opened[-1] if opened else folder).below(step))
        return _read(opened[-1], "exclude")
    except OSError:
        return None
    finally:
        for one in opened:
            one.close()
