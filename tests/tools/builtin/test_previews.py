"""B2: a tool that shows a change beforehand shows what it makes, or that it would fail."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments, CallState
from dragoman.tools.approval import foresee
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.builtin.read_write import version_of
from dragoman.tools.tool import Tool
from dragoman.workspace.diff import diff_texts
from tests.sweeps import examples
from tests.tools.bench import Bench

OLD = "one\ntwo\nthree\ntwo\n"
PATHS = st.sampled_from(["f", "new", "sub/new", "sub", "../f", "f/x", "gone/../f", "link", ""])
VERSIONS = st.sampled_from([version_of(OLD.encode()), "0000000000", "", None])
TEXTS = st.sampled_from(["one", "two", "four", "", "one\ntwo", "three\n", OLD])
PATCHES = st.sampled_from(
    [
        diff_texts("f", OLD.encode(), OLD.replace("one", "1").encode()).text,
        diff_texts("f", b"other\n", b"else\n").text,
        diff_texts("new", b"", b"made\n").text,
        "*** Begin Patch\n*** Update File: f\n@@\n-two\n+2\n*** End Patch\n",
        "*** Begin Patch\n*** Delete File: gone\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n",
        "no patch",
        "",
    ]
)
WRITERS = {tool.name: tool for make in BUILTIN.values() for tool in make().tools if tool.preview is not None}
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[JsonValue]]] = {
    "write_file": {"path": PATHS, "text": TEXTS, "version": VERSIONS},
    "edit_file": {
        "path": PATHS,
        "version": VERSIONS,
        "old": TEXTS,
        "new": TEXTS,
        "everywhere": st.booleans(),
    },
    "apply_patch": {"patch": PATCHES},
}


def test_each_of_them_is_tried_here() -> None:
    assert WRITERS.keys() == ARGUMENTS.keys()


@pytest.mark.parametrize("tool", WRITERS.values(), ids=lambda tool: tool.name)
@given(data=st.data())
@settings(max_examples=examples(40, 400), deadline=None)
def test_a_preview_fails_if_the_call_would_and_shows_what_it_makes(tool: Tool, data: st.DataObject) -> None:
    drawn = {name: data.draw(values) for name, values in ARGUMENTS[tool.name].items()}
    arguments: Arguments = {name: value for name, value in drawn.items() if value is not None}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "f").write_text(OLD)
        (root / "sub").mkdir()
        (root / "link").symlink_to("f")
        before = contents(root)
        try:
            seen = foresee(tool, arguments, root)
        except (ToolFailed, ValueError) as error:  # what does not fit the schema is a ValueError
            foreseen, problem = "", str(error)
        else:
            foreseen, problem = seen.diff, ""
            assert {*seen.told} == {*tool.previewed} & arguments.keys()
        assert contents(root) == before  # a look changes nothing
        outcome = asyncio.run(Bench(workspace=root).run(tool, arguments))
        assert (outcome.state is CallState.FAILED) == bool(problem), (problem, outcome.result.text)
        after = contents(root)
        made = [
            diff_texts(path, before.get(path, b""), after.get(path, b"")).text
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]
        assert made or "@@" not in foreseen
        for diff in made:
            assert diff.partition("@@")[2] in foreseen


def contents(root: Path) -> dict[str, bytes]:
    files = (one for one in root.rglob("*") if one.is_file() and not one.is_symlink())
    return {str(one.relative_to(root)): one.read_bytes() for one in files}
