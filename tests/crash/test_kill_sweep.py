"""S3: a turn is killed at every moment there is; each time it goes on, nothing lost, nothing done twice."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections import Counter
from pathlib import Path

import pytest

from dragoman.messages.parts import CallState
from dragoman.store.sqlite import SqliteStore
from dragoman.turn.facts import FACT, CallFinished, Fact
from dragoman.turn.machine import State, replay
from tests.crash.scene import NEVER, Moment, attend, lines, make_house, victim

pytestmark = pytest.mark.slow

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.crash.scene"])


def _run(folder: Path, moment: Moment) -> int:
    process = _PROCESSES.Process(target=victim, args=(str(folder), moment))
    process.start()
    process.join(60)
    assert process.exitcode is not None, f"the process hangs at {moment}"
    return process.exitcode


async def _turns(folder: Path) -> dict[str, list[Fact]]:
    """What a dead process left behind."""
    store = SqliteStore(folder / "chat.db")
    await store.open()
    try:
        found = {}
        for conversation in await store.conversations():
            for row in await store.turns(conversation.id):
                found[row.id] = [FACT.load(body) for body in await store.facts(row.id)]
        return found
    finally:
        await store.close()


async def _survives(folder: Path) -> None:
    """Start again, and hold everything to account."""
    before = await _turns(folder)
    finished = {f.call for facts in before.values() for f in facts if isinstance(f, CallFinished)}
    done = lines(folder / "tools.log")
    runtime, _ = make_house(folder, NEVER)
    async with runtime:
        for id in before:
            turn = runtime.turn(id)
            if not replay(before[id]).state.ended:
                await attend(folder, turn)
            await _check(folder, turn.id, runtime, finished, len(done))
    told = [line["turn"] for line in lines(folder / "told.log") if "turn" in line]
    assert set(told) <= set(before), "the caller was told of a turn that is not there"


async def _check(folder: Path, id: str, runtime, finished: set[str], done: int) -> None:  # type: ignore[no-untyped-def]
    turn = runtime.turn(id)
    facts = await turn.facts()
    result = await turn.result()
    assert result.state is State.COMPLETED
    assert result.text == "The end"

    chat = await runtime.conversation(result.messages[0].conversation)
    tree = await chat.tree()
    path = await chat.messages()
    assert [m.text for m in path] == [
        "go",
        "First ",
        "said at once",
        "said later",
        "Then ",
        "Almost",
        "and now the end",
        "The end",
    ]
    assert len(tree) == len(path), "something hangs beside the path"

    calls = [call for message in path for call in message.calls]
    assert [(call.tool, call.arguments["n"]) for call in calls] == [
        ("reads", 1),
        ("writes", 2),
        ("careful", 3),
        ("approved", 4),
        ("reviewed", 5),
        ("writes", 6),
        ("reads", 7),
    ]
    ended = Counter(fact.call for fact in facts if isinstance(fact, CallFinished))
    assert ended == {call.id: 1 for call in calls}, "each call has exactly one result"

    journal = lines(folder / "tools.log")
    starts = Counter(line["call"] for line in journal if line["what"] == "starts")
    for call in calls:
        if call.tool != "reads":
            assert starts[call.id] <= 1, f"{call.tool} ran twice"
        if call.state is CallState.COMPLETED:
            assert call.result is not None
            assert call.result.text == f"{call.tool} {call.arguments['n']} done"
        else:
            assert call.state is CallState.INTERRUPTED
            assert call.tool in ("writes", "careful", "approved", "reviewed")
    again = {line["call"] for line in journal[done:]}
    assert not (again & finished), "a finished call ran again"

    by_id = {call.id: call for call in calls}
    for line in lines(folder / "told.log"):
        if "call" in line and line["call"] in by_id:
            call = by_id[line["call"]]
            assert call.result is not None
            assert (call.state, call.result.text) == (line["state"], line["text"])
        if "message" in line:
            assert line["message"] in tree
        if "answered" in line:
            assert (await runtime.store.question(line["answered"])).answer is not None


def _moments(folder: Path) -> list[Moment]:
    """Every moment of an undisturbed run."""
    assert _run(folder, NEVER) == 0
    return [(kind, n) for kind, count in _counts(folder).items() for n in range(1, count + 1)]


def _counts(folder: Path) -> dict[str, int]:
    """How many moments of each kind a run had that came to its end."""
    return {kind: int(n) for kind, n in json.loads((folder / "counts.json").read_text()).items()}


async def test_a_turn_survives_being_killed_at_every_moment(tmp_path: Path) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    moments = _moments(quiet)
    await _survives(quiet)
    assert len(moments) > 60
    spared = 0  # a run with fewer writes than the first had
    for moment in moments:
        folder = tmp_path / "-".join(map(str, moment))
        folder.mkdir()
        if _run(folder, moment) != -signal.SIGKILL:  # what happens in one moment is written together
            assert _counts(folder)[moment[0]] < moment[1], f"nothing was killed at {moment}"
            spared += 1
        try:
            await _survives(folder)
        except BaseException as error:
            error.add_note(f"killed at {moment}, in {folder}")
            raise
    assert spared < 5
