"""Check the finish, notice and next request for every way in which a provider ends a reply."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman import Runtime
from dragoman.messages.message import CallState
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from tests.loopback import Answer, Stream, loopback, sse
from tests.runtimes import calls_of
from tests.wire.endings.played import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, play
from tests.wire.endings.replies import ADD, ANSWERS, blocked, chat, converse, gemini, messages, responses

GUARDED = {
    "inputAssessment": {
        "gr1": {
            "topicPolicy": {"topics": [{"name": "Money", "type": "DENY", "action": "BLOCKED"}]},
            "contentPolicy": {
                "filters": [
                    {"type": "INSULTS", "confidence": "HIGH", "action": "BLOCKED"},
                    {"type": "HATE", "confidence": "LOW", "action": "NONE"},
                ]
            },
        }
    }
}


class End(NamedTuple):
    wire: str
    reply: Stream
    finish: str  # ours
    told: str  # a word of the notice
    text: str  # stored text


ENDS: list[tuple[str, Stream, str, str, str]] = [
    (CHAT, chat("Half a sen", "content_filter"), "filter", "content filter", "Half a sen"),
    (
        CHAT,
        chat("", "content_filter", content_filter_results={"violence": {"filtered": True}, "hate": {}}),
        "filter",
        "violence",
        "",
    ),
    (CHAT, chat(refusal="I cannot help with that."), "refusal", "refused", "I cannot help with that."),
    (CHAT, chat("Well, |", refusal="no."), "refusal", "refused", "Well, no."),
    (CHAT, chat("No.", "refusal"), "refusal", "refused", "No."),
    (CHAT, chat("Half", "SAFETY"), "safety", "safety", "Half"),
    (CHAT, chat("Half", "insufficient_system_resource"), "error", "insufficient_system_resource", "Half"),
    (CHAT, chat("Half", "model_context_window_exceeded"), "context", "context is full", "Half"),
    (CHAT, chat("Hi", "banana"), "unknown", "banana", "Hi"),
    (CHAT, chat(""), "empty", "empty reply", ""),
    (RESPONSES, responses("Half", "incomplete", "content_filter"), "filter", "content_filter", "Half"),
    (RESPONSES, responses(refusal="I will not."), "refusal", "refused", "I will not."),
    (RESPONSES, responses("Hi", "incomplete", "banana"), "unknown", "banana", "Hi"),
    (RESPONSES, responses("Half", "cancelled"), "error", "cancelled", "Half"),
    (RESPONSES, responses(thought="Hm."), "thoughts", "gave no answer", ""),
    (RESPONSES, responses(), "empty", "empty reply", ""),
    (MESSAGES, messages("I can", "refusal"), "refusal", "refused", "I can"),
    (
        MESSAGES,
        messages("", "refusal", stop_details={"category": "cyber", "explanation": "Not that."}),
        "refusal",
        "cyber: Not that.",
        "",
    ),
    (MESSAGES, messages("Hi", "banana"), "unknown", "banana", "Hi"),
    (MESSAGES, messages(thought="Hm."), "thoughts", "gave no answer", ""),
    (MESSAGES, messages(), "empty", "empty reply", ""),
    *(
        (GEMINI, gemini("Half", word), finish, word, "Half")
        for word, finish in {
            "SAFETY": "safety",
            "IMAGE_SAFETY": "safety",
            "MODEL_ARMOR": "safety",
            "RECITATION": "recitation",
            "IMAGE_RECITATION": "recitation",
            "LANGUAGE": "filter",
            "BLOCKLIST": "filter",
            "PROHIBITED_CONTENT": "filter",
            "IMAGE_PROHIBITED_CONTENT": "filter",
            "SPII": "filter",
            "MALFORMED_FUNCTION_CALL": "malformed",
            "UNEXPECTED_TOOL_CALL": "malformed",
            "MALFORMED_RESPONSE": "error",
            "TOO_MANY_TOOL_CALLS": "error",
            "MISSING_THOUGHT_SIGNATURE": "error",
            "NO_IMAGE": "error",
            "IMAGE_OTHER": "error",
            "OTHER": "error",
            "BANANA": "unknown",
        }.items()
    ),
    (
        GEMINI,
        gemini("", "SAFETY", safetyRatings=[{"category": "HARM_CATEGORY_HARASSMENT", "blocked": True}]),
        "safety",
        "HARM_CATEGORY_HARASSMENT",
        "",
    ),
    (GEMINI, blocked("SAFETY"), "safety", "SAFETY", ""),
    (GEMINI, blocked("JAILBREAK"), "safety", "JAILBREAK", ""),
    (GEMINI, blocked("PROHIBITED_CONTENT", blockReasonMessage="Not here."), "filter", "Not here.", ""),
    (GEMINI, blocked("OTHER"), "filter", "OTHER", ""),
    (GEMINI, gemini("", "STOP", {"text": "Hm.", "thought": True}), "thoughts", "gave no answer", ""),
    (GEMINI, gemini(), "empty", "empty reply", ""),
    *(
        (CONVERSE, converse("Half", word), finish, told, "Half")
        for word, finish, told in (
            ("guardrail_intervened", "filter", "guardrail_intervened"),
            ("content_filtered", "filter", "content_filtered"),
            ("malformed_tool_use", "malformed", "malformed_tool_use"),
            ("malformed_model_output", "error", "malformed_model_output"),
            ("model_context_window_exceeded", "context", "context is full"),
            ("refusal", "refusal", "refused"),
            ("banana", "unknown", "banana"),
        )
    ),
    (
        CONVERSE,
        converse("Sorry.", "guardrail_intervened", trace=GUARDED),
        "filter",
        "guardrail_intervened: Money, INSULTS",
        "Sorry.",
    ),
    (CONVERSE, converse(thought="Hm."), "thoughts", "gave no answer", ""),
    (CONVERSE, converse(), "empty", "empty reply", ""),
]


@pytest.mark.parametrize("case", [End(*one) for one in ENDS], ids=lambda one: f"{one.wire}-{one.told}")
async def test_an_end_is_told_as_what_it_is(tmp_path: Path, case: End) -> None:
    """The turn stores and reports the finish, keeps the received text, and makes no other request (T8,
    W1)."""
    wire, reply, finish, told, text = case
    ended = await play(tmp_path, wire, reply, compact_at=None)
    assert (ended.end.state, ended.end.finish, ended.end.text) == ("completed", finish, text)
    notices = ended.notices("empty_reply" if finish == "empty" else finish)
    assert len(notices) == 1
    assert told in notices[0]
    assert [(message.finish, message.text) for message in ended.stored[1:]] == [(finish, text)]
    assert len(ended.server.bodies) == 1


@pytest.mark.parametrize("wire", ANSWERS)
async def test_an_end_as_it_should_be_is_not_told(tmp_path: Path, wire: str) -> None:
    """T8"""
    ended = await play(tmp_path, wire, ANSWERS[wire]("It is 3."))
    assert (ended.end.finish, ended.end.text) == ("stop", "It is 3.")
    assert not [event for event in ended.events if event.type == "notice" and event.kind != "title"]


CALLS: list[tuple[str, Stream]] = [
    (CHAT, chat("", "content_filter", call=True)),
    (CHAT, chat(refusal="No.", finish="tool_calls", call=True)),
    (RESPONSES, responses("", "incomplete", "content_filter", call=True)),
    (RESPONSES, responses(refusal="No.", call=True)),
    (MESSAGES, messages("", "refusal", ADD)),
    (GEMINI, gemini("", "SAFETY", {"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}})),
    (CONVERSE, converse("", "guardrail_intervened", call=True)),
    (CONVERSE, converse("", "content_filtered", call=True)),
]


@pytest.mark.parametrize(("wire", "reply"), CALLS)
async def test_the_calls_of_a_reply_that_was_refused_do_not_run(
    tmp_path: Path, wire: str, reply: Stream
) -> None:
    """Each call has a result anyway, and the model gets no other request (C2, C4)."""
    ended = await play(tmp_path, wire, reply)
    (call,) = calls_of(ended.stored)
    assert (call.state, ended.ran, len(ended.server.bodies)) == (CallState.CANCELLED, [], 1)
    assert ended.end.finish in ("refusal", "filter", "safety")


async def test_the_next_question_after_a_refusal_is_answered(tmp_path: Path) -> None:
    """The refused reply is part of the history like any other (R5)."""
    async with loopback(messages("", "refusal", ADD), messages("Of course.")) as server:
        models = Models(
            "acme/model",
            catalog=load_catalog().with_provider(Provider("acme", "Acme", server.url, wire=MESSAGES)),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
        )
        async with models, Runtime(tmp_path / "chat.db", model=models) as runtime:
            conversation = await runtime.conversation()
            await (await conversation.send("One")).result()
            assert (await (await conversation.send("Two")).result()).text == "Of course."
        roles = [message["role"] for message in server.messages()]
        assert roles == ["user", "assistant", "user"]


async def test_what_azure_filters_in_the_question_is_told_with_its_categories(tmp_path: Path) -> None:
    """T8: it is an error, and its finish says which."""
    results = {"hate": {"filtered": False}, "self_harm": {"filtered": True, "severity": "medium"}}
    error = {
        "message": "The prompt triggered Azure OpenAI's content management policy.",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results},
    }
    ended = await play(tmp_path, CHAT, Answer(400, {"error": error}))
    assert ended.error is not None
    assert (ended.error.kind, ended.end.state, ended.end.finish) == ("filter", "error", "filter")
    assert "self harm" in ended.error.message


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "server", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("vector_store_timeout", "timeout", True),
        ("image_content_policy_violation", "filter", False),
        ("invalid_image", "invalid_request", False),
    ],
)
async def test_a_response_that_failed_is_an_error_of_its_kind(
    tmp_path: Path, code: str, kind: str, retryable: bool
) -> None:
    """T8"""
    failed = {
        "type": "response.failed",
        "response": {"status": "failed", "error": {"code": code, "message": "no"}},
    }
    ended = await play(tmp_path, RESPONSES, Stream((sse(failed),)))
    assert ended.error is not None
    assert (ended.error.kind, ended.error.retryable) == (kind, retryable)
