"""Finds the files that settings come from, and leaves out a folder's own until the person has trusted it."""

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
    """A folder whose things are not used, and why."""

    contents: FolderContents
    reason: str


@dataclass(slots=True)
class Sources:
    """Where settings come from. `accepted` has the hash of each file of a folder that may be used."""

    start: Path = field(default_factory=Path.cwd)  # where we are
    files: tuple[Path, ...] = ()  # the farther first
    project: Path | None = None  # the file among them that came with a folder
    named: Path | None = None  # the file, if the person named one that is not their own
    folders: set[Path] = field(default_factory=set)  # that are trusted
    accepted: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    def accepts(self, file: Path, data: bytes) -> bool:
        """Whether these bytes of a folder's file are those that were trusted."""
        return self.accepted.get(os.path.realpath(file)) == hash_of(data)

    def check(self, file: Path, data: bytes) -> None:
        """ConfigError where a file that is read once more is not the one that was trusted.

        Beside a file that the person named there may be some that were never looked at, such as a pipe.
        """
        known = self.accepted.get(os.path.realpath(file))
        if known != hash_of(data) and not (known is None and self.named is not None):
            raise ConfigError(f"{file} changed after its review. Start again.")

    def consider(self, contents: FolderContents, decide: Decide) -> bool:
        """Whether what would act in a folder may. What others can write may not, whatever anybody says."""
        if contents.unsafe is None and contents.paths().items() <= self.accepted.items():
            return True  # nothing, or nothing more than was trusted already
        if contents.unsafe is None and not self._is_refused(contents.folder) and decide(contents):
            self.folders.add(contents.folder)
            self.accepted |= contents.paths()
            return True
        if contents.folder not in (one.contents.folder for one in self.left_out):
            self.left_out.append(LeftOut(contents, contents.unsafe or "it is not trusted"))
        return False

    def _is_refused(self, folder: Path) -> bool:
        """Nobody is asked about a part of what they have just turned down."""
        turned_down = (one.contents.folder for one in self.left_out if one.contents.unsafe is None)
        return any(folder.is_relative_to(one) for one in turned_down)


def find_sources(named: Path | None, start: Path, decide: Decide) -> Sources:
    """The person's own file, and the nearest upwards if its folder is trusted; or the one that is named.

    Who names a file has chosen it, with what lies beside it.
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
    """Whether these things of a folder may be used: what acts there without settings of its own."""
    return sources.consider(inspect_paths(folder, paths, mcp_file), decide)


def find_project_file(start: Path) -> Path | None:
    """The nearest settings file upwards that is not the person's own."""
    folder = Path(os.path.realpath(start))
    upwards = (above / SETTINGS for above in (folder, *folder.parents))
    near = next((file for file in upwards if file.is_file()), None)
    return None if near is not None and _is_same(near, user_file()) else near


def find_files(start: Path) -> list[Path]:
    """The user's file and the nearest one upwards from here, as far as there are any, trusted or not."""
    near = find_project_file(start)
    return [file for file in (user_file(), near) if file is not None and file.is_file()]


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


# ── what was decided ──────────────────────────────────────────────────────────────────────────────


def trust_answers() -> TrustAnswers:
    return TrustAnswers(data_folder() / TRUST_FILE)


def decide_from_memory(environment: Mapping[str, str]) -> Decide:
    """As the person decided earlier, or says in DRAGOMAN_TRUST. Nobody is asked."""

    def decide(contents: FolderContents) -> bool:
        if is_named_trusted(contents.folder, environment):
            return True
        answer = trust_answers().find(contents.folder)
        return answer is not None and answer.trusted and answer.covers(contents)

    return decide


def is_named_trusted(folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether DRAGOMAN_TRUST, a list like PATH, names this folder."""
    named = environment.get("DRAGOMAN_TRUST", "").split(os.pathsep)
    return any(os.path.realpath(expand(one)) == str(folder) for one in named if one)


# ── a person's own folders ────────────────────────────────────────────────────────────────────────


def user_file() -> Path:
    return user_folder() / SETTINGS


# ── the providers there are ───────────────────────────────────────────────────────────────────────


_UNUSED = "The nearest dragoman.toml is not used, since its folder is not trusted: see `dragoman trust`"


def catalog_from(files: Sequence[Path], check: Callable[[Path, bytes], None]) -> Catalog:
    """Only the person's own file moves an address together with its key: of another, also of one that they
    named, they may not have read every line."""
    own = [file for file in files if file == user_file()]
    others = [file for file in files if file != user_file()]
    return load_catalog(*own, project=others[-1] if others else None, check=check)


def catalog_here() -> Catalog:
    """As the programs have it in this folder. Nobody is asked: what comes with a folder that was not trusted
    before is left out (P11)."""
    named = os.environ.get("DRAGOMAN_CONFIG")
    sources = find_sources(Path(named) if named else None, Path.cwd(), decide_from_memory(os.environ))
    catalog = catalog_from(sources.files, sources.check)
    if any(SETTINGS in one.contents.files for one in sources.left_out):
        return replace(catalog, unused=_UNUSED)
    return catalog
