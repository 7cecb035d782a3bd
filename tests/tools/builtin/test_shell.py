"""C6, C7, T6: the shell tool: its output, its missing environment, and no process that outlives it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState, ToolCall
from dragoman.tools.builtin.shell import ShellOutput, _paused, run_program, shell
from dragoman.tools.cage.enter import environment
from dragoman.tools.execute import Permit, execute
from tests.patience import PATIENCE, eventually
from tests.tools.bench import Bench
from tests.tools.builtin.folder import refused, told
from tests.workspace.folders import open_files

# A child of a child that ignores a polite request, and writes as long as it lives.
LASTING = "trap '' TERM; (trap '' TERM; while true; do echo x >> beat; sleep 0.02; done) & echo started; wait"


async def test_a_command_runs_in_the_workspace_and_says_how_it_ended(tmp_path: Path) -> None:
    """C6"""
    assert await told(tmp_path, shell, command="pwd") == f"exit status 0\n{tmp_path}\n"
    assert await told(tmp_path, shell, command="echo a; echo b >&2; exit 3") == "exit status 3\na\nb\n"
    assert await told(tmp_path, shell, command="kill -9 $$") == "ended by signal 9\n"
    assert "not found" in await told(tmp_path, shell, command="no-such-program")
    assert "no command" in await refused(tmp_path, shell, command=" ")
    unclear = await refused(tmp_path, shell, command="touch ran", beyond=["write:a", "all"])
    assert unclear.startswith("Invalid value 'all' in beyond. Use write:PATH/*")
    assert not (tmp_path / "ran").exists()
    assert "no workspace" in (await Bench().run(shell, {"command": "true"})).result.text


async def test_a_command_that_cannot_start_leaves_no_pipe_open(tmp_path: Path) -> None:
    """C7"""
    with pytest.raises(FileNotFoundError):
        await run_program(["true"], tmp_path / "gone", ShellOutput(), lambda text: None)
    before = open_files(Path("pipe:"))
    with pytest.raises(FileNotFoundError):
        await run_program(["true"], tmp_path / "gone", ShellOutput(), lambda text: None)
    assert open_files(Path("pipe:")) == before


async def test_nothing_can_be_typed_into_it(tmp_path: Path) -> None:
    """A command that waits for input ends immediately (C6)."""
    assert await told(tmp_path, shell, command='read x; echo "got $x"; cat') == "exit status 0\ngot \n"


async def test_output_is_told_while_it_runs(tmp_path: Path) -> None:
    """C6"""
    bench = Bench(workspace=tmp_path)
    command = "echo a; until [ -e heard ]; do sleep 0.02; done; echo b"
    running = asyncio.create_task(bench.run(shell, {"command": command}))
    await eventually(lambda: bench.progress)
    (tmp_path / "heard").touch()
    outcome = await running
    assert bench.progress == ["a\n", "b\n"]
    assert outcome.result.metadata == {"exit_status": 0}


async def test_much_output_is_bounded(tmp_path: Path) -> None:
    """C9"""
    bench = Bench(workspace=tmp_path)
    outcome = await bench.run(shell, {"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo end"})
    assert len(outcome.result.text) < 1_000_200
    assert "[… 2000004 characters were not kept …]" in outcome.result.text
    assert outcome.result.text.endswith("xend\n")
    assert sum(len(str(piece)) for piece in bench.progress) == 200_000


@given(st.lists(st.text("ab", max_size=9)), st.integers(1, 8))
def test_both_ends_of_an_output_are_kept(pieces: list[str], half: int) -> None:
    """C9"""
    output, whole = ShellOutput(half), "".join(pieces)
    for piece in pieces:
        output.add(piece)
    if len(whole) <= 2 * half:
        assert output.text() == whole
    else:
        left_out = len(whole) - 2 * half
        assert output.text() == (
            f"{whole[:half]}\n[… {left_out} characters were not kept …]\n{whole[-half:]}"
        )


async def test_bytes_that_are_no_text_and_characters_in_pieces_are_shown(tmp_path: Path) -> None:
    """C6"""
    said = await told(tmp_path, shell, command=r"printf '\303'; sleep 0.1; printf '\251 \377'")
    assert said == "exit status 0\né \N{REPLACEMENT CHARACTER}"


def test_only_what_is_named_is_passed_on() -> None:
    """The environment of a command has no secrets."""
    ours = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "k",
        "AWS_SECRET": "s",
        "PATHS": "p",
    }
    assert environment(ours) == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}


async def test_a_command_sees_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment contains only variables that were named."""
    monkeypatch.setenv("DRAGOMAN_TEST_KEY", "sk-secret")
    said = await told(tmp_path, shell, command="env")
    assert "sk-secret" not in said
    names = {line.partition("=")[0] for line in said.splitlines()[1:]}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == set(environment(os.environ))


# ── nothing is left ───────────────────────────────────────────────────────────────────────────────


async def beats(folder: Path) -> bool:
    """Return whether a process still writes."""
    before = (folder / "beat").stat().st_size
    await asyncio.sleep(0.2)
    return (folder / "beat").stat().st_size > before


@pytest.mark.slow
async def test_the_whole_group_ends_when_its_time_is_up(tmp_path: Path) -> None:
    """Output up to that moment is not lost (C7)."""
    text = await refused(tmp_path, shell, command=LASTING, timeout=5)
    assert text == "it took longer than 5 s and was ended; it had printed:\nstarted\n"
    assert not await beats(tmp_path)


@pytest.mark.slow
async def test_the_whole_group_ends_on_cancel(tmp_path: Path) -> None:
    """T6"""
    bench = Bench(workspace=tmp_path)
    call = ToolCall("call_1", "shell", {"command": LASTING})
    running = asyncio.create_task(execute(shell, call, Permit(call.hash, "rule"), bench.context()))
    await eventually((tmp_path / "beat").exists)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert not await beats(tmp_path)


@pytest.mark.slow
async def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """The call does not wait for the remaining process (C7)."""
    command = "(while true; do echo x >> beat; sleep 0.02; done) & sleep 0.1; echo done"
    async with asyncio.timeout(PATIENCE):
        assert await told(tmp_path, shell, command=command) == "exit status 0\ndone\n"
    assert not await beats(tmp_path)


@pytest.mark.slow
async def test_one_who_leaves_the_group_is_not_waited_for(tmp_path: Path) -> None:
    """C7"""
    bench = Bench(workspace=tmp_path)
    async with asyncio.timeout(PATIENCE):
        outcome = await bench.run(shell, {"command": f"setsid sleep {2 * PATIENCE:.0f} & echo $!"})
    assert outcome.state is CallState.COMPLETED
    os.kill(int(outcome.result.text.split()[-1]), signal.SIGKILL)


WAITS = """
import os
if os.fork() == 0:
    os._exit(3)
os.wait()
try:
    os.wait()
except ChildProcessError:
    print("alone")
"""


async def test_a_command_that_waits_for_all_its_children_has_none_of_ours(tmp_path: Path) -> None:
    """The watching process is not a child of the command and does not disturb it (C6)."""
    (tmp_path / "waits.py").write_text(WAITS)
    command = f"exec {shlex.quote(sys.executable)} waits.py"
    assert await told(tmp_path, shell, command=command, timeout=20) == "exit status 0\nalone\n"
    assert await told(tmp_path, shell, command="wait; echo waited", timeout=20) == "exit status 0\nwaited\n"


@pytest.mark.parametrize("verdict", [None, ToolFailed("no")])
async def test_the_clock_of_a_command_stands_while_a_person_answers(verdict: ToolFailed | None) -> None:
    """T6: also if they refuse."""

    async def gate(*_: str) -> None:
        assert limit.when() is None
        if verdict is not None:
            raise verdict

    async with asyncio.timeout(PATIENCE) as limit:
        before = limit.when()
        with suppress(ToolFailed):
            await _paused(limit, gate)("example.org", "May it?", "cage.net")
        assert before is not None
        assert before <= (limit.when() or 0.0) < before + PATIENCE / 2
