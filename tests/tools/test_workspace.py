"""C8: every path that a model writes stays inside the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ToolContext, ToolFailed, tool
from dragoman.tools.workspace import (
    OPEN_FILES,
    below,
    inside,
    on_one_line,
    path_patterns,
    read_if_there,
    read_inside,
    remove_inside,
    replace_inside,
    steps_of,
    wider_paths,
)
from dragoman.workspace.folder import DEEPEST
from tests.tools.bench import Bench


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a folder next to a secret, with links that lead out."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "work-2").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "secret").symlink_to(tmp_path / "secret.txt")
    (root / "in").symlink_to(root / "sub")
    (root / "loop").symlink_to(root / "loop")
    return root


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.txt", "a.txt"),
        ("./a.txt", "a.txt"),
        ("sub/../a.txt", "a.txt"),
        ("sub/new/file.txt", "sub/new/file.txt"),
        ("in/b.txt", "sub/b.txt"),
        ("..a", "..a"),
        ("~/a", "~/a"),
        ("", "."),
        (".", "."),
    ],
)
def test_names_inside_are_followed(workspace: Path, path: str, found: str) -> None:
    """C8"""
    assert inside(workspace, path) == (workspace / found).resolve()


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "sub/../../secret.txt",
        "../work-2",
        "/etc/passwd",
        "//server/share",
        "C:\\Windows\\system.ini",
        "C:secret.txt",
        "\\\\server\\share\\x",
        "\\secret.txt",
        "a\0.txt",
        "out/secret.txt",
        "secret",
        "out",
        "loop",
        "loop/x",
    ],
)
def test_what_leads_out_is_refused_in_words_for_the_model(workspace: Path, path: str) -> None:
    """C8"""
    with pytest.raises(ToolFailed):
        inside(workspace, path)


def test_a_workspace_may_itself_be_a_link(workspace: Path, tmp_path: Path) -> None:
    """C8"""
    link = tmp_path / "link"
    link.symlink_to(workspace)
    assert inside(link, "a.txt") == workspace / "a.txt"


@given(st.lists(st.sampled_from(["..", ".", "sub", "a", "", "x y"]), max_size=6).map("/".join))
def test_no_mix_of_steps_leads_out(path: str) -> None:
    """C8"""
    root = Path("workspace").resolve()
    try:
        assert inside(root, path).is_relative_to(root)
    except ToolFailed:
        assert path.startswith("/") or ".." in path


@pytest.mark.parametrize(
    ("path", "spelled", "wider"),
    [
        ("a/b/c.txt", "a/b/c.txt", ["a/b/*", "a/*"]),
        ("./a//b/../c.txt", "a/c.txt", ["a/*"]),
        ("c.txt", "c.txt", []),
        ("", ".", []),
        ("a/..", ".", []),
        ("../c.txt", "../c.txt", ["../*"]),
    ],
)
def test_a_path_is_spelled_in_one_way_for_rules(path: str, spelled: str, wider: list[str]) -> None:
    """P1: with the folders that a rule could name instead, the nearest first."""
    assert path_patterns({"path": path}) == [spelled]
    assert wider_paths({"path": path}) == wider


def test_a_path_has_an_end_and_one_line() -> None:
    """C8"""
    deepest = "/".join("a" * DEEPEST)
    assert len(steps_of(deepest)) == DEEPEST
    with pytest.raises(ToolFailed, match=f"{DEEPEST} steps at most"):
        steps_of(f"{deepest}/a")
    assert below("./a/", "b") == "a/b"
    assert below("", "b") == "b"
    for name, shown in (("a b", "a b"), ("a\nb", '"a\\nb"'), ("a\u2028b", r'"a\342\200\250b"')):
        assert on_one_line(name) == shown


async def test_a_tool_reaches_its_files_through_the_context(workspace: Path) -> None:
    """C8"""

    @tool
    def read(path: str, context: ToolContext) -> str:
        """Read a file."""
        return context.inside_workspace(path).read_text()

    bench = Bench(workspace=workspace)
    assert (await bench.run(read, {"path": "a.txt"})).result.text == "a"
    assert (await bench.run(read, {"path": "secret"})).result.text == "secret leads out of the workspace"
    assert "no workspace" in (await Bench().run(read, {"path": "a.txt"})).result.text


# ── as an editor has them ─────────────────────────────────────────────────────────────────────────


class PlayedBuffers:
    """An editor with one text open, which writes, or leaves it to us."""

    def __init__(self, text: str | None, *, writes: bool = True) -> None:
        self.text = text
        self.writes = writes

    def read(self, path: Path) -> str | None:
        return self.text

    def write(self, path: Path, text: str) -> bool:
        if self.writes:
            path.write_bytes(f"by the editor: {text}".encode())
        return self.writes


@contextmanager
def open_in_editor(text: str | None, *, writes: bool = True) -> Iterator[None]:
    token = OPEN_FILES.set(PlayedBuffers(text, writes=writes))
    try:
        yield
    finally:
        OPEN_FILES.reset(token)


@pytest.mark.parametrize(
    ("saved", "open_as", "read"),
    [
        (b"a\r\nb\r\n", "a\nb\n", b"a\r\nb\r\n"),  # no change, although the editor uses different line ends
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\nb\n", "a\nc\n", b"a\nc\n"),
        (b"a\n", None, b"a\n"),
        (b"", "new", b"new"),
    ],
)
def test_what_an_editor_has_open_is_what_is_read(
    tmp_path: Path, saved: bytes, open_as: str | None, read: bytes
) -> None:
    """F2: with the line ends of the file."""
    (tmp_path / "a.txt").write_bytes(saved)
    with open_in_editor(open_as):
        assert read_inside(tmp_path, "a.txt", 100) == read
        assert read_if_there(tmp_path, "a.txt", 100) == read
    assert (tmp_path / "a.txt").read_bytes() == saved


def test_an_editor_writes_where_it_can(tmp_path: Path) -> None:
    """Files that the editor cannot write are written directly. The editor receives no path out of the
    workspace or through a link (F2)."""
    with open_in_editor(None):
        replace_inside(tmp_path, "a.txt", 100, lambda old: b"new", create=True)
    assert (tmp_path / "a.txt").read_bytes() == b"by the editor: new"
    with open_in_editor(None, writes=False):
        replace_inside(tmp_path, "a.txt", 100, lambda old: b"ours", create=True)
    assert (tmp_path / "a.txt").read_bytes() == b"ours"
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    with open_in_editor("x"), pytest.raises(ToolFailed):
        replace_inside(tmp_path, "link.txt", 100, lambda old: b"new", create=True)
    with open_in_editor("x"), pytest.raises(ToolFailed):
        read_inside(tmp_path, "../outside.txt", 100)
    with open_in_editor(None):  # an editor has only text
        replace_inside(tmp_path, "a.txt", 100, lambda old: b"\xff", create=False)
    assert (tmp_path / "a.txt").read_bytes() == b"\xff"


def test_a_file_is_deleted_only_as_it_was_read(workspace: Path) -> None:
    """C6"""
    for read in (b"b", b""):
        with pytest.raises(ToolFailed, match="changed meanwhile"):
            remove_inside(workspace, "a.txt", read)
    remove_inside(workspace, "a.txt", b"a")
    assert not (workspace / "a.txt").exists()
