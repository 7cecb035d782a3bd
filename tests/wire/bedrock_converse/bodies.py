"""Bodies and streams of Converse, short to write."""

from __future__ import annotations

from typing import Any

from dragoman.messages.message import CallState, Part, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.bedrock_converse import WIRE
from tests.wire.histories import ATTACHMENTS
from tests.wire.replies import Reply, decode, framed

NAME = "bedrock_converse"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama4-scout-17b-instruct-v1:0"
MODELS = (CLAUDE, NOVA, LLAMA, "us.deepseek.r1-v1:0", "anthropic.claude-opus-4-7", "acme/model")

# ── streams ───────────────────────────────────────────────────────────────────────────────────────


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"delta": piece, "contentBlockIndex": index}}


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"start": block, "contentBlockIndex": index}}


def ended(word: str, **fields: Any) -> dict[str, Any]:
    return {"messageStop": {"stopReason": word, **fields}}


def called(name: str, *pieces: str, index: int = 0) -> list[dict[str, Any]]:
    deltas = [delta(index, toolUse={"input": piece}) for piece in pieces]
    return [start(index, toolUse={"toolUseId": f"tooluse_{index}", "name": name}), *deltas, stop(index)]


FRAMES: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    delta(0, reasoningContent={"text": "Where is "}),
    delta(0, reasoningContent={"text": "München?"}),
    delta(0, reasoningContent={"signature": "EqQB"}),
    delta(0, reasoningContent={"signature": "+/="}),
    stop(0),
    delta(1, reasoningContent={"redactedContent": "EtgB"}),
    stop(1),
    delta(2, text="One moment "),
    delta(2, text="🐉."),
    stop(2),
    *called("get_weather", '{"city": "Mün', 'chen"}', index=3),
    *called("clock", index=4),
    ended("tool_use"),
    {
        "metadata": {
            "usage": {
                "inputTokens": 4,
                "outputTokens": 30,
                "totalTokens": 141,
                "cacheReadInputTokens": 100,
                "cacheWriteInputTokens": 7,
            },
            "metrics": {"latencyMs": 12},
        }
    },
]
REPLY = b"".join(framed(NAME, *FRAMES))


def read(*frames: dict[str, Any]) -> Reply:
    return decode(WIRE(), framed(NAME, *frames))


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────


def body_of(request: Request) -> dict[str, Any]:
    return WIRE().encode(request, ATTACHMENTS)


def unmarked(value: Any) -> Any:
    """Without the points of the cache."""
    if isinstance(value, list):
        return [unmarked(one) for one in value if not (isinstance(one, dict) and "cachePoint" in one)]
    return {name: unmarked(one) for name, one in value.items()} if isinstance(value, dict) else value


def sent(*messages: RequestMessage, model: str = CLAUDE, **options: Any) -> list[dict[str, Any]]:
    body = body_of(Request(model, messages, options=options))
    found: list[dict[str, Any]] = unmarked(body["messages"])
    return found


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def assistant(*parts: Part) -> RequestMessage:
    return RequestMessage("assistant", parts)


def done(id: str, text: str = "21 °C", **fields: Any) -> ToolCall:
    result = ToolResult(text, **fields)
    return ToolCall(id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=result)
