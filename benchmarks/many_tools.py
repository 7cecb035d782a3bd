"""`make bench-tools`: measure the size of the first request with 20 servers and 500 tools, none of them
started, and whether `find_tools` finds the right tool.

The tools and requests are those of BFCL's live sets (`bfcl-eval`), as users wrote them. The search was
tuned on the sets that are not live.

    python benchmarks/many_tools.py WHEEL
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dragoman import Runtime, ScriptedModel
from dragoman.evaluation.bfcl import json_schema
from dragoman.messages.message import canonical
from dragoman.messages.request import Request
from dragoman.tools.deferred import ToolSearch
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import sources_of
from dragoman.tools.mcp.tool_list import Definition, KeptLists, ToolList, fingerprint_of, tools_of
from dragoman.wire.scripted import says

SETS = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
SERVERS, TOOLS = 20, 500
LETTERS = 4  # approximate characters per token


def lines(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, Any]]:
    for line in archive.read(f"bfcl_eval/data/{name}").decode().splitlines():
        if line.strip():
            yield json.loads(line)


def read(wheel: Path) -> tuple[dict[str, Definition], list[tuple[str, str]]]:
    """Tools by their names, and requests with the tools that answer them."""
    tools: dict[str, Definition] = {}
    asked: list[tuple[str, str]] = []
    with zipfile.ZipFile(wheel) as archive:
        for name in SETS:
            answers = {
                one["id"]: {next(iter(call)) for call in one["ground_truth"]}
                for one in lines(archive, f"possible_answer/BFCL_v4_{name}.json")
            }
            for case in lines(archive, f"BFCL_v4_{name}.json"):
                for tool in case["function"]:
                    schema = json_schema(tool["parameters"])
                    tools.setdefault(tool["name"], _definition(tool["name"], tool["description"], schema))
                text = " ".join(one["content"] for one in case["question"][0] if one["role"] == "user")
                asked += [(text, wanted) for wanted in answers.get(case["id"], ())]
    return tools, asked


def _definition(name: str, description: str, schema: Any) -> Definition:
    return Definition(
        name, description, schema, "never", "", fingerprint_of({"name": name, "schema": schema})
    )


async def first_request(definitions: Sequence[Definition]) -> tuple[Request, float, int]:
    """Use servers whose tool lists are cached and whose programs do not exist. Return seconds and the
    characters of all tools."""
    with tempfile.TemporaryDirectory() as folder:
        kept = KeptLists(Path(folder) / "lists")
        servers = {f"server{n}": McpServer(command="/nonexistent") for n in range(SERVERS)}
        for place, (name, server) in enumerate(servers.items()):
            kept.write(name, server, ToolList(tuple(definitions[place::SERVERS])))
        began = time.perf_counter()
        model = ScriptedModel([says("Hello.")], context=200_000)
        runtime = Runtime(Path(folder) / "chat.db", model=model, tools=sources_of(servers, kept=kept))
        async with runtime:
            await (await runtime.send("hello")).result()
            seconds = time.perf_counter() - began
            whole = runtime.services.toolbox.offer().specs()
        return model.requests[0], seconds, sum(_letters(one) for one in whole)


def _letters(spec: Any) -> int:
    return len(spec.description) + len(canonical(spec.parameters))


async def _nobody(*_: object) -> NoReturn:
    raise AssertionError("nothing is called here")


def main() -> None:
    tools, asked = read(Path(sys.argv[1]))
    wanted = {name for _, name in asked}
    chosen = sorted(tools, key=lambda name: (name not in wanted, name))[:TOOLS]
    offered = {name: tools[name] for name in chosen}
    request, seconds, letters = asyncio.run(first_request([*offered.values()]))
    sent = sum(map(_letters, request.tools))
    print(f"{SERVERS} servers, {len(offered)} tools: about {letters // LETTERS:,} tokens of definitions")
    print(f"first request: about {sent // LETTERS:,} tokens, {100 * sent / letters:.1f} %")
    print(f"no server started; hello and its answer took {1000 * seconds:.0f} ms")
    made = [tools_of("it", McpServer(command="none"), [one], _nobody)[0] for one in offered.values()]
    search = ToolSearch({name: tool for name, found in zip(offered, made, strict=True) for tool in found})
    cases = [(text, name) for text, name in asked if name in offered]
    right = sum(name in search.find(text) for text, name in cases)
    plain = [(text, name) for text, name in cases if text.isascii()]
    right_plain = sum(name in search.find(text) for text, name in plain)
    named = sum(search.find(name)[0] == name for name in offered)
    print(f"right tool among five: {right} of {len(cases)} requests ({100 * right / len(cases):.1f} %)")
    print(f"of those in ASCII: {right_plain} of {len(plain)} ({100 * right_plain / len(plain):.1f} %)")
    print(f"by exact name: {named} of {len(offered)}")


if __name__ == "__main__":
    main()
