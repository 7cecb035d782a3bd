"""Replay what Emacs sends, recorded from acp.el 0.14.2 (the client below agent-shell) in Emacs 28.2.

`emacs.jsonl` has its messages, with $CWD and $SESSION in place of the folder and the session.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.acp.editor import ACP, settings
from tests.cli.program import clean_environment
from tests.fork_server import python
from tests.loopback import Body, Reply, Stream, delta, loopback, sse
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
RECORDED = Path(__file__).with_name("emacs.jsonl")


def play(body: Body) -> Reply:
    last = body["messages"][-1]
    if "slowly" in str(last):
        return Stream((sse(delta(content="Half of it")),), then="stalls")
    return says("Done.") if last["role"] == "tool" else calls("write_file", path="a.txt", text="one\n")


async def test_emacs_is_served_from_its_first_message_to_its_last(tmp_path: Path) -> None:
    """The recording covers modes, a file in the prompt, an approved call written by the editor, a
    cancellation, and sessions (F2)."""
    async with loopback(play) as model, asyncio.timeout(PATIENCE):
        settings(tmp_path, model)
        process = await asyncio.create_subprocess_exec(
            *python(*ACP),
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        told: list[dict[str, Any]] = []

        async def until(*, id: int | None = None, asked: bool = False, half: bool = False) -> dict[str, Any]:
            """The next message that is the answer to `id`, or a question of that id, or the first text."""
            while True:
                for one in told:
                    if ("method" in one) == asked and one.get("id") == id is not None:
                        return one
                    if half and "Half of it" in str(one):
                        return one
                assert process.stdout is not None
                told.append(json.loads(await process.stdout.readline()))

        session, last, prompts = "", 0, list[int]()
        for line in RECORDED.read_text().splitlines():
            message = json.loads(line.replace("$CWD", str(tmp_path)).replace("$SESSION", session))
            if "method" not in message:
                asked = await until(id=message["id"], asked=True)
                if asked["method"] == "fs/write_text_file":
                    Path(asked["params"]["path"]).write_text(asked["params"]["content"])  # noqa: ASYNC240
            elif message["method"] == "session/cancel":
                await until(half=True)
            elif prompts:
                await until(id=prompts[-1])
            process.stdin.write(json.dumps(message).encode() + b"\n")
            if message.get("method") == "session/prompt":
                prompts.append(message["id"])  # its answer comes behind what it asks
            elif "id" in message and "method" in message:
                answer = await until(id=(last := message["id"]))
                session = session or answer["result"].get("sessionId", "")
        answers = {id: await until(id=id) for id in range(1, last + 1)}
        process.stdin.close()
        await process.wait()
    assert [id for id, answer in answers.items() if "error" in answer] == []
    assert [answers[id]["result"]["stopReason"] for id in prompts] == ["end_turn", "cancelled"]
    (listed,) = answers[7]["result"]["sessions"]
    assert listed["sessionId"] == session != answers[10]["result"]["sessionId"]
    assert (tmp_path / "a.txt").read_text() == "one\n"
