"""Check responses requested by the stock SDK: answers, follow-ups, and tools of the caller."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from dragoman import Agent
from dragoman.messages.message import Reasoning
from dragoman.messages.usage import Usage
from dragoman.wire.scripted import Line, calls, fails, says
from tests.later import Later
from tests.protocols.openai.callers import MODEL, RESPONSE_TOOL, called, conversations, user
from tests.runtimes import add, model_of

if TYPE_CHECKING:
    import openai
    from openai.types import responses
else:
    openai, responses = Later("openai"), Later("openai.types.responses")

pytestmark = pytest.mark.slow


def output(call: str, text: str) -> Any:
    return {"type": "function_call_output", "call_id": call, "output": text}


async def test_a_response_has_the_answer_and_what_was_asked(tmp_path: Path) -> None:
    """A later read returns the same (F1, F2)."""
    usage = Usage(input=10, output=5, cached=4, reasoning=2)
    async with called(tmp_path, [Line("Hello!", thinks="Hm.", usage=usage)]) as (client, site):
        reply = await client.responses.create(
            model=MODEL,
            input="Hi",
            instructions="Be kind.",
            metadata={"ticket": "7"},
            max_output_tokens=100,
            temperature=0.5,
        )
        assert (reply.output_text, reply.status) == ("Hello!", "completed")
        thought, _ = reply.output
        assert isinstance(thought, responses.ResponseReasoningItem)
        assert thought.summary[0].text == "Hm."
        assert reply.usage is not None
        assert reply.usage.input_tokens_details.cached_tokens == 4
        assert reply.usage.output_tokens_details.reasoning_tokens == 2
        assert (reply.instructions, reply.metadata) == ("Be kind.", {"ticket": "7"})
        request = model_of(site.runtime).requests[0]
        assert "Be kind." in request.system
        assert (request.options["max_tokens"], request.options["temperature"]) == (100, 0.5)
        assert (await client.responses.retrieve(reply.id)).model_dump() == reply.model_dump()
        items = await client.responses.input_items.list(reply.id)
        assert [item.type for item in items.data] == ["message"]


async def test_a_stream_is_read_by_the_sdk(tmp_path: Path) -> None:
    """Its events are numbered without a gap, and end with the complete response (F2)."""
    script = [Line("Let me add. ", thinks="Hm.") + calls("add", a=1, b=2), says("It is three.")]
    async with called(tmp_path, script, tools=[add]) as (client, _):
        async with client.responses.stream(model=MODEL, input="1+2?") as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        assert [event.sequence_number for event in events] == [*range(len(events))]
        assert {event.content_index for event in events if hasattr(event, "content_index")} == {0}
        assert {event.summary_index for event in events if hasattr(event, "summary_index")} == {0}
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(deltas) == "Let me add. It is three."
        assert [item.type for item in final.output] == ["reasoning", "message", "message"]
        assert final.usage is not None
        assert final.usage.input_tokens == 20
        assert (await client.responses.retrieve(final.id)).output_text == final.output_text


async def test_a_response_follows_another(tmp_path: Path) -> None:
    """It is in the same conversation, and a follow-up to an earlier response is a branch (F1)."""
    script = [says("One."), says("Two."), says("Zwei."), says("Three.")]
    async with called(tmp_path, script) as (client, site):
        one = await client.responses.create(model=MODEL, input="Count")
        two = await client.responses.create(model=MODEL, input="Go on", previous_response_id=one.id)
        await client.responses.create(model=MODEL, input="In German", previous_response_id=one.id)
        texts = [str(message.parts) for message in model_of(site.runtime).requests[-1].messages]
        assert len(texts) == 3
        assert two.previous_response_id == one.id
        (conversation,) = await conversations(site)
        three = await client.responses.create(model=MODEL, input="Go on", conversation=conversation)
        assert three.conversation is not None
        assert three.conversation.id == conversation
        assert len(await site.runtime.store.turns(conversation)) == 4
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(
                model=MODEL, input="Go on", conversation=conversation, previous_response_id=one.id
            )
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(f"{one.id}_0000")


async def test_a_history_may_come_with_the_input(tmp_path: Path) -> None:
    """F1"""
    async with called(tmp_path, [says("One."), says("Two."), says("Three."), says("In Rome.")]) as (
        client,
        site,
    ):
        one = await client.responses.create(model=MODEL, input=[user("Count")])
        history: list[Any] = [user("Count"), *(item.model_dump() for item in one.output), user("Go on")]
        two = await client.responses.create(model=MODEL, input=history)
        assert two.output_text == "Two."
        assert len(await conversations(site)) == 1
        call = {"type": "function_call", "call_id": "c1", "name": "where", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "c1", "output": "Rome"}
        foreign: list[Any] = [user("Where?"), call, output, user("And now?")]
        assert (await client.responses.create(model=MODEL, input=foreign)).output_text == "Three."
        sent = [part for message in model_of(site.runtime).requests[-1].messages for part in message.parts]
        assert [(part.tool, part.result and part.result.text) for part in sent if part.type == "call"] == [
            ("where", "Rome")
        ]
        last = await client.responses.create(model=MODEL, input=foreign[:-1], tools=[RESPONSE_TOOL])
        items = await client.responses.input_items.list(last.id)
        assert [item.type for item in items.data] == ["function_call_output"]


async def test_items_of_ours_may_be_named_by_their_ids(tmp_path: Path) -> None:
    """The AI SDK does so from the second message on, and the chat continues in its conversation (F1, F3)."""
    script = [Line("Hello!", thinks="Hm."), says("Again!"), says("Again!")]
    async with called(tmp_path, script) as (client, site):
        first = await client.responses.create(model=MODEL, input="Hi")
        named: list[Any] = [{"type": "item_reference", "id": item.id} for item in first.output]
        second = await client.responses.create(model=MODEL, input=[user("Hi"), *named, user("Again?")])
        assert second.output_text == "Again!"
        said = [(one.role, one.text) for one in model_of(site.runtime).requests[1].messages]
        assert said == [("user", "Hi"), ("assistant", "Hello!"), ("user", "Again?")]
        (conversation,) = await conversations(site)
        asked, *_ = (await site.runtime.store.messages(conversation))[0]
        mine: Any = {"type": "item_reference", "id": asked.id}
        await client.responses.create(model=MODEL, input=[mine, *named, *named, user("Again?")])
        assert [(one.role, one.text) for one in model_of(site.runtime).requests[2].messages] == said
        unknown: Any = {"type": "item_reference", "id": "msg_nope"}
        with pytest.raises(openai.BadRequestError, match="Unknown item 'msg_nope'"):
            await client.responses.create(model=MODEL, input=[unknown, user("Hi")])


async def test_a_stateless_caller_sends_sealed_reasoning_back(tmp_path: Path) -> None:
    """The caller sends its whole history without IDs. Only this user can use the sealed reasoning
    (F1, F3)."""
    script = [
        Line("", thinks="Where?") + calls("where"),
        Line("Rome.", thinks="So."),
        says("Yes."),
        says("Yes!"),
    ]
    asked: Any = {"store": False, "include": ["reasoning.encrypted_content"], "tools": [RESPONSE_TOOL]}

    def sent_back(reply: responses.Response) -> list[Any]:
        return [item.model_dump(exclude={"id", "status"}, exclude_none=True) for item in reply.output]

    async with called(tmp_path, script) as (client, site):
        history = [user("Where am I?")]
        first = await client.responses.create(model=MODEL, input=history, **asked)
        assert first.output[0].type == "reasoning"
        assert first.output[0].encrypted_content
        history += [*sent_back(first), output(first.output[1].call_id, "Rome")]
        second = await client.responses.create(model=MODEL, input=history, **asked)
        assert second.output_text == "Rome."
        for gone in (first, second):
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(gone.id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.create(model=MODEL, input="Hi", previous_response_id=gone.id)
        history += [*sent_back(second), user("Sure?")]
        third = await client.responses.create(model=MODEL, input=history, **asked)
        assert third.output_text == "Yes."
        assert len(await conversations(site)) == 1
        changed = [user("Where was I?"), *history[1:]]  # another history is a separate conversation
        await client.responses.create(model=MODEL, input=changed, **asked)
        seen = model_of(site.runtime).requests[-1].messages
        thoughts = [part.text for one in seen for part in one.parts if isinstance(part, Reasoning)]
        assert thoughts == ["Where?", "So."]
        seal = next(one["encrypted_content"] for one in history if one.get("type") == "reasoning")
        for content in ("Zm9yZ2Vk", base64.urlsafe_b64encode(b"x" + base64.urlsafe_b64decode(seal)).decode()):
            forged = {"type": "reasoning", "summary": [], "encrypted_content": content}
            with pytest.raises(openai.BadRequestError, match="Cannot verify"):
                await client.responses.create(model=MODEL, input=[forged, user("Hi")], **asked)


async def test_calls_of_the_callers_tools(tmp_path: Path) -> None:
    """The follow-up is a separate response in the same turn, and each can be read again (F2, C6)."""
    script = [
        says("Let me see.") + calls("where", exact=True) + calls("where", exact="no") + calls("where"),
        calls("where", near="Köln"),
        says("Rome."),
        says("Yes."),
    ]
    async with called(tmp_path, script) as (client, site):
        first = await client.responses.create(model=MODEL, input="Where am I?", tools=[RESPONSE_TOOL])
        made = [item for item in first.output if isinstance(item, responses.ResponseFunctionToolCall)]
        assert [(call.name, call.arguments) for call in made] == [
            ("where", '{"exact": true}'),
            ("where", "{}"),
        ]
        with pytest.raises(openai.BadRequestError, match="no tool output found"):
            await client.responses.create(model=MODEL, input="Well?", previous_response_id=first.id)
        second = await client.responses.create(
            model=MODEL,
            input=[output(call.call_id, "Rome") for call in made],
            previous_response_id=first.id,
            tools=[RESPONSE_TOOL],
        )
        assert second.id != first.id
        assert second.previous_response_id == first.id
        (again,) = second.output
        assert isinstance(again, responses.ResponseFunctionToolCall)
        assert again.arguments == '{"near": "Köln"}'
        async with client.responses.stream(
            model=MODEL, input=[output(again.call_id, "Rome")], previous_response_id=second.id
        ) as stream:
            third = await stream.get_final_response()
        assert third.output_text == "Rome."
        for one in (first, second, third):
            read = await client.responses.retrieve(one.id)
            assert [item.id for item in read.output] == [item.id for item in one.output]
            assert read.usage == one.usage
            assert read.previous_response_id == one.previous_response_id
        assert third.previous_response_id == second.id
        items = await client.responses.input_items.list(second.id, order="asc")
        assert [item.type for item in items.data] == ["function_call_output"] * 2
        assert not items.has_more
        (conversation,) = await conversations(site)
        assert len(await site.runtime.store.turns(conversation)) == 1
        named: list[Any] = [{"type": "item_reference", "id": id} for id in (made[0].id, items.data[0].id)]
        await client.responses.create(model=MODEL, input=[user("Where?"), *named, user("Sure?")])
        (call,) = model_of(site.runtime).requests[-1].messages[1].calls
        assert (call.tool, call.arguments, call.result and call.result.text) == (
            "where",
            {"exact": True},
            "Rome",
        )


async def test_outputs_must_be_of_the_calls_that_wait(tmp_path: Path) -> None:
    """F3: of all of them, of one reply, in its conversation, and of the caller's tools."""
    script = [calls("where") + calls("where") + calls("add", a=1, b=2)]
    async with called(tmp_path, script, tools=[add]) as (client, site):
        first = await client.responses.create(model=MODEL, input="Where am I?", tools=[RESPONSE_TOOL])
        both = [output(item.call_id, "Rome") for item in first.output if item.type == "function_call"]
        (conversation,) = await conversations(site)
        made = (await site.runtime.store.messages(conversation))[0][-1].calls
        other = await client.conversations.create()
        after = {"previous_response_id": first.id}
        wrong: list[tuple[list[Any], dict[str, Any], str]] = [
            (both[:1], after, "no tool output found"),
            (both, {"conversation": other.id}, "of another conversation"),
            ([*both, output("call_x", "?")], after, "of one reply"),
            ([output(made[-1].id, "4")], after, "the server runs it"),
        ]
        for outputs, place, words in wrong:
            with pytest.raises(openai.BadRequestError, match=words):
                await client.responses.create(model=MODEL, input=outputs, **place)


class City(BaseModel):
    name: str
    people: int


async def test_an_answer_of_a_type(tmp_path: Path) -> None:
    """R8 × F2"""
    script = [says("{}"), says('{"name": "Rome", "people": 3}')]
    async with called(tmp_path, script) as (client, _):
        reply = await client.responses.parse(model=MODEL, input="Which city?", text_format=City)
        assert reply.output_parsed == City(name="Rome", people=3)
        read = await client.responses.retrieve(reply.id)
        assert read.text is not None
        assert read.text.to_dict()["format"]["strict"] is True
        assert City.model_validate_json(read.output_text).people == 3


async def test_files_come_inside(tmp_path: Path) -> None:
    """Files that would have to be fetched are refused (F3)."""
    data = f"data:text/plain;base64,{base64.b64encode(b'a cat').decode()}"

    def asked(**file: str) -> Any:
        parts = [{"type": "input_text", "text": "What?"}, {"type": "input_file", **file}]
        return [{"role": "user", "content": parts}]

    async with called(tmp_path, [says("A cat.")]) as (client, site):
        reply = await client.responses.create(model=MODEL, input=asked(file_data=data, filename="a.txt"))
        (item,) = (await client.responses.input_items.list(reply.id)).data
        assert isinstance(item, responses.ResponseInputMessageItem)
        assert [part.type for part in item.content] == ["input_text", "input_file"]
        parts = model_of(site.runtime).requests[0].messages[0].parts
        (file,) = [part for part in parts if part.type == "file"]
        assert (file.name, await site.runtime.store.blob(str(file.blob))) == ("a.txt", b"a cat")
        for missing in ({"file_id": "file-1"}, {"file_url": "https://example.org/a.txt"}):
            with pytest.raises(openai.BadRequestError):
                await client.responses.create(model=MODEL, input=asked(**missing))


async def test_an_agent_answers_with_its_own_model(tmp_path: Path) -> None:
    """F1"""
    agent = Agent(name="pirate", prompt="Talk like a pirate.")
    async with called(tmp_path, [says("Arr!")], agents=[agent]) as (client, _):
        reply = await client.responses.create(model="pirate", input="Hi")
        assert (reply.model, reply.output_text) == ("pirate", "Arr!")


async def test_one_that_fails_and_one_that_is_cut_off_say_so(tmp_path: Path) -> None:
    """F3"""
    script = [fails("no such luck", after="So "), fails("nor now"), says("To be", finish="length")]
    script.append(says("Half", finish="error"))
    async with called(tmp_path, script, continuations=0) as (client, _):
        failed = await client.responses.create(model=MODEL, input="Hi")
        assert failed.status == "failed"
        assert failed.error is not None
        assert "no such luck" in failed.error.message
        assert (await client.responses.retrieve(failed.id)).status == "failed"
        stream = await client.responses.create(model=MODEL, input="Hi", stream=True)
        assert [event.type async for event in stream][-1] == "response.failed"
        short = await client.responses.create(model=MODEL, input="Hi")
        assert short.status == "incomplete"
        assert short.incomplete_details is not None
        assert short.incomplete_details.reason == "max_output_tokens"
        broken = await client.responses.create(model=MODEL, input="Hi")
        assert (broken.status, broken.output_text) == ("failed", "Half")
        assert (await client.responses.retrieve(broken.id)).status == "failed"


async def test_deleting_one_deletes_its_conversation(tmp_path: Path) -> None:
    """If the conversation contains later messages, the deletion is refused and not half done (F3)."""
    async with called(tmp_path, [says("One."), says("Two.")]) as (client, site):
        one = await client.responses.create(model=MODEL, input="Count")
        two = await client.responses.create(model=MODEL, input="Go on", previous_response_id=one.id)
        with pytest.raises(openai.ConflictError):
            await client.responses.delete(two.id)
        assert (await client.responses.retrieve(one.id)).output_text == "One."
    async with called(tmp_path / "other", [says("One.")]) as (client, site):
        one = await client.responses.create(model=MODEL, input="Count")
        await client.responses.delete(one.id)
        assert await conversations(site) == []
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(one.id)
