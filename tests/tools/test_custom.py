"""A person's own tools: Python files in a folder, each on its own feet."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.tools.python_files import load_folder, run_file

GOOD = 'from dragoman import tool\n\n@tool\ndef {name}() -> str:\n    """Do it."""\n    return "{name}"\n'


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")


def test_every_file_gives_its_tools(tmp_path: Path) -> None:
    write(
        tmp_path,
        custom_one=GOOD.format(name="one"),
        custom_two=GOOD.format(name="two"),
        _neighbour="x = 1 / 0",
    )
    tools, warnings = load_folder(tmp_path)
    assert ([tool.name for tool in tools], warnings) == (["one", "two"], [])


def test_what_is_broken_is_named_with_its_line_and_the_rest_works(tmp_path: Path) -> None:
    write(
        tmp_path,
        custom_bad="x = 1\ny = 1 / 0\n",
        custom_worse="def (:\n",
        custom_empty="x = 1\n",
        custom_good=GOOD.format(name="good"),
    )
    tools, warnings = load_folder(tmp_path)
    assert [tool.name for tool in tools] == ["good"]
    assert len(warnings) == 3
    assert "custom_bad.py, line 2: ZeroDivisionError" in warnings[0]
    assert "no tools" in warnings[1]
    assert "custom_worse.py, line 1: SyntaxError" in warnings[2]


def test_two_tools_of_one_name_do_not_both_get_in(tmp_path: Path) -> None:
    write(tmp_path, custom_a=GOOD.format(name="same"), custom_b=GOOD.format(name="same"))
    tools, warnings = load_folder(tmp_path)
    assert len(tools) == 1
    assert "another same" in warnings[0]


def test_a_folder_is_no_file_of_tools(tmp_path: Path) -> None:
    (tmp_path / "custom.py").mkdir()
    with pytest.raises(ConfigError, match=r"custom.py' is not a readable Python file"):
        run_file(tmp_path / "custom.py")
