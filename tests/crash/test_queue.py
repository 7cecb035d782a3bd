"""A live process starts a turn queued after one of another process, whenever that process died (T13, S3)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.clockwork import NEVER, Moment
from tests.crash.workers import process, until, worker, wrote
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

_AT_ONCE = 3  # of the trials below


async def _queue_behind(folder: Path, moment: Moment) -> None:
    """Run a turn in another process and queue one after it in this process. The other process dies, or ends
    its turn."""
    async with worker(folder) as living:
        with process(folder, "first", gate="in first", moment=moment) as owner:
            await until(lambda: wrote(folder, "at"))
            chat = await living.conversation(str(wrote(folder, "conversation")[0]))
            queued = await chat.send("second", queue=True)
            assert await living.store.is_queued(queued.id)
            (folder / "go").touch()
            status = await asyncio.to_thread(owner.wait, PATIENCE)
            if status != -signal.SIGKILL:  # writes at one moment merge, so this run had fewer
                assert moment == NEVER or int(str(wrote(folder, "writes")[0])) < moment[1]
            async with asyncio.timeout(PATIENCE):
                assert (await queued.result()).text == "done"
                before = await living.turn(str(wrote(folder, "turn")[0])).result()
            assert before.text == "done"
            assert [message.text for message in await chat.messages()] == [
                "first",
                "",
                "done",
                "second",
                "",
                "done",
            ]
            assert await living.store.queue() == []
    assert wrote(folder, "ran").count("second") == 1


def _moments(writes: int) -> Iterator[Moment]:
    """Before and after each write that ends the owner's turn."""
    for number in range(1, writes + 1):
        yield ("before", number)
        yield ("after", number)


@pytest.mark.long
async def test_what_was_queued_begins_whenever_the_owner_was_killed(tmp_path: Path) -> None:
    """The owner can die right after its last write, when none of its turns is left to end here (S3)."""
    (undisturbed := tmp_path / "undisturbed").mkdir()
    await _queue_behind(undisturbed, NEVER)
    (writes,) = wrote(undisturbed, "writes")
    assert int(str(writes)) > 2
    room = asyncio.Semaphore(_AT_ONCE)

    async def trial(moment: Moment) -> None:
        async with room:
            folder = tmp_path / "-".join(map(str, moment))
            folder.mkdir()
            try:
                await _queue_behind(folder, moment)
            except BaseException as error:
                error.add_note(f"killed at {moment}")
                raise

    async with asyncio.TaskGroup() as trials:
        for moment in _moments(int(str(writes))):
            trials.create_task(trial(moment))
