"""Load skills: folders with a `SKILL.md`, listed in the system prompt and read with a tool."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.sentences import sentence
from dragoman.tools.tool import Tool, tool
from dragoman.tools.toolbox import Group, open_to
from dragoman.tools.workspace import inside

# Load untrusted YAML: of limited size and depth, and without aliases, which could grow without limit.


LARGEST = 16_000  # characters
DEEPEST = 10
MOST_NODES = 2_000
MOST_BRACKETS = 200  # The scanner takes quadratic time to find that they are not closed.
# 1:1:1:… is a base-60 number, and has no length limit either.
_LONG_NUMBER = re.compile(r"[-+]?[0-9a-fA-Fox_:.]{30,}")


def load_yaml(text: str) -> Any:
    """Return the value of the text.

    ValueError begins with a verb: "is not valid YAML: …", "uses an alias …".
    """
    import yaml

    if len(text) > LARGEST:
        raise ValueError(sentence("yaml.too_long", most=LARGEST))
    if sum(map(text.count, "[{")) > MOST_BRACKETS:
        raise ValueError(f"is nested too deeply: more than {MOST_BRACKETS} brackets")
    try:
        fault = _find_fault(text)
        value = None if fault else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # month 99 raises a ValueError
        raise ValueError(f"is not valid YAML: {' '.join(str(error).split())}") from error
    if fault:
        raise ValueError(fault)
    return value


def _find_fault(text: str) -> str | None:
    """Return the first fault, found before any value is built from the text, so that nothing has
    grown yet."""
    import yaml

    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            return f"uses an alias (& or *) in line {line}: write the value out"
        if getattr(event, "tag", None) is not None:
            return f"uses a tag (!) in line {line}: write the value without it"
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
            return f"has too long a number in line {line}"
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST:
            return f"is nested too deeply: more than {DEEPEST} levels"
        if nodes > MOST_NODES:
            return f"has too many values: more than {MOST_NODES}"
    return None


NAME = "SKILL.md"
BIGGEST = 200_000  # bytes of one file


@dataclass(slots=True, frozen=True)
class Skill:
    """The content of one folder. `always`: the whole text is in the system prompt, not only a line of the
    index."""

    name: str
    description: str
    when: str
    always: bool
    text: str
    folder: Path
    version: str = ""  # differs for every file content
    teams: tuple[str, ...] = ()  # that it is for; empty: for everybody

    @property
    def line(self) -> str:
        when = f" Use it when: {self.when}" if self.when else ""
        return f"- {self.name}: {self.description}{when}"


class Skills:
    """A source of tools that reads folders of skills. Turns that begin later see new skills.

    If two folders have a skill of the same name, the first one wins. `warnings` lists what could not be read.
    `accepts` decides by a file's bytes whether it may be used, because it may have changed since a user saw
    it.
    """

    name = "skills"
    lasts_a_turn: ClassVar[bool] = True

    def __init__(
        self, folders: Sequence[Path], *, accepts: Callable[[Path, bytes], bool] | None = None
    ) -> None:
        self.folders = tuple(folders)
        self._accepts = accepts
        self._looking = threading.Lock()  # An earlier scan must not overwrite what a later one found.
        self._seen: object = None
        self.skills: dict[str, Skill] = {}
        self.warnings: list[str] = []
        self._group = Group(self.name, ())
        self._look()

    def group(self) -> Group:
        return self._group

    async def ready(self) -> None:
        """Check for new skills, before each request. A turn keeps the skills of its first request."""
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
        self._group = _group_of(skills, self._accepts)

    @property
    def teams(self) -> Collection[str]:
        return {team for skill in self.skills.values() for team in skill.teams}

    def seen_by(self, teams: Collection[str]) -> Skills:
        return TeamSkills(self, teams)  # also if no skill has teams now: the next one may


class TeamSkills(Skills):
    """The skills that members of these teams see."""

    def __init__(self, whole: Skills, teams: Collection[str]) -> None:
        self.folders, self.warnings = whole.folders, []
        self._accepts = whole._accepts
        self._whole, self._for, self._of = whole, teams, Group(self.name, ())
        self._take()

    async def ready(self) -> None:
        await self._whole.ready()
        self._take()

    def _take(self) -> None:
        if self._of is not self._whole.group():
            self._of, all = self._whole.group(), self._whole.skills
            self.skills = {name: one for name, one in all.items() if open_to(one.teams, self._for)}
            self._group = _group_of(self.skills, self._accepts)


def _group_of(skills: dict[str, Skill], accepts: Callable[[Path, bytes], bool] | None) -> Group:
    name = Skills.name
    return Group(name, (_load_skill(skills, accepts),), _rules(skills)) if skills else Group(name, ())


def parse_skill(data: bytes, named: str, folder: Path = Path()) -> Skill:
    """Parse a `SKILL.md`. `named` is its name if the file sets none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it cannot be read: {error}") from error
    front, body = _split_front_matter(text)
    name = front.get("name", named)
    if not isinstance(name, str) or not name.strip():
        raise ValueError("its name is not a string")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ValueError(sentence("skill.no_description"))
    teams = front.get("teams", [])
    if not isinstance(teams, list) or not all(isinstance(team, str) for team in teams):
        raise ValueError(sentence("skill.teams"))
    return Skill(
        name.strip(),
        " ".join(description.split()),
        " ".join(str(front.get("when") or "").split()),
        front.get("always") is True,
        body.strip(),
        folder,
        hashlib.sha256(data).hexdigest(),
        tuple(teams),
    )


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split off the front matter, which is between two lines of dashes."""
    _, head, _, body = cut_skill(text)
    return read_front_matter(head), body


def cut_skill(text: str) -> tuple[str, str, str, str]:
    """Return the line of dashes, the front matter, the second line of dashes, and the rest; joined,
    the text."""
    first, _, rest = text.partition("\n")
    if first.strip() != "---":
        raise ValueError(
            "it needs front matter at the start: a line of ---, name and description, a line of ---"
        )
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
        raise ValueError("its front matter is not a list of names and values")
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
            raise ToolFailed(f"Unknown skill {name!r}. Choose one of {', '.join(skills)}.")
        if file is None:
            return "\n\n".join([skill.text, *_others(skill)])
        try:
            return _read(inside(skill.folder, file), accepts).decode()
        except ValueError as error:  # not text, too large, not accepted
            raise ToolFailed(f"{file} of the skill {name} cannot be read: {error}") from error

    return load_skill


def _others(skill: Skill) -> list[str]:
    """List the other files of the skill, by name."""
    found = sorted(
        file.relative_to(skill.folder).as_posix() for file in skill.folder.rglob("*") if file.is_file()
    )
    names = [name for name in found if name != NAME][:50]
    return (
        [f"Files of this skill, to be read with load_skill(name, file): {', '.join(names)}"] if names else []
    )


def _read(file: Path, accepts: Callable[[Path, bytes], bool] | None = None) -> bytes:
    """Return the file's bytes. Raises ValueError with the reason if that is impossible.

    A file without end costs no more than any other, and a pipe is not read.
    """
    if file.exists() and not file.is_file():
        raise ValueError("it is not a file, but a folder, a pipe or the like")
    try:
        with file.open("rb") as opened:
            data = opened.read(BIGGEST + 1)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error}") from error
    if len(data) > BIGGEST:
        raise ValueError(sentence("skill.too_big", kilobytes=BIGGEST // 1000))
    if accepts is not None and not accepts(file, data):
        raise ValueError(
            "it is new, or changed after you trusted its folder; review it with `dragoman trust`"
        )
    return data


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.glob(f"*/{NAME}") if file.is_file())
    except OSError:
        return []


def _mark(file: Path) -> tuple[object, ...] | None:
    """Return a mark that changes when the file is written, even if another file replaces it in the same
    moment."""
    try:
        found = file.stat()
    except OSError:
        return None
    return file, found.st_mtime_ns, found.st_size, found.st_ino


# Write the text of a `SKILL.md`, and edit one: parts that are not edited, including comments, keep every
# byte.


def write_skill(skill: Skill) -> bytes:
    """Return the file of a new skill. ValueError says why it cannot be written."""
    head = "\n".join(_line(key, value) for key, value in _front(skill).items() if value)
    return _checked(f"---\n{_line('name', skill.name)}\n{head}\n---\n\n{_plain(skill.text)}\n", skill)


def edit_skill(before: bytes, skill: Skill) -> bytes:
    """Return the file with this skill's content. Its name stays. ValueError says why it cannot be written."""
    opening, head, closing, body = cut_skill(before.decode())
    found, end = parse_skill(before, skill.name), "\r" if opening.endswith("\r\n") else ""
    wanted, known = _front(skill), _front(found)
    edited = _edit(head, {key: value for key, value in wanted.items() if value != known[key]}, end)
    if _plain(skill.text) != _plain(found.text):
        body = f"\n{_plain(skill.text)}\n".replace("\n", f"{end}\n")
    return _checked(f"{opening}{edited}{closing}{body}", skill)


def _front(skill: Skill) -> dict[str, str | bool]:
    """Return the front matter that we know, without the name. Empty values and False are not written."""
    return {
        "description": " ".join(skill.description.split()),
        "when": " ".join(skill.when.split()),
        "always": skill.always,
    }


def _edit(head: str, changes: Mapping[str, str | bool], end: str) -> str:
    """Return the front matter with changed lines for some keys. Comments after a key stay."""
    if not changes:
        return head
    pieces = _pieces(head)
    for key, value in changes.items():
        line = f"{_line(key, value)}{end}" if value else None
        if key not in pieces:
            pieces[key] = f"\n{line}" if line else ""
            continue
        lines, kept = pieces[key].split("\n"), list[str]()
        while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
            kept.insert(0, lines.pop())
        pieces[key] = "\n".join([*([line] if line else []), *kept])
    after = "".join(pieces.values())
    if after.endswith("\n") and not head.endswith("\n"):  # The last key was removed.
        after = after[:-1]
    wanted = {**read_front_matter(f"{head}\n"), **changes}
    wanted = {key: value for key, value in wanted.items() if changes.get(key, True)}
    if read_front_matter(f"{after}\n") != wanted:
        raise ValueError(_BY_HAND)
    return after


_BY_HAND = sentence("skill.handmade")


def _pieces(head: str) -> dict[str | None, str]:
    """Split the front matter before each of its keys. The text before the first key is under None."""
    import yaml

    node = yaml.compose(head, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise ValueError(_BY_HAND)
    starts = {str(key.value): head.rfind("\n", 0, key.start_mark.index) + 1 for key, _ in node.value}
    if len(starts) != len(node.value):
        raise ValueError(_BY_HAND)
    cuts = [*starts.values(), len(head)]
    pieces: dict[str | None, str] = {None: head[: cuts[0]]}
    for (key, start), cut in zip(starts.items(), cuts[1:], strict=True):
        pieces[key] = head[start:cut]
    return pieces


def _line(key: str, value: str | bool) -> str:
    import yaml

    return yaml.safe_dump({key: value}, allow_unicode=True, width=sys.maxsize).strip()


def _plain(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text).strip()


def _checked(text: str, skill: Skill) -> bytes:
    """Parse the text that was written before others read it."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(sentence("skill.half_character")) from error
    if len(data) > BIGGEST:
        raise ValueError(sentence("skill.too_big", kilobytes=BIGGEST // 1000))
    found = parse_skill(data, skill.name, Path())
    if (_front(found), _plain(found.text)) != (_front(skill), _plain(skill.text)):
        raise ValueError(_BY_HAND)
    return data
