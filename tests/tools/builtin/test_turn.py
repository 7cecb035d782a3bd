"""A turn in a real folder: it reads, edits as a person wants it, runs a command and reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import allow_once
from dragoman.messages.message import CallState, ToolCall
from dragoman.messages.request import Request
from dragoman.tools.builtin import files_group, shell_group
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import calls_of, play


def results(request: Request) -> list[str]:
    made = [part for said in request.messages for part in said.parts if isinstance(part, ToolCall)]
    return [call.result.text for call in made if call.result is not None]


def plays(request: Request) -> Line:
    """The version it edits with is the one it read."""
    match results(request):
        case []:
            return calls("read_file", path="greet.sh")
        case [read]:
            version = re.findall(r"version (\w+)", read)[0]
            return calls("edit_file", path="greet.sh", old="world", new="wrold", version=version)
        case [_, _]:
            return calls("shell", command="sh greet.sh && wc -l greet.sh")
        case [_, _, ran]:
            return says(f"It says: {ran.splitlines()[1]}")
    raise AssertionError("one call too many")


async def test_a_file_is_read_edited_as_a_person_wants_it_and_run(tmp_path: Path) -> None:
    """C6, P3"""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "greet.sh").write_text("echo hello world\n")
    asked: list[str] = []

    async def answer(turn: TurnHandle, event: Any) -> None:
        asked.append(event.tool)
        await turn.answer(event.question, allow_once({**event.arguments, "new": "Ada"}))

    result = await play(
        tmp_path,
        plays,
        "greet Ada",
        answer=answer,
        tools=[files_group(), shell_group()],
        workspace=folder,
        allow=["files.read", "shell:sh greet.sh", "shell:wc *"],
    )
    assert result.text == "It says: hello Ada"
    assert asked == ["edit_file"]
    read, edit, ran = calls_of(result.messages)
    assert [call.state for call in (read, edit, ran)] == [CallState.COMPLETED] * 3
    assert (folder / "greet.sh").read_text() == "echo hello Ada\n"
    assert edit.result is not None
    assert edit.result.note is not None
    assert "changed the arguments" in edit.result.note
    assert ran.result is not None
    assert ran.result.text.startswith("exit status 0\nhello Ada\n1 greet.sh")


async def test_a_question_about_a_write_that_would_be_refused_says_so(tmp_path: Path) -> None:
    """The approval request shows no change that cannot be made, and describes no file that the user was not
    allowed to see (P9)."""
    (tmp_path / "b.txt").write_text("there\n")
    asked: list[Any] = []

    async def answer(turn: TurnHandle, event: Any) -> None:
        asked.append(event)
        await turn.answer(event.question, allow_once())

    script = [calls("write_file", path="b.txt", text="other\n"), says("done")]
    result = await play(
        tmp_path, script, answer=answer, tools=[files_group()], workspace=tmp_path, allow=["files.read"]
    )
    (question,) = asked
    assert question.diff == ""
    assert "it fails: 'b.txt' exists. Read it first, then pass the version" in question.text
    (write,) = calls_of(result.messages)
    assert write.state is CallState.FAILED
    assert (tmp_path / "b.txt").read_text() == "there\n"


async def test_a_line_with_one_command_too_many_is_asked_about(tmp_path: Path) -> None:
    """P1"""
    asked: list[str] = []

    async def answer(turn: TurnHandle, event: Any) -> None:
        asked.append(event.text)
        await turn.answer(event.question, allow_once({"command": "echo b"}))

    script = [calls("shell", command="echo a && touch x"), says("done")]
    result = await play(
        tmp_path, script, answer=answer, tools=[shell_group()], workspace=tmp_path, allow=["shell:echo *"]
    )
    (text,) = asked
    assert "allow shell for 'echo a'; allow shell for 'touch x'" in text
    assert not (tmp_path / "x").exists()
    assert result.text == "done"


@pytest.mark.parametrize("meddled", [False, True])
async def test_a_patch_of_a_file_that_was_read_applies_while_it_is_as_it_was_read(
    tmp_path: Path, meddled: bool
) -> None:
    """Changes that another process made since are not lost, although the patch would fit (C6)."""
    file = tmp_path / "work" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\ntwo\n")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"

    def script(request: Request) -> Line:
        done = results(request)
        if len(done) == 1 and meddled:
            file.write_text("one\n2\n")
        return [calls("read_file", path="a.txt"), calls("apply_patch", patch=patch), says("ok")][len(done)]

    result = await play(
        tmp_path,
        script,
        "go",
        tools=[files_group()],
        workspace=file.parent,
        allow=["files.read", "files.write"],
    )
    _, patched = calls_of(result.messages)
    assert patched.state is (CallState.FAILED if meddled else CallState.COMPLETED)
    assert file.read_text() == ("one\n2\n" if meddled else "1\ntwo\n")
