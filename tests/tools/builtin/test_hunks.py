"""B2: of a change that needs approval, exactly the hunks that the user chose are applied."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.errors import BadRequest, ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.approval import choose_hunks, foresee
from dragoman.tools.builtin.apply_patch import apply_patch
from dragoman.tools.builtin.edit_file import edit_file, edits_between, replace_piece
from dragoman.tools.builtin.read_write import read_file, version_of, write_file
from dragoman.tools.tool import Tool
from dragoman.workspace.diff import diff_texts
from dragoman.workspace.hunks import hunks_between, keep_hunks
from tests.sweeps import examples
from tests.tools.builtin.folder import refused, told

OLD = "".join(f"line {number}\n" for number in range(30))
NEW = OLD.replace("line 3\n", "line three\n").replace("line 15\n", "").replace("line 27\n", "line 27\nmore\n")
LINES = st.lists(st.sampled_from(["a", "b", "", "\tc", "d"]), min_size=1, max_size=40).map(
    lambda lines: "\n".join(lines) + "\n"
)


def call_of(tool: Tool, old: str, new: str) -> Arguments:
    """A call that would make one text of the other, in a file that is there."""
    version = version_of(old.encode())
    match tool.name:
        case "write_file":
            return {"path": "f", "text": new, "version": version}
        case "edit_file":
            edits: list[JsonValue] = [{"old": one, "new": other} for one, other in edits_between(old, new)]
            return {"path": "f", "version": version, "edits": edits}
        case _:
            return {"patch": diff_texts("f", old.encode(), new.encode()).text}


@pytest.mark.parametrize("tool", [write_file, edit_file, apply_patch], ids=lambda tool: tool.name)
@given(old=LINES, new=LINES, data=st.data())
@settings(max_examples=examples(15, 60), deadline=None)
def test_what_runs_is_what_was_chosen(tool: Tool, old: str, new: str, data: st.DataObject) -> None:
    """For any change and any choice of hunks, exactly those are applied (B2)."""
    assume(old != new)
    hunks = hunks_between(old.encode(), new.encode())
    chosen = data.draw(st.sets(st.integers(0, len(hunks) - 1), min_size=1))
    wanted = keep_hunks(old.encode(), new.encode(), dict.fromkeys(chosen))
    assert wanted is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f"
        file.write_text(old)
        arguments = call_of(tool, old, new)
        shown = foresee(tool, arguments, Path(folder)).diff
        made = choose_hunks(tool, arguments, Path(folder), shown, dict.fromkeys(chosen))
        assert foresee(tool, made, Path(folder)).diff == diff_texts("f", old.encode(), wanted).text
        asyncio.run(told(Path(folder), tool, **made))
        assert file.read_bytes() == wanted


@given(old=LINES, new=LINES)
def test_edits_between_two_texts_make_one_of_the_other(old: str, new: str) -> None:
    """B2: each of them is clear when its turn comes."""
    text = old
    for piece, other in edits_between(old, new):
        text = replace_piece("f", text, piece, other).text
    assert text == new


@pytest.mark.parametrize("tool", [write_file, edit_file, apply_patch], ids=lambda tool: tool.name)
async def test_one_is_refused_and_another_edited(tmp_path: Path, tool: Tool) -> None:
    """Text that the user typed replaces the new side of the hunk (B2)."""
    (tmp_path / "f").write_text(OLD)
    arguments = call_of(tool, OLD, NEW)
    shown = foresee(tool, arguments, tmp_path).diff
    third = "line 25\nline 26\nline 27, mine\nline 28\nline 29"  # an editor took the last line end
    made = choose_hunks(tool, arguments, tmp_path, shown, {0: None, 2: third})
    await told(tmp_path, tool, **made)
    expected = OLD.replace("line 3\n", "line three\n").replace("line 27\n", "line 27, mine\n")
    assert (tmp_path / "f").read_text() == expected


async def test_of_a_patch_whole_files_may_be_left_out(tmp_path: Path) -> None:
    """Hunks are numbered across all files of the patch (B2)."""
    (tmp_path / "f").write_text(OLD)
    (tmp_path / "gone").write_text("old\n")
    parts = [diff_texts("f", OLD.encode(), NEW.encode()), diff_texts("gone", b"old\n", None)]
    arguments: Arguments = {"patch": "".join(one.text for one in (*parts, diff_texts("new", None, b"new\n")))}
    shown = foresee(apply_patch, arguments, tmp_path).diff
    made = choose_hunks(apply_patch, arguments, tmp_path, shown, {3: None})
    await told(tmp_path, apply_patch, **made)
    assert (tmp_path / "f").read_text() == OLD
    assert not (tmp_path / "gone").exists()
    assert not (tmp_path / "new").exists()


LETTERS = st.characters(exclude_characters="/\\:\0", exclude_categories=["Cs"])  # \ and C: may lead out
ODD = st.text(LETTERS, min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))


@given(name=ODD)
@example(name='"quoted" here')
@example(name=" ends in a blank ")
@example(name="tab\there\nand there\r")
@example(name="\u2028 and \x85 break lines")
@settings(max_examples=examples(15, 60), deadline=None)
def test_a_patch_of_a_file_with_any_name_can_be_taken_in_parts(name: str) -> None:
    """Names that would break a line are quoted as git quotes them (B2)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(OLD)
        arguments: Arguments = {"patch": diff_texts(name, OLD.encode(), NEW.encode()).text}
        shown = foresee(apply_patch, arguments, Path(folder)).diff
        made = choose_hunks(apply_patch, arguments, Path(folder), shown, {0: None})
        asyncio.run(told(Path(folder), apply_patch, **made))
        assert file.read_text() == OLD.replace("line 3\n", "line three\n")


def test_line_ends_stay_what_they_were(tmp_path: Path) -> None:
    """B2: a browser's text field knows one kind of line end."""
    (tmp_path / "f").write_bytes(b"a\r\nb\r\n")
    arguments: Arguments = {"path": "f", "version": version_of(b"a\r\nb\r\n"), "old": "b", "new": "c"}
    shown = foresee(edit_file, arguments, tmp_path).diff
    made = choose_hunks(edit_file, arguments, tmp_path, shown, {0: "a\nd\n"})
    assert "+d\r\n" in foresee(edit_file, made, tmp_path).diff


def test_what_cannot_be_chosen_is_told(tmp_path: Path) -> None:
    """Invalid choices are: nothing, an unknown hunk, a hunk without effect, and a file that has changed since
    (B2 × T13)."""
    (tmp_path / "f").write_text(OLD)
    arguments = call_of(edit_file, OLD, NEW)
    shown = foresee(edit_file, arguments, tmp_path).diff

    def chosen(hunks: dict[int, str | None]) -> None:
        choose_hunks(edit_file, arguments, tmp_path, shown, hunks)

    with pytest.raises(BadRequest, match="Reject the call"):
        chosen({})
    with pytest.raises(BadRequest, match="Unknown change 3"):
        chosen({3: None})
    with pytest.raises(BadRequest, match="cannot apply a part of this"):
        chosen({0: "".join(f"line {number}\n" for number in range(7))})
    with pytest.raises(BadRequest, match="cannot apply single changes"):
        choose_hunks(edit_file, arguments, tmp_path, "", {0: None})
    with pytest.raises(BadRequest, match="cannot apply single changes"):
        choose_hunks(read_file, {"path": "f"}, tmp_path, shown, {0: None})
    whole = call_of(write_file, OLD, NEW)
    with pytest.raises(BadRequest, match="would change nothing"):
        choose_hunks(write_file, whole, tmp_path, shown, {0: "".join(f"line {n}\n" for n in range(7))})
    (tmp_path / "f").write_text(f"above\n{OLD}")
    with pytest.raises(BadRequest, match="changed since you read it"):
        chosen({0: None})


def test_a_part_of_another_diff_than_the_shown_one_is_refused(tmp_path: Path) -> None:
    """B2 × T13: the patch still fits, but it now changes other lines."""
    (tmp_path / "f").write_text(OLD)
    patch = "*** Begin Patch\n*** Update File: f\n@@\n-line 3\n+line three\n*** End Patch"
    shown = foresee(apply_patch, {"patch": patch}, tmp_path).diff
    (tmp_path / "f").write_text(f"above\n{OLD}")
    with pytest.raises(BadRequest, match="changed"):
        choose_hunks(apply_patch, {"patch": patch}, tmp_path, shown, {0: None})


def test_of_what_is_not_shown_whole_no_part_is_done(tmp_path: Path) -> None:
    """B2 × P3: a line so long that the question leaves it out, and says so, is not chosen by its number."""
    (tmp_path / "f").write_text(OLD)
    arguments = call_of(write_file, OLD, NEW.replace("line 20\n", "x" * 500_000))
    shown = foresee(write_file, arguments, tmp_path).diff
    assert "not all of it is shown" in shown
    with pytest.raises(BadRequest, match="does not show all its changes"):
        choose_hunks(write_file, arguments, tmp_path, shown, {0: None})


def test_a_file_without_hunks_does_not_move_the_numbers_of_others(tmp_path: Path) -> None:
    """A binary file in a patch is shown as a whole, and would otherwise be counted although it is not visible
    (B2)."""
    (tmp_path / "f").write_text(OLD)
    changes = "@@\n-line 3\n+line three\n@@\n-line 15\n@@\n-line 27\n+line 28, mine\n"
    patch = f"*** Begin Patch\n*** Add File: a\n+\0\n*** Update File: f\n{changes}*** End Patch"
    shown = foresee(apply_patch, {"patch": patch}, tmp_path).diff
    with pytest.raises(BadRequest, match="'a' is a binary file"):
        choose_hunks(apply_patch, {"patch": patch}, tmp_path, shown, {2: None})


def test_lines_that_are_no_utf_8_are_not_written_in_another_way(tmp_path: Path) -> None:
    """The user did not choose such a change, and no diff would show it (B2)."""
    before = b"caf\xe9\n" + OLD.encode()
    (tmp_path / "f").write_bytes(before)
    arguments: Arguments = {"path": "f", "text": f"cafe\n{NEW}", "version": version_of(before)}
    shown = foresee(write_file, arguments, tmp_path).diff
    with pytest.raises(BadRequest, match="does not show all its changes"):
        choose_hunks(write_file, arguments, tmp_path, shown, {2: None})


def test_mixed_line_ends_are_not_made_alike_by_a_part_of_a_patch(tmp_path: Path) -> None:
    """Context lines are matched by their text, and would otherwise get the line ends of the patch (B2)."""
    before = "".join(f"line {number}{chr(13) * (number % 2)}\n" for number in range(30))
    (tmp_path / "f").write_bytes(before.encode())
    changes = "@@\n-line 4\n+line four\n@@\n-line 20\n+line twenty\n"
    arguments: Arguments = {"patch": f"*** Begin Patch\n*** Update File: f\n{changes}*** End Patch"}
    shown = foresee(apply_patch, arguments, tmp_path).diff
    with pytest.raises(BadRequest, match="its line endings differ"):
        choose_hunks(apply_patch, arguments, tmp_path, shown, {0: None})


FAILING: list[tuple[Tool, Arguments]] = [
    (edit_file, {"path": "f", "version": "nonsense", "old": "line 1\n", "new": "x"}),
    (edit_file, {"path": "f", "version": version_of(OLD.encode()), "old": "line", "new": "x"}),
    (edit_file, {"path": "g", "version": version_of(OLD.encode()), "old": "line 1\n", "new": "x"}),
    (write_file, {"path": "f", "text": "x"}),
    (write_file, {"path": "f", "text": "x", "version": "nonsense"}),
    (write_file, {"path": "f/below", "text": "x"}),
    (apply_patch, {"patch": "*** Begin Patch\n*** Update File: f\n@@\n-no such line\n+x\n*** End Patch"}),
    (apply_patch, {"patch": "*** Begin Patch\n*** Delete File: g\n*** End Patch"}),
    (apply_patch, {"patch": "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"}),
]


@pytest.mark.parametrize(
    ("tool", "arguments"), FAILING, ids=[f"{one.name} {at}" for at, (one, _) in enumerate(FAILING)]
)
async def test_p14_a_preview_fails_if_the_call_would(
    tmp_path: Path, tool: Tool, arguments: Arguments
) -> None:
    """No user sees a diff that cannot be applied (P14)."""
    (tmp_path / "f").write_text(OLD)
    with pytest.raises(ToolFailed):
        foresee(tool, arguments, tmp_path)
    assert await refused(tmp_path, tool, **arguments)
