"""Gemini: what it sends, the rules by which it refuses a history, and the schemas it understands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dragoman.errors import ContextOverflow
from dragoman.messages.parts import CallState, Part, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.wire.gemini import WIRE
from dragoman.wire.gemini.schema import subset
from dragoman.wire.gemini.shapes import NO_SIGNATURE
from dragoman.wire.lowering import result_text
from dragoman.wire.quirks import Quirks
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.histories import (
    ATTACHMENTS,
    CLOCK,
    FILES,
    IMAGE,
    MODEL,
    OTHER_MODEL,
    SIGNED,
    WEATHER,
    calls_of,
    requests,
)
from tests.wire.replies import UNFINISHED, Reply, decode, sse

SIGNATURE = SIGNED["gemini"][0]


def chunk(*parts: dict[str, Any], finish: str | None = None, **candidate: Any) -> dict[str, Any]:
    candidate |= {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **candidate}]}


def text(sent: str, **fields: Any) -> dict[str, Any]:
    return {"text": sent, **fields}


def call(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments}, **fields}


def thought(sent: str, signature: str | None = None) -> Reasoning:
    return Reasoning(sent, signature, "gemini", MODEL)


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


# ── decode ────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == "gemini"


REPLY = sse(
    chunk(text("Where is ", thought=True)),
    chunk(text("München?", thought=True)),
    chunk(text("One ", thoughtSignature="CiIB+/==")),
    chunk(text("moment 🐉.")),
    chunk(
        call("get_weather", {"city": "München"}, thoughtSignature="sig"),
        call("get_weather", {"city": "Rome"}),
    ),
    chunk(call("clock", None)),
    chunk(text(""), finish="STOP"),
    {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 4}},
)


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        thought("Where is München?"),
        Text("One moment 🐉."),
        thought("", "CiIB+/=="),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, signature="sig"),
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
        ("SAFETY", "filter"),
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
    assert (reply.error, reply.end.finish) == (None, "filter")


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
    """C5: it is not run, and not lost."""
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage=message))
    (end,) = reply.calls
    assert (end.tool, end.arguments, end.raw) == ("get_weather", None, message)
    assert reply.end.finish == "tool_calls"


def test_a_call_they_could_not_read_and_do_not_name_is_an_error() -> None:
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert (reply.calls, reply.end.finish) == ([], "error")


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


def test_what_their_own_tools_did_is_survived() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    assert read(chunk(code), chunk(result), chunk(text("One.")), {"candidates": [{}]}).parts == (
        Text("One."),
    )


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


# ── encode ────────────────────────────────────────────────────────────────────────────────────────


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, model: str = MODEL) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = body_of(Request(model, messages))["contents"]
    return contents


def user(sent: str) -> RequestMessage:
    return RequestMessage("user", (Text(sent),))


def assistant(*parts: Part) -> RequestMessage:
    return RequestMessage("assistant", parts)


def done(id: str, sent: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(sent), **fields
    )


def assert_valid(request: Request, contents: list[dict[str, Any]]) -> None:
    """What the API checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    waiting: list[str] = []
    for place, content in enumerate(contents):
        assert content["role"] == ("user", "model")[place % 2], "the sides alternate, the person's first"
        assert content["parts"]
        calls = [part for part in content["parts"] if "functionCall" in part]
        assert not calls or calls[0].get("thoughtSignature"), "the first call of a batch is signed"
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                assert content["role"] == "user"
                assert response["name"] == waiting.pop(0)
                assert [*response["response"].values()] == [result_text(expected.pop(0))]
            elif content["role"] == "user":
                assert not waiting, "the responses come first, and all of them"
                assert part.keys() <= {"text", "inlineData", "fileData"}
                assert "text" not in part or part["text"].strip()
            elif made := part.get("functionCall"):
                assert made.keys() == {"name", "args"}
                assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", made["name"])
                assert isinstance(made["args"], dict)
                waiting.append(made["name"])
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


def test_a_signature_that_came_alone_goes_back_alone() -> None:
    reply = assistant(thought("", "s"), done("a", signature="t"))
    assert sent(user("Weather?"), reply)[1]["parts"] == [
        {"text": "", "thoughtSignature": "s"},
        {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}, "thoughtSignature": "t"},
    ]


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


def test_pictures_that_a_call_brought_follow_its_response() -> None:
    result = ToolResult("see picture", attachments=(IMAGE,))
    shown = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    assert sent(user("Draw."), assistant(shown))[2]["parts"][1:] == [
        {"text": "[Result of draw]"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    ]


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


# ── tools and options ─────────────────────────────────────────────────────────────────────────────


def asking(model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    return body_of(Request(model, (user("Hi"),), **fields))


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER, CLOCK),
        tool_choice="clock",
        options={
            "temperature": 0.5,
            "max_tokens": 10,
            "top_p": 0.9,
            "stop": "END",
            "reasoning_effort": "low",
            "parallel_tool_calls": False,
            "response_schema": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}},
            "unheard_of": 1,
        },
        extra={"generationConfig": {"temperature": 1, "seed": 7}, "tools": [{"googleSearch": {}}]},
    )
    parameters = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    assert body_of(request) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "get_weather", "description": WEATHER.description, "parameters": parameters},
                    {"name": "clock", "description": CLOCK.description},
                ]
            },
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["clock"]}},
        "generationConfig": {
            "temperature": 1,
            "topP": 0.9,
            "maxOutputTokens": 10,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"a": {"type": "INTEGER", "nullable": True}},
            },
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "seed": 7,
        },
    }


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("none", "NONE"), ("required", "ANY")])
def test_a_tool_choice_is_said_in_their_words(choice: str, mode: str) -> None:
    assert asking(tools=(CLOCK,), tool_choice=choice)["toolConfig"]["functionCallingConfig"] == {"mode": mode}
    assert "toolConfig" not in asking(tool_choice=choice)


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(MODEL, (user("Hi"),), tools=(CLOCK,), tool_choice="clock")
    calling = body_of(request, no_forced_choice=True)["toolConfig"]["functionCallingConfig"]
    assert calling == {"mode": "AUTO"}


@pytest.mark.parametrize(
    ("model", "options", "thinking"),
    [
        ("gemini-3-pro", {"reasoning_effort": "max"}, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-pro", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingLevel": "low"}),
        (
            "gemini-3-flash",
            {"reasoning_effort": "none"},
            {"includeThoughts": False, "thinkingLevel": "minimal"},
        ),
        ("gemini-3-pro", {"reasoning_budget": 99}, {"includeThoughts": True, "thinkingBudget": 99}),
        ("gemini-2.5-flash", {"reasoning_effort": "low"}, {"includeThoughts": True, "thinkingBudget": 2_048}),
        ("gemini-2.5-flash", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.0-flash", {"reasoning_effort": "high"}, None),
        ("gemini-3-pro", {}, None),
    ],
)
def test_thinking_is_asked_for_as_each_generation_knows_it(model: str, options: Any, thinking: Any) -> None:
    assert asking(model, options=options).get("generationConfig", {}).get("thinkingConfig") == thinking


def test_older_models_get_no_schema_beside_tools_because_they_refuse_both_together() -> None:
    options = {"response_schema": {"type": "object", "properties": {}}}
    assert "generationConfig" not in asking("gemini-2.5-flash", tools=(CLOCK,), options=options)
    assert "responseSchema" in asking("gemini-2.5-flash", options=options)["generationConfig"]
    assert "responseSchema" in asking("gemini-3-pro", tools=(CLOCK,), options=options)["generationConfig"]


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────

POINT = {"type": "object", "properties": {"x": {"type": "number"}}}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/Tree",
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["branches", "gone"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "theirs"),
    [
        ({"type": "string", "title": "T", "default": "x", "format": "uri"}, {"type": "STRING"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}], "description": "d"},
            {"anyOf": [{"type": "INTEGER", "description": "d"}, {"type": "STRING"}]},
        ),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2"}),
        (
            {"$ref": "#/$defs/P", "description": "d", "$defs": {"P": POINT}},
            {"type": "OBJECT", "properties": {"x": {"type": "NUMBER"}}, "description": "d"},
        ),
        (
            {"allOf": [POINT, {"properties": {"y": {"type": "boolean"}}, "required": ["y"]}]},
            {
                "type": "OBJECT",
                "properties": {"x": {"type": "NUMBER"}, "y": {"type": "BOOLEAN"}},
                "required": ["y"],
            },
        ),
        (
            TREE,
            {
                "type": "OBJECT",
                "properties": {"branches": {"type": "ARRAY", "items": {"type": "OBJECT"}}},
                "required": ["branches"],
            },
        ),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2},
            {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}, "minItems": 2},
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT"}),
        ({}, {"type": "STRING"}),
        (
            {"type": "object", "properties": {"$ref": {"type": "string"}, "enum": True}},
            {"type": "OBJECT", "properties": {"$ref": {"type": "STRING"}, "enum": {"type": "STRING"}}},
        ),
    ],
)
def test_a_schema_is_said_in_the_subset_they_take(schema: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert subset(schema) == theirs


def test_types_that_all_refer_to_each_other_do_not_grow_without_end() -> None:
    every = {f"p{n}": {"$ref": f"#/$defs/T{n}"} for n in range(12)}
    types: dict[str, Any] = {f"T{n}": {"type": "object", "properties": every} for n in range(12)}
    theirs = subset({"$ref": "#/$defs/T0", "$defs": types})
    assert_in_subset(theirs)
    assert len(repr(theirs)) < 500_000


def schemas() -> SearchStrategy[Any]:
    """Schemas as people, pydantic and MCP servers write them, and some nobody should."""
    names = st.sampled_from(["a", "b", "type", "$ref", "enum"])
    leaf = st.sampled_from(
        [
            {"type": "string"},
            {"type": "null"},
            {"const": 1},
            {"enum": [None]},
            {},
            {"$ref": "#/$defs/P"},
            True,
        ]
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.dictionaries(names, inner, max_size=3).map(
                lambda properties: {"type": "object", "properties": properties, "required": ["a", "z"]}
            ),
            inner.map(lambda items: {"type": "array", "items": items, "uniqueItems": True}),
            st.lists(inner, max_size=3).map(lambda choices: {"anyOf": choices}),
            st.lists(inner, max_size=2).map(lambda parts: {"allOf": parts, "description": "d"}),
            inner.map(lambda items: {"type": ["array", "null"], "items": items}),
        ),
        max_leaves=8,
    )


def assert_in_subset(schema: dict[str, Any]) -> None:
    if "anyOf" in schema:
        assert schema.keys() == {"anyOf"}
        for choice in schema["anyOf"]:
            assert_in_subset(choice)
        return
    assert schema["type"] in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
    assert schema.keys() <= {
        *("type", "description", "nullable", "format", "enum", "items", "minItems"),
        *("properties", "required"),
    }
    assert set(schema.get("required", ())) <= schema.get("properties", {}).keys()
    assert ("items" in schema) == (schema["type"] == "ARRAY")
    for inner in schema.get("properties", {}).values():
        assert_in_subset(inner)
    if "items" in schema:
        assert_in_subset(schema["items"])


@given(schemas())
def test_any_schema_ends_in_the_subset(schema: Any) -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"it": schema},
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    }
    body = asking(tools=(ToolSpec("t", "A tool.", parameters),))
    assert_in_subset(body["tools"][0]["functionDeclarations"][0]["parameters"])
