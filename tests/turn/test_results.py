"""A model receives part of a long result, the store keeps all of it, and tools can reach the rest (C9)."""

from __future__ import annotations

from pathlib import Path

from dragoman import (
    tool,
    withhold,
)
from dragoman.messages.message import CallState, ToolResult
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, calls_of, model_of, only_call, play, runtime_with


async def test_a_long_result_is_shown_in_part_and_kept_whole(tmp_path: Path) -> None:
    """C9"""
    lines = [f"line {n}" for n in range(1, 5001)]

    @tool
    def much() -> str:
        """Says much."""
        return "\n".join(lines)

    def script(request):  # type: ignore[no-untyped-def]
        seen = [part for said in request.messages for part in said.parts if part.type == "call"]
        if not seen:
            return calls("much")
        if len(seen) == 1:
            return calls("read_output", call=seen[0].id, start=2400, lines=2)
        return says("ok")

    async with runtime_with(tmp_path, script, tools=[much]) as runtime:
        result = await (await runtime.send("go")).result()
        first, second = calls_of(result.messages)
        assert first.result is not None
        assert first.result.text.startswith("line 1\n")
        assert first.result.text.endswith("line 5000")
        assert len(first.result.text.splitlines()) <= 2003
        assert f"read_output(call='{first.id}'" in first.result.text
        assert second.result == ToolResult("lines 2400 to 2401 of 5000\nline 2400\nline 2401")
        assert first.result.blob is not None
        assert (await runtime.store.blob(first.result.blob)).decode() == "\n".join(lines)


async def test_a_withheld_result_cannot_be_read_back(tmp_path: Path) -> None:
    """C9, P5: not through the reader, the calls' rows, the facts, the export, nor a file."""
    secret = "the secret is 42\n" * 5000

    @tool(review="always")
    def tells() -> str:
        """Tells."""
        return secret

    def script(request):  # type: ignore[no-untyped-def]
        seen = [part for said in request.messages for part in said.parts if part.type == "call"]
        return [calls("tells"), calls("read_output", call=seen[0].id) if seen else says(""), says("ok")][
            len(seen)
        ]

    async with runtime_with(tmp_path, script, tools=[tells]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, withhold("private"))
        result = await turn.result()
        told, read = calls_of(result.messages)
        export = await runtime.export(result.messages[0].conversation)
        sent = repr(model_of(runtime).requests)
    assert (told.state, read.state) == (CallState.WITHHELD, CallState.FAILED)
    assert "secret" not in str(export)
    assert "secret" not in sent
    assert not list(Path(tmp_path, "chat.db.files").glob("blobs/*/*"))  # noqa: ASYNC240 - a test may block


async def test_a_result_of_another_conversation_cannot_be_read(tmp_path: Path) -> None:
    """C9"""
    async with runtime_with(tmp_path, lambda _: says("ok"), tools=[add]) as runtime:
        other = await runtime.import_conversation(
            {
                "format": "dragoman.conversation/1",
                "conversation": {"id": "conv_x"},
                "messages": [
                    {
                        "id": "m",
                        "conversation": "conv_x",
                        "parent": None,
                        "role": "assistant",
                        "parts": [
                            {
                                "type": "call",
                                "id": "c",
                                "tool": "add",
                                "state": "completed",
                                "result": {"text": "5"},
                            }
                        ],
                    }
                ],
            }
        )
        foreign = calls_of(list(await other.tree()))[0].id
    call = only_call(await play(tmp_path, [calls("read_output", call=foreign), says("ok")], tools=[add]))
    assert call.result == ToolResult(f"Unknown call {foreign!r} in this conversation.")
