"""The results of a provider's tools, from received bytes to stored and resent parts (W4, R5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.messages.message import Citation, File, ProviderItem, Text
from tests.wire.endings.played import GEMINI, MESSAGES, play
from tests.wire.endings.replies import ADD, FOUND, SEARCH, gemini, messages

DRAWN: dict[str, Any] = {
    "inlineData": {"mimeType": "image/png", "data": "iVBORw=="},
    "thoughtSignature": "c2ln",
}
CALL: dict[str, Any] = {
    "functionCall": {"id": "fc-1", "name": "add", "args": {"a": 1, "b": 2}},
    "thoughtSignature": "c2ln",
}
GROUNDING = {
    "webSearchQueries": ["dragons"],
    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
}


async def test_a_picture_alone_is_an_answer(tmp_path: Path) -> None:
    """The image is a file of the answer, and no notice reports an empty answer (T7, M4)."""
    ended = await play(tmp_path, GEMINI, gemini("", "STOP", DRAWN))
    (file,) = ended.stored[-1].parts
    assert isinstance(file, File)
    assert (file.media_type, file.url, file.size, file.signature) == ("image/png", None, 4, "c2ln")
    assert (bool(file.blob), ended.end.finish) == (True, "stop")
    assert ended.notices("empty_reply") == []


async def test_a_call_of_gemini_goes_back_with_its_id_and_its_signature(tmp_path: Path) -> None:
    """R5: and its result with the same id."""
    ended = await play(tmp_path, GEMINI, gemini("", "STOP", CALL), gemini("3", groundingMetadata=GROUNDING))
    *_, reply, results = ended.server.bodies[-1]["contents"]
    response = results["parts"][0]["functionResponse"]
    assert reply["parts"] == [CALL]
    assert (response["id"], response["response"]) == ("fc-1", {"output": "3"})
    assert ended.stored[-1].parts[0] == Text("3", (Citation("https://a.example", "A"),))


async def test_a_search_of_anthropics_is_stored_and_goes_back_between_the_steps_of_a_turn(
    tmp_path: Path,
) -> None:
    """The search keeps its place while the request includes the search tool (R5)."""
    replies = (messages("", "tool_use", SEARCH, FOUND, ADD), messages("3"))
    ended = await play(tmp_path, MESSAGES, *replies, options={"hosted_tools": ["web_search"]})
    blocks = ended.server.messages()[-2]["content"]
    assert [block["type"] for block in blocks] == ["server_tool_use", "web_search_tool_result", "tool_use"]
    assert blocks[:2] == [SEARCH, FOUND]
    kinds = [part.kind for part in ended.stored[1].parts if isinstance(part, ProviderItem)]
    assert kinds == ["server_tool_use", "web_search_tool_result"]
