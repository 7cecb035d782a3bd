"""Skills: folders with a `SKILL.md`, listed in the system prompt and loaded by a tool."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.sentences import sentence
from dragoman.tools.tool import Tool, tool
from dragoman.tools.toolbox import Group
from dragoman.tools.workspace import inside
from dragoman.tools.yaml_text import load_yaml

NAME = "SKILL.md"
BIGGEST = 200_000  # bytes of one file


@dataclass(slots=True, frozen=True)
class Skill:
    """What one folder teaches. `always`: it stands in the system prompt whole, not as a line of the index."""

    name: str
    description: str
    when: str
    always: bool
    text: str
    folder: Path
    version: str = ""  # another for every other file

    @property
    def line(self) -> str:
        when = f" Use it when: {self.when}" if self.when else ""
        return f"- {self.name}: {self.description}{when}"


class Skills:
    """A source of tools that looks into its folders: a new skill is there for turns that begin after it.

    Where two folders have a skill of the same name, the first counts. `warnings` says what could not be read.
    `accepts` says of a file, by its bytes, whether it may be used: it may be another than a person has seen.
    """

    name = "skills"
    lasts_a_turn: ClassVar[bool] = True

    def __init__(
        self, folders: Sequence[Path], *, accepts: Callable[[Path, bytes], bool] | None = None
    ) -> None:
        self.folders = tuple(folders)
        self._accepts = accepts
        self._looking = threading.Lock()  # an earlier look may not overwrite what a later one found
        self._seen: object = None
        self.skills: dict[str, Skill] = {}
        self.warnings: list[str] = []
        self._group = Group(self.name, ())
        self._look()

    def group(self) -> Group:
        return self._group

    async def ready(self) -> None:
        """Called before each request; a turn keeps what was there at its first."""
        await asyncio.to_thread(self._look)

    async def close(self) -> None:
        pass

    def _look(self) -> None:
        with self._looking:
            files = [file for folder in self.folders for file in _files(folder)]
            if (seen := [mark for file in files if (mark := _mark(file)) is not None]) != self._seen:
                self._load(files)
                self._seen = seen

    def _load(self, files: Sequence[Path]) -> None:
        skills: dict[str, Skill] = {}
        warnings: list[str] = []
        for file in files:
            try:
                skill = parse_skill(_read(file, self._accepts), file.parent.name, file.parent)
            except ValueError as error:
                warnings.append(f"{file}: {error}")
            else:
                skills.setdefault(skill.name, skill)
        self.skills, self.warnings = skills, warnings
        self._group = (
            Group(self.name, (_load_skill(skills, self._accepts),), _rules(skills))
            if skills
            else Group(self.name, ())
        )


def parse_skill(data: bytes, named: str, folder: Path = Path()) -> Skill:
    """What a `SKILL.md` says; `named` is its name where it says none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it cannot be read: {error}") from error
    front, body = _split_front_matter(text)
    name = front.get("name", named)
    if not isinstance(name, str) or not name.strip():
        raise ValueError("its name is no text")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ValueError(sentence("skill.no_description"))
    return Skill(
        name.strip(),
        " ".join(description.split()),
        " ".join(str(front.get("when") or "").split()),
        front.get("always") is True,
        body.strip(),
        folder,
        hashlib.sha256(data).hexdigest(),
    )


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The front matter, between two lines of dashes, and the rest."""
    _, head, _, body = cut_skill(text)
    return read_front_matter(head), body


def cut_skill(text: str) -> tuple[str, str, str, str]:
    """The line of dashes, the front matter, the second line of dashes, and the rest; together, the text."""
    first, _, rest = text.partition("\n")
    if first.strip() != "---":
        raise ValueError("it begins with no front matter: a line of ---, name and description, a line of ---")
    head, found, after = rest.partition("\n---")
    if not found:
        raise ValueError("its front matter has no end: a second line of ---")
    more, end, body = after.partition("\n")
    return f"{first}\n", head, f"\n---{more}{end}", body


def read_front_matter(head: str) -> dict[str, Any]:
    try:
        front = load_yaml(head)
    except ValueError as error:
        raise ValueError(sentence("skill.front_matter", error=error)) from error
    if not isinstance(front, dict):
        raise ValueError("its front matter is no list of names and values")
    return front


def _rules(skills: dict[str, Skill]) -> str:
    whole = [f"# Skill: {skill.name}\n\n{skill.text}" for skill in skills.values() if skill.always]
    lines = [skill.line for skill in skills.values() if not skill.always]
    index = ["Skills that can be loaded with load_skill:\n" + "\n".join(lines)] if lines else []
    return "\n\n".join([*whole, *index])


def _load_skill(skills: dict[str, Skill], accepts: Callable[[Path, bytes], bool] | None) -> Tool:
    @tool(permission="skills", writes="nothing", pattern="name", replay="safe", timeout=20)
    def load_skill(
        name: Annotated[str, Field(description="a skill of the index")],
        file: Annotated[str | None, Field(description="a file that the skill names, if not its text")] = None,
    ) -> str:
        """Read a skill before you do what it is about; or one of the files that belong to it."""
        skill = skills.get(name)
        if skill is None:
            raise ToolFailed(f"there is no skill {name!r}: there are {', '.join(skills)}")
        if file is None:
            return "\n\n".join([skill.text, *_others(skill)])
        try:
            return _read(inside(skill.folder, file), accepts).decode()
        except ValueError as error:  # no text, too big, not accepted
            raise ToolFailed(f"{file} of the skill {name} cannot be read: {error}") from error

    return load_skill


def _others(skill: Skill) -> list[str]:
    """The files that come with it, by name."""
    found = sorted(
        file.relative_to(skill.folder).as_posix() for file in skill.folder.rglob("*") if file.is_file()
    )
    names = [name for name in found if name != NAME][:50]
    return (
        [f"Files of this skill, to be read with load_skill(name, file): {', '.join(names)}"] if names else []
    )


def _read(file: Path, accepts: Callable[[Path, bytes], bool] | None = None) -> bytes:
    """ValueError says why not. A file without end costs no more than another, and nobody waits at a pipe."""
    if file.exists() and not file.is_file():
        raise ValueError("it is no file, but a folder, a pipe or the like")
    try:
        with file.open("rb") as opened:
            data = opened.read(BIGGEST + 1)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error}") from error
    if len(data) > BIGGEST:
        raise ValueError(sentence("skill.too_big", kilobytes=BIGGEST // 1000))
    if accepts is not None and not accepts(file, data):
        raise ValueError("it is new or changed since its folder was trusted: see it with `dragoman trust`")
    return data


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.glob(f"*/{NAME}") if file.is_file())
    except OSError:
        return []


def _mark(file: Path) -> tuple[object, ...] | None:
    """Another one when the file is written; also by whoever puts another in its place in the same moment."""
    try:
        found = file.stat()
    except OSError:
        return None
    return file, found.st_mtime_ns, found.st_size, found.st_ino
