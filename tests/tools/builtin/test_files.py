"""C6: the file tools at work: pages, versions, edits that are clear, searches that end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import ToolFailed
from dragoman.tools.approval import foresee
from dragoman.tools.builtin.edit_file import edit_file
from dragoman.tools.builtin.file_search import _matcher, fits, glob, grep
from dragoman.tools.builtin.read_write import list_directory, read_file, text_file, version_of, write_file
from tests.tools.bench import Bench
from tests.tools.builtin.folder import names, refused, told, version, workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return workspace(tmp_path)


async def test_a_folder_is_listed(root: Path) -> None:
    """C6"""
    assert (await told(root, list_directory)).splitlines() == [
        "sub/",
        "a.txt  14",
        "alias.txt  (a link; links are not followed)",
        "in  (a link; links are not followed)",
        "loop  (a link; links are not followed)",
        "out  (a link; links are not followed)",
        "pipe  (no regular file)",
        "secret  (a link; links are not followed)",
    ]
    (root / "many").mkdir()
    assert await told(root, list_directory, path="many") == "many is empty"
    for number in range(1003):
        (root / "many" / f"{number:04}").touch()
    assert (await told(root, list_directory, path="many")).endswith("\n[3 more are not shown: use glob]")
    assert "is not a folder" in await refused(root, list_directory, path="a.txt")


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_page_says_which_lines_it_has_and_how_many_there_are(root: Path) -> None:
    """C6"""
    word = await version(root, "a.txt")
    whole = f"[a.txt: lines 1 to 3 of 3, version {word}]\none\ntwo\nthree"
    assert await told(root, read_file, path="a.txt") == whole
    page = await told(root, read_file, path="a.txt", start=2, lines=1)
    assert page == f"[a.txt: lines 2 to 2 of 3, version {word}]\ntwo"
    assert await refused(root, read_file, path="a.txt", start=4) == "a.txt has 3 lines; start is 4"
    (root / "a.txt").write_text("")
    assert (await told(root, read_file, path="a.txt")).startswith("[a.txt is empty, version ")
    assert await refused(root, read_file, path="a.txt", start=2) == "a.txt has 0 lines; start is 2"


async def test_a_page_is_bounded(root: Path) -> None:
    """A page shows whole lines if they fit (C9)."""
    (root / "long").write_text("x" * 999 + "\n" + ("y" * 999 + "\n") * 99)
    head, *lines = (await told(root, read_file, path="long")).splitlines()
    assert head.startswith("[long: lines 1 to 40 of 100, ")
    assert len(lines) == 40
    (root / "one").write_text("é" * 50_000)
    page = await told(root, read_file, path="one")
    assert page.endswith("é\n[this line continues: it has 50000 characters, 20000 are shown]")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is not a text file"),
        (b"text\0text", "is a binary file"),
        (b"x" * 5_000_001, "is larger than 5000 kB"),
    ],
)
async def test_what_is_no_text_is_refused(root: Path, data: bytes, why: str) -> None:
    """C6"""
    (root / "data").write_bytes(data)
    assert why in await refused(root, read_file, path="data")
    assert why in await refused(root, edit_file, path="data", old="a", new="b", version=version_of(data))


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_file_needs_no_version_and_an_old_one_does(root: Path) -> None:
    """C6"""
    said = await told(root, write_file, path="new/deep/c.txt", text="c")
    assert (root / "new/deep/c.txt").read_text() == "c"
    assert await version(root, "new/deep/c.txt") in said
    assert "1 character," in said
    exists = "'new/deep/c.txt' exists. Read it first, then pass the version that read_file shows."
    assert await refused(root, write_file, path="new/deep/c.txt", text="d") == exists
    word = await version(root, "new/deep/c.txt")
    await told(root, write_file, path="new/deep/c.txt", text="d", version=word)
    stale = await refused(root, write_file, path="new/deep/c.txt", text="e", version=word)
    assert "changed since you read it" in stale
    assert (root / "new/deep/c.txt").read_text() == "d"
    assert names(root / "new/deep") == ["c.txt"]


@pytest.mark.parametrize(
    ("text", "why"), [("\ud83d", "half a surrogate pair"), ("x" * 5_000_001, "The limit is 5000 kB")], ids=len
)
def test_a_text_that_cannot_be_written_is_refused(root: Path, text: str, why: str) -> None:
    """C6"""
    with pytest.raises(ToolFailed, match=why):
        foresee(write_file, {"path": "new.txt", "text": text}, root)


async def test_writing_the_same_again_is_no_error(root: Path) -> None:
    """A call that is repeated after a crash finds its own earlier result (S3)."""
    assert await told(root, write_file, path="c", text="c") == await told(
        root, write_file, path="c", text="c"
    )


async def test_a_file_that_is_gone_is_not_written_by_its_version(root: Path) -> None:
    """No folder is created for the file either (C6)."""
    word = await version(root, "a.txt")
    (root / "a.txt").unlink()
    assert "no longer exists" in await refused(root, write_file, path="a.txt", text="x", version=word)
    assert "not in the workspace" in await refused(root, write_file, path="q/a.txt", text="x", version=word)
    assert not (root / "q").exists()
    assert "use write_file" in await refused(root, edit_file, path="a.txt", old="x", new="y", version=word)


async def test_rights_are_kept(root: Path) -> None:
    """C6"""
    (root / "run.sh").write_text("echo\n")
    (root / "run.sh").chmod(0o750)
    word = await version(root, "run.sh")
    await told(root, edit_file, path="run.sh", old="echo", new="true", version=word)
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


# ── editing ───────────────────────────────────────────────────────────────────────────────────────


async def test_an_edit_gives_the_version_for_the_next(root: Path) -> None:
    """C6"""
    word = await version(root, "a.txt")
    said = await told(root, edit_file, path="a.txt", old="two", new="2", version=word)
    assert said == f"edited a.txt: replaced once, version {await version(root, 'a.txt')}"
    await told(root, edit_file, path="a.txt", old="one", new="1", version=said.split()[-1])
    assert (root / "a.txt").read_text() == "1\n2\nthree\n"


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("a a", "a", "`old` occurs 2 times in a.txt"),
        ("aaa", "aa", "`old` occurs 2 times in a.txt"),
        pytest.param("a" * 400_000, "a" * 200_000, "`old` occurs 2 times in a.txt", id="much of the same"),
        ("a", "b", "`old` is not in a.txt"),
        ("a  b", "a b", "`old` is not in a.txt"),
        ("a", "x", "`old` and `new` are the same text"),
        ("a", "", "at least 1 character"),
    ],
)
async def test_an_edit_that_is_not_clear_is_refused(root: Path, text: str, old: str, why: str) -> None:
    """C6"""
    (root / "a.txt").write_text(text)
    word = await version(root, "a.txt")
    assert why in await refused(root, edit_file, path="a.txt", old=old, new="x", version=word)
    assert (root / "a.txt").read_text() == text


async def test_everywhere_replaces_all(root: Path) -> None:
    """C6"""
    (root / "a.txt").write_text("a b a")
    word = await version(root, "a.txt")
    said = await told(root, edit_file, path="a.txt", old="a", new="c", version=word, everywhere=True)
    assert "replaced 2 times" in said
    assert (root / "a.txt").read_text() == "c b c"


async def test_a_stale_edit_is_refused(root: Path) -> None:
    """Another process has changed the file in the meantime (C6)."""
    word = await version(root, "a.txt")
    (root / "a.txt").write_text("one\ntwo\nfour\n")
    stale = await refused(root, edit_file, path="a.txt", old="two", new="2", version=word)
    assert stale.endswith("Read it again.")
    assert (root / "a.txt").read_text() == "one\ntwo\nfour\n"


async def test_of_two_edits_of_one_version_one_is_made(root: Path) -> None:
    """The other edit is refused with an error, not lost silently (C6)."""
    word = await version(root, "a.txt")
    edits = [
        told(root, edit_file, path="a.txt", old=old, new=old.upper(), version=word)
        for old in ("one", "two", "three")
    ]
    done = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(isinstance(one, str) for one in done) == 1


async def test_line_ends_stay_as_they_are(root: Path) -> None:
    """C6: a model writes plain ones."""
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert (await told(root, read_file, path="a.txt")).endswith("]\none\ntwo\nthree")
    word = await version(root, "a.txt")
    await told(root, edit_file, path="a.txt", old="one\ntwo", new="1\n2", version=word)
    assert (root / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


@given(st.text(st.sampled_from("a\r\n"), max_size=12))
def test_a_text_goes_back_as_it_came(text: str) -> None:
    """C6"""
    file = text_file("a", text.encode())
    assert file.bytes(file.text) == text.encode()


# ── searching ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "path", "fit"),
    [
        ("*.py", "a.py", True),
        ("*.py", "sub/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("sub/**", "sub/x/y", True),
        ("sub/**", "subs/x", False),
        ("**/x/**/y", "a/x/b/c/y", True),
        ("**/x/**/y", "a/x/y", True),
        ("**/x/**/y", "a/y", False),
        ("a?c", "abc", True),
        ("a/b", "a/b/c", False),
        ("a/b/c", "a/b", False),
        ("[ab].txt", "b.txt", True),
        ("", "a", False),
    ],
)
def test_a_glob_fits(pattern: str, path: str, fit: bool) -> None:
    """C6"""
    assert fits(path, pattern) is fit


async def test_files_are_found_by_name(root: Path) -> None:
    """C6"""
    (root / ".git").mkdir()
    (root / ".git" / "c.py").touch()
    assert await told(root, glob, pattern="**/*.py") == "sub/b.py"
    assert await told(root, glob, pattern="*", path="sub") == "sub/b.py"
    assert await told(root, glob, pattern="*.rs") == "no file in . matches *.rs"
    for number in range(503):
        (root / "sub" / f"{number}.js").touch()
    assert (await told(root, glob, pattern="**/*.js")).endswith("\n[3 more are not shown]")


async def test_a_path_that_is_found_can_be_read(root: Path) -> None:
    """The path works from any folder, and a single file can be searched (C6)."""
    found = await told(root, grep, pattern="return", path="sub")
    assert found.partition(":")[0] == await told(root, glob, pattern="*", path="sub") == "sub/b.py"
    assert "return 2" in await told(root, read_file, path="sub/b.py")
    assert await told(root, grep, pattern="return", path="sub/b.py") == found


async def test_what_ignore_files_name_is_left_out_and_said(root: Path) -> None:
    """A request can include ignored files. Ignore files of parent folders apply, too (C6)."""
    (root / ".gitignore").write_text("build/\n*.log\n")
    (root / "sub" / ".ignore").write_text("b.py\n")
    for name in ("build/out.py", "sub/deep/x.log", "sub/deep/y.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("return 1\n")
    assert await told(root, glob, pattern="**/*.py") == (
        "sub/deep/y.py\n[left out by ignore files: build, sub/b.py, sub/deep/x.log]"
    )
    assert await told(root, grep, pattern="return", path="sub/deep") == (
        "sub/deep/y.py:1: return 1\n[left out by ignore files: sub/deep/x.log]"
    )
    assert await told(root, glob, pattern="*", path="build") == "build/out.py"


async def test_lines_are_found(root: Path) -> None:
    """C6"""
    (root / "data").write_bytes(b"two\0two")
    (root / "latin").write_bytes(b"two \xe9")
    (root / "big").write_text("two\n" * 300_000)
    found = await told(root, grep, pattern="t[wh]")
    assert found == "a.txt:2: two\na.txt:3: three\n[1 files over 1000 kB were not searched]"
    assert await told(root, grep, pattern="RETURN", ignore_case=True, files="**/*.py") == (
        "sub/b.py:2:     return 2"
    )
    assert await told(root, grep, pattern="zebra", path="sub") == "no line matches in 1 files"


async def test_what_is_found_is_bounded(root: Path) -> None:
    """C9"""
    (root / "many").write_text(("x" * 5000 + "needle" + "y" * 5000 + "\n") * 60 + "needle\n" * 300)
    lines = (await told(root, grep, pattern="needle")).splitlines()
    assert len(lines) == 201
    assert lines[-1].startswith("[stopped after 200 lines")
    assert "needle" in lines[0]
    assert len(lines[0]) < 330


async def test_a_bad_pattern_is_explained(root: Path) -> None:
    """C7"""
    assert "'(' is not a regular expression: missing )" in await refused(root, grep, pattern="(")


@pytest.mark.slow
def test_a_pattern_that_would_never_end_is_ended() -> None:
    """C7: by its process, for in a thread it would hold up everybody."""
    with _matcher("(a+)+$", ignore_case=False, time=0.3) as ask, pytest.raises(ToolFailed, match="simpler"):
        ask(b"a" * 60 + b"b")


@pytest.mark.slow
async def test_a_search_ends_with_its_call(tmp_path: Path) -> None:
    """T6: a tree may be large."""
    bench = Bench(workspace=workspace(tmp_path), cancelled=True)
    outcome = await bench.run(grep, {"pattern": "one"})
    assert outcome.result.text == "no line matches in 0 files"


async def test_the_matcher_finds_what_the_library_finds() -> None:
    """C6"""
    with _matcher("a.c", ignore_case=True) as ask:

        @settings(deadline=None)
        @given(st.text(st.sampled_from("aABbcC\r\n é"), max_size=30))
        def same(text: str) -> None:
            import re

            expected = [
                number
                for number, line in enumerate(text.split("\n"), 1)
                if re.search("a.c", line.removesuffix("\r"), re.IGNORECASE)
            ]
            assert [number for number, _ in ask(text.encode())] == expected

        same()
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)
