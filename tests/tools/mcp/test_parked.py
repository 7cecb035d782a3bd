"""Check a server's question to the user when the process is killed before the answer."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from dragoman import reply
from dragoman.errors import DragomanError
from dragoman.messages.message import CallState
from dragoman.messages.questions import Question
from dragoman.wire.scripted import says
from tests.fork_server import KILL, python
from tests.patience import PATIENCE, eventually
from tests.runtimes import calls_of
from tests.tools.mcp.asking import runtime

pytestmark = pytest.mark.slow


async def killed_while_it_asks(folder: Path, tool: str) -> Question:
    """Return the question that a process had asked when it was killed."""
    process = subprocess.Popen(python("-m", "tests.tools.mcp.asking", str(folder), tool))  # noqa: ASYNC220 - it is not waited for
    try:
        await eventually((folder / "begun.txt").exists)
        async with runtime(folder, adopts=False) as looking, asyncio.timeout(PATIENCE):
            while not (found := await looking.store.questions()):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
    finally:
        process.send_signal(KILL)
        process.wait()
    assert "What is your name?" in found[0].text
    return found[0]


def begun(folder: Path) -> list[str]:
    return (folder / "begun.txt").read_text().split()


@pytest.mark.parametrize("meanwhile", [True, False])
async def test_the_question_of_a_call_that_may_be_repeated_is_answered_after_a_kill(
    tmp_path: Path, meanwhile: bool
) -> None:
    """The same question is asked once, and the user can also answer while no process runs the turn
    (S3 × P6)."""
    question = await killed_while_it_asks(tmp_path, "look")
    if meanwhile:
        async with runtime(tmp_path, adopts=False) as answering:
            await answering.answer(question.id, reply({"name": "Ada"}))
    async with runtime(tmp_path, says("done")) as again:
        turn = again.turn(question.turn)
        if not meanwhile:
            assert [one.id for one in await again.store.questions()] == [question.id]
            await turn.answer(question.id, reply({"name": "Ada"}))
        (call,) = calls_of((await turn.result()).messages)
    assert call.result is not None
    assert (call.state, call.result.text, begun(tmp_path)) == (
        CallState.COMPLETED,
        "hello Ada",
        ["look", "look"],
    )


async def test_a_call_that_may_do_anything_is_not_made_again_for_its_question(tmp_path: Path) -> None:
    """The question is closed, also if no client reads the turn or answers. The model sees that, and the
    server is not called a second time (S3)."""
    question = await killed_while_it_asks(tmp_path, "change")
    async with runtime(tmp_path, says("done")) as again:
        async with asyncio.timeout(PATIENCE):
            while await again.store.questions():  # noqa: ASYNC110 - nobody asked for the turn
                await asyncio.sleep(0.01)
        result = await again.turn(question.turn).result()
        (call,) = calls_of(result.messages)
        closed = await again.store.question(question.id)
        with pytest.raises(DragomanError, match="the program stopped while the tool waited"):
            await again.answer(question.id, reply({"name": "Ada"}))
    assert call.result is not None
    assert (call.state, result.text, begun(tmp_path)) == (CallState.INTERRUPTED, "done", ["change"])
    assert "whether it took effect is not known" in call.result.text
    assert closed.closed == "the program stopped while the tool waited"
