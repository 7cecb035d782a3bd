"""Check chat completions that include a history: how it is recognized and stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman import Agent
from dragoman.conversation.tree import Tree
from dragoman.messages.message import CallState, Message, Text, ToolCall, ToolResult
from dragoman.server.auth import key_hash
from dragoman.server.protocols.openai.find_conversation import KnownCall, Shown, Utterance, end_of
from dragoman.wire.scripted import calls, says
from tests.later import Later
from tests.protocols.openai.callers import MODEL, called, conversations, result, user
from tests.runtimes import add, model_of

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow

# ── history ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_history_is_found_again(tmp_path: Path) -> None:
    """The conversation continues, with the calls that the caller never saw (F1)."""
    script = [says("Adding. ") + calls("add", a=1, b=2), says("Three."), says("Four."), says("Five.")]
    async with called(tmp_path, script, tools=[add]) as (client, site):
        history: list[Any] = [user("1+2?")]
        for _ in range(3):
            reply = await client.chat.completions.create(model=MODEL, messages=history)
            history += [
                {"role": "assistant", "content": reply.choices[0].message.content},
                user("And one more?"),
            ]
        (conversation,) = await conversations(site)
        assert len(await site.runtime.store.turns(conversation)) == 3
        shown = model_of(site.runtime).requests[-1].messages
        assert any(part.type == "call" for message in shown for part in message.parts)


async def test_another_ending_of_a_history_is_a_branch(tmp_path: Path) -> None:
    """F1 × T10"""
    async with called(tmp_path, [says("Hello!"), says("Fine."), says("Well.")]) as (client, site):
        history: list[Any] = [user("Hi")]
        await client.chat.completions.create(model=MODEL, messages=history)
        history.append({"role": "assistant", "content": "Hello!"})
        await client.chat.completions.create(model=MODEL, messages=[*history, user("How are you?")])
        await client.chat.completions.create(model=MODEL, messages=[*history, user("How is it?")])
        (conversation,) = await conversations(site)
        messages, _ = await site.runtime.store.messages(conversation)
        tree = Tree(messages)
        assert len(tree.children(tree.children(tree.children(None)[0])[0])) == 2


async def test_a_history_from_elsewhere_is_stored_with_its_calls(tmp_path: Path) -> None:
    """It is stored as output of another model. A history that differs, or that belongs to another user, is
    not continued (F1, S1)."""
    called_before: Any = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}
            for id, arguments in (("x1", "{}"), ("x2", '{"at'))
        ],
    }
    history: list[Any] = [
        user("Look"),
        called_before,
        result("x1", "a cat"),
        result("x2", "nothing"),
        {"role": "assistant", "content": "I see a cat."},
        user("Which colour?"),
    ]
    async with called(tmp_path, [says("Black.")]) as (client, site):
        reply = await client.chat.completions.create(model=MODEL, messages=history)
        assert reply.choices[0].message.content == "Black."
        (conversation,) = await conversations(site)
        messages, _ = await site.runtime.store.messages(conversation)
        assert [message.text for message in messages] == [
            "Look",
            "",
            "I see a cat.",
            "Which colour?",
            "Black.",
        ]
        call, broken = messages[1].calls
        assert (call.state, call.result and call.result.text) == (CallState.COMPLETED, "a cat")
        assert (call.raw, broken.raw, broken.arguments) == (None, '{"at', {})
        with pytest.raises(openai.BadRequestError, match="no tool output"):
            await client.chat.completions.create(model=MODEL, messages=[history[0], called_before, user("?")])


async def test_a_conversation_can_be_named(tmp_path: Path) -> None:
    """The name reaches only the user's own conversations (F1 × U2)."""
    async with called(tmp_path, [says("One."), says("Two.")]) as (client, site):
        mine = await site.conversation()
        for extra in (
            {"metadata": {"conversation": mine}},
            {"extra_headers": {"x-dragoman-conversation": mine}},
        ):
            more: Any = extra
            raw = await client.chat.completions.with_raw_response.create(
                model=MODEL, messages=[user("Count")], **more
            )
            assert raw.headers["x-dragoman-conversation"] == mine
        assert len(await site.runtime.store.turns(mine)) == 2
        theirs = (await site.runtime.conversation(user="ada")).id
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(
                model=MODEL, messages=[user("Count")], metadata={"conversation": theirs}
            )


async def test_a_history_with_another_agent_is_another_conversation(tmp_path: Path) -> None:
    """The caller names the agent that answers (F1 × R1)."""
    agents = [Agent(name="pirate", prompt="Talk like a pirate.")]
    async with called(tmp_path, [says("Arr!"), says("Well.")], agents=agents) as (client, site):
        history: list[Any] = [user("Hi")]
        await client.chat.completions.create(model="pirate", messages=history)
        history += [{"role": "assistant", "content": "Arr!"}, user("Who are you?")]
        await client.chat.completions.create(model=MODEL, messages=history)
        assert len(await conversations(site)) == 2
        assert "pirate" not in model_of(site.runtime).requests[-1].system


async def test_what_is_said_in_the_page_is_not_taken_for_a_history(tmp_path: Path) -> None:
    """Only messages that came by this API are matched by their text (F1)."""
    async with called(tmp_path, [says("Hello!"), says("Fine.")]) as (client, site):
        await site.runtime.turn(await site.say("Hi")).result()
        history: list[Any] = [user("Hi"), {"role": "assistant", "content": "Hello!"}, user("How are you?")]
        await client.chat.completions.create(model=MODEL, messages=history)
        assert len(await conversations(site)) == 2


async def test_the_same_words_of_somebody_else_are_somebody_elses(tmp_path: Path) -> None:
    """F1 × U2"""
    async with called(tmp_path, lambda _: says("Hello!")) as (client, site):
        await site.runtime.store.add_person("ada", key_hash("a key of ada"), 1.0)
        ada = client.with_options(api_key="a key of ada")
        history: list[Any] = [user("Hi")]
        for caller in (client, ada):
            await caller.chat.completions.create(model=MODEL, messages=history)
        history += [{"role": "assistant", "content": "Hello!"}, user("How are you?")]
        await client.chat.completions.create(model=MODEL, messages=history)
        turns = {
            one.owner: len(await site.runtime.store.turns(one.id))
            for one in await site.runtime.conversations()
        }
    assert turns == {"local": 2, "ada": 1}


def looked(*ids: str, text: str | None = None) -> Any:
    """A reply of another program's model."""
    made = [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": made}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_history_from_elsewhere_may_end_with_what_came_of_its_calls(
    tmp_path: Path, stream: bool
) -> None:
    """The model receives the results, and the response contains only its answer to them (F1, F2)."""
    history = [
        user("Where is it?"),
        looked("x1", text="First here."),
        result("x1", "not here"),
        looked("x2", "x3", text="Then there."),
        result("x2", "nor here"),
        result("x3", "here it is"),
    ]
    async with called(tmp_path, [says("On the table."), says("Since noon.")]) as (client, site):
        if stream:
            pieces = await client.chat.completions.create(model=MODEL, messages=history, stream=True)
            text = "".join([piece.choices[0].delta.content or "" async for piece in pieces if piece.choices])
        else:
            reply = await client.chat.completions.create(model=MODEL, messages=history)
            assert reply.choices[0].finish_reason == "stop"
            text = str(reply.choices[0].message.content)
        assert text == "On the table."
        shown = model_of(site.runtime).requests[-1].messages
        made = [part for one in shown for part in one.parts if part.type == "call"]
        results = [call.result.text for call in made if call.result is not None]
        assert results == ["not here", "nor here", "here it is"]
        assert len([one for one in shown if one.role == "user"]) == 1
        history += [{"role": "assistant", "content": text}, user("Since when?")]
        await client.chat.completions.create(model=MODEL, messages=history)
        assert len(await conversations(site)) == 1
        assert len(model_of(site.runtime).requests[-1].messages) == len(shown) + 2


async def test_a_result_of_no_call_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """F3"""
    async with called(tmp_path, [says("What?")]) as (client, site):
        for history in (
            [user("Hi"), looked("x1"), result("x1", "a"), result("x9", "b")],
            [looked("x1"), result("x1", "a")],
        ):
            with pytest.raises(openai.BadRequestError, match=r"No call .* waits for its output"):
                await client.chat.completions.create(model=MODEL, messages=history)
        assert await conversations(site) == []


async def test_results_stay_with_their_calls_where_ids_come_again(tmp_path: Path) -> None:
    """Programs that number their calls from the start in each answer use an ID twice (F1, C2)."""
    history: list[Any] = [
        *(user("Where is it?"), looked("call_0"), result("call_0", "not here"), looked("call_0", "call_0")),
        *(result("call_0", "nor here"), result("call_0", "here it is")),
    ]
    async with called(tmp_path, lambda _: says("On the table.")) as (client, site):
        for ending in ([], [{"role": "assistant", "content": "There!"}, user("Since when?")]):
            await client.chat.completions.create(model=MODEL, messages=history + ending)
            shown = model_of(site.runtime).requests[-1].messages
            made = [part for one in shown for part in one.parts if part.type == "call"]
            results = [call.result.text for call in made if call.result is not None]
            assert results == ["not here", "nor here", "here it is"]
        with pytest.raises(openai.BadRequestError, match="no tool output"):
            await client.chat.completions.create(model=MODEL, messages=[*history[:-1], user("And?")])


@pytest.mark.parametrize(("id", "found"), [("call_1", "answer"), ("call_2", None)])
def test_a_call_of_the_server_is_known_by_its_id(id: str, found: str | None) -> None:
    """A person may have changed its result since the caller got it (F1)."""
    call = ToolCall("call_1", "add", {"a": 1}, None, CallState.COMPLETED, ToolResult("changed"))
    answer = Message("answer", "conv", "ask", "assistant", (call, Text("Done.")), "turn")
    messages = [Message("ask", "conv", None, "user", (Text("Add."),), "turn"), answer]
    history = [Utterance("user", "Add."), Utterance("assistant", "Done.")]
    assert end_of(history, [KnownCall(id, Shown("add", '{"a": 1}', "3"))], messages) == found


async def test_the_same_words_with_other_results_are_another_conversation(tmp_path: Path) -> None:
    """The model sees the results that the caller sends (F1)."""

    def brought(found: str) -> list[Any]:
        answer = {"role": "assistant", "content": "I looked."}
        return [user("Look"), looked("call_0"), result("call_0", found), answer, user("And?")]

    async with called(tmp_path, lambda _: says("I see.")) as (client, site):
        for found, known in (("a cat", 1), ("a dog", 2), (" a  cat", 2)):
            await client.chat.completions.create(model=MODEL, messages=brought(found))
            assert len(await conversations(site)) == known
            shown = [part for one in model_of(site.runtime).requests[-1].messages for part in one.parts]
            (call,) = (part for part in shown if part.type == "call")
            assert call.result is not None
            assert call.result.text == found.strip().replace("  ", " ")
