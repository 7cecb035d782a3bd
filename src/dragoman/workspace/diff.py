"""Show changes of files as unified diffs, with renames, and compare lines word by word for display."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from dragoman.workspace.states import FileChange, FileState, holds

# Match equal lines of two texts in near-linear time, however often lines recur.
#
# Lines that occur equally often on both sides are paired first, and the longest run of pairs that do not
# cross is kept. The lines between two such pairs are a smaller problem of the same kind.


Pair: TypeAlias = tuple[int, int]  # a line of one text, and the equal line of the other

_SMALL = 10_000  # lines times lines that difflib compares: its time grows with the cube of them


def matching_lines(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Return pairs of equal lines, in order on both sides."""
    found: list[Pair] = []
    left = [(0, len(old), 0, len(new))]
    while left:
        i1, i2, j1, j2 = left.pop()
        while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
            found.append((i1, j1))
            i1, j1 = i1 + 1, j1 + 1
        while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
            found.append((i2, j2))
        a, b = old[i1:i2], new[j1:j2]
        if len(a) * len(b) <= _SMALL:
            found += [(i + i1, j + j1) for i, j in _compared(a, b)]
        elif anchors := _anchors(a, b):
            before = (i1 - 1, j1 - 1)
            for i, j in [*((i + i1, j + j1) for i, j in anchors), (i2, j2)]:
                left.append((before[0] + 1, i, before[1] + 1, j))
                before = (i, j)
            found += [(i + i1, j + j1) for i, j in anchors]
    return sorted(found)


def _compared(a: Sequence[str], b: Sequence[str]) -> Iterator[Pair]:
    for i, j, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        yield from ((i + place, j + place) for place in range(size))


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Pair lines that occur once on both sides. If there are none, those that occur equally often."""
    counts, others = Counter(a), Counter(b)
    once = [line for line, count in counts.items() if count == others[line] == 1]
    paired = set(once or (line for line, count in counts.items() if count == others[line]))
    places = _numbered(b, paired)
    return _longest_rising([(i, places[key]) for key, i in _numbered(a, paired).items()])


def _numbered(lines: Sequence[str], wanted: set[str]) -> dict[tuple[str, int], int]:
    """Return the positions of the first, the second … occurrence of each of these lines."""
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int], int] = {}
    for place, line in enumerate(lines):
        if line in wanted:
            found[line, seen[line]] = place
            seen[line] += 1
    return found


def _longest_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Return as many pairs as possible, so that both sides rise."""
    ends: list[int] = []  # the smallest second side that a run of this length ends with
    last: list[int] = []  # the pair it ends with
    before: list[int] = []
    for place, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            last.append(place)
        else:
            ends[length], last[length] = j, place
    kept: list[Pair] = []
    place = last[-1] if last else -1
    while place >= 0:
        kept.append(pairs[place])
        place = before[place]
    return kept[::-1]


Status: TypeAlias = Literal["added", "deleted", "modified", "renamed"]
Opcode: TypeAlias = tuple[str, int, int, int, int]

CONTEXT = 3  # lines around a change
_LONGEST = 400_000  # characters of one file's diff
_ALIKE = 0.6  # minimum share of equal lines for which a new file counts as a removed file
_PAIRS = 2_500  # maximum number of pairs compared for this
_TEXT = 2_000_000  # bytes of a file whose lines are compared
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_ESCAPES = {
    **{"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"},
    **{"\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"},
}
_UNESCAPES = {escaped[1:].encode(): one.encode() for one, escaped in _ESCAPES.items()}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)


@dataclass(slots=True, frozen=True)
class FileDiff:
    """The change of one file. `text` is a unified diff that `git apply` and `patch` understand."""

    path: str
    status: Status
    text: str
    added: int = 0  # lines
    removed: int = 0
    binary: bool = False
    old_path: str | None = None  # of a renamed file
    truncated: bool = False  # the text is incomplete


@dataclass(slots=True, frozen=True)
class Side:
    """One side of a diff. `data` is None if the bytes were not recorded."""

    state: FileState
    data: bytes | None

    @property
    def mode(self) -> str:
        bits = {"link": 0o120000, "folder": 0o040000}.get(self.state.kind, 0o100000)
        return f"{bits | self.state.mode:06o}"

    @property
    def is_link(self) -> bool:
        return self.state.kind == "link"


def diff_of(changes: Sequence[FileChange], contents: Callable[[FileState], bytes | None]) -> list[FileDiff]:
    """Return the diffs of files only: folders appear and disappear with them."""

    def side(state: FileState | None) -> Side | None:
        return None if state is None or not holds(state) else Side(state, contents(state))

    pairs = [(change.path, side(change.before), side(change.after)) for change in changes]
    gone = {path: before for path, before, _ in pairs}
    renames = renames_of(changes, contents)
    moved = set(renames.values())
    found = []
    for path, before, after in pairs:
        if path in moved or (before is None and after is None):
            continue
        old = renames.get(path)
        found.append(_file_diff(path, gone[old] if old else before, after, old))
    return sorted(found, key=lambda one: one.path)


def renames_of(
    changes: Sequence[FileChange], contents: Callable[[FileState], bytes | None]
) -> dict[str, str]:
    """Return the old path of each renamed file, as the diff of these changes shows it."""
    gone = {one.path: one.before for one in changes if one.before is not None and not holds(one.after)}
    came = {one.path: one.after for one in changes if one.after is not None and not holds(one.before)}
    sides = [
        {path: Side(state, contents(state)) for path, state in found.items() if holds(state)}
        for found in ((gone, came) if gone and came else ({}, {}))
    ]
    return _renames(*sides)


def diff_texts(path: str, old: bytes | None, new: bytes | None) -> FileDiff:
    """Return the diff of one file that would be written, for an approval request. Truncated if bytes are not
    text."""
    before = Side(FileState("file", 0o644), old) if old is not None else None
    after = Side(FileState("file", 0o644), new) if new is not None else None
    found = _file_diff(path, before, after, None)
    return found if _is_text(old) and _is_text(new) else replace(found, truncated=True)


def _is_text(data: bytes | None) -> bool:
    """Return whether the lines of a diff contain exactly its characters."""
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def joined(diffs: Sequence[FileDiff], longest: int | None = None) -> str:
    """Join the diffs. A text longer than `longest` is cut off, with a note."""
    text = "".join(one.text for one in diffs)
    if longest is None or is_whole(diffs, longest):
        return text
    if len(text) <= longest:
        return f"{text}… not all of it is shown\n"
    cut = text[:longest].rpartition("\n")[0]
    return f"{cut}\n… {len(text) - len(cut):,} more characters are not shown\n"


def is_whole(diffs: Sequence[FileDiff], longest: int) -> bool:
    """Return whether a text of that length shows all changes."""
    return sum(len(one.text) for one in diffs) <= longest and not any(one.truncated for one in diffs)


# ── one file ──────────────────────────────────────────────────────────────────────────────────────


def _file_diff(path: str, before: Side | None, after: Side | None, old_path: str | None) -> FileDiff:
    if before is not None and after is not None and before.is_link != after.is_link:
        return _exchange(_file_diff(path, before, None, None), _file_diff(path, None, after, None))
    status: Status = "renamed" if old_path else "modified"
    if before is None or after is None:
        status = "added" if before is None else "deleted"
    a, b = quoted(old_path or path, "a/"), quoted(path, "b/")
    head = [f"diff --git {a} {b}"]
    if before is None and after is not None:
        head.append(f"new file mode {after.mode}")
    elif after is None and before is not None:
        head.append(f"deleted file mode {before.mode}")
    elif before is not None and after is not None and before.mode != after.mode:
        head += [f"old mode {before.mode}", f"new mode {after.mode}"]
    if old_path is not None:
        head += [f"rename from {quoted(old_path)}", f"rename to {quoted(path)}"]
    sides = [one.data for one in (before, after) if one is not None]
    if any(data is None or _binary(data) for data in sides):
        unequal = len(sides) < 2 or sides[0] is None or sides[0] != sides[1]
        names = f"{a if before else '/dev/null'} and {b if after else '/dev/null'}"
        body = [f"Binary files {names} differ"] if unequal else []
        return FileDiff(path, status, _lines([*head, *body]), binary=True, old_path=old_path)
    old, new = (lines_of(one.data or b"") if one is not None else [] for one in (before, after))
    opcodes = opcodes_of(old, new)
    added = sum(j2 - j1 for tag, _, _, j1, j2 in opcodes if tag != "equal")
    removed = sum(i2 - i1 for tag, i1, i2, _, _ in opcodes if tag != "equal")
    body = []
    if added or removed:
        body = [f"--- {a if before else '/dev/null'}", f"+++ {b if after else '/dev/null'}"]
        body += _hunks(old, new, opcodes)
    text = _lines([*head, *body])
    truncated = len(text) > _LONGEST
    if truncated:
        text = text[:_LONGEST].rpartition("\n")[0] + "\n"
    return FileDiff(path, status, text, added, removed, False, old_path, truncated)


def _exchange(gone: FileDiff, came: FileDiff) -> FileDiff:
    """Combine the diffs of a link replaced by a file, or the reverse: git cannot apply that as one change."""
    return replace(
        came,
        status="modified",
        text=gone.text + came.text,
        removed=gone.removed,
        binary=gone.binary or came.binary,
        truncated=gone.truncated or came.truncated,
    )


def _hunks(old: Sequence[str], new: Sequence[str], opcodes: Sequence[Opcode]) -> Iterator[str]:
    for group in hunk_groups(opcodes):
        i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                for line in old[a1:a2]:
                    yield from _line(" ", line)
                continue
            for line in old[a1:a2]:
                yield from _line("-", line)
            for line in new[b1:b2]:
                yield from _line("+", line)


def hunk_groups(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Yield changes with their context, with nearby ones in one group."""
    group: list[Opcode] = []
    for place, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = place == 0, place == len(opcodes) - 1
        if not first:
            group.append((tag, i1, min(i2, i1 + CONTEXT), j1, min(j2, j1 + CONTEXT)))
        if i2 - i1 <= 2 * CONTEXT and not first and not last:
            group[-1] = (tag, i1, i2, j1, j2)
            continue
        if any(one[0] != "equal" for one in group):
            yield group
        group = [] if last else [(tag, max(i1, i2 - CONTEXT), i2, max(j1, j2 - CONTEXT), j2)]
    if any(one[0] != "equal" for one in group):
        yield group


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(mark: str, line: str) -> Iterator[str]:
    if line.endswith("\n"):
        yield mark + line[:-1]
    else:
        yield mark + line
        yield "\\ No newline at end of file"


def opcodes_of(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return how one list of lines becomes the other: equal runs, and the changes between them."""
    found: list[Opcode] = []
    i = j = 0
    for a, b in [*matching_lines(old, new), (len(old), len(new))]:
        if i < a or j < b:
            found.append(("replace" if i < a and j < b else "delete" if i < a else "insert", i, a, j, b))
        if a == len(old):
            break
        if found and found[-1][0] == "equal":
            found[-1] = ("equal", found[-1][1], a + 1, found[-1][3], b + 1)
        else:
            found.append(("equal", a, a + 1, b, b + 1))
        i, j = a + 1, b + 1
    return found


def words(old: str, new: str) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
    """Split two lines into chunks, each with whether it differs."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    left: list[tuple[bool, str]] = []
    right: list[tuple[bool, str]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if i1 < i2:
            left.append((tag != "equal", "".join(a[i1:i2])))
        if j1 < j2:
            right.append((tag != "equal", "".join(b[j1:j2])))
    return left, right


# ── renames ───────────────────────────────────────────────────────────────────────────────────────


def _renames(gone: dict[str, Side], came: dict[str, Side]) -> dict[str, str]:
    """Return the old path of each new file that has the same bytes, or mostly the same lines."""
    found: dict[str, str] = {}
    left = dict(gone)
    for path, side in came.items():
        same = [one for one, before in left.items() if before.state.content == side.state.content]
        if same and side.state.size:
            found[path] = min(same, key=lambda one: (_name(one) != _name(path), one))
            del left[found[path]]
    others = [path for path in came if path not in found]
    if len(others) * len(left) > _PAIRS:
        return found
    scores = sorted(
        ((_likeness(left[old], came[new]), new, old) for new in others for old in left), reverse=True
    )
    for score, new, old in scores:
        if score >= _ALIKE and new not in found and old in left:
            found[new] = old
            del left[old]
    return found


def _likeness(one: Side, other: Side) -> float:
    if one.state.kind != other.state.kind or one.data is None or other.data is None:
        return 0.0
    if max(len(one.data), len(other.data)) > _TEXT or _binary(one.data) or _binary(other.data):
        return 0.0
    a, b = Counter(lines_of(one.data)), Counter(lines_of(other.data))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 0.0


# ── texts ─────────────────────────────────────────────────────────────────────────────────────────


def lines_of(data: bytes) -> list[str]:
    """Return lines with their ends. Invalid UTF-8 is shown as well as possible."""
    *lines, last = data.decode(errors="replace").split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _binary(data: bytes) -> bool:
    return b"\0" in data[:8000]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def quoted(path: str, prefix: str = "") -> str:
    """Quote names as git does, if they would break a line or lose their ends."""
    whole = prefix + path
    plain = all(character.isprintable() and character not in '"\\' for character in whole)
    if plain and whole == whole.strip():
        return whole
    return '"' + "".join(_ESCAPES.get(one) or _as_printable(one) for one in whole) + '"'


def _as_printable(character: str) -> str:
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))


def unquoted(text: str) -> str:
    """Return a name from a patch, quoted or not."""
    found = _QUOTED.match(text)
    if found is None:
        return text
    data = _ESCAPED.sub(_unescaped, found[1].encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1].isdigit():
        return bytes([int(found[1], 8)])
    return _UNESCAPES.get(found[1], found[0])  # The backslash was not meant as an escape.
