"""What becomes settings, code or prompt at the next start is asked about, whatever is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import allow_always, reject, tool
from dragoman.messages.parts import CallState
from dragoman.tools.builtin import files_group
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, only_call, runtime_with
from tests.turn.deploying import waiting

BECOME_PROGRAM = [
    "dragoman.toml",
    "src/dragoman.toml",
    "tools/x.py",
    "src/deep/tools/x.py",
    "plugins/x.py",
    "skills/x/SKILL.md",
    "docs/skills/x/SKILL.md",
    ".dragoman/skills/x/SKILL.md",
    "src/.dragoman/x",
    "AGENTS.md",
    "src/AGENTS.md",
    "CLAUDE.md",
    "./src/../dragoman.toml",
    "src//tools//x.py",
    "Dragoman.TOML",
    "src/TOOLS/x.py",
    "agents.md",
    "Claude.md",
    "ſkills/x/SKILL.md",
    "dragoman\u200c.toml",
    "dragoman.toml.",
    "dragoman.toml::$DATA",
]


@pytest.mark.parametrize("path", BECOME_PROGRAM)
async def test_writing_what_becomes_the_program_is_asked_about_everywhere(tmp_path: Path, path: str) -> None:
    """P9, P11: in the library too, without settings, where no such file exists yet, in every spelling."""
    async with runtime_with(
        tmp_path,
        [calls("write_file", path=path, text="x"), says("done")],
        tools=[files_group()],
        allow=["*"],
        workspace=tmp_path,
    ) as runtime:
        turn = await waiting(runtime)
        (question,) = await runtime.questions()
        assert question.because == "bounds"
        assert question.rules == ()
        await turn.answer(turn.question, reject())
        assert only_call(await turn.result()).state is CallState.REJECTED


@pytest.mark.parametrize(
    "path", ["toolsmith/x.py", "src/tools.py", "my-skills.md", "README.md", "a/dragoman.tom"]
)
async def test_a_file_that_is_merely_called_alike_is_not(tmp_path: Path, path: str) -> None:
    """P1"""
    async with runtime_with(
        tmp_path,
        [calls("write_file", path=path, text="x"), says("done")],
        tools=[files_group()],
        allow=["files.*"],
        workspace=tmp_path,
    ) as runtime:
        assert only_call(await (await runtime.send("go")).result()).state is CallState.COMPLETED


async def test_reading_what_becomes_the_program_is_not_asked_about(tmp_path: Path) -> None:
    """P9"""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "x.py").write_text("secret = 1\n", "utf-8")
    async with runtime_with(
        tmp_path,
        [calls("read_file", path="tools/x.py"), calls("grep", pattern="secret", path="."), says("done")],
        tools=[files_group()],
        allow=["files.read"],
        workspace=tmp_path,
    ) as runtime:
        result = await (await runtime.send("go")).result()
    assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 2
    assert all(call.result is not None and "secret" in call.result.text for call in calls_of(result.messages))


async def test_allowing_one_for_always_does_not_allow_the_next(tmp_path: Path) -> None:
    """P9: grant × bounds."""
    script = [
        calls("write_file", path="AGENTS.md", text="x"),
        calls("write_file", path="b/AGENTS.md", text="x"),
        says("done"),
    ]
    async with runtime_with(
        tmp_path, script, tools=[files_group()], allow=["files.*"], workspace=tmp_path
    ) as runtime:
        turn, asked = await runtime.send("go"), []
        async for event in turn.events():
            if event.type == "call.asked":
                asked.append((event.arguments["path"], event.because))
                await turn.answer(event.question, allow_always())
    assert asked == [("AGENTS.md", "bounds"), ("b/AGENTS.md", "bounds")]


async def test_tools_of_others_that_change_files_are_judged_alike(tmp_path: Path) -> None:
    """P9: by their permission and the path they name, whatever they do with it."""

    @tool(permission="files.delete", pattern="name")
    def delete_file(name: str) -> str:
        """Delete a file."""
        return name

    async with runtime_with(
        tmp_path, [calls("delete_file", name="src/tools"), says("done")], tools=[delete_file], allow=["*"]
    ) as runtime:
        turn = await waiting(runtime)
        (question,) = await runtime.questions()
        assert question.because == "bounds"
        await turn.answer(turn.question, reject())
        await turn.result()
