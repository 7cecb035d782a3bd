"""Join a stream's chunks into the reply that the provider would send without streaming."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dragoman.wire.http_client.framing import Splitter
from dragoman.wire.wire import ReadsWhole, Wire
from tests.wire.replies import Reply, assert_in_order

Json = dict[str, Any]


def frames_of(stream: bytes) -> list[Json]:
    splitter = Splitter()
    found = [*splitter.feed(stream), *splitter.end()]
    return [json.loads(frame) for frame in found if not frame.startswith(b"[DONE]")]


def message(frames: list[Json]) -> Json:
    """Anthropic's: blocks with their deltas."""
    made: Json = {"content": [], "usage": {}}
    inputs: dict[int, str] = {}
    for frame in frames:
        match frame["type"]:
            case "message_start":
                made |= {**frame["message"], "content": [], "usage": {**frame["message"].get("usage", {})}}
            case "content_block_start":
                made["content"].append(dict(frame["content_block"]))
            case "content_block_delta":
                _delta(made["content"][frame["index"]], frame["delta"], inputs, frame["index"])
            case "message_delta":
                made |= frame["delta"]
                made["usage"] |= {k: v for k, v in frame["usage"].items() if v is not None}
                made |= {k: v for k, v in frame.items() if k not in ("type", "delta", "usage")}
    for index, text in inputs.items():
        made["content"][index]["input"] = json.loads(text or "{}")
    return made


def _delta(block: Json, delta: Json, inputs: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case "compaction_delta":
            block["content"] = delta["content"]


def response(frames: list[Json]) -> Json:
    """Return the last event of the Responses API, with its secrets encrypted again."""
    done = {one["output_index"]: one["item"] for one in frames if one["type"] == "response.output_item.done"}
    return {**frames[-1]["response"], "output": [done[place] for place in sorted(done)]}


def completion(frames: list[Json]) -> Json:
    """Return a chat completion: strings are joined, list items merged by index, other values replaced."""
    made: Json = {}
    told: Json = {}
    for frame in frames:
        made |= {k: v for k, v in frame.items() if k != "choices" and v is not None}
        for choice in frame.get("choices") or ():
            _join(told, choice.get("delta") or {})
            made["choices"] = [{**(made.get("choices") or [{}])[0], **{k: v for k, v in choice.items() if v}}]
    last = {k: v for k, v in made["choices"][0].items() if k != "delta"}
    return {**made, "object": "chat.completion", "choices": [{**last, "index": 0, "message": told}]}


_SAID_AGAIN = ("role", "id", "type", "name", "format")


def _join(made: Json, piece: Json) -> None:
    for key, value in piece.items():
        have = made.get(key)
        if isinstance(value, str) and isinstance(have, str) and key not in _SAID_AGAIN:
            made[key] = have + value
        elif isinstance(value, dict) and isinstance(have, dict):
            _join(have, value)
        elif isinstance(value, list):
            made[key] = _numbered(have or [], value)
        elif value is not None:
            made[key] = dict(value) if isinstance(value, dict) else value


def _numbered(made: list[Any], pieces: list[Any]) -> list[Any]:
    for piece in pieces:
        same = [one for one in made if isinstance(piece, dict) and "index" in piece and _alike(one, piece)]
        if same:
            _join(same[0], {k: v for k, v in piece.items() if k != "index"})
        else:
            made.append(json.loads(json.dumps(piece)))
    return made


def _alike(one: Json, piece: Json) -> bool:
    return bool(one.get("index") == piece["index"] and one.get("type") == piece.get("type", one.get("type")))


def content(frames: list[Json]) -> Json:
    """Google's: parts one after another, texts of the same kind joined."""
    made: Json = {}
    candidate: Json = {}
    parts: list[Json] = []
    for frame in frames:
        made |= {k: v for k, v in frame.items() if k not in ("candidates", "usageMetadata")}
        made["usageMetadata"] = {**made.get("usageMetadata", {}), **frame.get("usageMetadata", {})}
        for one in (frame.get("candidates") or ())[:1]:
            candidate |= {k: v for k, v in one.items() if k != "content"}
            for part in (one.get("content") or {}).get("parts") or ():
                plain = parts and {*part} <= {"text", "thought"} and {*parts[-1]} == {*part}
                if plain and part.get("thought") == parts[-1].get("thought"):
                    parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
                else:
                    parts.append(part)
    return {**made, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}


def read_whole(wire: Wire, body: Json) -> Reply:
    decoder = wire.decoder("msg_r")
    assert isinstance(decoder, ReadsWhole)
    events = [*(decoder.whole(body) or ()), *decoder.end()]
    assert_in_order(events)
    return Reply(events, finish_word=decoder.finish_word)


WHOLE: dict[str, Callable[[list[Json]], Json]] = {
    "anthropic": message,
    "openai_responses": response,
    "openai_chat": completion,
    "gemini": content,
}
