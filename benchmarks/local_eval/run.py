"""Ask the bundled model every prompt, with its adapter and without, and print the results.

    python -m benchmarks.local_eval.run [--only adapter|untrained] [--suite NAME …] [--adapter FILE]
                                        [--bfcl WHEEL] [--misses] [--limit N]

Tools only run in `useful`: elsewhere the call counts. Each prompt is a separate conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.local_eval.suites import (
    BFCL_SLICES,
    CHECKS,
    HERE,
    bfcl_prompts,
    dev_prompts,
    first_prompts,
    unseen_prompts,
    useful_prompts,
)

from dragoman.evaluation import Case, Report, run
from dragoman.providers.local.box import IN_THE_BOX, local_model, server_of
from dragoman.providers.local.server import LlamaServer
from dragoman.providers.local.trained import SLOTS, TRAINED_CONTEXT
from dragoman.providers.local.weights import IN_THE_PACKAGE, fetch
from dragoman.providers.wires import wire
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.wire import Model

DEV: dict[str, Callable[[], Iterable[Case]]] = {
    "dev": partial(first_prompts, "dev.toml"),
    "dev_others": dev_prompts,
}  # run only if they are named: authors of training material have read them
WAYS = ("adapter", "untrained")


@asynccontextmanager
async def model_of(way: str, adapter: str) -> AsyncIterator[Model]:
    """The model with the adapter, or without it, with the same format and the same grammar."""
    if way == "adapter":
        server = server_of(IN_THE_BOX, file=None, adapter=adapter, context=None, progress=_progress)
    else:
        server = LlamaServer(partial(fetch, progress=_progress), context=TRAINED_CONTEXT, slots=SLOTS)
    async with HttpClient() as client:
        try:
            yield local_model(server, client, wire("openai_chat"), f"local/{IN_THE_BOX}", trained=True)
        finally:
            await server.close()


async def asked(way: str, model: Model, cases: Sequence[Case], *, real: bool = False) -> Report:
    """Run one prompt after the other, because there is one machine. `real` tools work in a folder of the
    case."""
    return await run(
        cases, models={way: model}, checks=CHECKS, tools="cage" if real else "recorded", concurrency=1
    )


async def main() -> int:
    options = _options()
    suites = _suites(options.bfcl)
    unknown = set(options.suite) - {*suites, *DEV, "useful"}
    if unknown:
        print(f"there is no {', '.join(unknown)}: there are {', '.join([*suites, *DEV, 'useful'])}")
        return 2
    for way in [options.only] if options.only else WAYS:
        async with model_of(way, options.adapter) as model:
            for name, cases in {**suites, **DEV}.items():
                if name in options.suite or (not options.suite and name not in DEV):
                    found = [*cases()][: options.limit]
                    _print(name, found, await asked(way, model, found), options.misses)
            wanted = not options.suite or "useful" in options.suite
            if way == "adapter" and wanted and (HERE / "useful.toml").is_file():
                found = [*useful_prompts()][: options.limit]
                _print("useful", found, await asked(way, model, found, real=True), options.misses)
        if way == "adapter":
            await _first_turn(options.adapter)
    return 0


async def _first_turn(adapter: str) -> None:
    """Measure a newly started server, and a prompt whose tools an earlier one has already loaded."""
    case = next(iter(first_prompts()))
    seconds = 0.0
    for _ in range(2):  # the first prompt loads the tools, unless they are loaded
        async with model_of("adapter", adapter) as model:
            began = time.perf_counter()
            await asked("adapter", model, [case])
            seconds = time.perf_counter() - began
    print(f"first turn, with the start of the server: {seconds:.1f} s")


def _suites(wheel: Path | None) -> dict[str, Callable[[], Iterable[Case]]]:
    found: dict[str, Callable[[], Iterable[Case]]] = {"prompts": first_prompts}
    if (HERE / "unseen.toml").is_file():
        found["unseen"] = unseen_prompts
    found["fresh"] = partial(unseen_prompts, "fresh.toml")
    if wheel is not None and wheel.is_file():
        found |= {f"bfcl_{category}": partial(bfcl_prompts, wheel, category) for category in BFCL_SLICES}
    return found


def _print(name: str, cases: Sequence[Case], report: Report, misses: bool) -> None:
    (variant,) = report.variants
    print(f"\n{name}, {variant.model:24}{'prompts':>8}{'tool':>8}{'tool and arguments':>20}")
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    missed = []
    for case, answer in zip(cases, report.runs, strict=True):
        made = [call.tool for call in answer.answered.calls]
        wanted: Any = case.data.get("tools", [])
        tools = bool(answer.passed) or (case.only_calls and sorted(made) == sorted(wanted))
        for at, one in enumerate((True, tools, bool(answer.passed))):
            counts[case.labels[0]][at] += one
        if not answer.passed:
            got = ", ".join(call.identity for call in answer.answered.calls) or answer.answered.text[:200]
            missed.append(
                f"{case.messages[-1].text}\n      {', '.join(wanted) or 'no tool'} → {got or 'no tool'}"
            )
    for kind, (count, tool, right) in sorted(counts.items()):
        print(f"  {kind:28}{count:8}{tool:8}{right:20}")
    count, tool, right = (sum(column) for column in zip(*counts.values(), strict=True))
    share, median = report.pass_rate(variant).rate, report.seconds(variant)
    print(f"  {'all':28}{count:8}{tool:8}{right:20}   ({share:.0%}; median {median:.1f} s)")
    if misses:
        print("\n".join(f"  ✗ {miss}" for miss in missed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--suite", action="append", default=[], help="one of them alone")
    parser.add_argument("--adapter", default=IN_THE_PACKAGE, help="another file than the one in the package")
    parser.add_argument("--bfcl", type=Path, help="the wheel of bfcl-eval")
    parser.add_argument("--limit", type=int, help="prompts of each suite")
    parser.add_argument("--misses", action="store_true", help="show them: then they are no test any more")
    return parser.parse_args()


def _progress(done: int, total: int) -> None:
    print(f"\rfetching the model: {done / 1e6:.0f} of {total / 1e6:.0f} MB", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
