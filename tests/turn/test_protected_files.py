"""Writes to files that become settings, code or prompts at the next start need approval despite any rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import allow_always, reject, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import nobody_to_ask
from dragoman.tools.builtin import files_group, shell_group
from dragoman.tools.builtin.read_write import version_of
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
    ".git/config",
    ".GIT/hooks/pre-commit",
    "GIT~1/config",
    "deep/module/.git",
    "bare.git/config",
    "other/HEAD",
    ".gitattributes",
    "sub/.gitmodules",
    ".hg/hgrc",
    ".jj/repo/config.toml",
    ".githooks/pre-push",
    ".vscode/tasks.json",
    "x.code-workspace",
    ".idea/workspace.xml",
    ".mcp.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".envrc",
    ".helix/languages.toml",
    ".amp/settings.json",
    "sub/.Rprofile",
    "x.sublime-project",
    ".devcontainer/devcontainer.json",
]


@pytest.mark.parametrize("path", BECOME_PROGRAM)
async def test_writing_what_becomes_the_program_is_asked_about_everywhere(tmp_path: Path, path: str) -> None:
    """P9, P11, P12: in the library too, without settings, whether it exists or not, in every spelling."""
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
    "path",
    [
        *("toolsmith/x.py", "src/tools.py", "my-skills.md", "README.md", "a/dragoman.tom"),
        *(".gitignore", ".github/x.md", "git/config", "src/header.py", "heads/x", "digit.py", ".vscodes/x"),
    ],
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
    """Dragoman judges another source's file tool by its permission and the path it names (P9)."""

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


async def test_an_allowed_git_command_runs_nothing_that_a_model_wrote(tmp_path: Path) -> None:
    """A write to a file that Git obeys needs approval (P12 × a rule on `shell`)."""
    root = tmp_path / "w"
    root.mkdir()
    script = [
        calls("shell", command="git init -q"),
        calls("write_file", path=".git/x.cfg", text=f"[core]\nfsmonitor = touch {tmp_path}/ran; false\n"),
        calls("shell", command="git status --short"),
        says("done"),
    ]
    async with runtime_with(
        tmp_path,
        script,
        tools=[files_group(), shell_group()],
        allow=["files.*", "shell:git *"],
        workspace=root,
    ) as runtime:
        turn, asked = await runtime.send("go"), []
        async for event in turn.events():
            if event.type == "call.asked":
                asked.append((event.tool, event.because))
                await turn.answer(event.question, nobody_to_ask())
        await turn.result()
    assert asked == [("write_file", "bounds")]
    assert not (root / ".git" / "x.cfg").exists()


@pytest.mark.parametrize("kind", ["symlink", "folder link", "hard link"])
async def test_a_name_that_leads_to_a_protected_file_does_not_change_it(tmp_path: Path, kind: str) -> None:
    """P12 × links made before the call, such as by a shell."""
    config = tmp_path / ".git" / "config"
    config.parent.mkdir()
    config.write_text("ours", "utf-8")
    if kind == "hard link":
        (tmp_path / "plain").hardlink_to(config)
    elif kind == "symlink":
        (tmp_path / "plain").symlink_to(config)
    else:
        (tmp_path / "plain").symlink_to(config.parent)
    path = "plain/config" if kind == "folder link" else "plain"
    version = version_of(b"ours")
    async with runtime_with(
        tmp_path,
        [calls("write_file", path=path, text="theirs", version=version), says("done")],
        tools=[files_group()],
        allow=["*"],
        workspace=tmp_path,
    ) as runtime:
        state = only_call(await (await runtime.send("go")).result()).state
    assert state is (CallState.COMPLETED if kind == "hard link" else CallState.FAILED)
    assert config.read_text("utf-8") == "ours"


async def test_a_patch_that_moves_a_file_there_is_asked_about(tmp_path: Path) -> None:
    """P12: by where it goes."""
    (tmp_path / "a.txt").write_text("x\n", "utf-8")
    lines = ("*** Update File: a.txt", "*** Move to: .git/hooks/pre-commit", "@@", "-x", "+y")
    patch = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    async with runtime_with(
        tmp_path,
        [calls("apply_patch", patch=patch), says("done")],
        tools=[files_group()],
        allow=["*"],
        workspace=tmp_path,
    ) as runtime:
        turn = await waiting(runtime)
        (question,) = await runtime.questions()
        assert question.because == "bounds"
        await turn.answer(turn.question, reject())
        await turn.result()
