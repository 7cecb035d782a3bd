"""A conversation killed at any moment resumes with nothing lost and nothing done twice (S3)."""

from __future__ import annotations

import asyncio
import random
import signal
from itertools import count
from pathlib import Path

import pytest

from dragoman.turn.facts import FACT, CallFinished
from tests.crash.account import hold_to_account, is_free
from tests.crash.clockwork import KINDS, WRITES, Clockwork, Moment, deadly_store
from tests.crash.stage import opened
from tests.crash.stories import STORIES
from tests.forks import FORKS
from tests.patience import PATIENCE
from tests.sweeps import WHOLE, examples, some

pytestmark = pytest.mark.slow


def victim(folder: str, name: str, moment: Moment, again: bool) -> None:
    """Run a story in a separate process, to its end or until the clockwork strikes."""
    asyncio.run(_live(Path(folder), name, moment, again))


async def _live(folder: Path, name: str, moment: Moment, again: bool) -> None:
    clockwork = Clockwork(moment)
    if again:
        clockwork.wind()
    async with opened(folder, STORIES[name], clockwork, again=again) as stage:
        await (stage.finish() if again else stage.story.play(stage))


def _killed(folder: Path, name: str, moment: Moment, *, again: bool = False) -> bool:
    """Return whether the process was killed at this moment, and did not end before it."""
    process = FORKS.Process(target=victim, args=(str(folder), name, moment, again))
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
        pytest.fail(f"{name} hangs at {moment}")
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


async def _survives(folder: Path, name: str) -> None:
    """Start again, see everything to its end, and hold all to account."""
    finished = await _finished(folder)
    async with opened(folder, STORIES[name], again=True) as stage:
        done = len(stage.work.lines())
        await stage.finish()
        await hold_to_account(stage, finished, done)
        await stage.story.check(stage)
        await is_free(stage)


async def _finished(folder: Path) -> set[str]:
    """The calls that a dead process left with a result."""
    store = deadly_store(folder, Clockwork())
    await store.open()
    try:
        chats = await store.conversations()
        turns = [row.id for chat in chats for row in await store.turns(chat.id)]
        facts = [FACT.load(body) for turn in turns for body in await store.facts(turn)]
        return {fact.call for fact in facts if isinstance(fact, CallFinished)}
    finally:
        await store.close()


async def _survives_noted(folder: Path, name: str, *moments: Moment) -> None:
    try:
        await _survives(folder, name)
    except BaseException as error:
        error.add_note(f"{name}, killed at {moments}, in {folder}")
        raise


# A normal run kills one write in `EVERY`, in one of three ways that is the same in every run, and the tools
# of every third story. A sweep kills each write in all three ways.
EVERY = 12
SWEEPS = [(name, kind) for name in STORIES for kind in (KINDS if WHOLE else ("write",))]
SWEEPS += [] if WHOLE else [(name, "tool") for name in some([*STORIES], every=3)]
ON_POSTGRES = [*STORIES] if WHOLE else [*STORIES][:1]
LONG = pytest.mark.long
TOLD = [pytest.param("sqlite", *sweep) for sweep in SWEEPS]
TOLD += [pytest.param("postgres", *sweep, marks=LONG) for sweep in SWEEPS if sweep[0] in ON_POSTGRES]
TWICE = [pytest.param("sqlite", name) for name in STORIES]
TWICE += [pytest.param("postgres", name, marks=LONG) for name in ON_POSTGRES]


def _moment(name: str, kind: str, number: int) -> Moment:
    return (random.Random(f"{name} {number}").choice(WRITES) if kind == "write" else kind, number)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("engine", "name", "kind"), TOLD, indirect=["engine"])
async def test_a_conversation_survives_being_killed_at_every_moment(
    tmp_path: Path, name: str, kind: str
) -> None:
    """The count goes up until a run ends alive, because each run merges its writes differently (S3)."""
    first = 1 if WHOLE else 1 + [*STORIES].index(name) % 4  # another sample of each story
    kills = 0
    for number in count(first, step=1 if WHOLE else EVERY):
        folder = tmp_path / str(number)
        folder.mkdir()
        moment = _moment(name, kind, number)
        killed = _killed(folder, name, moment)
        await _survives_noted(folder, name, moment)
        if not killed:
            break
        kills += 1
    assert kills or kind == "tool", "nothing was killed"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("engine", "name"), TWICE, indirect=["engine"])
async def test_it_survives_being_killed_again_while_it_recovers(tmp_path: Path, name: str) -> None:
    """A restart can be killed too. Stories with few writes retry until the kill succeeds (S3)."""
    choose = random.Random(name)
    twice = 0
    for number in range(20 * examples(2, whole=30)):
        if twice and number >= examples(2, whole=30):
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        first, second = ((choose.choice(WRITES), choose.randint(1, 3)) for _ in range(2))
        if not _killed(folder, name, first):
            continue  # close writes merge into one, so this run had fewer
        twice += _killed(folder, name, second, again=True)
        await _survives_noted(folder, name, first, second)
    assert twice, "nothing was killed twice"
