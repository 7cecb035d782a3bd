"""Converse: the rules by which Bedrock refuses a history, and those of the models behind it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import ProviderError
from dragoman.messages.message import CallState, File, ProviderItem, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire.bedrock_converse import WIRE
from dragoman.wire.learned import Learned, fields_of
from dragoman.wire.lowering import result_text
from tests.wire.bedrock_converse.bodies import (
    CLAUDE,
    LLAMA,
    MODELS,
    NAME,
    NOVA,
    REPLY,
    assistant,
    body_of,
    done,
    sent,
    unmarked,
    user,
)
from tests.wire.histories import ATTACHMENTS, FILES, IMAGE, WEATHER, calls_of, is_accepted, requests
from tests.wire.replies import decode


def kinds(turn: dict[str, Any]) -> list[str]:
    return [next(iter(block)) for block in turn["content"]]


def points(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(points, value))
    return sum(map(points, value.values())) + ("cachePoint" in value) if isinstance(value, dict) else 0


def assert_valid(request: Request, body: dict[str, Any]) -> None:
    """Check what the API checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    rich = "anthropic" in request.model or "nova" in request.model
    seen: set[str] = set()
    waiting: list[str] = []
    names: list[str] = []
    for place, turn in enumerate(unmarked(body["messages"])):
        assert turn["role"] == ("user", "assistant")[place % 2], "the sides alternate, the person's first"
        assert turn["content"]
        held = kinds(turn)
        assert rich or "toolResult" not in held or {*held} == {"toolResult"}
        assert "document" not in held or "text" in held
        assert turn["role"] == "user" or held[-1] != "reasoningContent"
        for kind, block in zip(held, turn["content"], strict=True):
            assert kind != "text" or block["text"].strip()
            if kind == "toolResult":
                assert block[kind]["toolUseId"] == waiting.pop(0)
                assert block[kind]["content"][0]["text"] == result_text(expected.pop(0))
                assert rich or (
                    block[kind].keys() == {"toolUseId", "content"} and len(block[kind]["content"]) == 1
                )
            elif turn["role"] == "user":
                assert not waiting, "the results come first, and all of them"
                assert kind in ("text", "image", "document", "video", "audio")
            elif kind == "toolUse":
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block[kind]["name"])
                assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", block[kind]["toolUseId"])
                assert block[kind]["toolUseId"] not in seen
                seen.add(block[kind]["toolUseId"])
                waiting.append(block[kind]["toolUseId"])
            names += [block[kind]["name"]] if kind == "document" else []
    assert len(names) == len({*names}), "no two documents have one name"
    assert body["messages"][-1]["role"] == "user"
    assert not waiting
    assert not expected, "every call is sent"
    assert ("toolConfig" in body) or not seen, "calls come with tools"
    assert points(body) <= 4


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_effort": st.sampled_from(["none", "minimal", "high"]),
        "reasoning_budget": st.sampled_from([512, 4096, 100_000]),
        "max_tokens": st.sampled_from([16, 1500, 64_000]),
        "temperature": st.sampled_from([0, 0.5]),
        "top_p": st.just(0.5),
    },
)


@given(
    requests(), OPTIONS, st.sampled_from([None, "auto", "none", "required", "clock"]), st.sampled_from(MODELS)
)
def test_any_history_becomes_valid(request: Request, options: Any, choice: str | None, model: str) -> None:
    """R5, R2, C2"""
    assume(is_accepted(WIRE(), options, model))
    request = replace(request, options=options, tool_choice=choice, model=model)
    body = body_of(request)
    assert_valid(request, body)
    assert body_of(request) == body  # R2: the same bytes for the same history
    thinking = body.get("additionalModelRequestFields", {}).get("thinking")
    if thinking is not None:
        assert body.get("toolConfig", {}).get("toolChoice") is None
        assert body["inferenceConfig"].keys().isdisjoint({"temperature", "topP"})
        assert thinking.get("budget_tokens", 1024) >= 1024
        assert thinking.get("budget_tokens", 0) < body["inferenceConfig"]["maxTokens"]


# ── thoughts ──────────────────────────────────────────────────────────────────────────────────────


def test_sealed_thoughts_are_replayed_byte_for_byte_and_only_to_their_model() -> None:
    """R5"""
    parts = [
        replace(part, model=CLAUDE) if isinstance(part, Reasoning) else part
        for part in decode(WIRE(), [REPLY]).parts
    ]
    (_, reply, *_) = sent(user("Weather?"), assistant(*parts))
    assert kinds(reply) == ["reasoningContent", "reasoningContent", "text", "toolUse", "toolUse"]
    assert [block["reasoningContent"] for block in reply["content"][:2]] == [
        {"reasoningText": {"text": "Where is München?", "signature": "EqQB+/="}},
        {"redactedContent": "EtgB"},
    ]
    assert kinds(sent(user("Weather?"), assistant(*parts), model=NOVA)[1]) == ["text", "toolUse", "toolUse"]


@pytest.mark.parametrize(("model", "goes"), [(CLAUDE, False), (LLAMA, True), ("us.deepseek.r1-v1:0", False)])
def test_unsigned_thoughts_go_back_to_those_who_take_them(model: str, goes: bool) -> None:
    """R5: Claude refuses them without a signature, DeepSeek refuses all."""
    reply = assistant(Reasoning("hm", None, NAME, model), done("a"))
    assert ("reasoningContent" in kinds(sent(user("Weather?"), reply, model=model)[1])) is goes


def test_a_model_that_refuses_thoughts_or_a_cache_is_sent_them_once() -> None:
    """The retry leaves out the refused block, and nothing else (R5)."""
    history = (user("Weather?"), assistant(Reasoning("hm", "sig", NAME, CLAUDE), done("a")))
    request = Request(CLAUDE, history, system="Be brief.", tools=(WEATHER,))
    for message, name in (
        (
            "This model doesn't support the reasoningContent field. Remove it and try again.",
            "reasoningContent",
        ),
        ("You invoked an unsupported model or your request did not allow prompt caching.", "cachePoint"),
    ):
        learned = Learned()
        body = body_of(request)
        error = ProviderError(message, kind="invalid_request", status=400, retryable=False)
        error.sent = fields_of(body)
        assert learned.learn(error, request, wire=NAME, may_write_calls=True) is not None
        before = json.dumps(body)
        after = json.dumps(learned.trim(body))
        assert name in before
        assert name not in after
        assert all(block for turn in body["messages"] for block in turn["content"])


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        (
            "This model doesn't support the toolConfig.toolChoice.any field. Remove it.",
            ("toolConfig", "toolChoice"),
        ),
        (
            "The model returned the following errors: `temperature` is deprecated for this model.",
            ("inferenceConfig",),
        ),
        (
            "Extraneous key [reasoning_effort] is not permitted: unexpected field 'reasoning_effort'",
            ("additionalModelRequestFields",),
        ),
    ],
)
def test_what_a_model_does_not_take_is_left_out(message: str, gone: tuple[str, ...]) -> None:
    """R9: as on every wire, learned from its own words."""
    options: dict[str, Any] = {"temperature": 0.5, "reasoning_effort": "low"}
    request = Request(LLAMA, (user("Hi"),), tools=(WEATHER,), tool_choice="required", options=options)
    body, learned = body_of(request), Learned()
    error = ProviderError(message, kind="invalid_request", status=400, retryable=False)
    error.sent = fields_of(body)
    assert learned.learn(error, request, wire=NAME, may_write_calls=True) is not None
    held: Any = learned.trim(body)
    for name in gone[:-1]:
        held = held[name]
    assert gone[-1] not in held
    assert "tools" in body["toolConfig"]


# ── results and files ─────────────────────────────────────────────────────────────────────────────


def test_words_beside_results_stand_in_a_turn_of_their_own_where_they_may_not_mix() -> None:
    """ "Conversation blocks and tool result blocks cannot be provided in the same turn" (R5)."""
    history = (user("Weather?"), assistant(done("a", attachments=(IMAGE,))), user("So?"))
    assert [kinds(turn) for turn in sent(*history)] == [["text"], ["toolUse"], ["toolResult", "text"]]
    assert [kinds(turn) for turn in sent(*history, model=LLAMA)] == [
        *(["text"], ["toolUse"], ["toolResult"], ["text"]),
        ["text", "image", "text"],
    ]


def test_a_call_that_did_not_succeed_says_so_where_there_is_a_word_for_it() -> None:
    failed = ToolCall("c", "clock", state=CallState.FAILED, result=ToolResult("no clock"))
    for model, status in ((CLAUDE, "error"), (NOVA, "error"), (LLAMA, None)):
        (result,) = sent(user("Time?"), assistant(failed), model=model)[-1]["content"]
        assert result["toolResult"].get("status") == status


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    """Bytes go by format, and Dragoman does not fetch a file that has only an address (M2)."""
    (message,) = sent(RequestMessage("user", FILES))
    assert message["content"] == [
        {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}},
        {"text": "[a file, image/jpeg at https://example.org/dog.jpg, cannot be shown here]"},
        {"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}},
        {"document": {"format": "pdf", "name": "report-pdf", "source": {"bytes": "JVBERg=="}}},
        {"text": "[note.txt]\nfür später"},
        {"text": "[a file, video/mp4 at https://example.org/film.mp4, cannot be shown here]"},
    ]


def test_documents_have_names_of_their_own_and_a_word_beside_them() -> None:
    """R5: Bedrock refuses a name twice, most signs in one, and a document without text."""
    name = "a/b: r\tport  (1) [é].pdf"
    pdf = File("application/pdf", blob="sha-pdf", name=name)
    (message,) = sent(RequestMessage("user", (pdf, pdf)))
    first, second, word = message["content"]
    assert first["document"]["name"] == "a-b- r port (1) [-]-pdf"
    assert second["document"]["name"] == "a-b- r port (1) [-]-pdf (2)"
    assert word["text"]


# ── tools, options, cache ─────────────────────────────────────────────────────────────────────────

STRANGE = ToolSpec(
    "strange",
    "",
    {
        "type": "object",
        "title": "Strange",
        "additionalProperties": False,
        "properties": {"it": {"$ref": "#/$defs/It"}},
        "$defs": {"It": {"type": "string"}},
    },
)


def test_a_tools_schema_has_only_the_words_that_the_model_takes() -> None:
    body = body_of(Request(NOVA, (user("Hi"),), tools=(STRANGE,)))
    assert body["toolConfig"]["tools"] == [
        {
            "toolSpec": {
                "name": "strange",
                "description": "strange",  # it may not be empty
                "inputSchema": {"json": {"type": "object", "properties": {"it": {"type": "string"}}}},
            }
        }
    ]
    (tool, _) = body_of(Request(CLAUDE, (user("Hi"),), tools=(STRANGE,)))["toolConfig"]["tools"]
    assert tool["toolSpec"]["strict"] is True


def test_tools_that_are_gone_are_declared_without_being_offered() -> None:
    history = (user("Weather?"), assistant(done("a")), user("Sum up."))
    for request in (Request(LLAMA, history), Request(LLAMA, history, tools=(WEATHER,), tool_choice="none")):
        (tool,) = body_of(request)["toolConfig"]["tools"]
        assert (tool["toolSpec"]["name"], tool["toolSpec"]["description"]) == (
            "get_weather",
            "Not available any more.",
        )
    assert "toolConfig" not in body_of(Request(LLAMA, (user("Hi"),), tools=(WEATHER,), tool_choice="none"))


def test_each_family_is_asked_to_think_in_its_own_words() -> None:
    asked: dict[str, Any] = {"reasoning_effort": "high", "max_tokens": 9000}

    def fields(model: str, **more: Any) -> tuple[Any, Any, Any]:
        body = body_of(Request(model, (user("Hi"),), options={**asked, **more}))
        return body.get("additionalModelRequestFields"), body.get("inferenceConfig"), body.get("outputConfig")

    assert fields(CLAUDE) == (
        {"thinking": {"type": "enabled", "budget_tokens": 9000 - 1024}},
        {"maxTokens": 9000},
        None,
    )
    assert fields("anthropic.claude-opus-4-7") == (
        {"thinking": {"type": "adaptive", "display": "summarized"}},
        {"maxTokens": 9000},
        {"effort": "high"},
    )
    assert fields(NOVA, max_tokens=None) == (
        {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
        None,
        None,
    )
    both = {"temperature": 0.5, "maxTokens": 9000}
    assert fields("openai.gpt-oss-120b-1:0", temperature=0.5) == ({"reasoning_effort": "high"}, both, None)


def test_the_cache_is_marked_only_where_there_is_one() -> None:
    """A request has at most four cache points. For Nova they follow only text, and not tools (R2)."""
    history = (user("One"), assistant(Text("1")), user("Two"), assistant(done("a")))
    for model, marked in ((CLAUDE, 4), (NOVA, 3), (LLAMA, 0), ("anthropic.claude-3-haiku-20240307-v1:0", 0)):
        request = Request(model, history, system="Be brief.", tools=(WEATHER,))
        assert points(body_of(request)) == marked
    hour = body_of(Request(CLAUDE, history, options={"cache_lifetime": "1h"}))
    assert hour["messages"][0]["content"][-1] == {"text": "One"}
    assert hour["messages"][-1]["content"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_an_answer_that_has_to_fit_is_asked_for_with_its_schema_as_text() -> None:
    body = body_of(
        Request(CLAUDE, (user("Hi"),), options={"response_schema": {"type": "object", "title": "A b"}})
    )
    structure = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert structure == {
        "schema": '{"type": "object", "title": "A b", "additionalProperties": false}',
        "name": "A_b",
    }


def test_what_amazons_own_tools_did_goes_back_while_they_are_asked_for() -> None:
    """R5: a call of theirs without its result does not."""
    use: dict[str, Any] = {
        "toolUse": {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use", "input": {}}
    }
    torn: dict[str, Any] = {"toolUse": {**use["toolUse"], "toolUseId": "t2"}}
    result: dict[str, Any] = {
        "toolResult": {"toolUseId": "t1", "content": [{"text": "wet"}], "type": "nova_grounding_result"}
    }
    items = [ProviderItem("toolUse", "", NAME, NOVA, one) for one in (use, result, torn)]
    reply = assistant(*items, Text("Rain."))
    history = (user("Weather?"), reply, user("Thanks."))
    assert kinds(sent(*history, model=NOVA)[1]) == ["text"]
    assert sent(*history, model=NOVA, hosted_tools=["nova_grounding"])[1]["content"] == [
        *(use, result, {"text": "Rain."}),
    ]
    body = body_of(Request(NOVA, history, options={"hosted_tools": ["nova_grounding"]}))
    assert body["toolConfig"] == {"tools": [{"systemTool": {"name": "nova_grounding"}}]}


def test_encoding_reads_no_more_than_what_is_attached() -> None:
    """S4"""
    request = Request(CLAUDE, (RequestMessage("user", FILES),))
    assert WIRE().encode(request, ATTACHMENTS) == WIRE().encode(request, ATTACHMENTS)


def test_audio_that_a_call_brought_stands_behind_the_results() -> None:
    """M2, R5: Amazon takes no audio inside a toolResult."""
    sound = File("audio/wav", blob=FILES[0].blob, name="hello.wav")
    result = ToolResult("spoken", attachments=(sound, IMAGE))
    call = ToolCall("c1", "speak", state=CallState.COMPLETED, result=result)
    attachments = replace(ATTACHMENTS, base64={**ATTACHMENTS.base64, sound.blob or "": "AAAA"})
    for model in (CLAUDE, NOVA):
        request = Request(model, (user("Say it."), assistant(call)))
        turn = unmarked(WIRE().encode(request, attachments)["messages"])[-1]
        assert kinds(turn)[:3] == ["toolResult", "text", "audio"]
        (inside,) = [block["toolResult"]["content"] for block in turn["content"] if "toolResult" in block]
        assert [next(iter(block)) for block in inside] == ["text", "image"]
