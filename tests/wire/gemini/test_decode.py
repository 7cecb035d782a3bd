"""Decode Gemini replies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import ContextOverflow
from dragoman.messages.events import ProviderData
from dragoman.messages.message import Citation, File, Part, ProviderItem, Text, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.gemini import WIRE
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.gemini.bodies import REPLY, call, chunk, read, text, thought
from tests.wire.histories import MODEL
from tests.wire.replies import UNFINISHED, decode


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == "gemini"


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        thought("Where is München?"),
        Text("One moment 🐉."),
        thought("", "CiIB+/=="),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, signature="sig", signed_by=MODEL),
        ToolCall("call_r_1", "get_weather", {"city": "Rome"}),
        ToolCall("call_r_2", "clock", {}),
    )


@given(cuts(REPLY))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == decode(WIRE(), [REPLY])


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "safety"),
        ("RECITATION", "recitation"),
        ("PROHIBITED_CONTENT", "filter"),
        ("OTHER", "error"),
        ("BRAND_NEW", "unknown"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(word: str, finish: str) -> None:
    reply = read(chunk(text("Hi")), chunk(finish=word))
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("word", ["STOP", "BRAND_NEW"])
def test_calls_are_there_whatever_the_finish_says(word: str) -> None:
    """C4"""
    reply = read(chunk(call("clock", {}), finish=word))
    assert reply.end.finish == "tool_calls"
    assert [(end.tool, end.arguments) for end in reply.calls] == [("clock", {})]


def test_a_stream_that_ends_before_the_reply_does_is_an_error_that_keeps_what_came() -> None:
    """T8"""
    counts = {"usageMetadata": {"promptTokenCount": 9}}
    reply = read(chunk(text("Hi", thoughtSignature="s")), chunk(call("clock", {})), counts)
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == (UNFINISHED, True)
    assert reply.parts[:2] == (Text("Hi"), thought("", "s"))


def test_a_prompt_that_was_blocked_is_a_reply_that_is_finished() -> None:
    reply = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (reply.error, reply.end.finish) == (None, "safety")


def test_an_id_is_kept_where_there_is_one() -> None:
    named = {"functionCall": {"name": "clock", "args": {}, "id": "96c1su3s"}}
    assert read(chunk(named, call("clock", {}), finish="STOP")).provider_ids == ["96c1su3s", None]


@pytest.mark.parametrize(
    "message",
    [
        "Malformed function call: print(default_api.get_weather(city='Ro",
        "Malformed function call: call:default_api:get_weather{city:Rome",
        "Malformed function call: get_weather(city=Rome)",
    ],
)
def test_a_call_they_could_not_read_becomes_a_call_that_the_model_may_mend(message: str) -> None:
    """The malformed call does not run, and is not lost (C5)."""
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage=message))
    (end,) = reply.calls
    assert (end.tool, end.arguments, end.raw) == ("get_weather", None, message)
    assert reply.end.finish == "tool_calls"


def test_a_call_they_could_not_read_and_do_not_name_is_an_end_of_its_own() -> None:
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert (reply.calls, reply.end.finish) == ([], "malformed")


@pytest.mark.parametrize(
    ("frames", "parts"),
    [
        ([chunk(text("Hi", thoughtSignature="s"))], (Text("Hi"), thought("", "s"))),
        ([chunk(text("H")), chunk(text("i", thoughtSignature="s"))], (Text("Hi"), thought("", "s"))),
        ([chunk(text("Hi")), chunk({"thoughtSignature": "s"})], (Text("Hi"), thought("", "s"))),
        ([chunk(text("", thoughtSignature="s"))], (thought("", "s"),)),
        (
            [chunk(text("hm", thought=True, thoughtSignature="s")), chunk(text("Hi"))],
            (thought("hm", "s"), Text("Hi")),
        ),
    ],
    ids=["with the text", "with its last piece", "alone", "alone, without text", "with a thought"],
)
def test_a_signature_is_kept_wherever_it_comes_and_never_cuts_a_text(
    frames: list[Any], parts: tuple[Part, ...]
) -> None:
    """W4"""
    assert read(*frames).parts == parts


def item(kind: str, line: str, **part: Any) -> ProviderItem:
    return ProviderItem(kind, line, "gemini", MODEL, part)


def test_what_their_own_tools_did_and_what_they_drew_is_kept() -> None:
    """Parts keep their signatures. The answer leaves out a sketch before the final image (W4, M4)."""
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
    search = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "rain"}}}
    found = {"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}
    drawn = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}, "thoughtSignature": "u"}
    sketch = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thought": True}
    frames = [chunk(part) for part in (code, result, search, found, sketch, drawn)]
    assert read(*frames, chunk(text("One."), finish="STOP")).parts == (
        item("executableCode", "1", **code),
        item("codeExecutionResult", "1\n", **result),
        item("toolCall", "GOOGLE_SEARCH_WEB {'q': 'rain'}", **search),
        item("toolResponse", "GOOGLE_SEARCH_WEB", **found),
        File(
            "image/png",
            url="data:image/png;base64,iVBORw==",
            name="image.png",
            made_by=MODEL,
            signature="u",
        ),
        Text("One."),
    )


GROUNDING: dict[str, Any] = {
    "webSearchQueries": ["rain", "mud"],
    "groundingChunks": [
        {"web": {"uri": "https://a.example", "title": "A"}},
        {"retrievedContext": {"uri": "https://b.example", "title": "B", "text": "so wet"}},
        {"maps": {"uri": "https://c.example"}},
    ],
    "groundingSupports": [
        {"segment": {"endIndex": 11, "text": "Übel: rain"}, "groundingChunkIndices": [0, 1, 9]},
        {"segment": {"startIndex": 12, "endIndex": 99, "text": "elsewhere"}, "groundingChunkIndices": [0]},
    ],
}


def test_sources_of_an_answer_are_kept_with_the_words_they_are_for() -> None:
    """Positions count bytes, and a source with a passage in another place has no position (W4)."""
    reply = read(
        chunk(text("Übel: "), groundingMetadata={"webSearchQueries": ["rain"]}),
        chunk(text("rain.")),
        chunk(finish="STOP", groundingMetadata=GROUNDING),
    )
    assert reply.parts == (
        Text(
            "Übel: rain.",
            (
                Citation("https://a.example", "A", None, 0, 10),
                Citation("https://b.example", "B", "so wet", 0, 10),
                Citation("https://a.example", "A"),
                Citation("https://c.example"),
            ),
        ),
        item("groundingMetadata", "rain, mud", **GROUNDING),
    )


def test_where_an_answer_has_several_texts_no_passage_is_named() -> None:
    code = {"executableCode": {"code": "1"}}
    reply = read(
        chunk(text("Übel: rain")), chunk(code), chunk(text("."), finish="STOP", groundingMetadata=GROUNDING)
    )
    (last,) = (part for part in reply.parts if isinstance(part, Text) and part.citations)
    assert {(one.start, one.end) for one in last.citations} == {(None, None)}


def test_pages_that_were_read_and_long_quotations_are_kept() -> None:
    pages = {"urlMetadata": [{"retrievedUrl": "https://a.example", "urlRetrievalStatus": "OK"}]}
    quoted = {"citations": [{"startIndex": 0, "endIndex": 3, "uri": "https://b.example"}]}
    assert read(
        chunk(text("Wet."), finish="STOP", urlContextMetadata=pages, citationMetadata=quoted)
    ).parts == (
        Text("Wet.", (Citation("https://b.example", None, None, 0, 3),)),
        item("urlContextMetadata", "https://a.example", **pages),
    )


def test_how_likely_each_word_was_comes_in_the_form_in_which_it_is_kept() -> None:
    result = {
        "chosenCandidates": [{"token": "Wet", "tokenId": 1, "logProbability": -0.1}, {"token": "."}],
        "topCandidates": [{"candidates": [{"token": "Dry", "logProbability": -3}]}],
    }
    reply = read(chunk(text("Wet."), finish="STOP", logprobsResult=result))
    (data,) = (event.data for event in reply.events if isinstance(event, ProviderData))
    assert data == {
        "logprobs": [
            {"token": "Wet", "logprob": -0.1, "top_logprobs": [{"token": "Dry", "logprob": -3}]},
            {"token": ".", "logprob": None, "top_logprobs": []},
        ]
    }


def test_each_signature_stays_with_the_text_it_came_with() -> None:
    """W4"""
    frames = [
        chunk(text("One.", thoughtSignature="s")),
        chunk(text("Two.", thoughtSignature="t"), finish="STOP"),
    ]
    assert read(*frames).parts == (Text("One."), thought("", "s"), Text("Two."), thought("", "t"))


def test_a_question_that_is_blocked_is_filtered() -> None:
    reply = read({"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 4}})
    assert (reply.end.finish, reply.finish_word, reply.end.usage) == ("filter", "OTHER", Usage(4))


def test_usage_counts_thoughts_as_output_and_comes_with_any_chunk() -> None:
    """T11"""
    early = {"usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 4}}
    late = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "cachedContentTokenCount": 2}}
    reply = read(chunk(text("Hi")) | early, chunk(finish="STOP"), late)
    assert reply.end.usage == Usage(9, 9, cached=2, reasoning=4)


def test_an_error_inside_a_stream_that_began_well_is_raised() -> None:
    """W3"""
    error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    reply = read(chunk(text("Hi")), {"error": error})
    assert reply.text == "Hi"
    assert reply.error is not None
    assert (reply.error.kind, reply.error.retryable) == ("overloaded", True)


def test_an_overflow_inside_a_stream_is_told_as_one() -> None:
    message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    assert isinstance(read({"error": {"code": 400, "message": message}}).error, ContextOverflow)
