"""No framework: an aiohttp loop that makes the same requests and runs the tool, and nothing else."""

from __future__ import annotations

from typing import Any

import aiohttp
from contest import measure, model, run, url
from pydantic_core import from_json

_PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
_TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Add two numbers.", "parameters": _PARAMETERS},
}


def add(a: int, b: int) -> int:
    return a + b


async def main() -> None:
    async with aiohttp.ClientSession() as session:

        async def ask(messages: list[dict[str, Any]]) -> tuple[str, int, dict[int, dict[str, Any]]]:
            text, seen, rest, calls = "", 0, b"", dict[int, dict[str, Any]]()
            body = {"model": model(), "stream": True, "messages": messages, "tools": [_TOOL]}
            async with session.post(f"{url()}/chat/completions", json=body) as response:
                while read := await response.content.readany():
                    *frames, rest = (rest + read).split(b"\n\n")
                    for frame in frames:
                        if frame == b"data: [DONE]":
                            continue
                        for choice in from_json(frame[6:])["choices"]:
                            delta = choice["delta"]
                            if piece := delta.get("content"):
                                text, seen = text + piece, seen + 1
                            for part in delta.get("tool_calls", ()):
                                known = calls.setdefault(part["index"], part)
                                if known is not part:
                                    known["function"]["arguments"] += part["function"]["arguments"]
            return text, seen, calls

        async def turn() -> int:
            messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
            while True:
                text, seen, calls = await ask(messages)
                if not calls:
                    return seen
                messages.append(
                    {"role": "assistant", "content": text or None, "tool_calls": list(calls.values())}
                )
                for call in calls.values():
                    result = str(add(**from_json(call["function"]["arguments"])))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

        await measure(turn)


run(main)
