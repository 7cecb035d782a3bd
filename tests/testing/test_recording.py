"""Recordings of providers, made from one on the loopback and played without it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import OpenAICompatible, ProviderError, Runtime, tool
from dragoman.config.sources import catalog_here
from dragoman.errors import ConfigError
from dragoman.providers.sign_in import Keys
from dragoman.testing import Recording, expect
from dragoman.testing.redact_body import redact_body, redact_known
from tests.loopback import Answer, Script, Stream, call_piece, delta, loopback, sse
from tests.runtimes import add
from tests.wire.endings.replies import chat

KEY = "sk-acme-0123456789abcdef"


@tool
def note(a: str, pin: int) -> str:
    """Write something down."""
    return "done"


async def _talk(recording: Recording, folder: Path, url: str, said: str, **options: Any) -> Any:
    acme = OpenAICompatible(url, model="x", name="acme", key=KEY)
    if recording.record:
        options["keys"] = Keys({"acme": KEY}, use_keyring=False)
    models = recording.models("acme/x", catalog=catalog_here().with_provider(acme.provider), **options)
    async with Runtime(folder / "chat.db", model=models, tools=[add, note], allow=["*"]) as runtime:
        return await (await runtime.send(said)).result()


async def _record(folder: Path, *script: Script, said: str = "add", **more: Any) -> tuple[Path, str]:
    file = folder / "recordings" / "add.jsonl"
    async with loopback(*script) as server:
        async with Recording(file, record=True, **more) as recording:
            await _talk(recording, folder / "a", server.url, said)
        assert server.keys[0] == f"Bearer {KEY}"
        return file, server.url


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()


async def test_what_was_recorded_is_played_without_the_provider(tmp_path: Path) -> None:
    """Streams and calls are played exactly. The file contains no key, and none is needed."""
    file, url = await _record(tmp_path, chat("", "tool_calls", call=True), chat("Es ist drei: 三|."))
    assert KEY not in file.read_text()
    async with Recording(file) as recording:
        result = await _talk(recording, tmp_path / "b", url, "add")
    expect(result).called("add", a=1, b=2).answered("三.")


async def test_another_request_is_told_with_the_place(tmp_path: Path) -> None:
    file, url = await _record(tmp_path, chat("Hello."), said="Hi")
    async with Recording(file) as recording:
        with pytest.raises(ProviderError) as caught:
            await _talk(recording, tmp_path / "b", url, "Good evening")
        assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("recording", None, False)
        assert 'messages[1].content ("Good evening", recorded "Hi")' in str(caught.value)
        assert f"{file}, line 1 is another request" in str(caught.value)
        assert (await _talk(recording, tmp_path / "b", url, "Hi")).text == "Hello."
        with pytest.raises(ProviderError, match="this is one more"):
            await _talk(recording, tmp_path / "b", url, "Hi")


async def test_a_difference_late_in_a_text_is_shown_where_it_is(tmp_path: Path) -> None:
    """A file name is not changed, even if it contains recorded words."""
    long = "word " * 100
    made, url = await _record(tmp_path, chat("Hello."), said=f"{long}one")
    file = made.rename(tmp_path / "recorded key.jsonl")
    async with Recording(file) as recording:
        with pytest.raises(
            ProviderError, match=r'"…[word ]{15,25}two", recorded "…[word ]{15,25}one"'
        ) as caught:
            await _talk(recording, tmp_path / "b", url, f"{long}two")
    assert str(file) in str(caught.value)


async def test_an_address_may_be_given_instead_of_a_name(tmp_path: Path) -> None:
    file = tmp_path / "recordings" / "here.jsonl"
    async with loopback(chat("Hello.")) as server:
        acme = OpenAICompatible(server.url, model="x", key=KEY)
        async with (
            Recording(file, record=True) as recording,
            Runtime(tmp_path / "a" / "chat.db", model=recording.models(acme)) as runtime,
        ):
            await (await runtime.send("Hi")).result()
        assert server.keys == [f"Bearer {KEY}"]
    assert KEY not in file.read_text()
    keyless = OpenAICompatible(acme.base_url, model="x")
    async with (
        Recording(file) as recording,
        Runtime(tmp_path / "b" / "chat.db", model=recording.models(keyless)) as runtime,
    ):
        assert (await (await runtime.send("Hi")).result()).text == "Hello."


async def test_errors_are_recorded_and_played(tmp_path: Path) -> None:
    busy = Answer(429, {"error": {"message": "busy"}}, {"Retry-After": "0"})
    file, url = await _record(tmp_path, busy, chat("Hello."), said="Hi")
    async with Recording(file) as recording:
        assert (await _talk(recording, tmp_path / "b", url, "Hi")).text == "Hello."


async def test_what_must_not_be_kept_is_taken_out(tmp_path: Path) -> None:
    """This covers request and response bodies, and the comparison."""
    file, url = await _record(tmp_path, chat("Hello, Ada|Lovelace."), said="I am Ada", redact=[r"Ada\w*"])
    assert "Ada" not in file.read_text()
    async with Recording(file, redact=[r"Ada\w*"]) as recording:
        assert (await _talk(recording, tmp_path / "b", url, "I am Ada")).text.startswith("Hello, ‹redacted›")


async def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="record=True"):
        async with Recording(tmp_path / "nothing.jsonl"):
            pass
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="not a recording"):
        async with Recording(tmp_path / "bad.jsonl"):
            pass


SECRET = "sk-live-0123456789abcdefghij"


async def test_secrets_of_a_known_shape_are_taken_out_and_the_file_still_plays(tmp_path: Path) -> None:
    """This covers requests, and streams with whole or split secrets. A call remains a call."""
    said = f"add with {SECRET} and Authorization: Bearer abcdefgh12345678"
    told = Stream(
        (
            sse(delta(role="assistant", content="")),
            *(
                sse(delta(content=piece))
                for piece in ("It is sk-live", "-0123456789", "abcdefghij, |", SECRET, "!")
            ),
            sse(call_piece("note", '{"a": "sk-li', id="c1", index=0)),
            sse(call_piece(None, f'{SECRET[5:]}", "pin": 4711}}', index=0)),
            sse(delta(finish="tool_calls")),
            b"data: [DONE]\n\n",
        )
    )
    file, url = await _record(tmp_path, told, chat(f"Noted {SECRET[:9]}|{SECRET[9:]}."), said=said)
    kept = file.read_text()
    assert not [part for part in (SECRET, "0123456789", "abcdefghij", "Bearer abc") if part in kept]
    async with Recording(file) as recording:
        result = await _talk(recording, tmp_path / "b", url, said)
    expect(result).called("note", a="‹hidden›", pin=4711).answered("Noted ‹hidden›.")
    assert "It is ‹hidden›, |‹hidden›!" in [message.text for message in result.messages]


async def test_an_error_with_a_secret_is_still_an_error(tmp_path: Path) -> None:
    wrong = Answer(429, {"error": {"message": f"slow down, {SECRET}"}}, {"Retry-After": "0"})
    file, url = await _record(tmp_path, wrong, chat("Hello."), said="Hi")
    assert SECRET not in file.read_text()
    async with Recording(file) as recording:
        assert (await _talk(recording, tmp_path / "b", url, "Hi")).text == "Hello."


@given(
    text=st.text("ab 三", max_size=8),
    rest=st.text("cd ,", max_size=8),
    cuts=st.lists(st.integers(0, 60), max_size=5),
)
def test_a_secret_is_found_however_a_stream_cuts_it(text: str, rest: str, cuts: list[int]) -> None:
    """The pieces together are the text without it, and each event is still JSON."""
    whole = f"{text} {SECRET} {rest}"
    places = sorted({0, *(min(cut, len(whole)) for cut in cuts), len(whole)})
    pieces = [whole[a:b] for a, b in pairwise(places)]
    body = "".join(f"data: {json.dumps({'delta': piece, 'index': 0})}\n\n" for piece in pieces)
    events = [json.loads(line[6:]) for line in redact_body(body, redact_known).splitlines() if line]
    assert "".join(event["delta"] for event in events) == redact_known(whole)
