"""C8: whatever a model writes as a path, it stays inside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ToolContext, ToolFailed, tool
from dragoman.tools.workspace import inside
from tests.tools.bench import Bench


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a secret beside it, and links that lead out."""
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
