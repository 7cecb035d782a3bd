"""What a link shows, how long it and an invitation last, and how many there can be (V1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import allow_once, release
from dragoman.conversation.sharing import OMITTED, Omitted
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, Forbidden
from dragoman.messages.message import (
    CallState,
    Error,
    File,
    MadeIn,
    Message,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.shared_view import shown_to_anyone
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, calls_of, runtime_with

DAY = 24 * 3600
HIDDEN = "‹hidden›"
PRIVATE: dict[str, JsonValue] = {"name": "Rumpel", "whole name": "Rumpelstiltskin", "empty": ""}
CONVERSATION = Conversation("conv_1", "For Rumpel", settings={"private": PRIVATE})
FILE = File("text/plain", blob="b", name="of Rumpel.txt")
DONE = ToolResult("done by Rumpel", attachments=(FILE,))
ARGUMENTS: dict[str, Any] = {"Rumpel": ["Rumpelstiltskin", 1]}
PROGRAM = ToolCall("c1", "run", ARGUMENTS, state=CallState.COMPLETED, result=DONE)
WITHHELD = ToolCall("c2", "secret", {}, state=CallState.WITHHELD, result=DONE)
INNER = tuple(
    ToolCall(f"i{n}", f"inner of {call}", {}, made_in=MadeIn(call, 1, 1))
    for n, call in enumerate(("c1", "c9"))
)
PATH = [
    Message("m1", "conv_1", None, "user", (Text("I am Rumpel"), FILE), created=2.0),
    Message("m2", "conv_1", "m1", "user", (Text("memory"),), author="memory"),
    Message(
        "m3",
        "conv_1",
        "m2",
        "assistant",
        (
            Reasoning("who is Rumpel?"),
            PROGRAM,
            WITHHELD,
            ProviderItem("search", "found Rumpel"),
            ProviderItem("search"),
            Error("no Rumpel"),
        ),
        model="scripted/model",
        inner=INNER,
    ),
]


def shown(*omits: Omitted, upto: str | None = None) -> Any:
    return json.loads(shown_to_anyone(CONVERSATION, PATH, upto, omits))


def parts(*omits: Omitted) -> list[tuple[Any, ...]]:
    """Return the fields of each part that are set."""
    found = [part for message in shown(*omits)["messages"] for part in message["parts"]]
    return [tuple(value for value in part.values() if value not in (None, "")) for part in found]


SHOWN: dict[str, Sequence[tuple[Any, ...]]] = {
    "text": [("text", f"I am {HIDDEN}")],
    "files": [("file", f"of {HIDDEN}.txt", "text/plain")],
    "reasoning": [("reasoning", f"who is {HIDDEN}?")],
    "program": [("call", f"done by {HIDDEN}", "run", "completed", {HIDDEN: [HIDDEN, 1]})],
    "inner": [("call", "inner of c1", "pending", {})],
    "withheld": [("call", "secret", "withheld", {})],
    "results": [("text", f"found {HIDDEN}"), ("text", "search")],
    "error": [("error", f"no {HIDDEN}")],
}


def test_a_link_shows_each_part_without_private_texts() -> None:
    """A withheld result and its files, and inner calls of other programs, are never shown."""
    order = ("text", "files", "reasoning", "program", "files", "inner", "withheld", "results", "error")
    assert parts() == [part for name in order for part in SHOWN[name]]
    whole = shown()
    assert (whole["title"], whole["omits"], whole.get("frozen", False)) == (f"For {HIDDEN}", [], False)
    assert [(one["role"], one["created"]) for one in whole["messages"]] == [("user", 2.0), ("assistant", 0.0)]
    assert whole["messages"][1]["model"] == "scripted/model"


@pytest.mark.parametrize("omitted", OMITTED)
def test_a_link_leaves_out_what_it_omits(omitted: Omitted) -> None:
    gone: list[Any] = [*SHOWN[omitted]] if omitted != "arguments" else []
    expected = [part for part in parts() if part not in gone]
    if omitted == "results":
        expected = [
            ("call", "run", "completed", {HIDDEN: [HIDDEN, 1]}) if p in SHOWN["program"] else p
            for p in expected
        ]
    if omitted == "arguments":
        expected = [part[:-1] if part[0] == "call" else part for part in expected]
    assert parts(omitted) == expected
    assert shown(omitted)["omits"] == [omitted]


@pytest.mark.parametrize(("upto", "count"), [("m1", 1), ("m3", 2), ("gone", 0), (None, 2)])
def test_a_link_ends_at_the_message_it_names(upto: str | None, count: int) -> None:
    """If that message is gone, the link shows nothing."""
    assert len(shown(upto=upto)["messages"]) == count


@pytest.mark.parametrize(
    ("seconds", "lasts"),
    [(None, 7 * DAY), (1, 1), (365 * DAY, 365 * DAY), (0.5, None), (365 * DAY + 1, None)],
)
async def test_a_share_lasts_from_a_second_to_a_year(
    tmp_path: Path, seconds: float | None, lasts: float | None
) -> None:
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation()
        for kind, make in (("invitation", chat.invite), ("link", chat.link)):
            if lasts is None:
                with pytest.raises(BadRequest, match="365"):
                    await make(seconds=seconds)
            else:
                share = (await make(seconds=seconds)).share
                assert (share.kind, share.expires) == (kind, share.created + lasts)
        assert len(await chat.shares()) == (2 if lasts is not None else 0)


async def test_a_conversation_has_a_hundred_members_and_shares(tmp_path: Path) -> None:
    async def refused(chat: ConversationHandle) -> None:
        for way in (lambda: chat.share("eve"), chat.invite, chat.link):
            with pytest.raises(BadRequest, match="100"):
                await way()

    async with runtime_with(tmp_path, [says("Hello.")]) as runtime:
        chat = await runtime.conversation()
        assert (await chat.share("bob")).role == "reads"
        links = [await chat.link() for _ in range(98)]
        invited = (await chat.invite("answers")).share
        assert (invited.role, invited.created_by) == ("answers", "local")
        await refused(chat)
        await chat.revoke_share(links[0].share.id)
        assert len(await chat.shares()) == 98
        assert (await chat.share("ada", "takes_part")).role == "takes_part"
        await refused(chat)
        assert {one.user for one in await chat.members()} == {"bob", "ada"}


async def test_a_link_names_a_message_of_the_branch_and_parts_there_are(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("Hello.")]) as runtime:
        chat = await runtime.conversation()
        said, _ = (await (await chat.send("Hello?")).result()).messages
        with pytest.raises(BadRequest, match="msg_none"):
            await chat.link(upto="msg_none")
        with pytest.raises(BadRequest, match="pictures"):
            await chat.link(omits=["pictures"])  # type: ignore[list-item]
        link = (await chat.link(upto=said.id, omits=["reasoning", "files"], frozen=True)).share
        assert (link.upto, link.omits, link.role) == (said.id, ("files", "reasoning"), "reads")
        assert [one["role"] for one in json.loads(link.frozen or "")["messages"]] == ["user"]
        assert (await chat.link()).share.frozen is None


async def test_who_answers_for_the_sender_changes_nothing(tmp_path: Path) -> None:
    """The owner may allow or release what a member's turn does, but only as it is (V2)."""
    script = [calls("add", a=1, b=2), says("3")]
    options: dict[str, Any] = {"tools": [add], "ask": ["add"], "review": "always"}
    async with runtime_with(tmp_path, script, **options) as runtime:
        chat = await runtime.conversation()
        await chat.share("bob", "takes_part")
        turn = await chat.send("go", by="bob")
        for changed, unchanged in ((allow_once({"a": 1, "b": 3}), allow_once()), (release("4"), release())):
            question = await anext(aiter(turn.asked()))
            with pytest.raises(Forbidden):
                await runtime.answer(question.id, changed)
            with pytest.raises(Forbidden):
                await runtime.commands.steer(turn.id, "and now?", by="eve")
            settled = await runtime.answer(question.id, unchanged)
            assert settled.answer is not None
            assert settled.answer.lent
        (call,) = calls_of((await turn.result()).messages)
        assert call.result is not None
        assert call.result.text == "3"
