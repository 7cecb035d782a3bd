"""A model on loopback for all contestants: OpenAI chat completions, streamed as fast as it is read.

The model's name selects its behavior: `rounds-10` calls a tool until ten results exist, then answers;
`chunks-2000` answers with two thousand chunks; `paced-500` sends them one by one, with a pause between them;
`prose-2000` answers with as many chunks of prose, code and markup, as a model writes about a program.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from itertools import cycle, islice
from pathlib import Path

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _frame(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [choice],
    }
    return _chunked(b"data: " + json.dumps(body).encode() + b"\n\n")


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _usage() -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return _chunked(b"data: " + json.dumps({**body, "choices": [], "usage": usage}).encode() + b"\n\n")


_END = _usage() + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_PIECE = _frame({"content": "word "})
_PROSE = [  # one word or mark per chunk, about the size of a token
    _frame({"content": piece})
    for piece in re.findall(r" ?\w{1,8}|\s+|[^\w\s]{1,2}", Path(__file__).with_name("prose.md").read_text())
]


def _reply(request: dict[str, object]) -> tuple[list[bytes], bool]:
    """The frames of a reply, and whether to send them one by one."""
    kind, _, number = str(request["model"]).rpartition("-")
    messages = request["messages"]
    assert isinstance(messages, list)
    role = {"role": "assistant", "content": ""}
    if kind == "rounds":
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        done = sum(message["role"] == "tool" for message in messages[last:])
        if done < int(number):
            call = {
                "index": 0,
                "id": f"call_{last}_{done}",
                "type": "function",
                "function": {"name": "add", "arguments": ""},
            }
            text = json.dumps({"a": done, "b": 2})
            pieces = [{"index": 0, "function": {"arguments": piece}} for piece in (text[:5], text[5:])]
            frames = [_frame({**role, "tool_calls": [call]}), *(_frame({"tool_calls": [p]}) for p in pieces)]
            return [*frames, _frame({}, "tool_calls"), _END], False
        return [_frame({**role, "content": "done"}), _frame({}, "stop"), _END], False
    pieces = islice(cycle(_PROSE if kind == "prose" else [_PIECE]), int(number))
    return [_frame(role), *pieces, _frame({}, "stop"), _END], kind == "paced"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            body = await reader.readexactly(length)
            # the server is also a telemetry collector
            if head.startswith((b"POST /v1/traces", b"POST /v1/metrics")):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                continue
            frames, one_by_one = _reply(json.loads(body))
            writer.write(_HEAD)
            if one_by_one:
                for frame in frames:
                    writer.write(frame)
                    await asyncio.sleep(0.001)
            else:
                writer.write(b"".join(frames))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
