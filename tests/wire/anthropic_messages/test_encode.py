"""Messages: the many rules by which they refuse a history."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.messages.message import (
    CallState,
    Citation,
    File,
    Part,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.anthropic_messages import WIRE
from dragoman.wire.anthropic_messages.shapes import THINKING
from dragoman.wire.lowering import NO_RESULT, result_text
from tests.wire.anthropic_messages.bodies import (
    FOUND,
    NAME,
    REPLY,
    SEARCH,
    WITH_SEARCH,
    assistant,
    blocks_of,
    body_of,
    cache_marks,
    done,
    sent,
    thinking,
    user,
)
from tests.wire.histories import (
    FILES,
    IMAGE,
    MODEL,
    OTHER_MODEL,
    calls_of,
    is_accepted,
    requests,
)
from tests.wire.replies import decode


def assert_valid(request: Request, body: dict[str, Any]) -> None:
    """Check what the API checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    seen: set[str] = set()
    waiting: list[str] = []
    for place, turn in enumerate(body["messages"]):
        assert turn["role"] == ("user", "assistant")[place % 2], "the sides alternate, the person's first"
        assert turn["content"]
        for block in turn["content"]:
            if block["type"] == "tool_result":
                assert turn["role"] == "user"
                assert block["tool_use_id"] == waiting.pop(0)
                assert block["content"][0]["text"] == result_text(expected.pop(0))
                assert not block.get("is_error") or len(block["content"]) == 1
            elif turn["role"] == "user":
                assert not waiting, "the results come first, and all of them"
                assert block["type"] in ("text", "image", "document")
            elif block["type"] == "tool_use":
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block["name"])
                assert re.fullmatch(r"[A-Za-z0-9_-]+", block["id"])
                assert block["id"] not in seen
                assert isinstance(block["input"], dict)
                seen.add(block["id"])
                waiting.append(block["id"])
            else:
                assert block["type"] in ("text", *THINKING)
            assert block["type"] != "text" or block["text"].strip()
        assert turn["role"] == "user" or turn["content"][-1]["type"] not in THINKING
    assert body["messages"][-1]["role"] == "user"
    assert not waiting
    assert not expected, "every call is sent"
    assert ("tools" in body) or not seen, "calls come with tools"


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
    requests(),
    OPTIONS,
    st.sampled_from([None, "auto", "required", "clock"]),
    st.sampled_from([MODEL, "claude-x"]),
)
def test_any_history_becomes_valid(request: Request, options: Any, choice: str | None, model: str) -> None:
    """R5, R2, C2"""
    assume(is_accepted(WIRE(), options, model))
    request.options, request.tool_choice, request.model = options, choice, model
    body = body_of(request)
    assert_valid(request, body)
    assert cache_marks(body) <= 4
    assert_thinking_is_allowed(body)
    assert body_of(request) == body  # R2: the same bytes for the same history


def assert_thinking_is_allowed(body: dict[str, Any]) -> None:
    """The rules that hold while a model thinks."""
    thinking = body.get("thinking")
    if thinking is None:
        return
    assert body.get("tool_choice", {}).get("type") not in ("any", "tool")
    assert body.keys().isdisjoint({"temperature", "top_p"})
    if thinking["type"] == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        last = body["messages"][-2:]
        if any(block["type"] == "tool_result" for block in last[-1]["content"]):
            assert last[0]["content"][0]["type"] in THINKING


@given(requests())
def test_thoughts_go_back_only_where_they_came_from_and_as_they_came(request: Request) -> None:
    """R5"""
    ours = [
        part
        for message in request.messages
        for part in message.parts
        if isinstance(part, Reasoning) and part.wire == NAME and part.model == MODEL and part.signature
    ]
    thoughts = blocks_of(body_of(request), "thinking")
    stored = iter(ours)
    # some are missing because no block follows them, and the rest is in order
    for thought in thoughts:
        assert any(thought == thinking(part.text) for part in stored)


def test_sealed_thoughts_are_replayed_byte_for_byte_and_in_order() -> None:
    """R5"""
    redacted = {"type": "redacted_thinking", "data": "EtgB=="}
    reply = decode(WIRE(), [REPLY])
    body = body_of(Request(MODEL, (user("Weather?"), assistant(*reply.parts))))
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        *THINKING,
        "text",
        "tool_use",
        "tool_use",
    ]
    assert body["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Where is München?", "signature": "EqQB+/="},
        redacted,
    ]
    body = body_of(Request(OTHER_MODEL, (user("Weather?"), assistant(*reply.parts))))
    assert not blocks_of(body, "thinking") + blocks_of(body, "redacted_thinking")


def test_all_results_follow_their_calls_at_once_and_before_what_the_person_says() -> None:
    assert sent(
        user("Weather?"), assistant(Text("One moment."), done("a"), done("b", "22 °C")), user("So?")
    ) == [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "b", "name": "get_weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "21 °C"}]},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "22 °C"}]},
                {"type": "text", "text": "So?"},
            ],
        },
    ]


def test_a_call_that_did_not_succeed_says_so() -> None:
    failed = ToolCall("c", "clock", state=CallState.FAILED, result=ToolResult("no clock"))
    result = sent(user("Time?"), assistant(failed))[-1]["content"][0]
    assert (result["is_error"], result["content"]) == (True, [{"type": "text", "text": "no clock"}])
    unfinished = sent(user("Time?"), assistant(ToolCall("c", "clock")))[-1]["content"][0]
    assert (unfinished["is_error"], unfinished["content"][0]["text"]) == (True, NO_RESULT)


def test_pictures_stand_in_the_result_that_brought_them() -> None:
    result = ToolResult("see picture", attachments=(IMAGE,))
    shown = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert sent(user("Draw."), assistant(shown))[-1]["content"][0]["content"] == [
        {"type": "text", "text": "see picture"},
        {"type": "image", "source": source},
    ]


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    (message,) = sent(RequestMessage("user", FILES))
    assert message["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/dog.jpg"}},
        {"type": "text", "text": "[a file, audio/wav, cannot be shown here]"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "report.pdf",
        },
        {"type": "text", "text": "[note.txt]\nfür später"},
        {"type": "text", "text": "[a file, video/mp4 at https://example.org/film.mp4, cannot be shown here]"},
    ]


def test_a_picture_inside_its_address_is_sent_as_bytes() -> None:
    (message,) = sent(RequestMessage("user", (File("image/gif", url="data:image/gif;base64,R0lGOD=="),)))
    assert message["content"][0]["source"] == {
        "type": "base64",
        "media_type": "image/gif",
        "data": "R0lGOD==",
    }


def test_a_history_begins_and_ends_with_the_person() -> None:
    assert [turn["role"] for turn in sent(assistant(Text("Welcome.")))] == ["user", "assistant", "user"]
    assert [turn["role"] for turn in sent()] == ["user"]


def test_tools_that_are_gone_are_declared_but_cannot_be_called() -> None:
    body = body_of(Request(MODEL, (user("Weather?"), assistant(done("a")), user("Sum up."))))
    assert [tool["name"] for tool in body["tools"]] == ["get_weather"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in body_of(Request(MODEL, (user("Hi"),)))


# ── the provider's own tools ──────────────────────────────────────────────────────────────────────


def own(*blocks: dict[str, Any]) -> list[Part]:
    return [ProviderItem(block["type"], "", NAME, MODEL, block) for block in blocks]


def types(turns: list[dict[str, Any]]) -> list[list[str]]:
    return [[block["type"] for block in turn["content"]] for turn in turns]


def test_what_the_servers_own_tools_did_goes_back_while_they_are_asked_for() -> None:
    reply = assistant(*own(SEARCH, FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), reply, user("Thanks."), **WITH_SEARCH))[1] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert types(sent(user("Weather?"), reply, user("Thanks.")))[1] == ["text"]


def test_what_older_conversations_hold_of_them_as_thoughts_goes_back_too() -> None:
    older = [Reasoning("", None, NAME, MODEL, block) for block in (SEARCH, FOUND)]
    turns = sent(user("Weather?"), assistant(*older, Text("Rain.")), user("Thanks."), **WITH_SEARCH)
    assert turns[1]["content"][:2] == [SEARCH, FOUND]


def test_what_nobody_knows_yet_is_kept_and_does_not_go_back() -> None:
    reply = assistant(*own({"type": "something_new"}), Text("Rain."))
    assert types(sent(user("Weather?"), reply, user("Thanks."), **WITH_SEARCH))[1] == ["text"]


def location(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, "cited_text": "rain", **fields}


def test_sources_go_back_with_the_words_they_are_for_as_they_came() -> None:
    """Each source is in a separate block, as received. A search's sources go back only with the search
    (R5)."""
    page = location("page_location", document_index=0, document_title=None)
    found = location("web_search_result_location", url="https://a.example", encrypted_index="x")
    text = Text(
        "It says rain, and mud.",
        (
            Citation(None, None, "rain", 8, 12, page | {"file_id": None}),
            Citation("https://a.example", None, "rain", 18, 21, found),
            Citation("https://b.example", None, None, 0, 2, {"type": "url_citation"}),
            Citation("https://c.example", None, None, 18, 99, found),
            Citation("https://d.example", "D"),
        ),
    )
    history = (user("Weather?"), assistant(*own(SEARCH, FOUND), text), user("Thanks."))
    assert sent(*history, **WITH_SEARCH)[1]["content"][2:] == [
        {"type": "text", "text": "It says "},
        {"type": "text", "text": "rain", "citations": [page]},
        {"type": "text", "text": ", and "},
        {"type": "text", "text": "mud", "citations": [found]},
        {"type": "text", "text": "."},
    ]
    assert [block.get("citations") for block in sent(*history)[1]["content"]] == [None, [page], None]


def test_a_paused_reply_is_sent_back_to_go_on_from() -> None:
    paused = assistant(Text("I look."), *own(SEARCH))
    assert types(sent(user("Weather?"), paused, **WITH_SEARCH)) == [["text"], ["text", "server_tool_use"]]
    waiting = assistant(*own(SEARCH), done("a"))  # its result follows that of our tool
    assert types(sent(user("Weather?"), waiting, **WITH_SEARCH))[1:] == [
        ["server_tool_use", "tool_use"],
        ["tool_result"],
    ]
    later = assistant(*own(FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), waiting, later, user("Thanks."), **WITH_SEARCH))[3] == [
        "web_search_tool_result",
        "text",
    ]


def test_half_of_a_server_call_is_left_out_once_the_conversation_has_moved_on() -> None:
    torn = assistant(Text("I look."), *own(SEARCH))
    assert types(sent(user("Weather?"), torn, user("Never mind."), **WITH_SEARCH))[1] == ["text"]
    orphan = assistant(*own(FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), orphan, user("Thanks."), **WITH_SEARCH))[1] == ["text"]
