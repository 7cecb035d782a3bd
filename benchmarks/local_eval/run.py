"""Prompts with the tool that is right for each in, a table and a score of the model in the box out.

    python benchmarks/local_eval/run.py [--dev] [--model local/smollm2]

Nothing is run: what counts is the call a model makes. Each prompt is a conversation of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ToolFailed
from dragoman.messages.events import CallInputEnd
from dragoman.messages.parts import Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.models import Models
from dragoman.tools.builtin import basics_group, files_group, web_group
from dragoman.tools.builtin.calculator import evaluate
from dragoman.wire.wire import Model

HERE = Path(__file__).parent
TOOLS = [
    "calculator",
    "current_time",
    "todo",
    "list_directory",
    "read_file",
    "write_file",
    "grep",
    "fetch_url",
]


def offered() -> tuple[ToolSpec, ...]:
    groups = (basics_group(), files_group(), web_group())
    found = {tool.name: tool.spec() for group in groups for tool in group.tools}
    return tuple(found[name] for name in TOOLS)


async def call_for(model: Model, said: str, tools: tuple[ToolSpec, ...]) -> tuple[str, Mapping[str, Any]]:
    """The tool the model calls, or "" where it answers by itself."""
    # an answer need not be long to be one
    request = Request(
        model.name, (RequestMessage("user", (Text(said),)),), tools=tools, options={"max_tokens": 8}
    )
    async for batch in model.stream(request, "msg_eval"):
        for event in batch:
            if isinstance(event, CallInputEnd):
                return event.tool, event.arguments or {}
    return "", {}


def fits(prompt: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments are what was asked for, however they are written."""
    if "value" in prompt:
        try:
            return abs(evaluate(str(arguments.get("expression"))) - prompt["value"]) < 1e-6
        except ToolFailed:
            return False
    if "items" in prompt:
        items = [str(item.get("text")).lower() for item in arguments.get("items", ())]
        return items == [item.lower() for item in prompt["items"]]
    return all(
        re.fullmatch(pattern, "" if arguments.get(name) is None else str(arguments[name]), re.IGNORECASE)
        for name, pattern in prompt.get("like", {}).items()
    )


async def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dev", action="store_true", help="the prompts for tuning")
    options.add_argument("--model", default="local/smollm2")
    chosen = options.parse_args()
    prompts = tomllib.loads((HERE / ("dev.toml" if chosen.dev else "prompts.toml")).read_text("utf-8"))[
        "prompt"
    ]
    tools, began = offered(), time.perf_counter()
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    async with Models(chosen.model, progress=_progress) as models:
        for prompt in prompts:
            tool, arguments = await call_for(models(), prompt["say"], tools)
            right = tool == prompt["tool"]
            whole = right and fits(prompt, arguments)
            for at, one in enumerate((1, right, whole)):
                counts[prompt["tool"] or "no tool"][at] += one
            if not whole:
                wanted = prompt["tool"] or "no tool"
                print(f"  ✗ {prompt['say']}\n      {wanted} → {tool or 'no tool'} {dict(arguments) or ''}")
    seconds = time.perf_counter() - began
    print(f"\n{'':16}{'prompts':>8}{'tool':>8}{'tool and arguments':>20}")
    for name, (n, right, whole) in counts.items():
        print(f"{name:16}{n:8}{right:8}{whole:20}")
    n, right, whole = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"{'all':16}{n:8}{right:8}{whole:20}   ({whole / n:.0%}; {seconds / n:.1f} s a prompt)")
    return 0


def _progress(done: int, total: int) -> None:
    print(f"\rfetching the model: {done / 1e6:.0f} of {total / 1e6:.0f} MB", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
