"""Check that store outages, unreadable rows and turns that cannot resume are problems with a remedy."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.server.auth import key_hash
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, runtime_with
from tests.server.site import Site, database, served, serving
from tests.store.test_faults import overwrite_table

pytestmark = pytest.mark.slow


@tool(review="always")
def secret() -> str:
    """Read the secret."""
    return "swordfish"


async def finished(site: Site, text: str = "What colour is a raven?") -> str:
    """The id of a conversation in which a turn is over."""
    id = await site.conversation()
    await site.until(f"/api/turns/{await site.say(text, id)}/events", "turn.end")
    return id


def damage(folder: Path, conversation: str) -> None:
    with database(folder) as db:
        db.execute("UPDATE conversations SET settings = '{' WHERE id = ?", (conversation,))


async def test_a_store_that_is_locked_is_unavailable_for_now(tmp_path: Path) -> None:
    """The server answers 503 with what to do and when to retry, and it recovers with the store (S2)."""
    store = SqliteStore(tmp_path / "chat.db", busy_timeout=0.1)
    async with (
        Runtime(store, model=ScriptedModel([says("x")])) as runtime,
        serving(tmp_path, runtime) as site,
    ):
        id = await site.conversation()
        with database(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            for method, path, body in (
                ("POST", "/api/conversations", {}),
                ("PATCH", f"/api/conversations/{id}", {"title": "x"}),
                ("POST", f"/api/conversations/{id}/turns", {"text": "hi"}),
                ("DELETE", f"/api/conversations/{id}", None),
            ):
                refused = await site.ask(method, path, body)
                assert refused.status == 503, (method, path, refused.body)
                assert refused.headers["retry-after"] == "1"
                assert "another program is writing to it" in refused.body["detail"]
                assert "try again" in refused.body["hint"]
                assert str(tmp_path) not in json.dumps(refused.body)
            assert (await site.get("/api/conversations"))["items"][0]["id"] == id
        await site.say("hi", id)


async def test_a_damaged_file_is_no_bug_of_the_server_also_where_it_finds_out_who_asks(
    tmp_path: Path,
) -> None:
    """The fault appears before any route is reached (S2, U2)."""
    async with served(tmp_path, [says("x")]) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
    overwrite_table(tmp_path / "chat.db", "sqlite_autoindex_people_2")
    async with served(tmp_path, [says("x")]) as site:
        refused = await site.ask("GET", "/api/me", headers={"authorization": "Bearer key of ada"})
        assert (refused.status, refused.headers["retry-after"]) == (503, "30")
        assert "the file is damaged" in refused.body["detail"]
        assert "restore a backup" in refused.body["hint"]
        assert (await site.get("/api/me"))["user"] == "local"


async def test_strangers_learn_that_a_server_cannot_serve_and_not_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason can name paths, hosts and people, so it is only in the log (N4, U3)."""
    async with served(tmp_path, []) as site:
        await site.conversation()
    overwrite_table(tmp_path / "chat.db", "conversations")
    async with served(tmp_path, []) as site:

        async def ask() -> tuple[int, Any]:
            async with aiohttp.request("GET", f"{site.url}/readyz") as answer:
                return answer.status, await answer.json()

        asked = await asyncio.gather(*(ask() for _ in range(5)))
        assert asked == [(503, {"status": "the store cannot be read"})] * 5
        assert len(caplog.records) == 1  # the store is read once a second, however often clients ask
        for path, status in (("/readyz", 503), ("/healthz", 200)):
            async with aiohttp.request("HEAD", site.url + path) as answer:
                assert (answer.status, await answer.read()) == (status, b"")
        async with aiohttp.request("GET", f"{site.url}/healthz") as answer:
            assert answer.status == 200
    assert any(re.match("not ready: .*damaged", record.getMessage()) for record in caplog.records)


async def test_a_conversation_that_cannot_be_read_is_listed_taken_out_and_deleted(tmp_path: Path) -> None:
    """The owner can list, export and delete it. Every other request is refused with what to do (S1)."""
    async with served(tmp_path, [says("The raven is black.")]) as site:
        fine, id = await site.conversation(), await finished(site)
        damage(tmp_path, id)
        listed = {one["id"]: one["title"] for one in (await site.get("/api/conversations"))["items"]}
        assert set(listed) == {fine, id}
        assert "(cannot be read)" in listed[id]
        found = (await site.get("/api/conversations?search=raven"))["items"]
        assert [(one["id"], "(cannot be read)" in one["title"]) for one in found] == [(id, True)]
        for method, path, body in (
            ("GET", f"/api/conversations/{id}", None),
            ("GET", f"/api/conversations/{id}/tree", None),
            ("GET", f"/api/conversations/{id}/export", None),
            ("GET", f"/api/conversations/{id}/events", None),
            ("GET", f"/api/events?conversation={id}", None),
            ("PATCH", f"/api/conversations/{id}", {"settings": {"mode": "ask"}}),
            ("POST", f"/api/conversations/{id}/turns", {"text": "hi"}),
        ):
            refused = await site.ask(method, path, body)
            assert refused.status == 422, (method, path, refused.status)
            assert "Dragoman cannot read" in refused.body["detail"]
            assert refused.body["ways"] == {
                "export": f"/api/conversations/{id}/raw",
                "delete": f"/api/conversations/{id}",
            }
        raw = await site.get(f"/api/conversations/{id}/raw")
        assert raw["tables"]["conversations"][0]["settings"] == "{"
        assert "The raven is black." in json.dumps(raw)
        assert (await site.ask("DELETE", f"/api/conversations/{id}")).status == 204
        assert [one["id"] for one in (await site.get("/api/conversations"))["items"]] == [fine]


async def test_what_cannot_be_read_is_still_nobody_elses(tmp_path: Path) -> None:
    """U2: to others it is not there, damaged or not."""
    async with served(tmp_path, [says("x")]) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, key="key of ada")
        id = await finished(ada)
        damage(tmp_path, id)
        for method, path in (
            ("GET", f"/api/conversations/{id}"),
            ("GET", f"/api/conversations/{id}/raw"),
            ("GET", f"/api/conversations/{id}/tree"),
            ("GET", f"/api/conversations/{id}/queue"),
            ("DELETE", f"/api/conversations/{id}"),
        ):
            assert (await site.ask(method, path)).status == 404, (method, path)
        assert (await ada.ask("GET", f"/api/conversations/{id}/raw")).status == 200


async def test_a_message_or_question_that_cannot_be_read_is_nobody_elses(tmp_path: Path) -> None:
    """U2 × S1: 422 said that there is one."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add], allow=()) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, key="key of ada")
        await ada.say("go")
        question = await ada.question()
        with database(tmp_path) as db:
            db.execute("UPDATE messages SET body = '{'")
            db.execute("UPDATE questions SET body = '{'")
            ((message,),) = db.execute("SELECT id FROM messages WHERE role = 'user'").fetchall()
        answer = {"verdict": "reject"}
        edit = f"/api/messages/{message}/edit"
        assert (await site.ask("POST", edit, {"text": "other"})).status == 404
        for method, path, body in (
            ("GET", f"/api/questions/{question['id']}", None),
            ("POST", f"/api/questions/{question['id']}/answer", answer),
        ):
            assert (await ada.ask(method, path, body)).status == 422, (method, path)
            assert (await site.ask(method, path, body)).status == 404, (method, path)


async def test_a_message_that_cannot_be_read_has_its_place_in_the_tree(tmp_path: Path) -> None:
    """S1"""
    async with served(tmp_path, [says("x")]) as site:
        id = await finished(site)
        with database(tmp_path) as db:
            db.execute("UPDATE messages SET body = '{' WHERE role = 'assistant'")
        messages = (await site.get(f"/api/conversations/{id}/tree"))["messages"]
        assert [part["type"] for message in messages for part in message["parts"]] == ["text", "error"]


async def test_a_turn_whose_facts_cannot_be_read_is_shown_and_goes_with_its_conversation(
    tmp_path: Path,
) -> None:
    """S3"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        turn = await site.say("hi", id)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        for body in ("{", '{"type": "of the future"}'):
            with database(tmp_path) as db:
                db.execute("UPDATE facts SET body = ? WHERE seq = 2", (body,))
            assert await site.state(turn) == "completed"
            refused = await site.ask("GET", f"/api/turns/{turn}/facts")
            assert (refused.status, "Dragoman cannot read" in refused.body["detail"]) == (422, True)
        assert (await site.ask("DELETE", f"/api/conversations/{id}")).status == 204


async def test_a_withheld_result_is_nowhere_in_its_question(tmp_path: Path) -> None:
    """The person who withheld the result has seen it. No other reader sees it (P5, C9)."""
    async with served(tmp_path, [calls("secret"), says("done")], tools=[secret]) as site:
        turn = await site.say("go")
        question = await site.question()
        path = f"/api/questions/{question['id']}"
        assert (await site.get(path))["result"]["text"] == "swordfish"
        answered = await site.post(f"{path}/answer", {"verdict": "withhold"})
        assert "swordfish" not in json.dumps(answered)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        for where in (
            path,
            f"/api/calls/{question['call']}",
            f"/api/turns/{turn}/facts",
            f"/api/conversations/{question['conversation']}/tree",
            f"/api/conversations/{question['conversation']}/export",
            f"/api/conversations/{question['conversation']}/raw",
        ):
            assert "swordfish" not in json.dumps(await site.get(where)), where


# ── turns that nobody runs ────────────────────────────────────────────────────────────────────────


async def interrupted(folder: Path) -> tuple[str, str]:
    """A conversation and a turn in it, whose process ended before the turn did."""
    async with served(folder, [says("x"), says("never said", waits=60)]) as site:
        id = await finished(site)
        turn = await site.say("go on", id)
        await site.until(f"/api/turns/{turn}/events", "step.start")
    return id, turn


async def test_a_turn_that_cannot_go_on_here_is_interrupted_and_can_be_closed(tmp_path: Path) -> None:
    """If its model is missing here, the turn is shown as interrupted, no other model runs it, and it can be
    cancelled (T14)."""
    id, turn = await interrupted(tmp_path)
    other = ScriptedModel([says("from another model")], name="other/model")
    async with Runtime(tmp_path / "chat.db", model=other) as runtime, serving(tmp_path, runtime) as site:
        assert await site.state(turn) == "interrupted"
        (shown,) = (await site.get(f"/api/conversations/{id}/tree"))["turns"]
        assert (shown["id"], shown["state"], shown["live"]) == (turn, "interrupted", True)
        for method, path in (("POST", f"/api/turns/{turn}/continue"), ("GET", f"/api/turns/{turn}/events")):
            refused = await site.ask(method, path)
            assert refused.status == 409
            assert "scripted/model" in refused.body["detail"]
            assert "You can cancel it here" in refused.body["detail"]
        assert await site.post(f"/api/turns/{turn}/cancel") == {"cancelled": True}
        assert await site.state(turn) == "cancelled"
        assert (await site.get(f"/api/conversations/{id}/tree"))["turns"] == []
        again = await site.ask("POST", f"/api/turns/{turn}/continue")
        assert (again.status, "is over" in again.body["detail"]) == (409, True)
        assert other.requests == []


async def test_a_conversation_with_a_turn_that_cannot_go_on_is_deleted(tmp_path: Path) -> None:
    """T14"""
    id, _ = await interrupted(tmp_path)
    other = ScriptedModel([says("x")], name="other/model")
    async with Runtime(tmp_path / "chat.db", model=other) as runtime, serving(tmp_path, runtime) as site:
        assert (await site.ask("DELETE", f"/api/conversations/{id}")).status == 204
        assert (await site.get("/api/conversations"))["items"] == []


async def test_a_turn_whose_process_ended_is_continued(tmp_path: Path) -> None:
    """The turn resumes immediately, without waiting for a process to notice (T14)."""
    async with served(tmp_path, [says("and here is the rest")]) as site:
        id = await site.conversation()
        async with runtime_with(tmp_path, [says("never said", waits=60)]) as other:
            turn = await (await other.conversation(id)).send("go on")
            assert await turn.reached("streaming")
            assert await site.state(turn.id) == "streaming"  # another process runs it
        info = await site.post(f"/api/turns/{turn.id}/continue")
        assert (info["id"], info["state"] == "interrupted") == (turn.id, False)
        events = await site.until(f"/api/turns/{turn.id}/events", "turn.end")
        assert events[-1].data["text"] == "and here is the rest"


async def test_a_turn_that_waits_for_a_person_needs_nobody_to_run_it(tmp_path: Path) -> None:
    """The turn waits until it is answered, also after a restart (T14, P6)."""
    script = [calls("secret"), says("done")]
    async with served(tmp_path, script, tools=[secret]) as site:
        id = await site.conversation()
        turn = await site.say("go", id)
        question = await site.question()
    async with served(tmp_path, [says("done")], tools=[secret]) as site:
        assert await site.state(turn) == "waiting"
        (shown,) = (await site.get(f"/api/conversations/{id}/tree"))["turns"]
        assert shown["state"] == "waiting"
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "release"})
        events = await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert events[-1].data["state"] == "completed"
