"""Check the exit status and the output of `dragoman run` for replies that ended abnormally."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Ended, program, started
from tests.fork_server import KILL
from tests.loopback import Answer, Loopback, Reply, Stream, loopback
from tests.patience import PATIENCE, eventually
from tests.sweeps import some
from tests.wire.endings.replies import SEARCH, blocked, chat, converse, gemini, messages, responses

pytestmark = pytest.mark.slow

FILTERED = {"error": {"message": "The prompt is filtered.", "code": "content_filter", "status": 400}}
SETTINGS = """
[providers.acme]
base_url = "{url}"
wire = "{wire}"
local = true

[providers.acme.models."*"]
spills = "none"
reasoning = "apart"

[providers.acme.models."*".extra]
{extra}
"""
SERVER_TOOLS = 'tools = [{ type = "web_search_20250305", name = "web_search" }]'


async def run(server: Loopback, folder: Path, wire: str, *arguments: str, settings: str = "") -> Ended:
    write_settings(server, folder, wire, settings)
    return await program("run", *SAID, *arguments, folder=folder)


SAID = ("--model", "acme/m", "--store", "chat.db", "--json")


def write_settings(server: Loopback, folder: Path, wire: str, settings: str = "") -> None:
    extra = SERVER_TOOLS if wire == "anthropic_messages" else ""
    text = settings + SETTINGS.format(url=server.url, wire=wire, extra=extra)
    (folder / "dragoman.toml").write_text(text, "utf-8")


ENDS: list[tuple[str, Reply, str, int]] = [
    ("openai_chat", chat("It is 3."), "stop", 0),
    ("openai_chat", chat("Hi", "banana"), "unknown", 0),
    ("openai_chat", chat(refusal="I cannot."), "refusal", 3),
    ("openai_chat", chat("Half", "content_filter"), "filter", 3),
    ("openai_chat", Answer(400, FILTERED), "filter", 3),
    ("openai_chat", chat("and ", "length"), "length", 4),
    ("openai_chat", chat(""), "empty", 5),
    ("openai_chat", chat("Half", "error"), "error", 5),
    ("openai_chat", Answer(400, {"error": {"message": "no"}}), "error", 1),
    ("openai_responses", responses(refusal="I will not."), "refusal", 3),
    ("openai_responses", responses(thought="Hm."), "thoughts", 5),
    ("anthropic_messages", messages("I can", "refusal"), "refusal", 3),
    ("anthropic_messages", messages("", "model_context_window_exceeded"), "context", 4),
    ("anthropic_messages", messages("Hm. ", "pause_turn", SEARCH), "pause", 4),
    ("gemini", gemini("Half", "SAFETY"), "safety", 3),
    ("gemini", gemini("Half", "RECITATION"), "recitation", 3),
    ("gemini", blocked("PROHIBITED_CONTENT"), "filter", 3),
    ("gemini", gemini("", "MALFORMED_FUNCTION_CALL"), "malformed", 5),
    ("bedrock_converse", converse("It is 3."), "stop", 0),
    ("bedrock_converse", converse("Half", "guardrail_intervened"), "filter", 3),
    ("bedrock_converse", converse("", "model_context_window_exceeded"), "context", 4),
    ("bedrock_converse", converse(thought="Hm."), "thoughts", 5),
]
SOME = some(ENDS, 3)


@pytest.mark.parametrize(
    ("wire", "reply", "finish", "status"), SOME, ids=[f"{end[0]}-{end[2]}-{end[3]}" for end in SOME]
)
async def test_the_exit_status_says_how_the_reply_ended(
    tmp_path: Path, wire: str, reply: Reply, finish: str, status: int
) -> None:
    """T8: and the result names it."""
    async with loopback(reply) as server:
        ended = await run(server, tmp_path, wire, "--max-rounds", "1", "What is 1 + 2?")
    assert (ended.status, ended.result["finish"]) == (status, finish)
    if status > 2 and ended.result["state"] == "completed":
        kinds = [notice["kind"] for notice in ended.events("notice")]
        assert {"empty": "empty_reply"}.get(finish, finish) in kinds


async def test_it_is_told_beside_the_answer(tmp_path: Path) -> None:
    """The partial answer is on standard output, and its outcome is not (T8)."""
    async with loopback(gemini("Half a sen", "SAFETY")) as server:
        write_settings(server, tmp_path, "gemini")
        ended = await program("run", "--model", "acme/m", "--store", "chat.db", "Go", folder=tmp_path)
        shown = await program("show", "last", "--store", "chat.db", folder=tmp_path)
        exported = await program(
            "export", "last", "--format", "markdown", "--store", "chat.db", folder=tmp_path
        )
    assert (ended.status, ended.out) == (3, "Half a sen\n")
    assert "safety filter ended the reply" in ended.err
    assert "safety filter ended the reply" in shown.out
    assert "safety filter ended the reply" in exported.out


async def test_the_limit_of_a_reply_can_be_lifted_in_the_settings(tmp_path: Path) -> None:
    """H10"""
    settings = "continuations = 2\n\n[options]\nmax_tokens = 5\n"
    async with loopback(chat("and ", "length")) as server:
        ended = await run(server, tmp_path, "openai_chat", "Go", settings=settings)
    assert (ended.status, ended.result["text"]) == (4, "and and and ")


async def test_a_file_that_the_model_cannot_take_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    """M2"""
    (tmp_path / "cat.bmp").write_bytes(b"BM\x00\xff")
    async with loopback(chat("Hello.")) as server:
        ended = await run(server, tmp_path, "openai_chat", "--attach", "cat.bmp", "Look:")
        listed = await program("list", "--store", "chat.db", "--json", folder=tmp_path)
    assert (ended.status, server.bodies, listed.out.strip()) == (1, [], "[]")
    assert "cat.bmp (image/bmp)" in ended.err


async def test_what_was_learned_is_told_beside_the_answer(tmp_path: Path) -> None:
    """R9"""

    def picky(body: dict[str, object]) -> Reply:
        refused = {"error": {"message": "Unknown parameter: 'stream_options'."}}
        return Answer(400, refused) if "stream_options" in body else chat("Hello.")

    async with loopback(picky) as server:
        ended = await run(server, tmp_path, "openai_chat", "Hi")
    assert (ended.status, ended.result["text"]) == (0, "Hello.")
    assert [notice["text"] for notice in ended.events("notice") if notice["kind"] == "learned"] == [
        "acme/m does not take stream_options, so Dragoman leaves it out"
    ]


def _messages_in(store: Path) -> int:
    """Return the number of stored messages: a request can be sent just before the reply that it returns is
    stored."""
    with closing(sqlite3.connect(store)) as db:
        return int(db.execute("SELECT count(*) FROM messages").fetchone()[0])


async def test_a_turn_that_was_killed_in_a_pause_goes_on_with_it(tmp_path: Path) -> None:
    """The next process sends the paused reply back unchanged (S3)."""
    paused = messages("Let me look.", "pause_turn", SEARCH)
    stalls = Stream((), then="stalls")
    async with loopback(paused, stalls, messages(" Dragons.")) as server:
        write_settings(server, tmp_path, "anthropic_messages")
        process = await started("run", *SAID, "Look it up.", folder=tmp_path)
        assert process.stdin is not None
        process.stdin.close()
        await eventually(lambda: len(server.bodies) == 2 and _messages_in(tmp_path / "chat.db") == 2)
        process.send_signal(KILL)
        await process.communicate()
        ended = await program("run", *SAID, "--continue", "last", folder=tmp_path)
    assert (ended.status, ended.result["text"]) == (0, "Let me look. Dragons.")
    assert server.messages(1) == server.messages(2)
    assert [block["type"] for block in server.messages(2)[-1]["content"]] == ["text", "server_tool_use"]


async def test_a_turn_that_was_cancelled_in_a_pause_leaves_nothing_half_called(tmp_path: Path) -> None:
    """T6, R5: the next turn does not send a call that never got its result."""
    paused = messages("", "pause_turn", SEARCH)
    stalls = Stream((), then="stalls")
    async with loopback(paused, stalls, messages("Never mind.")) as server:
        write_settings(server, tmp_path, "anthropic_messages")
        process = await started("run", *SAID, "Look it up.", folder=tmp_path)
        assert process.stdin is not None
        process.stdin.close()
        await eventually(lambda: len(server.bodies) == 2)
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), PATIENCE)
        ended = await program("run", *SAID, "--continue", "last", "Leave it.", folder=tmp_path)
    assert (process.returncode, ended.status) == (130, 0)
    assert [message["role"] for message in server.messages()] == ["user"]


async def test_a_reply_that_was_continued_is_printed_in_one_piece(tmp_path: Path) -> None:
    """A word that was cut in half is whole in the file, and the internal prompt is in no export (H10)."""
    async with loopback(chat("A drag", "length"), chat("oman interprets.")) as server:
        write_settings(server, tmp_path, "openai_chat")
        ended = await program("run", *SAID[:-1], "Who?", folder=tmp_path)
        exported = await program(
            "export", "last", "--store", "chat.db", "--format", "markdown", folder=tmp_path
        )
    assert (ended.status, ended.out) == (0, "A dragoman interprets.\n")
    assert "cut off" not in exported.out
    assert exported.out.count("## ") == 2
