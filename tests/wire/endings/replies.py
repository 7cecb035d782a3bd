"""Replies as each provider ends them: bytes for the loopback server, one maker for each wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.loopback import Stream, sse
from tests.wire.aws_frames import named

Frames = list[dict[str, Any]]


def chat(
    text: str = "", finish: str | None = "stop", *, refusal: str = "", call: bool = False, **choice: Any
) -> Stream:
    """Chat Completions."""
    deltas: Frames = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in text.split("|") if piece]
    deltas += [{"refusal": refusal}] if refusal else []
    if call:
        function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
        deltas.append({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]})
    frames: Frames = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish, **choice}]})
    return Stream((*(sse(frame) for frame in frames), b"data: [DONE]\n\n"))


def responses(
    text: str = "",
    status: str = "completed",
    why: str | None = None,
    *,
    refusal: str = "",
    call: bool = False,
    thought: str = "",
) -> Stream:
    """The Responses API."""
    frames: Frames = []
    if thought:
        frames.append({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": thought})
    if text:
        frames.append({"type": "response.output_text.delta", "output_index": 1, "delta": text})
    if refusal:
        frames.append({"type": "response.refusal.delta", "output_index": 1, "delta": refusal})
    if call:
        item = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1, "b": 2}'}
        frames.append({"type": "response.output_item.done", "output_index": 2, "item": item})
    response: dict[str, Any] = {"status": status, "output": [], "usage": {"input_tokens": 9}}
    if why is not None:
        response["incomplete_details"] = {"reason": why}
    frames.append({"type": f"response.{status}", "response": response})
    return Stream(tuple(sse(frame) for frame in frames))


def messages(
    text: str = "", stop: str = "end_turn", *blocks: dict[str, Any], thought: str = "", **delta: Any
) -> Stream:
    """Anthropic's Messages. `blocks` come behind the text, whole."""
    frames: Frames = [{"type": "message_start", "message": {"usage": {"input_tokens": 9}}}]
    contents: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    if thought:
        delta_of_it = {"type": "thinking_delta", "thinking": thought}
        contents.append(({"type": "thinking", "thinking": ""}, delta_of_it))
    if text:
        contents.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
    contents += [(block, None) for block in blocks]
    for index, (block, piece) in enumerate(contents):
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        if piece is not None:
            frames.append({"type": "content_block_delta", "index": index, "delta": piece})
        frames.append({"type": "content_block_stop", "index": index})
    frames.append({"type": "message_delta", "delta": {"stop_reason": stop, **delta}})
    frames.append({"type": "message_stop"})
    return Stream(tuple(sse(frame) for frame in frames))


def gemini(text: str = "", finish: str = "STOP", *parts: dict[str, Any], **candidate: Any) -> Stream:
    """Gemini."""
    content = {"role": "model", "parts": [*([{"text": text}] if text else []), *parts]}
    frame = {"candidates": [{"content": content, "finishReason": finish, **candidate}]}
    return Stream((sse(frame),))


def blocked(reason: str, **feedback: Any) -> Stream:
    """Return Gemini's reply to a prompt that it blocked."""
    return Stream((sse({"promptFeedback": {"blockReason": reason, **feedback}}),))


def converse(
    text: str = "",
    stop: str = "end_turn",
    *,
    thought: str = "",
    call: bool = False,
    trace: dict[str, Any] | None = None,
) -> Stream:
    """Bedrock's Converse, in frames of Amazon's event stream."""
    deltas: Frames = [{"reasoningContent": {"text": thought}}] if thought else []
    deltas += [{"text": piece} for piece in text.split("|") if piece]
    frames: Frames = [{"messageStart": {"role": "assistant"}}]
    for index, delta in enumerate(deltas):
        frames.append({"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}})
        frames.append({"contentBlockStop": {"contentBlockIndex": index}})
    if call:
        start = {"toolUse": {"toolUseId": "tooluse_1", "name": "add"}}
        frames.append({"contentBlockStart": {"start": start, "contentBlockIndex": 9}})
        piece = {"toolUse": {"input": '{"a": 1, "b": 2}'}}
        frames.append({"contentBlockDelta": {"delta": piece, "contentBlockIndex": 9}})
        frames.append({"contentBlockStop": {"contentBlockIndex": 9}})
    frames.append({"messageStop": {"stopReason": stop}})
    usage = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
    told = {"trace": {"guardrail": trace}} if trace is not None else {}
    frames.append({"metadata": {"usage": usage, "metrics": {"latencyMs": 7}, **told}})
    return Stream(tuple(named(frame) for frame in frames))


ADD = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "dragons"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}

ANSWERS: dict[str, Callable[[str], Stream]] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic_messages": messages,
    "gemini": gemini,
    "bedrock_converse": converse,
}
