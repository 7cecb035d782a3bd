"""Chat completions, asked for by the stock SDK: answers, and how they end."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from dragoman import Agent, Runtime
from dragoman.errors import ProviderError
from dragoman.messages.message import File
from dragoman.messages.usage import Usage
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.server.protocols.openai.chat import failure_body, status_of
from dragoman.server.protocols.openai.reply import STOPPED, ReplyOver
from dragoman.wire.scripted import Line, calls, fails, says
from tests.later import Later
from tests.loopback import loopback
from tests.patience import PATIENCE, eventually
from tests.protocols.openai.callers import CHAT_TOOL, MODEL, called, client_of, conversations, user
from tests.runtimes import add, model_of
from tests.server.site import Site, serving

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow

# ── an answer ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_completion_has_the_answer_and_what_it_used(tmp_path: Path) -> None:
    """It is stored like any turn, and the prompt goes to the model (F1, F2)."""
    usage = Usage(input=10, output=5, cached=4, reasoning=2)
    async with called(tmp_path, [Line("Hello!", thinks="Hm.", usage=usage)]) as (client, site):
        prompt: Any = {"role": "developer", "content": "Be kind."}
        reply = await client.chat.completions.create(model=MODEL, messages=[prompt, user("Hi")])
        (choice,) = reply.choices
        assert (choice.message.content, choice.finish_reason) == ("Hello!", "stop")
        assert reply.usage is not None
        assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (10, 15)
        assert reply.usage.prompt_tokens_details is not None
        assert reply.usage.prompt_tokens_details.cached_tokens == 4
        assert "Be kind." in model_of(site.runtime).requests[0].system
        (conversation,) = await conversations(site)
        messages, _ = await site.runtime.store.messages(conversation)
    assert [message.text for message in messages] == ["Hi", "Hello!"]


async def test_a_stream_has_it_in_pieces(tmp_path: Path) -> None:
    """Server-side calls run here and are hidden from the caller (F2)."""
    script = [says("Let me add. ") + calls("add", a=1, b=2), says("It is three.")]
    async with called(tmp_path, script, tools=[add]) as (client, _):
        stream = await client.chat.completions.create(
            model=MODEL, messages=[user("1+2?")], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "Let me add. \n\nIt is three."
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 20
    assert all(not chunk.choices[0].delta.tool_calls for chunk in chunks if chunk.choices)


async def test_an_agent_is_a_model(tmp_path: Path) -> None:
    """F1"""
    agent = Agent(name="pirate", prompt="Talk like a pirate.")
    async with called(tmp_path, [says("Arr!")], agents=[agent]) as (client, site):
        assert [model.id async for model in client.models.list()] == ["pirate", MODEL]
        found = await client.models.retrieve(MODEL)
        assert (found.id, found.created) == (MODEL, 0)
        reply = await client.chat.completions.create(model="pirate", messages=[user("Hi")])
        assert reply.choices[0].message.content == "Arr!"
        assert "pirate" in model_of(site.runtime).requests[0].system


async def test_a_picture_goes_where_uploads_go(tmp_path: Path) -> None:
    """An image that would have to be fetched from the web is refused (F3)."""
    data = base64.b64encode(b"\x89PNG").decode()

    def shown(url: str) -> Any:
        image = {"type": "image_url", "image_url": {"url": url}}
        return {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}

    async with called(tmp_path, [says("A dot."), says("A beep.")]) as (client, site):
        await client.chat.completions.create(model=MODEL, messages=[shown(f"data:image/png;base64,{data}")])
        (file,) = [
            part for part in model_of(site.runtime).requests[0].messages[0].parts if part.type == "file"
        ]
        assert await site.runtime.store.blob(str(file.blob)) == b"\x89PNG"
        sound = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
        await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": [sound]}])
        (heard,) = model_of(site.runtime).requests[1].messages[0].parts
        assert isinstance(heard, File)
        assert (heard.media_type, await site.runtime.store.blob(str(heard.blob))) == ("audio/wav", b"\x89PNG")
        for url in ("https://example.org/a.png", "data:image/png;base64,!", "file:///etc/passwd"):
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model=MODEL, messages=[shown(url)])
        large = base64.b64encode(bytes(100_001)).decode()
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(
                model=MODEL, messages=[shown(f"data:image/png;base64,{large}")]
            )
        assert refused.value.status_code == 413
        assert len(await conversations(site)) == 2


class City(BaseModel):
    name: str
    people: int


async def test_an_answer_of_a_type_is_shown_when_it_fits(tmp_path: Path) -> None:
    """A reply that did not fit is not shown, and no code fence surrounds the one that did (R8 × F2)."""
    script = [says('{"name": "Rome"}'), says('Here:\n```json\n{"name": "Rome", "people": 3}\n```')]
    async with called(tmp_path, script) as (client, _):
        reply = await client.chat.completions.parse(
            model=MODEL, messages=[user("Which city?")], response_format=City
        )
    assert reply.choices[0].message.parsed == City(name="Rome", people=3)


async def test_json_without_a_schema_is_an_object(tmp_path: Path) -> None:
    """R8 × F2"""
    async with called(tmp_path, [says("[1]"), says('{"a": 1}')]) as (client, _):
        reply = await client.chat.completions.create(
            model=MODEL, messages=[user("As JSON")], response_format={"type": "json_object"}
        )
    assert reply.choices[0].message.content == '{"a": 1}'


async def test_a_stream_of_a_type_is_one(tmp_path: Path) -> None:
    """R8 × F2"""
    script = [says("{}"), says('{"name": "Rome", "people": 3}')]
    async with (
        called(tmp_path, script) as (client, _),
        client.chat.completions.stream(
            model=MODEL, messages=[user("Which city?")], response_format=City
        ) as stream,
    ):
        final = await stream.get_final_completion()
    assert final.choices[0].message.parsed == City(name="Rome", people=3)


async def test_a_thought_that_only_its_end_tells_of_is_left_out(tmp_path: Path) -> None:
    """The rule covers complete answers in both APIs, each as the first answer of a server (F1 × W4)."""
    reply = says("Let me see.</think>A cat.")
    async with loopback(reply) as one, loopback(reply) as other:
        known = load_catalog()
        for name, provider in (("one", one), ("other", other)):
            known = known.with_provider(Provider(name, name, provider.url, wire="openai_chat", local=True))
        models = Models("one/model", catalog=known, keys=Keys(use_keyring=False))
        async with (
            models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
            serving(tmp_path, runtime) as site,
            client_of(site) as client,
        ):
            whole = await client.chat.completions.create(model="one/model", messages=[user("Look")])
            assert whole.choices[0].message.content == "A cat."
            response = await client.responses.create(model="other/model", input="Look")
            assert response.output_text == "A cat."
            assert [item.type for item in response.output] == ["reasoning", "message"]
            assert (await client.responses.retrieve(response.id)).output == response.output


# ── the end ───────────────────────────────────────────────────────────────────────────────────────


async def test_who_hangs_up_cancels_the_turn(tmp_path: Path) -> None:
    """F2, T6: in a stream, and while waiting for the whole."""
    async with called(tmp_path, lambda _: says("A long story. " * 999, waits=0.05)) as (client, site):
        stream = await client.chat.completions.create(
            model=MODEL, messages=[user("Tell me a story")], stream=True
        )
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(model=MODEL, messages=[user("Another")], timeout=3)
        async with asyncio.timeout(PATIENCE):
            while await _states(site) != ["cancelled"] * 2:  # noqa: ASYNC110 - it hears of it in a moment
                await asyncio.sleep(0.01)


async def _states(site: Site) -> list[str]:
    rows = [await site.runtime.store.turns(one) for one in await conversations(site)]
    return [row.state for found in rows for row in found]


async def test_who_hangs_up_after_being_handed_calls_cancels_nothing(tmp_path: Path) -> None:
    """F2 × C6: the answer was whole, and the turn waits for the results."""
    async with called(tmp_path, [calls("where"), says("Rome.")]) as (client, site):
        stream = await client.chat.completions.create(
            model=MODEL, messages=[user("Where am I?")], tools=[CHAT_TOOL], stream=True
        )
        async for chunk in stream:
            if chunk.choices[0].finish_reason:
                break
        await stream.close()
        (conversation,) = await conversations(site)
        (row,) = await site.runtime.store.turns(conversation)
        assert await site.runtime.turn(row.id).reached("waiting")


async def test_a_turn_that_fails_is_an_error_in_openais_form(tmp_path: Path) -> None:
    """An SDK does not repeat it by itself, since its tools would run twice (F3)."""
    async with called(tmp_path, lambda _: fails("no such luck", after="So ")) as (client, site):
        stream = await client.chat.completions.create(model=MODEL, messages=[user("Hi")], stream=True)
        with pytest.raises(openai.APIError, match="no such luck"):
            [chunk async for chunk in stream]
        eager = client.with_options(max_retries=2)
        with pytest.raises(openai.InternalServerError, match="no such luck"):
            await eager.chat.completions.create(model=MODEL, messages=[user("Hi")])
        assert len(await conversations(site)) == 2


@pytest.mark.parametrize(
    ("over", "status", "code"),
    [
        (ReplyOver("cancelled"), 409, "cancelled"),
        (ReplyOver("error", kind="refusal"), 400, "content_filter"),
        (ReplyOver("error", kind="context_overflow"), 400, "context_length_exceeded"),
        (ReplyOver("error", kind="rate_limit"), 429, "rate_limit"),
        (ReplyOver("error", kind=STOPPED), 503, STOPPED),
        (ReplyOver("error", kind="auth"), 502, "auth"),
    ],
)
def test_a_failure_has_the_status_by_which_an_sdk_tries_again(
    over: ReplyOver, status: int, code: str
) -> None:
    """F3"""
    assert (status_of(over), failure_body(over)["code"]) == (status, code)


async def test_a_limit_of_tokens_is_the_callers(tmp_path: Path) -> None:
    """An answer that reached the limit is not continued automatically. Without one, it goes on without a
    break (F1 × T7)."""
    script = [says("To be", finish="length"), says("To be", finish="length"), says(" or not")]
    async with called(tmp_path, script) as (client, site):
        reply = await client.chat.completions.create(
            model=MODEL, messages=[user("Hi")], max_completion_tokens=2
        )
        assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("To be", "length")
        assert model_of(site.runtime).requests[0].options["max_tokens"] == 2
        whole = await client.chat.completions.create(model=MODEL, messages=[user("Go on")])
        assert whole.choices[0].message.content == "To be or not"


async def test_a_turn_that_a_person_cancels_is_an_error(tmp_path: Path) -> None:
    """F3 × T6"""
    async with called(tmp_path, lambda _: says("A long story. " * 999, waits=0.05)) as (client, site):
        asking = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=[user("Hi")]))
        await eventually(site.runtime.bus.turns)
        (live,) = site.runtime.bus.turns()
        await site.post(f"/api/turns/{live.log.id}/cancel")
        with pytest.raises(openai.ConflictError) as cancelled:
            await asking
        assert cancelled.value.code == "cancelled"


async def test_a_cut_off_answer_says_so(tmp_path: Path) -> None:
    """F1"""
    script = [says("To be", finish="length"), says("I must", finish="filter")]
    async with called(tmp_path, script, continuations=0) as (client, _):
        reasons = [
            (await client.chat.completions.create(model=MODEL, messages=[user("Hi")]))
            .choices[0]
            .finish_reason
            for _ in range(2)
        ]
    assert reasons == ["length", "content_filter"]


async def test_a_prompt_that_a_filter_stopped_is_the_callers_to_change(tmp_path: Path) -> None:
    """F1: in OpenAI's words for it, which clients know."""
    filtered = fails(ProviderError("The prompt is filtered.", kind="filter", status=400))
    async with called(tmp_path, [filtered, filtered]) as (client, _):
        with pytest.raises(openai.BadRequestError, match="is filtered") as stopped:
            await client.chat.completions.create(model=MODEL, messages=[user("Hi")])
        assert stopped.value.code == "content_filter"
        reply = await client.responses.create(model=MODEL, input="Hi")
        assert reply.error is not None
        assert (reply.status, reply.error.code) == ("failed", "invalid_prompt")
        again = await client.responses.retrieve(reply.id)  # from the store, as for a late client
        assert again.error == reply.error


async def test_an_answer_that_the_provider_broke_off_is_an_error(tmp_path: Path) -> None:
    """F1: `stop` would say that half of it is all."""
    broken = says("Half", finish="error")
    async with called(tmp_path, [broken, broken]) as (client, _):
        with pytest.raises(openai.InternalServerError, match="broke off the reply"):
            await client.chat.completions.create(model=MODEL, messages=[user("Hi")])
        stream = await client.chat.completions.create(model=MODEL, messages=[user("Hi")], stream=True)
        with pytest.raises(openai.APIError, match="broke off the reply"):
            [chunk async for chunk in stream]
