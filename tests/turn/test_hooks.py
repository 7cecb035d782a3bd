"""Plugins at the start, at the end, before a request and at every piece of a reply: H1 to H4, H7."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, OpenAICompatible, Plugin, ProviderError, Runtime, TurnView
from dragoman.messages.events import Event, ItemAdded, MessageEnd, TextDelta
from dragoman.messages.fold import DraftView
from dragoman.messages.message import Message, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.turn.plugin import Hooks
from dragoman.wire.scripted import calls, fails, says
from tests.loopback import delta, loopback, stream
from tests.runtimes import add, model_of, play, runtime_with
from tests.turn.named import Named, Starts


async def test_plugins_start_in_order_and_clean_up_in_reverse(tmp_path: Path) -> None:
    """H1, H2, H7"""
    diary: list[str] = []
    script = [calls("add", a=1, b=1), says("2")]
    await play(tmp_path, script, tools=[add], plugins=[Starts("a", diary), Starts("b", diary)])
    assert diary == ["a starts", "b starts", "a ends", "b ends", "b cleans up", "a cleans up"]


async def test_a_plugin_may_clean_up_after_a_yield(tmp_path: Path) -> None:
    """H1"""
    diary: list[str] = []

    class Yields(Named):
        async def on_turn_start(self, turn: TurnView) -> AsyncIterator[None]:
            self.note("starts")
            try:
                yield
            finally:
                self.note("cleans up")

    await play(tmp_path, [says("hi")], plugins=[Yields("a", diary)])
    assert diary == ["a starts", "a cleans up"]


async def test_an_error_at_the_start_ends_the_turn_and_cleans_up_what_had_started(tmp_path: Path) -> None:
    """No later plugin starts, and `on_turn_end` runs only for turns that did not fail (H1, H2, H7)."""
    diary: list[str] = []
    plugins = [Starts("a", diary), Starts("b", diary, fails=True), Starts("c", diary)]
    async with runtime_with(tmp_path, [says("never")], plugins=plugins) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(RuntimeError, match="b fails"):
            await turn.result()
        failed = await turn.turn()
        assert failed.state == "error"
        assert failed.error is not None
        assert failed.error.error == "plugin b, on_turn_start: RuntimeError: b fails"
        assert model_of(runtime).requests == []
    assert diary == ["a starts", "b starts", "a cleans up"]


async def test_two_failing_cleanups_stop_nobody_and_are_raised_together(tmp_path: Path) -> None:
    """H2: the main error comes first in the group."""
    diary: list[str] = []
    plugins = [
        Starts("a", diary, cleanup_fails=True),
        Starts("b", diary),
        Starts("c", diary, cleanup_fails=True),
    ]
    async with runtime_with(tmp_path, [fails("model is down")], plugins=plugins) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ExceptionGroup) as caught:
            await turn.result()
        failed = (await turn.turn()).error
    assert failed is not None
    assert failed.error == "model is down"
    assert [str(error) for error in caught.value.exceptions] == [
        "model is down",
        "c cleanup fails",
        "a cleanup fails",
    ]
    assert diary[3:] == ["c cleans up", "b cleans up", "a cleans up"]


async def test_one_failing_cleanup_is_raised_as_it_is(tmp_path: Path) -> None:
    """H2"""
    async with runtime_with(tmp_path, [says("hi")], plugins=[Starts("a", [], cleanup_fails=True)]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ValueError, match="a cleanup fails"):
            await turn.result()
        failed = await turn.turn()
    assert failed.state == "error"
    assert failed.error is not None
    assert failed.error.error == "ValueError: a cleanup fails"


async def test_on_turn_end_runs_after_a_cancel(tmp_path: Path) -> None:
    """H7"""
    diary: list[str] = []
    async with runtime_with(tmp_path, [says("x" * 400, waits=0.01)], plugins=[Starts("a", diary)]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
    assert diary == ["a starts", "a ends", "a cleans up"]


async def test_a_request_may_be_changed_before_every_step(tmp_path: Path) -> None:
    """H3"""
    diary: list[str] = []

    class Changes(Named):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            self.note(f"step {turn.turn.step + 1}")
            request.options["seed"] = self.name
            extra = Message(
                "msg_x", "conv_x", None, "user", (Text(f"hello from {self.name}"),), metadata={"x": 1}
            )
            request.set_messages([*request.messages, extra])

    script = [calls("add", a=1, b=1), says("2")]
    async with runtime_with(
        tmp_path, script, tools=[add], plugins=[Changes("a", diary), Changes("b", diary)]
    ) as runtime:
        await (await runtime.send("go")).result()
        requests = model_of(runtime).requests
    assert diary == ["a step 1", "b step 1", "a step 2", "b step 2"]
    assert requests[0].options["seed"] == "b"
    assert requests[0].messages[-2:] == (
        RequestMessage("user", (Text("hello from a"),)),
        RequestMessage("user", (Text("hello from b"),)),
    )


@pytest.mark.parametrize(
    "hook", ["on_before_request", "on_after_request", "on_message_append", "on_turn_end"]
)
async def test_an_error_in_a_hook_ends_the_turn(tmp_path: Path, hook: str) -> None:
    """H3, H5, H6, H7"""

    async def broken(*_: Any) -> None:
        raise RuntimeError(f"{hook} is broken")

    plugin = type("Broken", (Plugin,), {hook: broken})()
    async with runtime_with(tmp_path, [says("hi")], plugins=[plugin]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(RuntimeError, match=f"{hook} is broken"):
            await turn.result()
        assert (await turn.turn()).state == "error"


@pytest.mark.parametrize("hook", ["on_turn_start", "on_after_request", "on_turn_end"])
async def test_what_is_no_exception_ends_the_turn_like_one(tmp_path: Path, hook: str) -> None:
    """H1, H5, H7: a failed test is one, and so is a panic of Rust code"""

    async def broken(*_: Any) -> None:
        pytest.fail(f"{hook} is broken")

    diary: list[str] = []
    plugin = type("Broken", (Plugin,), {hook: broken})()
    async with runtime_with(tmp_path, [says("hi")], plugins=[Starts("a", diary), plugin]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(pytest.fail.Exception, match=f"{hook} is broken"):
            await asyncio.wait_for(turn.result(), 3)
        failed = await turn.turn()
    assert failed.error is not None
    assert failed.error.error == f"Failed: {hook} is broken"
    assert diary[-1] == "a cleans up"


async def test_several_errors_of_which_one_is_no_exception_are_raised_together(tmp_path: Path) -> None:
    """H2"""

    class Panics(Plugin):
        async def on_turn_start(self, turn: TurnView) -> Any:
            def clean_up() -> None:
                raise BaseException("panic")

            return clean_up

    async with runtime_with(tmp_path, [fails("down")], plugins=[Panics()]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(BaseExceptionGroup) as raised:
            await asyncio.wait_for(turn.result(), 3)
    assert [str(error) for error in raised.value.exceptions] == ["down", "panic"]


async def test_every_piece_is_seen_after_it_became_part_of_the_draft(tmp_path: Path) -> None:
    """H4"""
    seen: list[str] = []

    class Watches(Plugin):
        def on_stream_data(self, event: Event, draft: DraftView, turn: TurnView) -> None:
            if event.type == "text.delta":
                seen.append(draft.message.text)

    await play(tmp_path, [says("one two three")], plugins=[Watches()])
    assert seen == ["one two ", "one two three"]


async def test_a_draft_cannot_be_changed_and_the_error_says_what_can(tmp_path: Path) -> None:
    """H4"""

    class Writes(Plugin):
        def on_stream_data(self, event: Event, draft: DraftView, turn: TurnView) -> None:
            draft.text = "something else"

    with pytest.raises(AttributeError, match=r"request\.filter_reply in on_before_request"):
        await play(tmp_path, [says("one two three")], plugins=[Writes()])


class Shouts:
    """A stateful filter that capitalizes words between stars across chunk boundaries, and adds an item at the
    end."""

    def __init__(self) -> None:
        self.held = ""

    def __call__(self, event: Event | None) -> list[Event]:
        if isinstance(event, TextDelta):
            text = self.held + event.text
            cut = text.rfind("*") if text.count("*") % 2 else len(text)
            self.held = text[cut:]
            shown = re.sub(r"\*(\w+)\*", lambda found: found[1].upper(), text[:cut])
            return [replace(event, text=shown)] if shown else []
        rest: list[Event] = [TextDelta(self.held)] if self.held else []
        self.held = ""
        if isinstance(event, MessageEnd):
            rest.append(ItemAdded("note", "made by a plugin"))
        return [*rest, event] if event is not None else rest


@pytest.mark.parametrize("size", [1, 2, 5, 99])
async def test_a_filter_changes_the_reply_in_stream_store_and_history(tmp_path: Path, size: int) -> None:
    """A filtered reply merges its chunks as an unfiltered one does, wherever they are cut (H3, H4)."""
    said = "a *loud* word, and a * star"

    class Filters(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            request.filter_reply(Shouts())
            request.filter_reply(lambda event: [] if event is None else [event])

    chunks = stream(*(delta(content=said[at : at + size]) for at in range(0, len(said), size)))
    async with (
        loopback(chunks, says("ok")) as server,
        Runtime(
            tmp_path / "chat.db", model=OpenAICompatible(server.url, model="m"), plugins=[Filters()]
        ) as runtime,
    ):
        chat = await runtime.conversation()
        turn = await chat.send("go")
        streamed = "".join([event.text async for event in turn.events() if event.type == "text.delta"])
        result = await turn.result()
        await (await chat.send("and?")).result()
        sent = server.messages()[2]["content"]
    assert streamed == result.text == sent == "a LOUD word, and a * star"
    assert result.messages[-1].parts[-1].type == "item"


async def test_what_a_filter_holds_back_is_kept_when_the_reply_breaks_off(tmp_path: Path) -> None:
    """H3 × T8"""

    class Filters(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            request.filter_reply(lambda event: [TextDelta(" held")] if event is None else [event])

    async with runtime_with(tmp_path, [fails("gone", after="said and")], plugins=[Filters()]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(ProviderError):
            await (await chat.send("go")).result()
        assert (await chat.messages())[-1].text == "said and held"


async def test_a_filter_that_returns_no_list_is_told_so(tmp_path: Path) -> None:
    """H3"""

    class Forgets(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            request.filter_reply(lambda event: None)  # type: ignore[arg-type, return-value]

    with pytest.raises(ConfigError, match="Return a list of events"):
        await play(tmp_path, [says("one")], plugins=[Forgets()])


async def test_a_plugin_without_the_hook_is_not_asked_about_pieces(tmp_path: Path) -> None:
    """A plugin without the hook costs nothing per chunk, because Dragoman does not call it (H4)."""
    async with runtime_with(tmp_path, [says("hi")], plugins=[Starts("a", [])]) as runtime:
        assert Hooks(runtime.services.plugins).stream_data == []


def test_every_hook_says_when_it_runs_and_what_its_errors_do() -> None:
    hooks = [
        member
        for name, member in inspect.getmembers(Plugin, inspect.isfunction)
        if name.startswith(("on_", "before_", "after_")) or name in ("system_prompt", "request_params")
    ]
    assert len(hooks) == 16
    for hook in hooks:
        text = inspect.getdoc(hook) or ""
        assert len(text) > 60, hook.__name__
        assert "rror" in text, f"{hook.__name__} does not say what an error does"


async def test_messages_of_a_request_say_their_text_and_their_calls(tmp_path: Path) -> None:
    """As stored messages do: a plugin need not take parts apart."""
    seen: list[tuple[str, str, list[str]]] = []

    class Reads(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            seen[:] = [(one.role, one.text, [call.tool for call in one.calls]) for one in request.messages]

    script = [says("Let me see. ") + calls("add", a=1, b=2), says("3")]
    async with runtime_with(tmp_path, script, tools=[add], plugins=[Reads()]) as runtime:
        await (await runtime.send("What is 1 + 2?")).result()
    assert seen == [("user", "What is 1 + 2?", []), ("assistant", "Let me see. ", ["add"])]


async def test_a_start_returns_a_cleanup_or_nothing(tmp_path: Path) -> None:
    """H1"""

    class Counts(Plugin):
        async def on_turn_start(self, turn: TurnView) -> Any:
            return 5

    async with runtime_with(tmp_path, [], plugins=[Counts()]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ConfigError, match=r"on_turn_start must return a cleanup function, not 5\."):
            await turn.result()


@pytest.mark.parametrize("hook", ["cleanup", "listener"])
def test_who_ends_the_program_ends_it_wherever(tmp_path: Path, hook: str) -> None:
    """The turn does not end with it. It goes on at the next start (H2 × S3)."""

    def leave(*_: Any) -> None:
        raise SystemExit(3)

    class Leaves(Plugin):
        async def on_turn_start(self, turn: TurnView) -> Any:
            return leave if hook == "cleanup" else None

    ids: list[str] = []

    async def first() -> None:
        async with runtime_with(tmp_path, [says("hi")], plugins=[Leaves()]) as runtime:
            turn = await runtime.send("go")
            ids.append(turn.id)
            if hook == "listener":
                turn.subscribe(leave)
            await turn.result()

    async def second() -> str:
        async with runtime_with(tmp_path, [says("hi again")]) as runtime:
            return (await runtime.turn(ids[0]).result()).text

    with pytest.raises(SystemExit):
        asyncio.run(first())
    assert asyncio.run(second()).startswith("hi")
