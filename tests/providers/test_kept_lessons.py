"""A later process knows an option that a server refused twice, for a limited time (R9)."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.errors import ProviderError
from dragoman.messages.events import Event
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.lessons import COUNTS, DAY, KEPT, MOST, Lessons
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.http_client.client import HttpClient, Retry
from dragoman.wire.learned import Learned
from tests.loopback import Answer, Body, Loopback, Reply, loopback
from tests.providers.picky import says_no
from tests.wire.endings.replies import chat

NOW = 1_800_000_000.0
NO = says_no("Unsupported parameter: 'temperature'")


def refuses_temperature(body: Body) -> Reply:
    return NO if "temperature" in body else chat("Hello.")


async def process(
    server: Loopback, file: Path, now: float = NOW, script: Callable[[Body], Reply] = refuses_temperature
) -> list[str]:
    """A new process that asks once, with a temperature: the notices of it."""
    server.script[:] = [script]
    provider = Provider("acme", "Acme", server.url, defaults={"spills": "none", "reasoning": "apart"})
    models = Models(
        catalog=load_catalog().with_provider(provider),
        keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
        client=HttpClient(retry=Retry(attempts=1), clock=lambda: now),
        lessons_file=file,
    )
    asked = Request("acme/m", (RequestMessage("user", (Text("Hi"),)),), options={"temperature": 0.5})
    events: list[Event] = []
    async with models:
        async for batch in models("acme/m").stream(asked, "msg_1"):
            events += batch
    return [event.text for event in events if event.type == "notice"]


async def test_r9_a_refusal_that_was_heard_twice_is_not_asked_for_again(tmp_path: Path) -> None:
    """The user receives one notice that the option is left out (R9)."""
    file = tmp_path / "data" / "lessons.jsonl"
    async with loopback(NO) as server:
        for heard, asked in ((1, 2), (2, 2), (2, 1)):
            before = len(server.bodies)
            (notice,) = await process(server, file)
            assert "acme/m does not take temperature, so Dragoman leaves it out" in notice
            assert len(server.bodies) - before == asked
            assert [one.times for one in Lessons(file, clock=lambda: NOW).all()] == [heard]
        assert notice.endswith("(learned earlier)")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Unsupported" not in file.read_text()  # no words of theirs


async def test_r9_one_odd_refusal_spoils_nothing(tmp_path: Path) -> None:
    """R9: the next process asks for the same, and gets it."""
    file = tmp_path / "lessons.jsonl"
    async with loopback(NO) as server:
        await process(server, file)
        assert await process(server, file, script=lambda body: chat("Hello.")) == []
        assert "temperature" in server.bodies[-1]


async def test_r9_what_did_not_help_is_not_kept(tmp_path: Path) -> None:
    """A request that then fails for another reason proves nothing (R9)."""
    file = tmp_path / "lessons.jsonl"

    def always_refuses(body: Body) -> Reply:
        return NO if "temperature" in body else Answer(400, {"error": {"message": "no"}})

    async with loopback(NO) as server:
        with pytest.raises(ProviderError):
            await process(server, file, script=always_refuses)
    assert not file.exists()


async def test_r9_a_server_that_may_have_mended_itself_is_asked_again(tmp_path: Path) -> None:
    """Dragoman tries the option again after two weeks, and one refusal is then enough (R9)."""
    file = tmp_path / "lessons.jsonl"
    async with loopback(NO) as server:
        for _ in range(2):
            await process(server, file)
        for later, asked in ((COUNTS - DAY, 1), (COUNTS + DAY, 2), (COUNTS + 2 * DAY, 1)):
            before = len(server.bodies)
            await process(server, file, NOW + later)
            assert len(server.bodies) - before == asked


async def test_r9_a_lesson_belongs_to_an_address(tmp_path: Path) -> None:
    """R9: the same name at another server is another model."""
    file = tmp_path / "lessons.jsonl"
    async with loopback(NO) as one, loopback(NO) as other:
        for _ in range(2):
            await process(one, file)
        before = len(other.bodies)
        await process(other, file)
        assert len(other.bodies) - before == 2


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def test_what_many_write_at_once_is_all_there(tmp_path: Path) -> None:
    file = tmp_path / "lessons.jsonl"

    def hear(number: int) -> None:
        Lessons(file, clock=lambda: NOW).note(f"acme/m{number % 10}", "h", ["drop seed", "no_tools"])

    with ThreadPoolExecutor(8) as pool:
        [*pool.map(hear, range(200))]
    found = Lessons(file, clock=lambda: NOW).all()
    assert (len(found), {one.times for one in found}) == (20, {20})


def test_what_is_damaged_or_old_or_of_the_future_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "lessons.jsonl"
    lessons = Lessons(file, clock=lambda: NOW)
    lessons.note("acme/m", "h", ["no_tools"])
    good = file.read_bytes()
    line = json.loads(good)
    others = [json.dumps({**line, "at": at}) for at in (NOW - KEPT - DAY, NOW + 2 * DAY, "soon")]
    file.write_bytes(b"\xff\n[]\n{}\nnull\n" + "\n".join(others).encode() + b"\n" + good + good[:20])
    assert [(one.word, one.times) for one in lessons.all()] == [("no_tools", 1)]
    file.unlink()
    file.mkdir()
    lessons.note("acme/m", "h", ["no_tools"])  # raises nothing if the file cannot be written
    assert lessons.all() == []


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    lessons = Lessons(tmp_path / "lessons.jsonl", clock=lambda: NOW)
    lessons.note("acme/m", "h", [f"drop f{number}" for number in range(MOST + 1)])
    lessons.note("acme/new", "h", ["no_tools"])
    assert len(lessons.all()) <= MOST
    assert lessons.all()[-1].model == "acme/new"


def test_lessons_are_forgotten_by_provider_or_all(tmp_path: Path) -> None:
    lessons = Lessons(tmp_path / "lessons.jsonl", clock=lambda: NOW)
    for name in ("acme/m", "acme/n", "other/m"):
        lessons.note(name, "h", ["no_tools"])
    assert lessons.forget(["acme"]) == 2
    assert [one.model for one in lessons.all()] == ["other/m"]
    assert (lessons.forget(), lessons.all()) == (1, [])


def test_everything_that_can_be_learned_can_be_written_down_and_read_again() -> None:
    learned = Learned(
        frozenset({"temperature", "reasoning.effort"}),
        {"max_completion_tokens": "max_tokens"},
        {"image", "audio"},
        no_system=True,
        no_tools=True,
        no_schema=True,
        no_strict=True,
    )
    again = Learned()
    assert len(again.recall(learned.words)) == 9
    assert again == replace(learned, lessons=0)
    assert (
        Learned().recall(["drop messages", "drop toolConfig", "drop ", "lacks text", "rename a", "x"]) == ()
    )
