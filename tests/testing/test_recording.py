"""Recordings of providers, made from one on the loopback and played without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import OpenAICompatible, ProviderError, Runtime
from dragoman.config.catalog import catalog_here
from dragoman.errors import ConfigError
from dragoman.providers.keys import Keys
from dragoman.testing import Recording, expect
from tests.loopback import Answer, Script, loopback
from tests.runtimes import add
from tests.wire.endings.replies import chat

KEY = "sk-acme-0123456789abcdef"


async def _talk(recording: Recording, folder: Path, url: str, said: str, **options: Any) -> Any:
    acme = OpenAICompatible(url, model="x", name="acme", key=KEY)
    if recording.record:
        options["keys"] = Keys({"acme": KEY}, use_keyring=False)
    models = recording.models("acme/x", catalog=catalog_here().with_provider(acme.provider), **options)
    async with Runtime(folder / "chat.db", model=models, tools=[add], allow=["*"]) as runtime:
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
    """Streams and calls, letter by letter; no key is in the file, and none is needed."""
    file, url = await _record(tmp_path, chat("", "tool_calls", call=True), chat("Es ist drei: 三|."))
    assert KEY not in file.read_text()
    async with Recording(file) as recording:
        result = await _talk(recording, tmp_path / "b", url, "add")
    expect(result).called("add", a=1, b=2).answered("三.")


async def test_another_request_is_told_with_the_place(tmp_path: Path) -> None:
    file, url = await _record(tmp_path, chat("Hello."), said="Hi")
    async with Recording(file) as recording:
        with pytest.raises(ProviderError, match=r"line 1 is another request: it differs in messages\[1\]"):
            await _talk(recording, tmp_path / "b", url, "Good evening")
        assert (await _talk(recording, tmp_path / "b", url, "Hi")).text == "Hello."
        with pytest.raises(ProviderError, match="this is one more"):
            await _talk(recording, tmp_path / "b", url, "Hi")


async def test_errors_are_recorded_and_played(tmp_path: Path) -> None:
    busy = Answer(429, {"error": {"message": "busy"}}, {"Retry-After": "0"})
    file, url = await _record(tmp_path, busy, chat("Hello."), said="Hi")
    async with Recording(file) as recording:
        assert (await _talk(recording, tmp_path / "b", url, "Hi")).text == "Hello."


async def test_what_must_not_be_kept_is_taken_out(tmp_path: Path) -> None:
    """In bodies of both ways, and what is compared, too."""
    file, url = await _record(tmp_path, chat("Hello, Ada|Lovelace."), said="I am Ada", redact=[r"Ada\w*"])
    assert "Ada" not in file.read_text()
    async with Recording(file, redact=[r"Ada\w*"]) as recording:
        assert (await _talk(recording, tmp_path / "b", url, "I am Ada")).text.startswith("Hello, ‹redacted›")


async def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="record=True"):
        async with Recording(tmp_path / "nothing.jsonl"):
            pass
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="no recording"):
        async with Recording(tmp_path / "bad.jsonl"):
            pass
