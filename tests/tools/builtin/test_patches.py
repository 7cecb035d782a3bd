"""B2, C6: patches as models write them, applied whole or not at all, and edits that find their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.builtin.apply_patch import FilePatch, Hunk, apply_hunks, apply_patch, parse_patch
from dragoman.tools.builtin.edit_file import edit_file
from dragoman.tools.permissions import changes_program
from dragoman.workspace.diff import diff_texts
from tests.tools.builtin.folder import refused, told, version, workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return workspace(tmp_path)


UNIFIED = """\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
--- /dev/null
+++ b/new/n.txt
@@ -0,0 +1,2 @@
+first
+second
\\ No newline at end of file
"""

MARKED = """\
*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
*** Add File: new/n.txt
+first
+second
*** Update File: sub/b.py
*** Move to: sub/c.py
@@ def b():
-    return 2
+    return 3
*** End Patch
"""


async def test_a_unified_diff_is_applied(root: Path) -> None:
    """C6"""
    said = await told(root, apply_patch, patch=UNIFIED)
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"
    assert (root / "new" / "n.txt").read_text() == "first\nsecond"
    assert "changed a.txt" in said
    assert f"version {await version(root, 'a.txt')}" in said


async def test_a_marked_patch_is_applied(root: Path) -> None:
    """C6: with a rename, which keeps the rights of the file."""
    (root / "sub" / "b.py").chmod(0o750)
    await told(root, apply_patch, patch=MARKED)
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"
    assert (root / "new" / "n.txt").read_text() == "first\nsecond\n"
    assert not (root / "sub" / "b.py").exists()
    assert (root / "sub" / "c.py").read_text() == "def b():\n    return 3\n"
    assert (root / "sub" / "c.py").stat().st_mode & 0o777 == 0o750


async def test_an_empty_line_that_lost_its_space_is_a_line_of_the_file(root: Path) -> None:
    """Editors remove white space at the end of a line, and of a patch too."""
    (root / "a.txt").write_text("one\n\ntwo\n")
    await told(root, apply_patch, patch="--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n\n-two\n+2\n")
    assert (root / "a.txt").read_text() == "one\n\n2\n"


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("nothing", "no change"),
        (UNIFIED.replace("-two", "-TWO"), "do not occur exactly in a.txt"),
        (MARKED.replace("a.txt", "q.txt"), "q.txt does not exist"),
        (MARKED.replace("new/n.txt", "alias.txt"), "link"),
        (MARKED.replace("sub/c.py", "../out.py"), "out of the workspace"),
        (MARKED.replace("Add File: new/n.txt", "Add File: a.txt"), "names a file twice"),
        (MARKED.replace("Add File: new/n.txt", "Add File: sub/d\n"), "'' must begin with +"),
        (MARKED.replace("@@ def b():", "@@ def c():"), "Hunk 1: line 'def c():' is not in 'sub/b.py'"),
        (MARKED.replace("+2", "?2"), "'?2' of the patch must begin with a space, + or -"),
        (MARKED.replace("*** Update File: a.txt\n@@\n", ""), "' one' belongs to no file"),
        ("*** Begin Patch\n*** Update File: a.txt\n*** Move to: sub/b.py\n-two", "cannot get this name"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-one", "changes nothing"),
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one", "has more lines than the patch deletes"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n one", "the patch changes nothing in a.txt"),
    ],
)
async def test_what_does_not_fit_changes_nothing(root: Path, patch: str, why: str) -> None:
    """C6, C8: of several files none."""
    assert why in await refused(root, apply_patch, patch=patch)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (root / "sub" / "b.py").exists()
    assert not (root / "new").exists()


async def test_lines_are_added_at_their_number_or_the_end(root: Path) -> None:
    """C6"""
    for at, text in (("-0,0 +1", "NEW one two"), ("-1,0 +2", "one NEW two"), ("", "one two NEW")):
        (root / "a.txt").write_text("one\ntwo\n")
        await told(root, apply_patch, patch=f"--- a/a.txt\n+++ b/a.txt\n@@ {at} @@\n+NEW")
        assert (root / "a.txt").read_text().split() == text.split()


async def test_lines_that_repeat_themselves_are_found_at_each_place(root: Path) -> None:
    """A hunk's line numbers or the end-of-file marker select the place. Without either, the patch is
    ambiguous (C6)."""
    rows, longer = "row\n" * 4, "row\n" * 4 + "end\n"
    hunk = " row\n row\n row\n+end\n"
    marked = f"*** Begin Patch\n*** Update File: a.txt\n@@\n{hunk}*** End of File\n*** End Patch"
    for patch in (f"--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,4 @@\n{hunk}", marked):
        (root / "a.txt").write_text(rows)
        await told(root, apply_patch, patch=patch)
        assert (root / "a.txt").read_text() == longer
    (root / "a.txt").write_text(rows)
    unclear = marked.replace("*** End of File\n", "")
    assert "2 times in a.txt" in await refused(root, apply_patch, patch=unclear)
    loose = {
        "path": "a.txt",
        "old": " row\n row\n row\n",
        "new": " x\n",
        "version": await version(root, "a.txt"),
    }
    assert "it occurs 2 times" in await refused(root, edit_file, **loose)
    await told(root, edit_file, **loose, everywhere=True)
    assert (root / "a.txt").read_text() == "x\nrow\n"


def test_every_file_of_a_patch_has_to_be_allowed() -> None:
    """This includes deletions and renames, and files of the program itself need approval (P11)."""
    patch = "*** Begin Patch\n*** Delete File: ./x/../AGENTS.md\n*** End Patch"
    assert list(apply_patch.patterns({"patch": patch})) == ["AGENTS.md"]
    arguments: Arguments = {"patch": MARKED.replace("sub/c.py", "tools/c.py")}
    patterns = apply_patch.patterns(arguments)
    assert list(patterns) == ["a.txt", "new/n.txt", "sub/b.py", "tools/c.py"]
    assert changes_program(apply_patch.permission, patterns)
    assert [rule.pattern for rule in apply_patch.always_wider(arguments)] == ["*"]
    arguments = {"patch": patch.replace("AGENTS.md", "docs/n.txt")}
    assert [rule.pattern for rule in apply_patch.always_wider(arguments)] == ["docs/*", "*"]
    with pytest.raises(ToolFailed):
        apply_patch.patterns({"patch": "what it touches cannot be told"})


def changed(*hunks: Hunk, to: str | None = None) -> FilePatch:
    return FilePatch("f", "update", [*hunks], to=to)


F, RENAMED = "--- a/f\n+++ b/f\n", "rename from f\nrename to g\n"
AB = Hunk(["a"], ["b"], at=0)
MARKED_TWO = """Here it is:
*** Begin Patch
*** Delete File: g
*** Update File: f
@@ class A:
@@ def f():
 a
+b

@@
-c
*** End of File
*** End Patch
bye"""
TWO = Hunk(["a", ""], ["a", "b", ""], after=["class A:", "def f():"]), Hunk(["c"], [], end=True)


@pytest.mark.parametrize(
    ("patch", "parsed"),
    [
        (f"{F}@@ -2,2 +2,2 @@\n-a\n+b\n\n\n", [changed(Hunk(["a", ""], ["b", ""], at=1))]),
        (f"{F}@@ -2,0 +3 @@\n+b\n", [changed(Hunk([], ["b"], at=2))]),
        (f"{F}@@ -2 +2 @@\n-a\n+b\n-- x", [changed(Hunk(["a", "- x"], ["b"], at=1, left=-1))]),
        (f"{F}@@ def f(): @@\n-a\n+b", [changed(Hunk(["a"], ["b"], after=["def f():"], left=-1))]),
        (f"{F}@@\n-a\n+b", [changed(Hunk(["a"], ["b"], left=-1))]),
        (f"{F}@@ -1 +1 @@\n--- x\n+++ y\nindex 1", [changed(Hunk(["-- x"], ["++ y"], at=0))]),
        (f"{RENAMED}--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b", [changed(AB, to="g")]),
        (
            f"{RENAMED}--- a/h\n+++ b/h\n@@ -1 +1 @@\n-a\n+b",
            [changed(to="g"), FilePatch("h", "update", [AB])],
        ),
        (MARKED_TWO, [FilePatch("g", "delete"), changed(*TWO)]),
    ],
)
def test_a_patch_is_read_as_it_is_meant(patch: str, parsed: list[FilePatch]) -> None:
    """As long as old lines are due, an empty line is one of the file, and so is a line like a head (C6)."""
    assert parse_patch(patch) == parsed


def test_a_hunk_is_applied_where_it_is_after_those_before_it() -> None:
    """C6: of lines that repeat themselves, the nearest to its number counts."""
    (patch,) = parse_patch(f"{F}@@ -1,1 +1,3 @@\n+x\n+x\n a\n@@ -4,1 +6,2 @@\n a\n+b\n")
    assert apply_hunks(patch, "a\n" * 6)[0] == "x\nx\na\na\na\na\nb\na\na\n"


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "-- d", "++ e", "@@"]), max_size=25)


@given(old=LINES, new=LINES)
def test_our_own_diffs_are_patches(old: list[str], new: list[str]) -> None:
    """Every generated diff can be applied, with lines of any form (B2)."""
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    diff = diff_texts("f", before.encode(), after.encode())
    if before == after:
        return
    (patch,) = parse_patch(diff.text)
    assert apply_hunks(patch, before)[0] == after


# ── edit_file ─────────────────────────────────────────────────────────────────────────────────────

CODE = "class A:\n    def f(self):\n        if x:\n            return 1\n"


async def test_an_edit_finds_its_place_by_words_and_says_so(root: Path) -> None:
    """C6: with another indentation, which the new lines get as well."""
    (root / "code.py").write_text(CODE)
    word = await version(root, "code.py")
    said = await told(
        root,
        edit_file,
        path="code.py",
        old="if x:\n    return 1",
        new="if x and y:\n    log()\n    return 2",
        version=word,
    )
    assert "found by its words" in said
    assert (root / "code.py").read_text() == CODE.replace("if x:", "if x and y:").replace(
        "            return 1", "            log()\n            return 2"
    )


async def test_a_place_that_is_not_the_only_one_by_its_words_is_refused(root: Path) -> None:
    """C6"""
    (root / "code.py").write_text("  x = 1\n    x = 1\n")
    word = await version(root, "code.py")
    assert "2 times" in await refused(
        root, edit_file, path="code.py", old="x = 1\n", new="x = 2\n", version=word
    )


async def test_each_place_by_its_words_is_changed_if_all_are_meant(root: Path) -> None:
    """C6"""
    (root / "code.py").write_text("if x:\n\ty\nz\n  if x:\n  \ty\n")
    edit = {"old": "if x:\ny\n", "new": "if y:\n", "version": await version(root, "code.py")}
    await told(root, edit_file, path="code.py", everywhere=True, **edit)
    assert (root / "code.py").read_text() == "if y:\nz\n  if y:\n"


async def test_new_lines_get_the_longest_indentation_that_they_begin_with(root: Path) -> None:
    """C6: tabs in place of spaces, at each depth."""
    (root / "code.py").write_text("\tif x:\n\t\treturn 1\n")
    edit = {"old": "if x:\n    return 1\n", "new": "if x:\n    return 2\n"}
    await told(root, edit_file, path="code.py", **edit, version=await version(root, "code.py"))
    assert (root / "code.py").read_text() == "\tif x:\n\t\treturn 2\n"


async def test_several_edits_are_made_together_or_not_at_all(root: Path) -> None:
    """C6"""
    word = await version(root, "a.txt")
    edits = [{"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "1\n2"}]
    wrong = [*edits, {"old": "four", "new": "4"}]
    failed = await refused(root, edit_file, path="a.txt", edits=wrong, version=word)  # type: ignore[arg-type]
    assert "Edit 3 of 3" in failed
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    said = await told(root, edit_file, path="a.txt", edits=edits, version=word)  # type: ignore[arg-type]
    assert "replaced 2 times" in said
    assert (root / "a.txt").read_text() == "1\n2\nthree\n"
