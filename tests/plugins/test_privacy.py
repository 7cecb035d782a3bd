"""R3: private values are masked in everything that a model receives, and real when a tool runs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, JsonValue
from pydantic_core import to_jsonable_python

from dragoman import (
    ConfigError,
    OpenAICompatible,
    Plugin,
    ProviderError,
    Runtime,
    ToolContext,
    ToolOutput,
    TurnView,
    allow_once,
    reject,
    tool,
)
from dragoman.messages.events import CallInputDelta, TextDelta, TextEnd
from dragoman.messages.message import CallState, File, Part, Reasoning, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.plugins.privacy import Mask, Privacy, Unmasked
from dragoman.wire.scripted import calls, calls_with, fails, says, thinks
from tests.loopback import loopback
from tests.runtimes import calls_of, model_of, only_call, runtime_with

PHONE = "+43 660 1234"
ADDRESS = 'Ring "5"\n1010 Wien'
PRIVATE = {"phone": PHONE, "address": ADDRESS}


def texts(value: object) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for one in pair for text in texts(one))
    elif isinstance(value, list | tuple):
        yield from (text for one in value for text in texts(one))
    elif is_dataclass(value):
        yield from (text for field in fields(value) for text in texts(getattr(value, field.name)))


def leaks(runtime: Runtime, private: Sequence[str] = (PHONE, ADDRESS)) -> list[str]:
    """Texts of any request that hold a private value, as it is or as JSON spells it."""
    spelled = [*private, *(json.dumps(value)[1:-1] for value in private)]
    sent = [text for request in model_of(runtime).requests for text in texts(request)]
    return [text for text in sent if any(value in text for value in spelled)]


dialled: list[str] = []


@tool
def call_number(number: str, about: list[str] = [], labels: dict[str, str] = {}) -> dict[str, Any]:  # noqa: B006
    """Call somebody."""
    dialled.append(number)
    return {"called": number, "about": about, "labels": labels, number: ADDRESS}


@pytest.fixture(autouse=True)
def nobody_called_yet() -> None:
    dialled.clear()


# ── a whole turn ──────────────────────────────────────────────────────────────────────────────────


async def test_the_model_never_learns_the_value_and_the_tool_always_does(tmp_path: Path) -> None:
    """R3: in the system prompt, in what people say, in calls and in results, in every round and turn."""
    script = [
        thinks("[[phone]]?")
        + calls("call_number", number="[[phone]]", about=["[[address]]"], labels={"[[phone]]": "x"}),
        calls("call_number", number="tel:[[phone]]"),
        says("I called [[phone]]."),
        says("Yes."),
    ]
    async with runtime_with(
        tmp_path, script, tools=[call_number], private=PRIVATE, system=f"Office: {PHONE}"
    ) as runtime:
        chat = await runtime.conversation(system=f"At {ADDRESS}.")
        first = await (await chat.send(f"Call {PHONE} at {ADDRESS}, please.")).result()
        await (await chat.send("Did you?")).result()
        assert leaks(runtime) == []
        requests = model_of(runtime).requests
        kept = await chat.messages()
    assert dialled == [PHONE, f"tel:{PHONE}"]
    assert first.text == f"I called {PHONE}."
    assert requests[0].messages[0].parts == (Text("Call [[phone]] at [[address]], please."),)
    assert "Office: [[phone]]" in requests[0].system
    assert "replaced by [[phone]], [[address]]" in requests[0].system
    assert len({request.system for request in requests}) == 1
    ran = calls_of(kept)[0]
    assert ran.arguments == {"number": PHONE, "about": [ADDRESS], "labels": {PHONE: "x"}}
    assert kept[0].text == f"Call {PHONE} at {ADDRESS}, please."


async def test_a_person_decides_about_the_real_value(tmp_path: Path) -> None:
    """The user's changes and replies are masked again (R3, P3)."""
    script = [
        calls("call_number", number="[[phone]]") + calls("call_number", number="[[phone]]", about=["x"]),
        says("ok"),
    ]
    async with runtime_with(tmp_path, script, tools=[call_number], private=PRIVATE, allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        first, second = turn.questions
        assert (first.arguments, second.arguments["number"]) == ({"number": PHONE}, PHONE)
        await turn.answer(first, allow_once({"number": PHONE, "about": [ADDRESS]}))
        await turn.answer(second, reject(f"not {PHONE}, and not {ADDRESS}"))
        edited, rejected = calls_of((await turn.result()).messages)
        assert leaks(runtime) == []
    assert edited.result is not None
    assert edited.result.note is not None
    assert PHONE in edited.result.note
    assert (edited.arguments["about"], rejected.state) == ([ADDRESS], CallState.REJECTED)


async def test_errors_and_calls_that_never_ran_do_not_tell_it_either(tmp_path: Path) -> None:
    """R3, C5, C7"""

    @tool
    def broken(number: str) -> str:
        """Fails."""
        raise ValueError(f"{number} is not reachable from {ADDRESS!r}, {json.dumps(ADDRESS)}")

    script = [
        calls("broken", number="[[phone]]")
        + calls("broken", number=5, why="[[address]]")
        + calls_with("broken", '{"number": "[[phone]]'),
        says("ok"),
    ]
    async with runtime_with(tmp_path, script, tools=[broken], private=PRIVATE) as runtime:
        result = await (await runtime.send("go")).result()
        assert leaks(runtime, [PHONE]) == []
    assert [call.state for call in calls_of(result.messages)] == [CallState.FAILED] * 3


async def test_what_a_plugin_says_is_masked_too(tmp_path: Path) -> None:
    """R3"""

    class Reminds(Plugin):
        async def system_prompt(self, text: str, turn: TurnView) -> str:
            return f"{text} Remember {PHONE}."

    script = [calls("call_number", number="[[phone]]"), says("ok")]
    async with runtime_with(
        tmp_path, script, tools=[call_number], private=PRIVATE, plugins=[Reminds()]
    ) as runtime:
        await (await runtime.send("go")).result()
        assert leaks(runtime) == []


async def test_what_is_asked_beside_the_conversation_is_masked_too(tmp_path: Path) -> None:
    """R3: a title, a summary."""
    script = [says("word " * 500), says("title"), says("SUMMARY"), says("answer")]
    async with runtime_with(tmp_path, script, private=PRIVATE, titles_by_model=True, context=1000) as runtime:
        chat = await runtime.conversation()
        await (await chat.send(f"Call {PHONE} " + "please " * 100)).result()
        await (await chat.send("now")).result()
        assert len(model_of(runtime).requests) == 4
        assert leaks(runtime) == []


async def test_a_mask_fits_wherever_its_value_does(tmp_path: Path) -> None:
    """R3, C4"""

    @tool
    def dial(number: Annotated[str, Field(pattern=r"^\+\d")]) -> str:
        """Dial."""
        return "dialled"

    script = [calls("dial", number="[[phone]]"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[dial], private=PRIVATE) as runtime:
        call = only_call(await (await runtime.send("go")).result())
    assert call.state is CallState.COMPLETED


# ── masks ─────────────────────────────────────────────────────────────────────────────────────────


ANY = cast("TurnView", SimpleNamespace(settings={}))  # a turn of which only the settings are read


async def masked(privacy: Privacy, *parts: Any) -> RequestMessage:
    request = Request("some/model", (RequestMessage("user", parts),))
    await privacy.on_before_request(request, ANY)
    return request.messages[0]


@pytest.mark.parametrize("written", ["utf-8", "utf-16"])
async def test_the_text_of_an_attachment_and_what_tools_say_of_themselves_are_masked(
    tmp_path: Path, written: str
) -> None:
    """R3"""

    @tool(description=f"Calls {PHONE}.")
    def ring(number: Annotated[str, Field(description=f"such as {PHONE}")]) -> str:
        return "rung"

    async with runtime_with(tmp_path, [says("ok")], tools=[ring], private=PRIVATE) as runtime:
        blob = await runtime.store.put_blob(f"call me: {PHONE}".encode(written))
        picture = await runtime.store.put_blob(b"\x89PNG")
        sent: list[Part] = [
            Text("see"),
            File("text/plain", blob=blob, name="a.txt"),
            File("image/png", blob=picture),
        ]
        await (await runtime.send(sent)).result()
        (request,) = model_of(runtime).requests
        assert PHONE not in repr(request)
        texts = [part.text for part in request.messages[0].parts if isinstance(part, Text)]
        assert "call me: [[phone]]" in texts[1]
        assert any(isinstance(part, File) for part in request.messages[0].parts)


async def test_the_texts_that_a_result_brings_along_are_masked(tmp_path: Path) -> None:
    """Text files are masked in full and by name, and other files are sent unchanged (R3 x C6)."""

    @tool
    async def card(context: ToolContext) -> ToolOutput:
        """A visiting card."""
        text = await context.put_file(f"call me: {PHONE}".encode(), "text/plain", f"{PHONE}.txt")
        plain = await context.put_file(b"nothing in here", "text/plain", "plain.txt")
        picture = await context.put_file(b"\x89PNG", "image/png", f"{PHONE}.png")
        return ToolOutput("see there", attachments=(text, plain, picture))

    script = [calls("card"), says("ok")]
    async with (
        loopback(*script) as server,
        Runtime(
            tmp_path / "chat.db",
            model=OpenAICompatible(server.url, model="model", key="k"),
            allow=["*"],
            tools=[card],
            private=PRIVATE,
        ) as runtime,
    ):
        await (await runtime.send("go")).result()
        sent = json.dumps(server.bodies)
    assert PHONE not in sent
    assert "call me: [[phone]]" in sent
    assert "nothing in here" in sent
    assert "image/png" in sent


async def test_what_other_plugins_put_into_a_request_is_masked(tmp_path: Path) -> None:
    """A request is masked as it is sent, whichever plugin changed it. This includes the answer's schema and
    the options, into which media tools put text of the model (R3 x H3, R8)."""

    @tool(description=f"Dials {PHONE}.")
    def dial() -> str:
        return "dialled"

    class Adds(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            request.system += f" Call {PHONE}."
            request.extra["user"] = PHONE
            request.set_messages([*request.messages, RequestMessage("user", (Text(PHONE),))])
            turn.add_tool(dial)

    class Card(BaseModel):
        number: str = Field(description=f"not {PHONE}")

    script = [says('{"number": "none"}')]
    async with runtime_with(tmp_path, script, private=PRIVATE, plugins=[Adds()]) as runtime:
        await (await runtime.send("go", output_type=Card, options={"stop": [PHONE]})).result()
        (request,) = model_of(runtime).requests
        assert leaks(runtime) == []
    assert [spec.name for spec in request.tools] == ["dial"]
    assert (request.options["stop"], request.extra["user"]) == (["[[phone]]"], "[[phone]]")
    assert request.output is not None
    assert "not [[phone]]" in json.dumps(request.output.schema)


async def test_a_conversation_may_have_private_fields_of_its_own(tmp_path: Path) -> None:
    """R3"""
    async with runtime_with(tmp_path, [says("ok"), says("ok")], private=PRIVATE) as runtime:
        chat = await runtime.conversation(private={"city": "Graz"})
        await (await chat.send(f"{PHONE} in Graz")).result()
        await (await runtime.send("in Graz")).result()
        own, other = model_of(runtime).requests
    assert own.messages[0].parts == (Text("[[phone]] in [[city]]"),)
    assert other.messages[0].parts == (Text("in Graz"),)


async def test_a_message_may_have_private_fields_of_its_own_beside_them(tmp_path: Path) -> None:
    """It adds to the fields of its conversation, and a regenerated answer does the same (R3 x R1)."""
    async with runtime_with(tmp_path, lambda _: says("ok"), private=PRIVATE) as runtime:
        chat = await runtime.conversation(private={"city": "Graz"})
        await (await chat.send(f"Ada, {PHONE}, Graz", private={"name": "Ada"})).result()
        question = (await chat.messages())[0]
        await (await chat.rerun(question.id, private={"comma": ", "})).result()
        sent = [request.messages[0].parts for request in model_of(runtime).requests]
    assert sent == [
        (Text("[[name]], [[phone]], [[city]]"),),
        (Text("[[name]][[comma]][[phone]][[comma]][[city]]"),),
    ]


async def test_names_of_files_are_masked_and_signed_reasoning_goes_back_as_it_came() -> None:
    """R3, R5"""
    signed = Reasoning(f"{PHONE}?", signature="abc")
    said = await masked(
        Privacy(PRIVATE),
        File("text/plain", url=f"https://example.org/?{PHONE}", name=f"{PHONE}.txt"),
        Reasoning(PHONE),
        signed,
    )
    assert said.parts == (
        File("text/plain", url="https://example.org/?[[phone]]", name="[[phone]].txt"),
        Reasoning("[[phone]]"),
        signed,
    )


def test_a_value_inside_another_is_masked_with_it() -> None:
    """A mask that looks like a value is not masked again (R3)."""
    privacy = Mask({"first": "Ada", "whole": "Ada Lovelace", "odd": "first"})
    assert privacy.hide("Ada Lovelace, called Ada, came first") == "[[whole]], called [[first]], came [[odd]]"
    assert privacy.show("[[whole]], called [[first]], came [[odd]]") == "Ada Lovelace, called Ada, came first"
    assert Mask({"a": "[[b]]", "b": "x"}).show("[[a]]") == "[[b]]"


def test_a_letter_with_its_accent_is_one_character_or_two() -> None:
    """File names and text copied from documents often use the other form (R3)."""
    one, two = unicodedata.normalize("NFC", "Zoë Müller"), unicodedata.normalize("NFD", "Zoë Müller")
    for value, text in ((one, two), (two, one)):
        assert Mask({"name": value}).hide(f"for {text}: {json.dumps(text)}") == 'for [[name]]: "[[name]]"'


@pytest.mark.parametrize("fields", [{"": "x"}, {" ": "x"}, {"phone": ""}])
def test_a_field_without_a_name_or_a_value_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="needs a name and a value"):
        Mask(fields)


async def test_without_fields_nothing_changes() -> None:
    assert (await masked(Privacy({}), Text("[[phone]]"))).parts == (Text("[[phone]]"),)
    assert await Privacy({}).system_prompt("Be kind.", ANY) == "Be kind."


secrets = st.text(st.sampled_from('ab"\\\nä🎉'), max_size=5).map(lambda text: f"A{text}Z")


@given(secrets, st.text(st.sampled_from("xy "), max_size=5))
def test_a_value_is_found_in_text_and_in_json(secret: str, around: str) -> None:
    """R3"""
    privacy = Mask({"secret": secret})
    value: JsonValue = {"a": [f"{around}{secret}{around}"]}
    for text in (
        secret,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps([json.dumps(value)]),
    ):
        hidden = privacy.hide(text)
        assert "[[secret]]" in hidden
        assert secret not in hidden.replace("[[secret]]", "")
    assert privacy.show(privacy.hide(f"{around}{secret}")) == f"{around}{secret}"


# ── what people get ───────────────────────────────────────────────────────────────────────────────


def unmasked(pieces: Sequence[str], *, call: str | None = None, as_json: bool = False) -> list[str]:
    """The pieces that come out where these go in."""
    read = Unmasked(Mask(PRIVATE), as_json=as_json)
    events: list[Any] = [TextDelta(one) if call is None else CallInputDelta(call, one) for one in pieces]
    told = [one for event in [*events, TextEnd(), None] for one in read(event)]
    return [one.text for one in told if isinstance(one, TextDelta | CallInputDelta)]


@given(
    st.lists(st.integers(0, 60)), st.sampled_from(["I called [[phone]], [[ph] [[phone]][[[address]].", "a[["])
)
def test_a_mask_is_a_value_wherever_the_stream_is_cut(cuts: list[int], text: str) -> None:
    """No chunk contains part of a mask, and nothing else is changed or lost (R3: private x stream cut)."""
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    whole = text.replace("[[phone]]", PHONE).replace("[[address]]", ADDRESS)
    told = unmasked(pieces)
    assert "".join(told) == whole
    assert not any(piece.endswith(("[[p", "[[phone]", "[[a")) for piece in told)
    arguments = json.dumps({"x": text})
    cut_up = [arguments[start : start + 3] for start in range(0, len(arguments), 3)]
    assert json.loads("".join(unmasked(cut_up, call="call_1"))) == {"x": whole}


def test_what_is_no_mask_in_the_end_is_told_before_what_follows() -> None:
    """R3 x E1: also where the reply breaks off."""
    read = Unmasked(Mask(PRIVATE), as_json=False)
    assert read(TextDelta("see [[pho")) == [TextDelta("see ")]
    assert read(CallInputDelta("call_1", "[[")) == [TextDelta("[[pho")]
    assert read(None) == [CallInputDelta("call_1", "[[")]
    assert read(None) == []


async def test_people_get_values_in_answers_streams_titles_summaries_and_exports(tmp_path: Path) -> None:
    """R3: and the next request has masks again, in every part of the history."""
    script = [
        calls("call_number", number="[[phone]]") + says("I call [[phone]] at [[address]]."),
        says("Called [[phone]]. " + "word " * 500),
        *[says("About [[phone]]")] * 5,
    ]
    async with runtime_with(
        tmp_path, script, tools=[call_number], private=PRIVATE, titles_by_model=True, context=1000
    ) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("Call " + "please " * 100)
        streamed = [json.dumps(to_jsonable_python(event)) for event in [e async for e in turn.events()]]
        await (await chat.send("Did you?")).result()
        title = (await chat.info()).title
        exported = json.dumps(await runtime.export(chat.id)) + await runtime.export_markdown(chat.id)
        assert leaks(runtime) == []
        summaries = [part for one in await chat.messages() for part in one.parts if part.type == "summary"]
    assert title == f"About {PHONE}"
    assert summaries
    assert not [text for text in (*streamed, exported) if "[[" in text]
    assert dialled == [PHONE]


async def test_a_typed_answer_has_the_values(tmp_path: Path) -> None:
    """This includes a value that JSON must escape, both complete and while it grows (R3 x R8)."""

    class Card(BaseModel):
        number: str
        address: str

    script = [says('{"number": "[[phone]]", "address": "at [[address]]"}')]
    async with runtime_with(tmp_path, script, private=PRIVATE) as runtime:
        turn = await runtime.send("go", output_type=Card)
        result = await turn.result()
        grown = [str(value) async for value in turn.partial_outputs()]
        assert leaks(runtime) == []
    assert result.output == Card(number=PHONE, address=f"at {ADDRESS}")
    assert not [value for value in grown if "[[" in value]


async def test_a_reply_that_breaks_off_in_a_mask_keeps_what_had_arrived(tmp_path: Path) -> None:
    """R3 x T8"""
    script = [fails("gone", after="Call [[phone]], [[pho")]
    async with runtime_with(tmp_path, script, private=PRIVATE) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        with pytest.raises(ProviderError):
            await turn.result()
        assert (await chat.messages())[-1].text == f"Call {PHONE}, [[pho"
