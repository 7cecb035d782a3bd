"""Compare a task of 20 calls, as single calls and as one program: requests, input tokens, CPU per call."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from typing import Any

from dragoman import Runtime, ScriptedModel, tool
from dragoman.messages.message import ToolCall
from dragoman.messages.request import Request
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import Line, calls, says

TASK = 20
SIZES = (20, 100, 400)
REPEATS = 3
# tools that the model is offered in addition to the tool of the task
BUILT_IN = ["basics", "files", "shell", "web"]
PROGRAM = """\
import json
sizes = []
for n in range(20):
    found = json.loads(await lookup(path=f"folder/file{n}.txt"))
    sizes.append((found["size"], found["path"], found["owner"]))
max(sizes)
"""


@tool
async def lookup(path: str) -> str:
    """Look a file up."""
    about = {
        "path": path,
        "size": len(path) * 17,
        "owner": "alice",
        "text": "lorem ipsum dolor sit amet " * 30,
    }
    return json.dumps(about)


@tool
async def note(n: int) -> int:
    """Note a number."""
    return n


async def main() -> None:
    asked = "Which of the twenty files is the largest, and who owns it?"
    single = await _requests(asked, lambda done: calls("lookup", path=f"folder/file{done}.txt"), TASK)
    program = await _requests(asked, lambda done: calls("run_program", code=PROGRAM), 1, "programs")
    for name, requests in (("single calls", single), ("one program", program)):
        tokens = sum(map(_tokens, requests))
        print(
            f"{TASK} calls as {name}: {len(requests)} requests, {tokens:,} input tokens (4 characters each)"
        )
    schemas, signatures = (_size(_definitions(requests[0])) for requests in (single, program))
    print(
        f"definitions of the {len(single[0].tools)} tools: {schemas:,} tokens, as signatures {signatures:,}"
    )
    for count in SIZES:
        parallel = sum((calls("note", n=n) for n in range(1, count)), calls("note", n=0))
        loop = calls("run_program", code=f"for n in range({count}):\n    await note(n=n)")
        gather = f"import asyncio\nawait asyncio.gather(*[note(n=n) for n in range({count})])"
        base, one_by_one, together = [
            await _cpu(line, count) for line in (parallel, loop, calls("run_program", code=gather))
        ]
        print(
            f"{count} calls, CPU of each: in a reply {base:.2f} ms, gathered in a program {together:.2f} ms "
            f"(×{together / base:.2f}), one after the other {one_by_one:.2f} ms (×{one_by_one / base:.2f})"
        )


async def _requests(asked: str, call: Callable[[int], Line], rounds: int, *groups: str) -> list[Request]:
    def script(request: Request) -> Line:
        done = sum(isinstance(part, ToolCall) for one in request.messages for part in one.parts)
        return call(done) if done < rounds else says("file10.txt, alice")

    model = ScriptedModel(script)
    with tempfile.TemporaryDirectory() as folder:
        tools = [lookup, *(BUILTIN[name]() for name in BUILT_IN), *groups]
        options: dict[str, Any] = {
            "tools": tools,
            "allow": ["*"],
            "max_rounds": TASK + 1,
            "workspace": folder,
        }
        async with Runtime(f"{folder}/chat.db", model=model, **options) as runtime:
            await (await runtime.send(asked)).result()
    return model.requests


def _tokens(request: Request) -> int:
    """Estimate the size of a request: the same estimate for both ways."""
    said = [
        [part.arguments, part.result.text if part.result else ""] if isinstance(part, ToolCall) else str(part)
        for message in request.messages
        for part in message.parts
    ]
    return _size([request.system, _definitions(request), said])


def _definitions(request: Request) -> list[Any]:
    return [[spec.name, spec.description, spec.parameters] for spec in request.tools]


def _size(value: Any) -> int:
    return len(json.dumps(value)) // 4


async def _cpu(line: Line, count: int) -> float:
    """Milliseconds of this process for each call: the cheapest of a few turns."""
    best = []
    for _ in range(REPEATS):
        model = ScriptedModel(lambda request: says("done") if len(request.messages) > 1 else line)
        with tempfile.TemporaryDirectory() as folder:
            tools = [note, "programs"]
            async with Runtime(f"{folder}/chat.db", model=model, tools=tools, allow=["*"]) as runtime:
                began = time.process_time()
                await (await runtime.send("go")).result()
                best.append((time.process_time() - began) / count * 1000)
    return min(best)


if __name__ == "__main__":
    asyncio.run(main())
