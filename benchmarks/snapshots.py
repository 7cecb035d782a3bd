"""`make bench-snapshots`: measure the cost of recording the workspace: 50,000 files, and a thousand turns.

A step that changes one file is measured as a turn runs it: the scan before the call and the scan after it.
git's own `status` is the reference. A task on the event loop checks the clock continuously, and its longest
wait is reported, too.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dragoman.workspace.full_scan import WATCH_FROM
from dragoman.workspace.history import WorkspaceHistory

MOST = 0.150  # seconds of a step, once warm
REALISTIC = 5.0  # seconds of a step with a model: recording must take at most 2 % of it
STEPS = 20
NEVER = 10**9


def make_tree(root: Path, files: int, folders: int) -> None:
    """Create files of one to sixty lines, in folders up to nine deep. A seed keeps them the same."""
    chance = random.Random(1)
    made = [root]
    root.mkdir(parents=True)
    for number in range(folders - 1):
        above = chance.choice(made[-300:])
        if len(above.relative_to(root).parts) > 8:
            above = chance.choice(made[:50])
        made.append(above / f"dir{number}")
        made[-1].mkdir()
    for number in range(files):
        text = f"x = {number}\n" * chance.randint(1, 60)
        (made[number % len(made)] / f"file_{number}.py").write_text(text)
    (root / ".gitignore").write_text("*.pyc\nbuild/\n/dist\n.env\n*.log\n")


async def measure_steps(history: WorkspaceHistory, root: Path, name: str) -> float:
    """Run some steps that change one file each. → the median, in seconds"""
    taken: list[float] = []
    worst = 0.0

    async def look_at_the_clock() -> None:
        nonlocal worst
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before - 0.001)

    def begin(turn: str) -> None:
        history.begin(conversation="bench", turn=turn, step=1, call="call", paths=None)

    for warm in (False, False, True):  # builds the known state of the folder, then what the kernel reports
        clock = asyncio.create_task(look_at_the_clock()) if warm else None
        for step in range(STEPS if warm else 1):
            turn = f"{name}-{warm}-{step}-{time.time_ns()}"
            start = time.perf_counter()
            await asyncio.to_thread(begin, turn)
            before = time.perf_counter()
            (root / "changed.py").write_text(str(time.time_ns()))
            after = time.perf_counter()
            told = await asyncio.to_thread(history.end, turn, "call")
            assert told is not None
            assert [change.path for change in told.changes] == ["changed.py"]
            if warm:
                taken.append(time.perf_counter() - start - (after - before))
            elif not step:
                print(f"  {name}, at first: {before - start:.2f} s, then {time.perf_counter() - after:.2f} s")
        if clock is not None:
            clock.cancel()
    median = statistics.median(taken)
    print(f"  {name}: {median * 1e3:.0f} ms a step (at most {max(taken) * 1e3:.0f} ms),", end=" ")
    print(f"others waited {worst * 1e3:.0f} ms at most")
    return median


def measure_git(root: Path) -> None:
    git = shutil.which("git")
    if git is None:
        return
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for words in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--message", "all"],
    ):
        subprocess.run([git, *words], cwd=root, check=True, capture_output=True)
    status = partial(subprocess.run, [git, "status"], cwd=root, check=True, capture_output=True)
    taken = [_timed(status) for _ in range(6)]
    print(f"  git status, for comparison: {min(taken[1:]) * 1e3:.0f} ms, twice a step")


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_turns(top: Path, turns: int) -> None:
    """Each changes a line of a file with 600."""
    root = top / "turns"
    root.mkdir()
    history = WorkspaceHistory(root, top / "turn-records")
    chance = random.Random(2)
    lines = [f"{number} {chance.random()} {chance.random()}" for number in range(600)]
    written = 0
    for number in range(turns):
        history.begin(conversation=f"c{number % 10}", turn=f"t{number}", step=1, call="c", paths=["a.py"])
        lines[chance.randrange(600)] = f"changed in {number}: {chance.random()}"
        written += (root / "a.py").write_text("\n".join(lines))
        history.end(f"t{number}", "c")
    history.close()
    print(f"  {turns} turns wrote {written / 1e6:.1f} MB, and are {_size(top):.2f} MB of records")
    history = WorkspaceHistory(root, top / "turn-records")
    seconds = _timed(lambda: history.forget([f"c{number}" for number in range(1, 10)]))
    history.close()
    print(f"  nine of ten conversations deleted: {_size(top):.2f} MB, after {seconds:.2f} s")


def _size(top: Path) -> float:
    return sum(file.stat().st_size for file in (top / "turn-records").iterdir()) / 1e6


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--folders", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=1_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        root = top / "work"
        make_tree(root, wanted.files, wanted.folders)
        print(f"{wanted.files:,} files in {wanted.folders:,} folders")
        await asyncio.sleep(0.2)  # newly written files are read twice
        medians = {}
        for name, watch_from in (("asking the kernel", WATCH_FROM), ("walking through", NEVER)):
            history = WorkspaceHistory(root, top / f"records-{watch_from}", watch_from=watch_from)
            medians[name] = await measure_steps(history, root, name)
            history.close()
        measure_git(root)
        print(f"{wanted.turns:,} turns")
        measure_turns(top, wanted.turns)
    best = medians["asking the kernel"]
    print(f"recording is {best / REALISTIC:.2%} of a step of {REALISTIC:g} s")
    if best > MOST or best > REALISTIC * 0.02:
        sys.exit(f"a step costs more than {MOST * 1e3:.0f} ms, or 2 %")


if __name__ == "__main__":
    asyncio.run(main())
