"""Measure the cost of a case in addition to its turn: CPU of a run, and of the same turns without one.

    python -m benchmarks.evaluation [--cases 1000]

Two models, three repeats; each turn makes a call. The model is on loopback, in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman import Runtime, tool
from dragoman.evaluation import Case, Expected, ExpectedCall, run
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models

MODELS = ("bench/rounds-1", "bench/rounds-01")
REPEATS = 3
AT_ONCE = 8


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextmanager
def model_server() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name("server.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


async def turns(models: Models, folder: Path, count: int) -> float:
    """Seconds of CPU of the turns alone."""
    waiting = iter([(case, model) for case in range(count) for model in MODELS for _ in range(REPEATS)])
    async with Runtime(folder / "turns.db", model=models.__call__, tools=[add], allow=["*"]) as runtime:

        async def work() -> None:
            for case, model in waiting:
                await (await runtime.send(f"Question {case}", model=model)).result()

        began = time.process_time()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return time.process_time() - began


async def cases(models: Models, folder: Path, count: int) -> float:
    """Seconds of CPU of a whole run, report included."""
    call = MadeCall("add", {"a": 0, "b": 2}, 2)
    found = [
        Case(
            f"case-{number}",
            (CaseMessage("user", f"Question {number}"),),
            Expected(any_order=(ExpectedCall("add"),)),
            tools=("tools",),
            recorded=Answered("bench", "…", (call,)),
        )
        for number in range(count)
    ]
    like = Runtime(folder / "like.db", model=models.__call__, tools=[add])
    began = time.process_time()
    report = await run(
        found, models=MODELS, repeats=REPEATS, like=like, folder=folder / "runs", concurrency=AT_ONCE
    )
    spent = time.process_time() - began
    assert all(report.pass_rate(one).rate == 1 for one in report.variants), report.markdown()[:2000]
    return spent


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    count = parser.parse_args().cases
    with tempfile.TemporaryDirectory() as name, model_server() as url:
        folder = Path(name)
        (folder / "catalog.toml").write_text(f'[providers.bench]\nbase_url = "{url}"\nlocal = true\n')
        async with Models(MODELS[0], catalog=load_catalog(folder / "catalog.toml")) as models:
            for warm in (1, count):
                (folder / str(warm)).mkdir()
                alone = await turns(models, folder / str(warm), warm)
                whole = await cases(models, folder / str(warm), warm)
    asked = count * len(MODELS) * REPEATS
    print(f"{count} cases × {len(MODELS)} models × {REPEATS} repeats, a call each")
    print(f"the turn itself  {1000 * alone / asked:6.2f} ms of CPU")
    print(f"as a case        {1000 * whole / asked:6.2f} ms of CPU, {whole / alone:.2f} times that")


if __name__ == "__main__":
    asyncio.run(main())
