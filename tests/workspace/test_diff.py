"""A diff shows a change in a form that users read and `git apply` understands (B2)."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tools.builtin.edit_file import find_lines
from dragoman.workspace.blame import blame
from dragoman.workspace.diff import (
    diff_of,
    diff_texts,
    is_whole,
    joined,
    matching_lines,
    opcodes_of,
    renames_of,
    words,
)
from dragoman.workspace.hunks import keep_hunks
from dragoman.workspace.states import FileChange, FileState
from tests.sweeps import examples
from tests.workspace.folders import go_back, history_of, picture, record

LINES = st.lists(st.sampled_from(["a", "b", "", "\tc", "d\r"]), max_size=30).map("\n".join)
LONG = st.lists(st.integers(0, 80).map(str), min_size=110, max_size=200)


@given(old=LINES, new=LINES)
@settings(max_examples=examples(20, 200), deadline=None)
def test_a_diff_says_exactly_how_one_text_becomes_the_other(old: str, new: str) -> None:
    """B2: read by rules of the format alone, it makes the new text of the old one."""
    diff = diff_texts("f", old.encode(), new.encode())
    assert _patched(old, diff.text) == new
    assert (diff.text.count("\n@@") > 0) == (old != new)


@given(old=LONG, new=LONG, edits=st.sets(st.integers(0, 199)))
@settings(max_examples=examples(10, 200), deadline=None)
def test_so_does_one_of_longer_texts(old: list[str], new: list[str], edits: set[int]) -> None:
    """Long texts get anchor lines before the comparison, also two that are nearly equal (B2)."""
    for other in (new, ["x" if n in edits else line for n, line in enumerate(old)]):
        made, at = list[str](), 0
        for tag, i1, i2, j1, j2 in opcodes_of(old, other):
            assert i1 == at
            made, at = made + (old[i1:i2] if tag == "equal" else other[j1:j2]), i2
        assert (made, at) == (other, len(old))


@pytest.mark.parametrize("edited", [{0, 149}, {0, 1, 75, 149}, {4, 60, 61, 100}, {1, 2, 3, 148}])
def test_of_a_long_text_only_what_changed_is_told(edited: set[int]) -> None:
    """This also holds next to lines that recur, and at both ends (B2)."""
    old = [f"{n}" if n % 3 else "same" for n in range(150)]
    replaced = [f"new {n}" if n in edited else line for n, line in enumerate(old)]
    codes = [code for code in opcodes_of(old, replaced) if code[0] != "equal"]
    assert [n for _, i1, i2, _, _ in codes for n in range(i1, i2)] == sorted(edited)
    assert [n for _, _, _, j1, j2 in codes for n in range(j1, j2)] == sorted(edited)
    unique = [n for n in edited if n % 3]
    removed = [line for n, line in enumerate(old) if n not in unique]
    for one, other, tag in ((old, removed, "delete"), (removed, old, "insert")):
        codes = [code for code in opcodes_of(one, other) if code[0] != "equal"]
        assert {code[0] for code in codes} == {tag}
        assert sum(i2 - i1 + j2 - j1 for _, i1, i2, j1, j2 in codes) == len(unique)
    assert opcodes_of(old, old) == [("equal", 0, 150, 0, 150)]
    assert matching_lines(old, replaced) == [(n, n) for n in range(150) if n not in edited]
    others = [f"other {n}" for n in range(150)]
    assert matching_lines(old, [*others, "1", *others]) == [(1, 150)]
    twice = ["twice", "twice"]
    assert matching_lines([*twice, *others], [*others, *twice]) == [(n + 2, n) for n in range(150)]


def _patched(old: str, diff: str) -> str:
    lines = old.splitlines(keepends=True) if "\r" not in old else [x + "\n" for x in old.split("\n")]
    if "\r" in old:
        lines[-1] = lines[-1][:-1]
        lines = [line for line in lines if line]
    made: list[str] = []
    at = 0
    body = diff.split("\n")[:-1]
    for place, line in enumerate(body):
        bare = place + 1 < len(body) and body[place + 1].startswith("\\")
        text = line[1:] + ("" if bare else "\n")
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            first = int(start) - (0 if length == "0" else 1)
            made += lines[at:first]
            at = first
        elif line.startswith(" "):
            assert lines[at] == text
            made.append(text)
            at += 1
        elif line.startswith("-") and not line.startswith("---"):
            assert lines[at] == text
            at += 1
        elif line.startswith("+") and not line.startswith("+++"):
            made.append(text)
    return "".join(made + lines[at:])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_git_applies_the_diff_of_a_call(tmp_path: Path) -> None:
    """B2: new and deleted files, modes and renames included, and links in place of files."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(100)))
    (root / "gone.txt").write_text("gone")
    (root / "run.sh").write_text("echo\n")
    (root / "old name.py").write_text("".join(f"x = {n}\n" for n in range(20)))
    (root / "is a link").symlink_to("gone.txt")
    (root / "is a file").write_text("of one line\n")
    shutil.copytree(root, tmp_path / "copy", symlinks=True)
    history = history_of(root)

    def work() -> None:
        for name in ("is a link", "is a file"):
            (root / name).unlink()
        (root / "is a link").write_text("by now a file\n")
        (root / "is a file").symlink_to("long.txt")
        text = (root / "long.txt").read_text()
        (root / "long.txt").write_text(text.replace("line 3\n", "three\n").replace("line 90\n", ""))
        (root / "gone.txt").unlink()
        (root / "run.sh").chmod(0o755)
        (root / "new").mkdir()
        (root / "new" / "file").write_text("no end of line")
        (root / "old name.py").rename(root / "moved.py")
        (root / "moved.py").write_text((root / "moved.py").read_text() + "y = 1\n")

    told = record(history, work)
    assert told is not None
    diffs = diff_of(told.changes, history.contents)
    assert {one.path: one.status for one in diffs} == {
        "gone.txt": "deleted",
        "is a file": "modified",
        "is a link": "modified",
        "long.txt": "modified",
        "moved.py": "renamed",
        "new/file": "added",
        "run.sh": "modified",
    }
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        cwd=tmp_path / "copy",
        input=joined(diffs).encode(),
        check=True,
    )
    assert picture(tmp_path / "copy") == picture(root)


def test_changes_are_shown_with_three_lines_around_them() -> None:
    """B2: changes whose lines around them touch are one hunk."""
    for before, between, after in product(range(6), (0, 1, 6, 7, 8), range(8)):
        old = [f"{n}\n" for n in range(before + between + after + 2)]
        second = before + 1 + between
        new = [f"new {line}" if n in (before, second) else line for n, line in enumerate(old)]
        diff = diff_texts("f", "".join(old).encode(), "".join(new).encode()).text
        shown = {line[1:] for line in diff.splitlines()[3:] if line[0] in " -"}
        near = {n for place in (before, second) for n in range(place - 3, place + 4)}
        assert shown == {line[:-1] for n, line in enumerate(old) if n in near}
        assert diff.count("\n@@ ") == (2 if between > 6 else 1)


def test_a_diff_that_is_cut_off_says_so() -> None:
    """B2: at a whole line, and with how much is missing."""
    diffs = [diff_texts(name, b"old\n", b"new\n") for name in ("a", "b")]
    text = joined(diffs)
    assert text == "".join(
        f"diff --git a/{n} b/{n}\n--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-old\n+new\n" for n in "ab"
    )
    assert (joined(diffs, len(text)), is_whole(diffs, len(text))) == (text, True)
    assert not is_whole(diffs, len(text) - 1)
    assert joined(diffs, len(text) - 1) == f"{text[:-6]}\n… 6 more characters are not shown\n"
    bytes_of_none = [diff_texts("a", b"\xff\n", b"new\n")]
    assert joined(bytes_of_none, 1000) == f"{bytes_of_none[0].text}… not all of it is shown\n"
    assert not is_whole(bytes_of_none, 1000)


def state(data: bytes, mode: int = 0o644) -> FileState:
    return FileState("file", mode, data.decode(), len(data))


TEN = b"".join(b"%d\n" % n for n in range(10))
CHANGED = b"zero\n" + TEN[2:-2] + b"nine"


@pytest.mark.parametrize(
    ("old", "new", "chosen", "kept"),
    [
        (TEN, CHANGED, {}, TEN),
        (TEN, CHANGED, {0: None, 1: None}, CHANGED),
        (TEN, CHANGED, {0: None}, b"zero\n" + TEN[2:]),
        (TEN, CHANGED, {1: None}, TEN[:-2] + b"nine"),
        (TEN, CHANGED, {0: "0\n1\nmine"}, b"0\n1\nmine\n" + TEN[8:]),
        (TEN, CHANGED, {1: "mine"}, TEN[:12] + b"mine"),
        (TEN, TEN, {}, TEN),
        (None, b"new\n", {0: None}, b"new\n"),
        (None, b"new\n", {0: "typed"}, b"typed\n"),
        (None, b"new\n", {}, None),
        (None, b"", {}, b""),
        (b"old\n", None, {0: None}, None),
        (b"old\n", None, {}, b"old\n"),
        (b"old\n", None, {0: "typed"}, b"typed\n"),
        (b"", None, {}, None),
        (b"a\r\n", b"b\r\n", {0: "c\nd"}, b"c\r\nd\r\n"),
        (b"a\r\n", b"b\r\nc\n", {0: "c\r\nd"}, b"c\r\nd\n"),
        (b"a\n", b"b\n", {0: ""}, b""),
    ],
)
def test_a_file_is_written_with_the_chosen_hunks_alone(
    old: bytes | None, new: bytes | None, chosen: dict[int, str | None], kept: bytes | None
) -> None:
    """B2: typed text gets the line ends of its hunk."""
    assert keep_hunks(old, new, chosen) == kept


def test_of_a_binary_file_with_another_mode_only_the_mode_is_told() -> None:
    """B2"""
    for data, end in ((b"\0", ""), (b"\0\0", "Binary files a/f and b/f differ\n")):
        change = FileChange("f", state(b"\0"), state(data, 0o755))
        (diff,) = diff_of([change], lambda one: one.object.encode())
        assert diff.text == f"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n{end}"
        assert (diff.binary, diff.status, diff.added, diff.removed) == (True, "modified", 0, 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_link_in_place_of_a_long_file_is_told_in_two_parts(reverse: bool) -> None:
    """B2: both parts are cut off at a whole line."""
    link, long = FileState("link", 0, "target", 6), state(b"a line\n" * 100_000)
    change = FileChange("f", long, link) if reverse else FileChange("f", link, long)
    (diff,) = diff_of([change], lambda one: one.object.encode())
    assert (diff.added, diff.removed) == ((1, 100_000) if reverse else (100_000, 1))
    assert (diff.status, diff.binary, diff.truncated) == ("modified", False, True)
    heads = ["deleted file mode 100644", "new file mode 120000"]
    heads = heads if reverse else ["deleted file mode 120000", "new file mode 100644"]
    lines = diff.text.split("\n")
    assert [line for line in lines if " file mode " in line] == heads
    assert len(set(lines)) < 20
    assert 399_900 < len(diff.text) < 401_000
    (binary,) = diff_of([replace(change, before=state(b"\0"), after=link)], lambda one: one.object.encode())
    assert binary.binary


LINES_OF_BOTH = b"1\n2\n3\n4\n5\n"


@pytest.mark.parametrize(
    ("gone", "came", "renamed"),
    [
        ({"a": LINES_OF_BOTH + b"a" * 1_999_990}, {"b": LINES_OF_BOTH + b"b"}, {"b": "a"}),  # 2 MB
        ({"a": LINES_OF_BOTH + b"a" * 1_999_991}, {"b": LINES_OF_BOTH + b"b"}, {}),
        ({"a": b"1\n2\n3\n"}, {"b": b"1\n2\n3\n"}, {"b": "a"}),  # the same bytes
        ({"a": b"1\n2\n3\n4\n5\n"}, {"b": b"1\n2\n3\nx\ny\n"}, {"b": "a"}),  # 6 in 10 lines
        ({"a": b"1\n2\n3\n4\n5\n"}, {"b": b"1\n2\nw\nx\ny\n"}, {}),
        ({"a": b""}, {"b": b""}, {}),  # empty files are all the same
        ({"a": b"1\0"}, {"b": b"1\0"}, {"b": "a"}),
        ({"a": b"1\n2\n3\n\0"}, {"b": b"1\n2\n3\n\0\n"}, {}),
        ({"a/f": b"1\n", "b/g": b"1\n"}, {"c/g": b"1\n", "c/h": b"1\n"}, {"c/g": "b/g", "c/h": "a/f"}),
        (  # too many to compare
            {f"a{number}": b"1\n2\n3\n4\n5\n" for number in range(51)},
            {f"b{number}": b"1\n2\n3\n4\n6\n" for number in range(50)},
            {},
        ),
        ({"a": b"1\n2\n3\n4\n"}, {"b": b"1\n2\n3\n", "c": b"1\n2\n3\n4\n5\n"}, {"c": "a"}),
    ],
)
def test_a_file_is_renamed_if_most_lines_stay(
    gone: dict[str, bytes], came: dict[str, bytes], renamed: dict[str, str]
) -> None:
    """B2: the most alike first, and of equal ones the one with the same name."""
    changes = [FileChange(path, state(data), None) for path, data in gone.items()]
    changes += [FileChange(path, None, state(data)) for path, data in came.items()]
    assert renames_of(changes, lambda one: one.object.encode()) == renamed
    found = {one.path: one for one in diff_of(changes, lambda one: one.object.encode())}
    assert {path: one.old_path for path, one in found.items() if one.old_path} == renamed
    assert {path for path, one in found.items() if one.status == "deleted"} == gone.keys() - renamed.values()


def test_binary_files_are_said_to_differ() -> None:
    """B2"""
    diff = diff_texts("f", b"\0\1", b"\0\2")
    assert diff.binary
    assert "Binary files a/f and b/f differ" in diff.text


def test_a_long_file_is_compared_in_no_time() -> None:
    """B2: thousands of lines without a stutter, also where everything changed."""
    old = "".join(f"line {n}\n" for n in range(60_000)).encode()
    began = time.monotonic()
    assert diff_texts("f", old, old.replace(b"line 30000\n", b"")).removed == 1
    everything = diff_texts("f", old, old.replace(b"line", b"LINE"))
    assert everything.removed == 60_000
    assert everything.truncated
    assert time.monotonic() - began < 10


class _Counted(str):
    """A line that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_lines_that_recur_are_not_compared_over_and_over() -> None:
    """Every second of 6,000 lines changed, with one, two or a thousand copies of each, and a hunk whose first
    half repeats everywhere. Each line takes a few comparisons, whatever the number of lines (B2)."""
    for different in (3_000, 1_500, 3):
        old = [_Counted(f"line {n % different}") for n in range(6_000)]
        new = [_Counted(f"{line}!" if n % 2 else line) for n, line in enumerate(old)]
        _Counted.compared = 0
        changed = [code for code in opcodes_of(old, new) if code[0] != "equal"]
        assert {line for _, _, _, j1, j2 in changed for line in new[j1:j2]} >= set(new[1::2])
        assert _Counted.compared < 60 * len(old)
    lines: list[str] = [_Counted("same") for _ in range(6_000)]
    _Counted.compared = 0
    assert find_lines(lines, [*lines[:3_000], _Counted("end")])[0] == []
    assert _Counted.compared < 4 * len(lines)


def test_names_that_would_break_a_line_are_quoted() -> None:
    """A file's name cannot inject lines into a diff (B2)."""
    assert 'diff --git "a/x\\n+evil" "b/x\\n+evil"' in diff_texts("x\n+evil", b"", b"y").text


def test_lines_are_told_apart_word_by_word() -> None:
    """B2"""
    old, new = words("the old cat", "the new cat")
    assert old == [(False, "the "), (True, "old"), (False, " cat")]
    assert new == [(False, "the "), (True, "new"), (False, " cat")]


def test_a_line_is_told_by_who_wrote_it(tmp_path: Path) -> None:
    """The annotation names the turn that wrote a line, and none for a user's, an old or a reverted one
    (B3)."""
    root = tmp_path / "work"
    root.mkdir()
    file = root / "f"
    file.write_text("old\n")
    history = history_of(root)
    record(history, lambda: file.write_text("old\nby one\n"), turn="turn_1")
    file.write_text("by a person\nold\nby one\n")
    record(history, lambda: file.write_text("by a person\nold\nby one\nby two\n"), turn="turn_2", paths=["f"])
    third = record(history, lambda: file.write_text("nonsense\n"), turn="turn_3")
    go_back(history, third)
    file.write_text(file.read_text() + "by a person, too\n")
    found = blame("f", file.read_bytes(), history.of_path("f"), history.contents)
    turns = [(line.text, line.record.turn if line.record else None) for line in found]
    assert turns[:4] == [("by a person", None), ("old", None), ("by one", "turn_1"), ("by two", "turn_2")]
    assert turns[4:] == [("by a person, too", None)]
