"""A model on loopback for the ten programs: OpenAI chat completions, streamed or whole, from a script.

The model's name selects the script, and the number of replies in the request selects the line of it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

SCRIPTS: dict[str, list[Any]] = {  # a text, or a tool (the suffix of its name) and its arguments
    "tools": [("add", {"a": 17, "b": 23}), "It is 40."],
    "approval": [("delete", {"path": "a.txt"}), "It is gone."],
    "typed": ['{"name": "Rome", "people": 2748109}'],
    "stream": ["One word after the other, and nobody waits for the last one."],
    "restart": [("pay", {"amount": 12}), "It is paid."],
    "agents": [("task", {"agent": "clerk", "request": "Note that milk is out."}), "The clerk has noted it."],
    "clerk": [("note", {"text": "milk"}), "It is noted."],
    "mcp": [("add", {"a": 17, "b": 23}), "It is 40."],
    "up": ["I am here."],
    "context": ["echo"],
}


@asynccontextmanager
async def serve() -> AsyncIterator[str]:
    """Serve the model and yield its address."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port: int = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await runner.cleanup()


async def _answer(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    if asked["model"] == "down":
        return web.json_response({"error": {"message": "overloaded"}}, status=503)
    message, reason = _message(asked)
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return web.json_response(_body("chat.completion", [choice], usage=True))
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for delta in _deltas(message):
        await _send(response, _body("chat.completion.chunk", [{"index": 0, "delta": delta}]))
    ending = {"index": 0, "delta": {}, "finish_reason": reason}
    await _send(response, _body("chat.completion.chunk", [ending]))
    await _send(response, _body("chat.completion.chunk", [], usage=True))
    await response.write(b"data: [DONE]\n\n")
    return response


def _message(asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    place = sum(message["role"] == "assistant" for message in asked["messages"])
    line = SCRIPTS[asked["model"]][place]
    if line == "echo":
        line = asked["messages"][0]["content"].strip().splitlines()[-1]
    if isinstance(line, str):
        return {"role": "assistant", "content": line}, "stop"
    ending, arguments = line
    names = [tool["function"]["name"] for tool in asked["tools"]]
    name = next(name for name in names if name.endswith(ending))
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{place}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def _deltas(message: dict[str, Any]) -> list[dict[str, Any]]:
    if not message["content"]:
        return [message]
    return [{"role": "assistant", "content": word} for word in re.findall(r"\S+\s*", message["content"])]


def _body(kind: str, choices: list[dict[str, Any]], *, usage: bool = False) -> dict[str, Any]:
    body = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "compared", "choices": choices}
    used = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    return {**body, "usage": used} if usage else body


async def _send(response: web.StreamResponse, body: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")


async def main() -> None:
    async with serve() as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
