"""Finds the files with settings, and leaves out a folder's own files until the user trusts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from dragoman.config.trust.answers import FILE as TRUST_FILE
from dragoman.config.trust.answers import TrustAnswers
from dragoman.config.trust.contents import (
    CODE,
    SETTINGS,
    SKILLS,
    FolderContents,
    expand,
    hash_of,
    inspect_paths,
    inspect_project,
)
from dragoman.errors import ConfigError
from dragoman.providers.catalog import Catalog, load_catalog
from dragoman.stored_keys import data_folder, user_folder

Decide: TypeAlias = Callable[[FolderContents], bool]


@dataclass(slots=True, frozen=True)
class LeftOut:
    """A folder whose content is not used, with the reason."""

    contents: FolderContents
    reason: str


@dataclass(slots=True)
class Sources:
    """The sources of settings. `accepted` has the hash of each usable file of a folder."""

    start: Path = field(default_factory=Path.cwd)  # the current folder
    files: tuple[Path, ...] = ()  # the farthest first
    project: Path | None = None  # the file among them that came with a folder
    named: Path | None = None  # the file, if the user named one that is not their own
    folders: set[Path] = field(default_factory=set)  # trusted folders
    accepted: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    def accepts(self, file: Path, data: bytes) -> bool:
        """Return whether these bytes of a folder's file are the trusted ones."""
        return self.accepted.get(os.path.realpath(file)) == hash_of(data)

    def check(self, file: Path, data: bytes) -> None:
        """Raise ConfigError if a file that is read again differs from the trusted one.

        Next to an explicit file, some files may never have been inspected, such as pipes.
        """
        known = self.accepted.get(os.path.realpath(file))
        if known != hash_of(data) and not (known is None and self.named is not None):
            raise ConfigError(f"{file} changed after its review. Start again.")

    def consider(self, contents: FolderContents, decide: Decide) -> bool:
        """Return whether the active content of a folder may be used.

        Content that other users can write is always refused, whatever the user decides.
        """
        if contents.unsafe is None and contents.paths().items() <= self.accepted.items():
            return True  # The folder has no content, or only trusted content.
        if contents.unsafe is None and not self._is_refused(contents.folder) and decide(contents):
            self.folders.add(contents.folder)
            self.accepted |= contents.paths()
            return True
        if contents.folder not in (one.contents.folder for one in self.left_out):
            self.left_out.append(LeftOut(contents, contents.unsafe or "it is not trusted"))
        return False

    def _is_refused(self, folder: Path) -> bool:
        """Return whether the folder is part of one that the user has just refused, to avoid asking again."""
        turned_down = (one.contents.folder for one in self.left_out if one.contents.unsafe is None)
        return any(folder.is_relative_to(one) for one in turned_down)


def find_sources(named: Path | None, start: Path, decide: Decide) -> Sources:
    """Return the user's own file and, if its folder is trusted, the nearest one upwards. An explicit file
    replaces both.

    Naming a file accepts it, together with the content next to it.
    """
    sources = Sources(start)
    if named is not None:
        sources.files = (named,)
        sources.named = named if named != user_file() else None
        if named.is_file():
            beside = inspect_project(named.parent, named.name)
            if beside.unsafe is None or beside.folder == Path(os.path.realpath(user_folder())):
                sources.folders.add(beside.folder)
                sources.accepted |= beside.paths()
            elif any((beside.folder / name).exists() for name in (*CODE, *SKILLS)):
                sources.left_out.append(LeftOut(beside, beside.unsafe))
        return sources
    own, near = user_file(), find_project_file(start)
    sources.files = (own,) if own.is_file() else ()
    if near is not None and sources.consider(inspect_project(near.parent), decide):
        sources.files, sources.project = (*sources.files, near), near
    return sources


def consider_paths(
    sources: Sources, folder: Path, paths: Iterable[Path], decide: Decide, *, mcp_file: Path | None = None
) -> bool:
    """Return whether these paths of a folder may be used, which act there without settings."""
    return sources.consider(inspect_paths(folder, paths, mcp_file), decide)


def find_project_file(start: Path) -> Path | None:
    """Return the nearest settings file upwards that is not the user's own."""
    folder = Path(os.path.realpath(start))
    upwards = (above / SETTINGS for above in (folder, *folder.parents))
    near = next((file for file in upwards if file.is_file()), None)
    return None if near is not None and _is_same(near, user_file()) else near


def find_files(start: Path) -> list[Path]:
    """Return the user's file and the nearest one upwards, if they exist, trusted or not."""
    near = find_project_file(start)
    return [file for file in (user_file(), near) if file is not None and file.is_file()]


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


def trust_answers() -> TrustAnswers:
    return TrustAnswers(data_folder() / TRUST_FILE)


def decide_from_memory(environment: Mapping[str, str]) -> Decide:
    """Return a decision by earlier answers or DRAGOMAN_TRUST, without asking."""

    def decide(contents: FolderContents) -> bool:
        if is_named_trusted(contents.folder, environment):
            return True
        answer = trust_answers().find(contents.folder)
        return answer is not None and answer.trusted and answer.covers(contents)

    return decide


def is_named_trusted(folder: Path, environment: Mapping[str, str]) -> bool:
    """Return whether DRAGOMAN_TRUST, a list like PATH, names this folder."""
    named = environment.get("DRAGOMAN_TRUST", "").split(os.pathsep)
    return any(os.path.realpath(expand(one)) == str(folder) for one in named if one)


# ── the user's folders ────────────────────────────────────────────────────────────────────────────


def user_file() -> Path:
    return user_folder() / SETTINGS


# ── the providers there are ───────────────────────────────────────────────────────────────────────


_UNUSED = "The nearest dragoman.toml is not used, since its folder is not trusted: see `dragoman trust`"


def catalog_from(files: Sequence[Path], check: Callable[[Path, bytes], None]) -> Catalog:
    """Load the catalog. Only the user's own file can change an address together with its key.

    Users may not have read every line of another file, even one that they named.
    """
    own = [file for file in files if file == user_file()]
    others = [file for file in files if file != user_file()]
    return load_catalog(*own, project=others[-1] if others else None, check=check)


def catalog_here() -> Catalog:
    """Return the catalog for this folder without asking. Content of untrusted folders is left out (P11)."""
    named = os.environ.get("DRAGOMAN_CONFIG")
    sources = find_sources(Path(named) if named else None, Path.cwd(), decide_from_memory(os.environ))
    catalog = catalog_from(sources.files, sources.check)
    if any(SETTINGS in one.contents.files for one in sources.left_out):
        return replace(catalog, unused=_UNUSED)
    return catalog
