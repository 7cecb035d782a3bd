"""Strange usage counts spoil no reply, on any wire (W3)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.messages.usage import Usage
from dragoman.wire import anthropic_messages, bedrock_converse, gemini, openai_chat, openai_responses
from dragoman.wire.wire import Wire
from tests.wire.replies import decode, framed

ODD: list[Any] = ["3", 3.5, -1, True, [3], {"of": 3}]

SAID = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}


def replies(odd: Any) -> list[tuple[Wire, list[dict[str, Any]]]]:
    """The same on each wire: a text, and these counts."""
    chat = {"prompt_tokens": odd, "completion_tokens": odd, "total_tokens": odd}
    claude = {"input_tokens": odd, "output_tokens": odd, "cache_read_input_tokens": odd}
    google = {"promptTokenCount": odd, "candidatesTokenCount": odd, "thoughtsTokenCount": odd}
    amazon = {"inputTokens": odd, "outputTokens": odd, "cacheReadInputTokens": odd}
    newer = {"input_tokens": odd, "output_tokens": odd}
    return [
        (
            openai_chat.WIRE(),
            [
                {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]},
                {"usage": {**chat, "prompt_tokens_details": odd, "completion_tokens_details": odd}},
            ],
        ),
        (
            anthropic_messages.WIRE(),
            [
                SAID,
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "end_turn"},
                    "usage": {**claude, "output_tokens_details": odd},
                },
            ],
        ),
        (
            gemini.WIRE(),
            [
                {
                    "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
                    "usageMetadata": google,
                }
            ],
        ),
        (
            openai_responses.WIRE(),
            [
                {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
                {
                    "type": "response.completed",
                    "response": {
                        "status": "completed",
                        "usage": {**newer, "input_tokens_details": odd, "output_tokens_details": odd},
                    },
                },
            ],
        ),
        (
            bedrock_converse.WIRE(),
            [
                {"contentBlockDelta": {"delta": {"text": "Hi"}, "contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "end_turn"}},
                {"metadata": {"usage": amazon}},
            ],
        ),
    ]


def with_usage(value: Any, odd: Any) -> Any:
    """A reply, with this where its counts stood."""
    if isinstance(value, list):
        return [with_usage(one, odd) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: odd if key in ("usage", "usageMetadata") else with_usage(one, odd) for key, one in value.items()
    }


@pytest.mark.parametrize("odd", [one for one in ODD if not isinstance(one, dict)], ids=repr)
def test_w3_counts_that_are_no_object_are_nothing_and_the_reply_stands(odd: Any) -> None:
    for wire, frames in replies(1):
        reply = decode(wire, [*framed(wire.name, *with_usage(frames, odd))])
        assert (reply.text, reply.error, reply.end.finish) == ("Hi", None, "stop"), wire.name
        assert reply.end.usage == Usage(), wire.name


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_w3_a_count_that_is_none_is_nothing_and_the_reply_stands(odd: Any) -> None:
    for wire, frames in replies(odd):
        reply = decode(wire, [*framed(wire.name, *frames)])
        assert (reply.text, reply.error, reply.end.finish) == ("Hi", None, "stop"), wire.name
        assert odd == 3.5 or reply.end.usage == Usage(), wire.name
