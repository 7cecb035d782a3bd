"""A child process of a tool does not outlive the process that ran the tool (S3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman import reject
from tests.crash.workers import process, until, until_so, worker, wrote

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there is no /bin/sh here"),
]

# A child of a child that ignores a polite request. All of them hold the pipe, until the last is dead.
LASTING = "exec 8>held; trap '' TERM; (trap '' TERM; sleep 600) & echo up >&8; wait"


class Held:
    """The read end of a named pipe: shows its data, and whether a process still holds the write end."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def has_line(self) -> bool:
        return self._read() == b"up\n"

    def free(self) -> bool:
        return self._read() == b""

    def close(self) -> None:
        os.close(self._file)

    def _read(self) -> bytes | None:
        try:
            return os.read(self._file, 100)
        except BlockingIOError:
            return None


async def test_a_killed_owners_shell_command_is_dead_when_a_person_is_asked_about_it(tmp_path: Path) -> None:
    """S3: whether to run it again is a question about one that does not run."""
    held = Held(tmp_path / "held")
    try:
        async with worker(tmp_path) as living:
            with process(tmp_path, f"${LASTING}") as owner:
                await until(held.has_line)
                owner.kill()
                owner.wait()
                turn = living.turn(str(wrote(tmp_path, "turn")[0]))
                await until(held.free)

                async def asked() -> bool:
                    return bool((await turn.snapshot()).questions)

                await until_so(asked)
                (question,) = (await turn.snapshot()).questions
                assert question.kind == "interrupted"
                await turn.answer(question, reject("leave it"))
                assert (await turn.result()).text == "done"
    finally:
        held.close()


async def test_a_child_that_another_tool_forked_does_not_keep_it_running(tmp_path: Path) -> None:
    """S3: the child has what its parent had open, and lives on."""
    held = Held(tmp_path / "held")
    try:
        (tmp_path / "go").touch()
        with process(tmp_path, f"$true\nforks\n${LASTING}", gate="in forks") as owner:
            await until(held.has_line)
            await until(lambda: wrote(tmp_path, "forked"))
            owner.kill()
            owner.wait()
            (child,) = wrote(tmp_path, "forked")
            try:
                await until(held.free)
                os.kill(int(str(child)), 0)  # it is still there
            finally:
                os.kill(int(str(child)), 9)
    finally:
        held.close()
