"""Gemini: the rules by which it refuses a history."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given

from dragoman.messages.message import CallState, ProviderItem, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.gemini import WIRE
from dragoman.wire.gemini.shapes import NO_SIGNATURE
from dragoman.wire.lowering import result_text
from tests.wire.gemini.bodies import REPLY, SIGNATURE, assistant, body_of, done, sent, thought, user
from tests.wire.histories import (
    FILES,
    IMAGE,
    MODEL,
    OTHER_MODEL,
    calls_of,
    requests,
)
from tests.wire.replies import decode


def assert_valid(request: Request, contents: list[dict[str, Any]]) -> None:
    """Check what the API checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    waiting: list[tuple[str, str | None]] = []
    ids: set[str] = set()
    for place, content in enumerate(contents):
        assert content["role"] == ("user", "model")[place % 2], "the sides alternate, the person's first"
        assert content["parts"]
        calls = [part for part in content["parts"] if "functionCall" in part]
        assert not calls or calls[0].get("thoughtSignature"), "the first call of a batch is signed"
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                assert content["role"] == "user"
                assert (response["name"], response.get("id")) == waiting.pop(0)
                assert response.keys() <= {"id", "name", "response", "parts"}
                assert all(part.keys() == {"inlineData"} for part in response.get("parts", ()))
                assert [*response["response"].values()] == [result_text(expected.pop(0))]
            elif content["role"] == "user":
                assert not waiting, "the responses come first, and all of them"
                assert part.keys() <= {"text", "inlineData", "fileData"}
                assert "text" not in part or part["text"].strip()
            elif made := part.get("functionCall"):
                assert made.keys() - {"id"} == {"name", "args"}
                assert made.get("id") not in ids, "no id comes twice"
                ids |= {made["id"]} if "id" in made else set()
                assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", made["name"])
                assert isinstance(made["args"], dict)
                waiting.append((made["name"], made.get("id")))
            else:
                assert part["text"].strip() or part["thoughtSignature"]
    assert contents[-1]["role"] == "user"
    assert not waiting
    assert not expected, "every call is sent"


@given(requests())
def test_any_history_becomes_valid(request: Request) -> None:
    """R5, C2"""
    body = body_of(request)
    assert ("systemInstruction" in body) == bool(request.system)
    assert_valid(request, body["contents"])
    assert body_of(request) == body  # R2: the same bytes for the same history


@given(requests())
def test_thoughts_go_back_only_where_they_came_from_and_as_they_came(request: Request) -> None:
    """R5"""
    ours = {
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, Reasoning) and part.wire == "gemini" and part.model == MODEL
    }
    for content in body_of(request)["contents"]:
        for part in content["parts"]:
            if part.get("thought"):
                assert part["text"] in ours
            if "functionCall" not in part:
                assert part.get("thoughtSignature", SIGNATURE) == SIGNATURE
                assert "thoughtSignature" not in part or ours


def test_a_reply_goes_back_to_its_model_part_by_part_with_its_signatures() -> None:
    """R5"""
    reply = assistant(*decode(WIRE(), [REPLY]).parts)
    assert sent(user("Weather?"), reply)[1]["parts"] == [
        {"text": "Where is München?", "thought": True},
        {"text": "One moment 🐉.", "thoughtSignature": "CiIB+/=="},
        {"functionCall": {"name": "get_weather", "args": {"city": "München"}}, "thoughtSignature": "sig"},
        {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}},
        {"functionCall": {"name": "clock", "args": {}}},
    ]


def test_to_another_model_it_goes_without_them_and_says_that_none_is_to_be_checked() -> None:
    """R5"""
    reply = assistant(*decode(WIRE(), [REPLY]).parts)
    parts = sent(user("Weather?"), reply, model=OTHER_MODEL)[1]["parts"]
    assert parts[0] == {"text": "One moment 🐉."}
    assert [part.get("thoughtSignature") for part in parts[1:]] == [NO_SIGNATURE, None, None]
    older = sent(user("Weather?"), reply, model="google/gemini-2.5-flash")[1]["parts"]
    assert not any("thoughtSignature" in part for part in older)


def test_a_call_that_another_model_signed_bears_its_signature_no_more() -> None:
    """A call without reasoning has its signature removed too if another model signed it (R5)."""
    signed = [done("a", signature="s", signed_by=model) for model in (None, MODEL, OTHER_MODEL)]
    found = [sent(user("Hi"), assistant(one))[1]["parts"][0]["thoughtSignature"] for one in signed]
    assert found == ["s", "s", NO_SIGNATURE]


def test_a_signature_that_came_alone_goes_back_alone() -> None:
    reply = assistant(thought("", "s"), done("a", signature="t"))
    assert sent(user("Weather?"), reply)[1]["parts"] == [
        {"text": "", "thoughtSignature": "s"},
        {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}, "thoughtSignature": "t"},
    ]


CODE = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
DRAWN = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}, "thoughtSignature": "t"}
SEARCHED = {"webSearchQueries": ["rain"]}


def test_what_their_own_tools_did_goes_back_as_it_came_while_they_are_asked_for() -> None:
    """Images that the model generated always go back, and grounding metadata never does (R5)."""
    kinds: dict[str, dict[str, Any]]
    kinds = {"executableCode": CODE, "inlineData": DRAWN, "groundingMetadata": SEARCHED}
    items = [ProviderItem(kind, "", "gemini", MODEL, {**part}) for kind, part in kinds.items()]
    history = (user("Weather?"), assistant(*items, Text("Rain.")), user("Thanks."))
    asked = body_of(Request(MODEL, history, extra={"tools": [{"codeExecution": {}}]}))
    assert asked["contents"][1]["parts"] == [CODE, DRAWN, {"text": "Rain."}]
    assert sent(*history)[1]["parts"] == [DRAWN, {"text": "Rain."}]
    assert sent(*history, model=OTHER_MODEL)[1]["parts"] == [{"text": "Rain."}]
    alone = body_of(Request(MODEL, (user("Draw."), assistant(items[1]), user("Thanks."))))
    assert alone["contents"][1]["parts"] == [DRAWN]


def test_all_responses_follow_their_calls_at_once_and_before_what_the_person_says() -> None:
    failed = ToolCall("b", "clock", state=CallState.FAILED, result=ToolResult("no clock"))
    contents = sent(user("Weather?"), assistant(Text("One moment."), done("a"), failed), user("So?"))
    assert contents[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "get_weather", "response": {"output": "21 °C"}}},
            {"functionResponse": {"name": "clock", "response": {"error": "no clock"}}},
            {"text": "So?"},
        ],
    }


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
FILM = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/film.mp4"}}


def test_pictures_that_a_call_brought_stand_in_its_response_and_films_follow_it() -> None:
    """Newer models take images inside the response. An older model gets every file after the responses
    (R5)."""
    result = ToolResult("see picture", attachments=(IMAGE, FILES[5]))
    shown = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    response = {"name": "draw", "response": {"output": "see picture"}}
    assert sent(user("Draw."), assistant(shown, done("d")))[2]["parts"] == [
        {"functionResponse": {**response, "parts": [PICTURE]}},
        {"functionResponse": {"name": "get_weather", "response": {"output": "21 °C"}}},
        {"text": "[Result of draw]"},
        FILM,
    ]
    assert sent(user("Draw."), assistant(shown), model="gemini-2.5-pro")[2]["parts"] == [
        {"functionResponse": response},
        {"text": "[Result of draw]"},
        PICTURE,
        FILM,
    ]


def test_an_id_goes_back_on_the_call_and_on_its_response() -> None:
    """Newer models match results by ID. A duplicate ID gets another value on both sides (R5)."""
    twins = assistant(done("a", provider_id="96c1"), done("b", provider_id="96c1"), done("c"))
    model, answer = sent(user("Weather?"), twins)[1:]
    assert [part["functionCall"].get("id") for part in model["parts"]] == ["96c1", "96c1+", None]
    assert [part["functionResponse"].get("id") for part in answer["parts"]] == ["96c1", "96c1+", None]
    older = sent(user("Weather?"), twins, model="gemini-2.5-pro")
    assert not any("id" in part["functionCall"] for part in older[1]["parts"])


def test_a_made_up_name_becomes_one_they_accept() -> None:
    wrong = ToolCall("c", "3d:draw", state=CallState.FAILED, result=ToolResult("no such tool"))
    model, answer = sent(user("Draw."), assistant(wrong))[1:]
    assert model["parts"][0]["functionCall"]["name"] == "_3d_draw"
    assert answer["parts"][0]["functionResponse"]["name"] == "_3d_draw"


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    (content,) = sent(RequestMessage("user", FILES))
    assert content["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/dog.jpg"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"text": "[note.txt]\nfür später"},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/film.mp4"}},
    ]


def test_a_history_begins_and_ends_with_the_person() -> None:
    assert [turn["role"] for turn in sent(assistant(Text("Welcome.")))] == ["user", "model", "user"]
    assert [turn["role"] for turn in sent()] == ["user"]
