"""C8: no file tool reads or writes outside the workspace, whatever path a model writes and whoever swaps
links."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman import ToolFailed
from dragoman.messages.questions import Rule
from dragoman.tools.builtin import BUILTIN, files_group
from dragoman.tools.builtin.edit_file import edit_file
from dragoman.tools.builtin.file_search import glob, grep
from dragoman.tools.builtin.read_write import list_directory, read_file, version_of, write_file
from dragoman.tools.permissions import decide
from dragoman.tools.tool import Tool
from dragoman.tools.workspace import path_patterns, read_inside, replace_inside, steps_of
from tests.sweeps import examples
from tests.tools.bench import Bench
from tests.tools.builtin.folder import SECRET, names, refused, told, workspace

ESCAPES = [
    "..",
    "../secret.txt",
    "../work-2/x",
    "sub/../../secret.txt",
    "sub/../../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "//server/share",
    "C:\\Windows\\system.ini",
    "C:secret.txt",
    "\\\\server\\share\\x",
    "a\0.txt",
    "a.txt\0",
    "out",
    "out/secret.txt",
    "out/new.txt",
    "sub/../out/secret.txt",
    "secret",
    "loop",
    "loop/x",
    "in/../../secret.txt",
    "a.txt/../../secret.txt",
    "x/" * 200,
    "n" * 300,
    "/proc/self/environ",
    "/dev/zero",
]

ARGUMENTS: list[tuple[Tool, dict[str, JsonValue]]] = [
    (list_directory, {}),
    (read_file, {}),
    (write_file, {"text": "x", "version": version_of(SECRET.encode())}),
    (write_file, {"text": "x"}),
    (edit_file, {"old": "secret", "new": "x", "version": version_of(SECRET.encode())}),
    (glob, {"pattern": "**"}),
    (grep, {"pattern": "secret"}),
]


@pytest.mark.parametrize(("tool", "arguments"), ARGUMENTS, ids=lambda value: getattr(value, "name", ""))
async def test_every_tool_refuses_every_escape(
    tmp_path: Path, tool: Tool, arguments: dict[str, JsonValue]
) -> None:
    """C8"""
    root = workspace(tmp_path)
    bench = Bench(workspace=root)
    for path in ESCAPES:
        if path == "x/" * 200 and tool is write_file:
            continue  # refused as well, but for its depth: see below
        outcome = await bench.run(tool, {"path": path, **arguments})
        assert outcome.state.value == "failed", (path, outcome.result.text)
        assert SECRET not in outcome.result.text
    assert (tmp_path / "secret.txt").read_text() == SECRET
    assert names(tmp_path) == ["secret.txt", "work", "work-2"]
    assert names(tmp_path / "work-2") == []


async def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    """C8: nor waited for."""
    root = workspace(tmp_path)
    assert await refused(root, read_file, path="pipe") == "'pipe' is not a regular file."
    assert await refused(root, read_file, path="sub") == "sub is a folder"
    assert await refused(root, read_file, path=".") == "'.' is the workspace itself, a folder."
    assert await refused(root, write_file, path="pipe", text="x") == "'pipe' is not a regular file."
    assert "is a folder" in await refused(root, write_file, path="sub", text="x")
    assert "not a folder" in await refused(root, read_file, path="a.txt/b")
    assert await refused(root, read_file, path="no/b") == "no/b is not in the workspace"
    assert "100 steps at most" in await refused(root, write_file, path="x/" * 200, text="x")


async def test_a_link_inside_is_refused_by_the_name_of_what_it_leads_to(tmp_path: Path) -> None:
    """C8, P1: else a rule on the real path would not hold."""
    root = workspace(tmp_path)
    link = "in/b.py goes through a link: name the file itself, sub/b.py"
    assert await refused(root, read_file, path="in/b.py") == link
    assert "name the file itself, a.txt" in await refused(root, read_file, path="alias.txt")
    assert "goes through a link" in await refused(root, write_file, path="alias.txt", text="x")
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_search_does_not_follow_links(tmp_path: Path) -> None:
    """C8"""
    root = workspace(tmp_path)
    assert await told(root, glob, pattern="**") == "a.txt\nsub/b.py"
    assert "no line matches" in await told(root, grep, pattern="secret beside")
    assert (
        await refused(root, glob, pattern="../*") == "A pattern cannot contain '..'. Pass the folder as path."
    )


async def test_a_name_with_lines_passes_for_no_other(tmp_path: Path) -> None:
    """A file can have any name, and the special space in a Mac's screenshot names is kept (C8)."""
    root = tmp_path / "named"
    root.mkdir()
    (root / "x\ny.txt").write_text("found\n")
    (root / "at 9.41\u202fPM.txt").write_text("found\n")
    assert await told(root, list_directory) == 'at 9.41\u202fPM.txt  6\n"x\\ny.txt"  6'
    assert await told(root, glob, pattern="*") == 'at 9.41\u202fPM.txt\n"x\\ny.txt"'
    assert await told(root, grep, pattern="fo") == 'at 9.41\u202fPM.txt:1: found\n"x\\ny.txt":1: found'


async def test_there_is_nothing_without_a_workspace() -> None:
    """C8"""
    for tool, arguments in ARGUMENTS:
        outcome = await Bench().run(tool, {"path": "a.txt", **arguments})
        assert outcome.result.text == "This conversation has no workspace folder."


@pytest.mark.parametrize("path", [*ESCAPES, "in/b.py", "alias.txt"])
def test_nothing_escapes_where_the_system_cannot_go_step_by_step(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This simulates Windows, where only a race remains possible (C8)."""
    monkeypatch.setattr("dragoman.workspace.folder._STEPWISE", False)
    monkeypatch.setattr("dragoman.workspace.folder._NO_LINKS", 0)
    root = workspace(tmp_path)
    assert read_inside(root, "sub/../sub/b.py", 100).startswith(b"def")
    assert replace_inside(root, "new/c", 100, lambda old: b"c", create=True) == b"c"
    with pytest.raises(ToolFailed):
        read_inside(root, path, 1000)
    with pytest.raises(ToolFailed):
        replace_inside(root, path, 1000, lambda old: b"x", create=True)
    assert names(tmp_path) == ["secret.txt", "work", "work-2"]


def test_a_name_with_half_a_character_is_refused(tmp_path: Path) -> None:
    """C8"""
    with pytest.raises(ToolFailed, match="is not a valid file name"):
        read_inside(workspace(tmp_path), "\ud800", 100)


def test_the_workspace_may_itself_be_a_link(tmp_path: Path) -> None:
    """C8"""
    (tmp_path / "link").symlink_to(workspace(tmp_path))
    assert read_inside(tmp_path / "link", "a.txt", 100) == b"one\ntwo\nthree\n"


# ── any mix of steps ──────────────────────────────────────────────────────────────────────────────

STEPS = st.lists(
    st.sampled_from(["..", ".", "sub", "a.txt", "", "in", "out", "secret", "secret.txt", "loop", "new", "~"]),
    max_size=6,
).map("/".join)


@settings(max_examples=examples(50))
@given(STEPS | st.text(st.sampled_from("./\\:a~\0 "), max_size=12))
def test_no_mix_of_steps_leads_out(path: str) -> None:
    """C8"""
    with TemporaryDirectory() as place:
        root = workspace(Path(place))
        try:
            assert SECRET.encode() not in read_inside(root, path, 1000)
        except ToolFailed:
            pass
        try:
            replace_inside(root, path, 1000, lambda old: b"x", create=True)
        except ToolFailed:
            pass
        assert (Path(place) / "secret.txt").read_text() == SECRET
        assert names(Path(place)) == ["secret.txt", "work", "work-2"]


@given(STEPS)
def test_a_path_is_judged_in_one_spelling(path: str) -> None:
    """P1: a denied folder stays denied under every name for it."""
    (pattern,) = path_patterns({"path": path})
    try:
        steps = steps_of(path)
    except ToolFailed:
        return
    assert pattern == ("/".join(steps) or ".")
    assert not {"", ".", ".."} & set(steps)


@pytest.mark.parametrize("path", ["secrets/x", "./secrets/x", "secrets//x", "a/../secrets/x", "secrets/./x"])
def test_a_denied_folder_is_denied_however_it_is_written(path: str) -> None:
    """P1"""
    rules = [Rule("files.read", "*", "allow"), Rule("files.*", "secrets/*", "deny")]
    assert decide("files.read", read_file.patterns({"path": path}), rules).action == "deny"


# ── races ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def swapping(root: Path, name: str, target: Path) -> Iterator[None]:
    """Replace a folder with a link, and put the folder back, in a loop."""
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (root / name).rename(root / "kept")
            (root / name).symlink_to(target)
            (root / name).unlink()
            (root / "kept").rename(root / name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_a_link_that_is_swapped_in_helps_nobody(tmp_path: Path) -> None:
    """A read returns workspace content or nothing, and no write goes elsewhere (C8)."""
    root = workspace(tmp_path)
    (root / "sub" / "secret.txt").write_text("harmless")
    seen: set[bytes] = set()
    with swapping(root, "sub", tmp_path):
        for _ in range(examples(500, 1500)):
            try:
                seen.add(read_inside(root, "sub/secret.txt", 1000))
                replace_inside(root, "sub/new.txt", 1000, lambda old: os.urandom(8), create=False)
            except ToolFailed:
                pass
    assert seen <= {b"harmless"}
    assert names(tmp_path) == ["secret.txt", "work", "work-2"]


def test_the_groups_are_there_by_name() -> None:
    """C11"""
    assert BUILTIN["files"]().tools == files_group().tools
    assert {tool.permission for tool in files_group().tools} == {"files.read", "files.write"}
    assert [tool.name for tool in BUILTIN["shell"]().tools] == ["shell"]
    assert all(tool.description for name in ("files", "shell") for tool in BUILTIN[name]().tools)
