"""Asks the model in the box every prompt there is, with its adapter and without, and prints how it did.

    python -m benchmarks.local_eval.run [--only adapter|untrained] [--suite NAME …] [--adapter FILE]
                                        [--bfcl WHEEL] [--misses] [--limit N]

Nothing is run but for `useful`: what counts is the call. Each prompt is a conversation of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.local_eval.suites import (
    BFCL_SLICES,
    HERE,
    Case,
    bfcl_prompts,
    dev_prompts,
    first_prompts,
    unseen_prompts,
)

from dragoman import Rule, Runtime
from dragoman.errors import DragomanError
from dragoman.messages.events import CallInputEnd
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.local.box import IN_THE_BOX, local_model, server_of
from dragoman.providers.local.server import LlamaServer
from dragoman.providers.local.trained import SLOTS, TRAINED_CONTEXT
from dragoman.providers.local.weights import IN_THE_PACKAGE, fetch
from dragoman.providers.wires import wire
from dragoman.tools.builtin import basics_group, files_group, web_group
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.wire import Model

EVERYTHING = Rule("*", "*", "allow")
DEV: dict[str, Callable[[], Iterable[Case]]] = {
    "dev": partial(first_prompts, "dev.toml"),
    "dev_others": dev_prompts,
}  # asked only where they are named: whoever writes material has read them
LONGEST = 120  # tokens of a reply: an untrained model would write for ever
WAYS = ("adapter", "untrained")


@dataclass(slots=True)
class Score:
    """What came of a suite: prompts, right tools, right arguments too, and seconds a prompt, by kind."""

    counts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    seconds: list[float] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


@asynccontextmanager
async def model_of(way: str, adapter: str) -> AsyncIterator[Model]:
    """The model with the adapter; or without it, asked in the same format and held to the same grammar."""
    if way == "adapter":
        server = server_of(IN_THE_BOX, file=None, adapter=adapter, context=None, progress=_progress)
    else:
        server = LlamaServer(partial(fetch, progress=_progress), context=TRAINED_CONTEXT, slots=SLOTS)
    async with HttpClient() as client:
        try:
            yield local_model(server, client, wire("openai_chat"), f"local/{IN_THE_BOX}", trained=True)
        finally:
            await server.close()


async def score_of(model: Model, cases: Iterable[Case]) -> Score:
    score = Score()
    for case in cases:
        request = Request(
            model.name,
            (RequestMessage("user", (Text(case.text),)),),
            tools=case.offered,
            options={"max_tokens": LONGEST},
        )
        began = time.perf_counter()
        try:
            batches = [batch async for batch in model.stream(request, "msg_eval")]
        except DragomanError as error:
            batches = []
            score.misses.append(f"{case.text}: {error}")
        score.seconds.append(time.perf_counter() - began)
        made = [event for batch in batches for event in batch if isinstance(event, CallInputEnd)]
        calls = [(event.tool, event.arguments or {}) for event in made]
        right = case.right(calls)
        tools = right or sorted(name for name, _ in calls) == sorted(case.tools)
        for at, one in enumerate((True, tools, right)):
            score.counts[case.kind][at] += one
        if not right:
            score.misses.append(
                f"{case.text}\n      {', '.join(case.tools) or 'no tool'} → {calls or 'no tool'}"
            )
    return score


async def useful(model: Model) -> Score:
    """Prompts through the library, with real tools in a folder of its own: whether the answer is true."""
    score = Score()
    for prompt in tomllib.loads((HERE / "useful.toml").read_text("utf-8"))["prompt"]:
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder) / "workspace"
            for name, content in {".": "", **prompt.get("files", {})}.items():
                path = workspace / name
                (path if name == "." else path.parent).mkdir(parents=True, exist_ok=True)
                if name != ".":
                    path.write_text(content, "utf-8")
            began = time.perf_counter()
            tools = [basics_group(), files_group(), web_group()]
            async with Runtime(
                Path(folder) / "chat.db", model=model, tools=tools, workspace=workspace, rules=[EVERYTHING]
            ) as runtime:
                try:
                    async with asyncio.timeout(90):
                        answer = (await (await runtime.send(prompt["text"])).result()).text
                except (DragomanError, TimeoutError) as error:
                    answer = f"[{error}]"
            score.seconds.append(time.perf_counter() - began)
        right = re.search(prompt["answer"]["like"], answer, re.IGNORECASE | re.DOTALL) is not None
        for at in range(3):
            score.counts["answers"][at] += right or at == 0
        if not right:
            score.misses.append(f"{prompt['text']}\n      → {answer[:200]!r}")
    return score


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
                    _print(way, name, await score_of(model, list(cases())[: options.limit]), options.misses)
            wanted = not options.suite or "useful" in options.suite
            if way == "adapter" and wanted and (HERE / "useful.toml").is_file():
                _print(way, "useful", await useful(model), options.misses)
        if way == "adapter":
            await _first_turn(options.adapter)
    return 0


async def _first_turn(adapter: str) -> None:
    """A server that has just been started, and a prompt whose tools an earlier one has read."""
    case = next(iter(first_prompts()))
    seconds = 0.0
    for _ in range(2):  # the first one reads the tools, unless they have been
        async with model_of("adapter", adapter) as model:
            seconds = (await score_of(model, [case])).seconds[0]
    print(f"first turn, with the start of the server: {seconds:.1f} s")


def _suites(wheel: Path | None) -> dict[str, Callable[[], Iterable[Case]]]:
    found: dict[str, Callable[[], Iterable[Case]]] = {"prompts": first_prompts}
    if (HERE / "unseen.toml").is_file():
        found["unseen"] = unseen_prompts
    if wheel is not None and wheel.is_file():
        found |= {f"bfcl_{category}": partial(bfcl_prompts, wheel, category) for category in BFCL_SLICES}
    return found


def _print(way: str, name: str, score: Score, misses: bool) -> None:
    print(f"\n{name}, {way:24}{'prompts':>8}{'tool':>8}{'tool and arguments':>20}")
    for kind, (count, tool, right) in sorted(score.counts.items()):
        print(f"  {kind:28}{count:8}{tool:8}{right:20}")
    count, tool, right = (sum(column) for column in zip(*score.counts.values(), strict=True))
    median = statistics.median(score.seconds)
    print(f"  {'all':28}{count:8}{tool:8}{right:20}   ({right / count:.0%}; median {median:.1f} s)")
    if misses:
        print("\n".join(f"  ✗ {miss}" for miss in score.misses))


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
