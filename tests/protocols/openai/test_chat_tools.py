"""Check chat completions of the stock SDK in which the caller runs tools and a person approves calls."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman import tool
from dragoman.wire.scripted import Line, calls, fails, says
from tests.later import Later
from tests.patience import eventually
from tests.protocols.openai.callers import CHAT_TOOL, MODEL, called, conversations, result, user
from tests.runtimes import add, model_of

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow

# ── tools of the caller ───────────────────────────────────────────────────────────────────────────


async def test_calls_of_the_callers_tools_end_the_answer_and_their_results_go_on(tmp_path: Path) -> None:
    """Several calls run at the same time, with a server-side one between them, in one turn (F2, C6)."""
    both = calls("where", exact=True) + calls("add", a=1, b=2) + calls("where")
    script = [says("Let me see.") + both, says("Rome, and three."), says("Still Rome.")]
    async with called(tmp_path, script, tools=[add]) as (client, site):
        messages: list[Any] = [user("Where am I, and 1+2?")]
        first = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        (choice,) = first.choices
        assert choice.finish_reason == "tool_calls"
        made = choice.message.tool_calls or []
        assert [(call.type, call.function.name) for call in made if call.type == "function"] == [
            ("function", "where")
        ] * 2
        messages.append(choice.message.model_dump())
        messages += [result(call.id, "Rome") for call in made]
        with pytest.raises(openai.BadRequestError, match="no tool output found"):
            await client.chat.completions.create(model=MODEL, messages=messages[:-1], tools=[CHAT_TOOL])
        second = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        assert second.choices[0].message.content == "Rome, and three."
        assert second.usage is not None
        assert second.usage.total_tokens == 15  # of this answer alone
        again = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        assert again.choices[0].message.content == "Rome, and three."  # a repetition runs nothing twice
        (conversation,) = await conversations(site)
        assert len(await site.runtime.store.turns(conversation)) == 1
        messages.append(user("And now?"))  # the results are history by then
        third = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        assert third.choices[0].message.content == "Still Rome."


async def test_a_stream_of_calls_is_read_by_the_sdk(tmp_path: Path) -> None:
    """F2"""
    script = [calls("where", exact=True) + calls("where"), says("Rome.")]
    async with called(tmp_path, script) as (client, _):
        async with client.chat.completions.stream(
            model=MODEL,
            messages=[user("Where am I?")],
            tools=[CHAT_TOOL],
        ) as calling:
            message = (await calling.get_final_completion()).choices[0].message
        made = message.tool_calls or []
        assert [call.function.arguments for call in made] == ['{"exact": true}', "{}"]
        results: list[Any] = [result(call.id, "Rome") for call in made]
        history: list[Any] = [user("Where am I?"), message.model_dump(exclude_none=True), *results]
        stream = await client.chat.completions.create(
            model=MODEL, messages=history, tools=[CHAT_TOOL], stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == "Rome."


async def test_results_may_come_after_a_restart(tmp_path: Path) -> None:
    """S3 × F2"""
    async with called(tmp_path, [calls("where")]) as (client, _):
        first = await client.chat.completions.create(
            model=MODEL, messages=[user("Where am I?")], tools=[CHAT_TOOL]
        )
    message = first.choices[0].message
    made = (message.tool_calls or [])[0]
    history: list[Any] = [user("Where am I?"), message.model_dump(exclude_none=True)]
    history.append(result(made.id, "Rome"))
    async with called(tmp_path, [says("In Rome.")]) as (client, site):
        reply = await client.chat.completions.create(model=MODEL, messages=history, tools=[CHAT_TOOL])
        assert reply.choices[0].message.content == "In Rome."
        assert len(await conversations(site)) == 1


async def test_what_is_said_beside_results_reaches_the_same_turn(tmp_path: Path) -> None:
    """T13 × F2"""
    async with called(tmp_path, [calls("where"), says("In Rome, quickly.")]) as (client, site):
        first = await client.chat.completions.create(
            model=MODEL, messages=[user("Where am I?")], tools=[CHAT_TOOL]
        )
        message = first.choices[0].message
        made = (message.tool_calls or [])[0]
        history: list[Any] = [user("Where am I?"), message.model_dump(exclude_none=True)]
        history += [result(made.id, "Rome"), user("Be quick.")]
        reply = await client.chat.completions.create(model=MODEL, messages=history, tools=[CHAT_TOOL])
        assert reply.choices[0].message.content == "In Rome, quickly."
        last = model_of(site.runtime).requests[-1].messages
        assert "Be quick." in str(last[-1])


async def brought(client: openai.AsyncOpenAI) -> list[Any]:
    """Return a question, the calls that the model made for it, and their results."""
    messages: list[Any] = [user("Where am I?")]
    first = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    return messages + [result(call.id, "Rome") for call in message.tool_calls or []]


async def test_who_stops_an_answer_and_says_something_else_gets_an_answer_to_that(tmp_path: Path) -> None:
    """The stopped reply is not in the client's history and is not returned again (T9 × F2)."""
    script = [calls("where"), says("In Rome. " * 999, waits=0.05), says("Five.")]
    async with called(tmp_path, script) as (client, site):
        messages = await brought(client)
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=[CHAT_TOOL], stream=True
        )
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        (conversation,) = await conversations(site)
        (turn,) = await site.runtime.store.turns(conversation)
        await site.runtime.turn(turn.id).result()
        messages.append(user("What is 2+3?"))
        reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        assert reply.choices[0].message.content == "Five."


@pytest.mark.parametrize(
    "line", [fails("no luck"), says("In Rome. " * 999, waits=0.05)], ids=["failed", "left"]
)
async def test_results_that_came_to_nothing_are_answered_when_they_are_sent_again(
    tmp_path: Path, line: Line
) -> None:
    """The retry uses the options of the repeated request, and the next message continues from there (T6, T8 ×
    F2)."""
    script = [says("I look.") + calls("where"), line, says("In Rome."), says("Five.")]
    async with called(tmp_path, script) as (client, site):
        messages = await brought(client)
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=[CHAT_TOOL], stream=True
        )
        with suppress(openai.APIError):
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
        await stream.close()
        await eventually(lambda: not [*site.runtime.bus.turns()])
        for _ in range(2):
            reply = await client.chat.completions.create(
                model=MODEL, messages=messages, tools=[CHAT_TOOL], temperature=0.5
            )
            assert model_of(site.runtime).requests[-1].options["temperature"] == 0.5
            messages += [{"role": "assistant", "content": reply.choices[0].message.content}, user("2+3?")]
        assert [one["content"] for one in messages[-4:]] == ["In Rome.", "2+3?", "Five.", "2+3?"]
        assert len(await conversations(site)) == 1


async def test_a_person_decides_while_the_caller_waits(tmp_path: Path) -> None:
    """A foreign protocol cannot bypass a permission (P1 × F2)."""
    ran: list[str] = []

    @tool(permission="danger")
    def wipe() -> str:
        "Wipe it."
        ran.append("wiped")
        return "wiped"

    script = [calls("wipe"), says("Done."), calls("wipe"), says("Then not.")]
    async with called(tmp_path, script, tools=[wipe], allow=(), ask=["danger"]) as (client, site):
        for verdict, answer in (("allow", "Done."), ("reject", "Then not.")):
            stream = await client.chat.completions.create(
                model=MODEL, messages=[user(f"Wipe it ({verdict})")], stream=True
            )
            question = await site.question()
            await site.post(f"/api/questions/{question['id']}/answer", {"verdict": verdict})
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(pieces) == answer
    assert ran == ["wiped"]


async def test_a_mode_that_asks_about_everything_asks_before_the_caller_is_handed_a_call(
    tmp_path: Path,
) -> None:
    """P8 × F2: the caller gets the arguments as the person left them."""
    async with called(tmp_path, [calls("where", exact=True)], mode="ask") as (client, site):
        stream = await client.chat.completions.create(
            model=MODEL, messages=[user("Where am I?")], tools=[CHAT_TOOL], stream=True
        )
        question = await site.question()
        allowed = {"verdict": "allow", "arguments": {"exact": False}}
        await site.post(f"/api/questions/{question['id']}/answer", allowed)
        deltas = [chunk.choices[0].delta async for chunk in stream]
    (call,) = [call for delta in deltas for call in delta.tool_calls or ()]
    assert call.function is not None
    assert call.function.arguments == '{"exact": false}'
