"""What was said in a thread, as the messages of AG-UI, for a client that has nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from dragoman.messages.message import Message, canonical


def thread_messages(message: Message) -> Iterator[JsonValue]:
    """A stored message, with the results of its calls behind it."""
    if message.role == "user":
        yield {"id": message.id, "role": "user", "content": message.text}
        return
    calls: JsonValue = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": canonical(call.arguments)},
        }
        for call in message.calls
    ]
    made: dict[str, JsonValue] = {"toolCalls": calls} if calls else {}
    yield {"id": message.id, "role": "assistant", "content": message.text, **made}
    for call in message.calls:
        if call.result is not None:
            yield {
                "id": f"{call.id}-result",
                "role": "tool",
                "toolCallId": call.id,
                "content": call.result.text,
            }
