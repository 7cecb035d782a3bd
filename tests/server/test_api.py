"""Everything a person can do, over HTTP (U5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Runtime, ToolContext, tool
from dragoman.conversation.sharing import Member
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.server.auth import key_hash
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Found
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.tool import client_tool
from dragoman.wire.scripted import calls, says
from tests.loopback import loopback
from tests.runtimes import with_tables
from tests.server.site import Site, served, serving

pytestmark = pytest.mark.slow


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(review="always")
def secret() -> str:
    """Read the secret."""
    return "swordfish"


@tool(cancellable=True)
async def nap(context: ToolContext) -> str:
    """Sleep for ever."""
    await asyncio.Event().wait()
    return ""


@tool
def much() -> str:
    """Return much."""
    return "x" * 300_000


class Where(BaseModel):
    place: str


async def end_of(site: Site, turn: str) -> dict[str, object]:
    received = await site.until(f"/api/turns/{turn}/events", "turn.end")
    data: dict[str, object] = received[-1].data
    return data


async def test_a_conversation_is_made_renamed_listed_searched_and_deleted(tmp_path: Path) -> None:
    """S1, U5"""
    async with served(tmp_path, [says("The raven is black.")]) as site:
        id = await site.conversation()
        await end_of(site, await site.say(f"{'It is about birds. ' * 9}What colour is a raven?", id))
        renamed = await site.ask("PATCH", f"/api/conversations/{id}", {"title": " Birds\n"})
        assert (renamed.status, renamed.body["title"]) == (200, "Birds")
        other = await site.conversation()
        listed = await site.get("/api/conversations")
        assert {line["id"] for line in listed["items"]} == {id, other}
        found = await site.get("/api/conversations?search=raven")
        assert [line["id"] for line in found["items"]] == [id]
        assert "\x02" in found["items"][0]["snippet"]
        (line,) = (await site.get("/api/conversations?search=colour"))["items"]  # seen also in a narrow list
        assert line["snippet"] == "…birds. What \x02colour\x03 is a raven?"
        assert (await site.ask("DELETE", f"/api/conversations/{id}")).status == 204
        assert (await site.ask("GET", f"/api/conversations/{id}")).status == 404


class DeletedMeanwhile(SqliteStore):
    """A store in which another user deletes the found conversations before the lookup."""

    async def search(self, query: str, **options: Any) -> list[Found]:
        found = await super().search(query, **options)
        for id in {one.conversation for one in found}:
            await self.delete_conversation(id)
        return found


async def test_what_is_deleted_while_it_is_searched_for_is_left_out(tmp_path: Path) -> None:
    """S1: it was a 404 for the whole search."""
    store = DeletedMeanwhile(tmp_path / "chat.db")
    async with served(tmp_path, [says("The raven is black.")], store=store) as site:
        await end_of(site, await site.say("What colour is a raven?", await site.conversation()))
        assert (await site.get("/api/conversations?search=raven"))["items"] == []


async def test_the_list_comes_in_pages(tmp_path: Path) -> None:
    """S1"""
    async with served(tmp_path, [says("x")]) as site:
        made = {await site.conversation() for _ in range(5)}
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await site.get(f"/api/conversations?limit=2&before={cursor}")
            seen += [line["id"] for line in page["items"]]
            cursor = page["next"]
        assert (len(seen), set(seen)) == (5, made)
        for wrong in ("x", "bm9uZSBjb252"):  # "none conv"
            answer = await site.ask("GET", f"/api/conversations?before={wrong}")
            assert (answer.status, "`next`" in answer.body["detail"]) == (422, True)


async def test_what_is_found_comes_in_pages(tmp_path: Path) -> None:
    """S1: of conversations, however often one of them has the words."""
    async with served(tmp_path, lambda _: says("The raven is black.")) as site:
        made = [await site.conversation() for _ in range(4)]
        for id in [*made, *[made[-1]] * 8]:
            await end_of(site, await site.say("What colour is a raven?", id))
        first = await site.get("/api/conversations?search=raven&limit=2")
        second = await site.get(f"/api/conversations?search=raven&limit=2&before={first['next']}")
        assert [len(page["items"]) for page in (first, second)] == [2, 2]
        assert {line["id"] for line in (*first["items"], *second["items"])} == set(made)
        assert second["next"] is None
        for wrong in ("x", "-1", "1e9", "9" * 9 + "-conv_1"):
            answer = await site.ask("GET", f"/api/conversations?search=raven&before={wrong}")
            assert (answer.status, "`next`" in answer.body["detail"]) == (422, True)


@pytest.mark.parametrize(("deleted", "made"), [([0], 0), ([1], 0), ([0, 1], 0), ([], 1), ([], 5), ([1], 5)])
async def test_what_is_found_is_on_a_page_whatever_comes_and_goes_between_two(
    tmp_path: Path, deleted: list[int], made: int
) -> None:
    """A conversation that moves up onto a page that was already read is not lost (S1)."""
    async with served(tmp_path, [says("x")]) as site:

        async def make(count: int) -> None:
            for _ in range(count):
                await site.ask("POST", "/api/conversations", {"title": "ravens"})

        await make(5)
        whole = [line["id"] for line in (await site.get("/api/conversations?search=raven"))["items"]]
        page = await site.get("/api/conversations?search=raven&limit=2")
        for one in deleted:
            await site.ask("DELETE", f"/api/conversations/{whole[one]}")
        await make(made)
        seen: list[str] = []
        while page["next"] is not None:
            page = await site.get(f"/api/conversations?search=raven&limit=2&before={page['next']}")
            seen += [line["id"] for line in page["items"]]
        assert [id for id in seen if id in whole[2:]] == whole[2:]


async def test_a_turn_is_asked_about_answered_and_ends(tmp_path: Path) -> None:
    """P3, P6: edited arguments run, and a second answer comes too late."""
    script = [calls("add", a=1, b=2), says("done")]
    async with served(tmp_path, script, tools=[add], allow=[]) as site:
        turn = await site.say("go")
        question = await site.question()
        bad = await site.ask(
            "POST", f"/api/questions/{question['id']}/answer", {"verdict": "allow", "arguments": {"a": "x"}}
        )
        assert (bad.status, "do not fit" in bad.body["detail"]) == (422, True)
        answer = {"verdict": "allow", "arguments": {"a": 40, "b": 2}, "hash": question["hash"]}
        await site.post(f"/api/questions/{question['id']}/answer", answer)
        again = await site.ask("POST", f"/api/questions/{question['id']}/answer", {"verdict": "reject"})
        assert again.status == 409
        assert (await end_of(site, turn))["state"] == "completed"
        call = await site.get(f"/api/calls/{question['call']}")
        assert (call["result"]["text"], call["original"]) == ("42", {"a": 1, "b": 2})


async def test_what_is_always_allowed_is_listed_and_can_be_revoked(tmp_path: Path) -> None:
    """P3"""
    async with served(tmp_path, [calls("add", a=1, b=2), says("done")], tools=[add], allow=[]) as site:
        turn = await site.say("go")
        question = await site.question()
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow", "scope": "always"})
        await end_of(site, turn)
        (grant,) = (await site.get("/api/grants"))["items"]
        assert grant["words"] == "allow add for everything"
        assert (await site.ask("DELETE", f"/api/grants/{grant['id']}")).status == 204
        assert (await site.get("/api/grants"))["items"] == []
        assert (await site.ask("DELETE", f"/api/grants/{grant['id']}")).status == 404


async def test_a_withheld_result_is_nowhere(tmp_path: Path) -> None:
    """P5, C9"""
    async with served(tmp_path, [calls("secret"), says("done")], tools=[secret]) as site:
        turn = await site.say("go")
        question = await site.question()
        assert question["result"]["text"] == "swordfish"
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "withhold"})
        await end_of(site, turn)
        assert (await site.ask("GET", f"/api/calls/{question['call']}/output")).status == 404
        tree = await site.get(f"/api/conversations/{question['conversation']}/tree")
        assert "swordfish" not in str(tree)


async def test_a_turn_is_cancelled_and_steered(tmp_path: Path) -> None:
    """T6, T13"""
    async with served(tmp_path, [calls("nap"), says("done")], tools=[nap]) as site:
        id = await site.conversation()
        turn = await site.say("go", id)
        busy = await site.ask("POST", f"/api/conversations/{id}/turns", {"text": "more"})
        assert busy.status == 409
        await site.post(f"/api/turns/{turn}/steer", {"text": "hurry"})
        assert await site.post(f"/api/turns/{turn}/cancel") == {"cancelled": True}
        assert (await end_of(site, turn))["state"] == "cancelled"
        late = await site.ask("POST", f"/api/turns/{turn}/steer", {"text": "hurry"})
        assert late.status == 409
        assert await site.post(f"/api/turns/{turn}/cancel") == {"cancelled": False}


async def test_answers_have_versions_and_can_be_forked(tmp_path: Path) -> None:
    """T10, S1"""
    async with served(tmp_path, [says("one"), says("two"), says("three")]) as site:
        id = await site.conversation()
        await end_of(site, await site.say("hi", id))
        (said, answer) = (await site.get(f"/api/conversations/{id}/tree"))["messages"]
        await end_of(site, (await site.post(f"/api/messages/{answer['id']}/rerun"))["turn"])
        await end_of(site, (await site.post(f"/api/messages/{said['id']}/edit", {"text": "hello"}))["turn"])
        tree = await site.get(f"/api/conversations/{id}/tree")
        assert [m["parts"][0]["text"] for m in tree["messages"]] == ["hi", "one", "two", "hello", "three"]
        moved = await site.ask("PATCH", f"/api/conversations/{id}", {"leaf": said["id"]})
        assert moved.body["leaf"] == tree["messages"][2]["id"]  # the newest of that branch
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        await site.runtime.store.set_member(id, Member("ada", "takes_part"))
        ada, leaf = replace(site, key="key of ada"), {"leaf": tree["messages"][2]["id"]}
        for change, status in ((leaf, 200), ({**leaf, "title": "mine"}, 403)):
            assert (await ada.ask("PATCH", f"/api/conversations/{id}", change)).status == status
        forked = await site.post(f"/api/conversations/{id}/fork", {"message": answer["id"]})
        copy = await site.get(f"/api/conversations/{forked['id']}/tree")
        assert [m["parts"][0]["text"] for m in copy["messages"]] == ["hi", "one"]


async def test_an_export_can_be_imported(tmp_path: Path) -> None:
    """S1"""
    async with served(tmp_path, [says("one")]) as site:
        id = await site.conversation()
        await end_of(site, await site.say("hi", id))
        data = await site.get(f"/api/conversations/{id}/export")
        copy = await site.post("/api/import", data)
        assert copy["id"] != id
        text = await site.get(f"/api/conversations/{id}/export?format=markdown")
        assert b"one" in text
        for damaged in (b'{"format": "x"}', b"{", b"[]"):
            headers = {"authorization": f"Bearer {site.key}", "content-type": "application/json"}
            async with site.http.post(f"{site.url}/api/import", data=damaged, headers=headers) as answer:
                assert answer.status == 422


async def test_a_client_runs_a_tool_and_delivers_its_result(tmp_path: Path) -> None:
    """C6, U4"""
    look = client_tool("look", "Look around.", Where)
    async with served(tmp_path, [calls("look", place="here"), says("done")], tools=[look]) as site:
        turn = await site.say("go")
        received = await site.until(f"/api/turns/{turn}/events", "call.start")
        assert received[-1].data["client"] is True
        call = received[-1].data["call"]
        assert (await site.ask("POST", f"/api/calls/{call}/result", {"failed": True})).status == 422
        await site.post(f"/api/calls/{call}/result", {"value": {"seen": ["a tree"]}})
        late = await site.ask("POST", f"/api/calls/{call}/result", {"text": "again"})
        assert late.status == 409
        await end_of(site, turn)
        assert (await site.get(f"/api/calls/{call}"))["result"]["value"] == {"seen": ["a tree"]}


async def test_the_whole_output_of_a_call_can_be_read(tmp_path: Path) -> None:
    """C9: the model got less of it."""
    async with served(tmp_path, [calls("much"), says("done")], tools=[much]) as site:
        turn = await site.say("go")
        await end_of(site, turn)
        (call,) = (await site.get(f"/api/turns/{turn}"))["calls"]
        assert await site.get(f"/api/calls/{call['id']}/output") == b"x" * 300_000
        assert len((await site.get(f"/api/calls/{call['id']}"))["result"]["text"]) < 300_000


async def test_files_go_up_and_come_down_in_pieces(tmp_path: Path) -> None:
    """S4"""
    async with served(tmp_path, [says("nice")]) as site:
        raw = {"content-type": "application/octet-stream"}
        file = await site.post("/api/files?name=a.png&type=image/png", b"0123456789", headers=raw)
        assert (file["size"], file["media_type"], file["name"]) == (10, "image/png", "a.png")
        whole = await site.ask("GET", f"/api/files/{file['blob']}?type=image/png")
        assert (whole.body, whole.headers["content-type"]) == (b"0123456789", "image/png")
        piece = await site.ask("GET", f"/api/files/{file['blob']}", headers={"range": "bytes=2-4"})
        assert (piece.status, piece.body, piece.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
        tail = await site.ask("GET", f"/api/files/{file['blob']}", headers={"range": "bytes=-3"})
        assert (tail.body, tail.headers["content-range"]) == (b"789", "bytes 7-9/10")
        longer = await site.ask("GET", f"/api/files/{file['blob']}", headers={"range": "bytes=-99"})
        assert (longer.body, longer.headers["content-range"]) == (b"0123456789", "bytes 0-9/10")
        rest = await site.ask("GET", f"/api/files/{file['blob']}", headers={"range": "bytes=8-99"})
        assert (rest.body, rest.headers["content-range"]) == (b"89", "bytes 8-9/10")
        beyond = await site.ask("GET", f"/api/files/{file['blob']}", headers={"range": "bytes=99-"})
        assert beyond.status == 416
        empty = await site.ask("POST", "/api/files?name=b.txt", b"", headers=raw)
        assert "The file 'b.txt' is empty." in str(empty.body)
        page = await site.ask("GET", f"/api/files/{file['blob']}?type=text/html")
        assert page.headers["content-type"] == "application/octet-stream"
        assert page.headers["content-disposition"].startswith("attachment")
        id = await site.conversation()
        parts = [{"type": "text", "text": "look"}, file]
        await end_of(site, (await site.post(f"/api/conversations/{id}/turns", {"parts": parts}))["turn"])


async def test_tools_are_listed_and_switched(tmp_path: Path) -> None:
    """C11"""
    async with served(tmp_path, [says("x")], tools=[add, BUILTIN["basics"]()]) as site:
        id = await site.conversation()
        await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"tools": {"basics": False}}})
        groups = {g["name"]: g["on"] for g in (await site.get(f"/api/tools?conversation={id}"))["groups"]}
        assert groups == {"tools": True, "basics": False, "output": True, "programs": False}


async def test_tools_that_one_model_is_better_off_without_are_offered_to_the_others(tmp_path: Path) -> None:
    """The rule also holds for a conversation with a different model, and a user can turn the tools
    on (C11)."""
    async with loopback(*[says("x")] * 3) as provider:
        catalog = load_catalog().with_provider(Provider("acme", "Acme", provider.url, local=True))
        models = Models("acme/small", catalog=catalog, switches={"acme/small": {"basics": False}})
        runtime = Runtime(with_tables(tmp_path / "chat.db"), model=models, tools=[add, BUILTIN["basics"]()])
        async with models, runtime, serving(tmp_path, runtime) as site:
            for settings, on in (
                ({}, False),
                ({"model": "acme/large"}, True),
                ({"tools": {"basics": True}}, True),
            ):
                id = (await site.post("/api/conversations", {"settings": settings}))["id"]
                await end_of(site, await site.say("hi", id))
                groups = (await site.get(f"/api/tools?conversation={id}"))["groups"]
                assert {group["name"]: group["on"] for group in groups}["basics"] is on
                offered = [tool["function"]["name"] for tool in provider.bodies[-1]["tools"]]
                assert ("calculator" in offered, "add" in offered) == (on, True)


async def test_usage_prompts_and_models_are_told(tmp_path: Path) -> None:
    """T11"""
    async with served(tmp_path, [says("x")]) as site:
        await end_of(site, await site.say("hi"))
        spent = await site.get("/api/usage")
        assert [line["messages"] for line in spent["models"]] == [1]
        put = await site.ask("PUT", "/api/prompts/review", {"text": "Review this: "})
        assert put.status == 200
        assert (await site.get("/api/prompts"))["items"] == [
            {"name": "review", "text": "Review this: ", "shared": False}
        ]
        assert (await site.ask("DELETE", "/api/prompts/review")).status == 204
        assert (await site.get("/api/models"))["default"] == "scripted/model"
        assert (await site.get("/api/me"))["user"] == "local"
        embedded = await site.ask("GET", "/api/setup/providers")
        assert (embedded.status, embedded.body["code"]) == (422, "setup.embedded")


async def test_a_blank_message_and_unknown_settings_are_refused_in_words(tmp_path: Path) -> None:
    """T4"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        blank = await site.ask("POST", f"/api/conversations/{id}/turns", {"text": "  "})
        assert (blank.status, "blank" in blank.body["detail"]) == (422, True)
        odd = await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"self": 1}})
        assert (odd.status, "no setting" in odd.body["detail"]) == (422, True)
        assert blank.headers["content-type"] == "application/problem+json"


async def test_a_queued_turn_can_be_seen_and_called_off(tmp_path: Path) -> None:
    """T4"""
    async with served(tmp_path, [calls("nap"), says("done")], tools=[nap]) as site:
        id = await site.conversation()
        first = await site.say("go", id)
        second = await site.say("later", id, queue=True)
        assert (await site.get(f"/api/turns/{second}"))["state"] == "queued"
        tree = await site.get(f"/api/conversations/{id}/tree")
        assert [one["id"] for one in tree["queued"]] == [second]
        assert await site.post(f"/api/turns/{second}/cancel") == {"cancelled": True}
        assert (await site.get(f"/api/conversations/{id}/tree"))["queued"] == []
        await site.post(f"/api/turns/{first}/cancel")


async def test_settings_changed_at_the_same_time_all_count(tmp_path: Path) -> None:
    """No change is lost between the read and the write (R1)."""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        for _ in range(10):
            await asyncio.gather(
                *(
                    site.ask("PATCH", f"/api/conversations/{id}", {"settings": change})
                    for change in ({"mode": "ask"}, {"system": "x"}, {"options": {"seed": 1}})
                )
            )
            settings = (await site.get(f"/api/conversations/{id}"))["settings"]
            assert set(settings) == {"mode", "system", "options"}
            gone = {"mode": None, "system": None, "options": None}
            await site.ask("PATCH", f"/api/conversations/{id}", {"settings": gone})


async def test_a_review_is_edited_with_a_text_only(tmp_path: Path) -> None:
    """An edit that cannot be shown in place of the original must not reveal the original (P5)."""
    async with served(tmp_path, [calls("secret"), says("done")], tools=[secret]) as site:
        await site.say("go")
        question = await site.question()
        answer = {"verdict": "release", "value": {"text": "redacted"}}
        bad = await site.ask("POST", f"/api/questions/{question['id']}/answer", answer)
        assert bad.status == 422


async def test_a_result_of_a_call_that_runs_here_is_not_taken(tmp_path: Path) -> None:
    """C6"""
    async with served(tmp_path, [calls("nap"), says("done")], tools=[nap]) as site:
        turn = await site.say("go")
        received = await site.until(f"/api/turns/{turn}/events", "call.start")
        call = received[-1].data["call"]
        assert (await site.ask("POST", f"/api/calls/{call}/result", {"text": "x"})).status == 422
        await site.post(f"/api/turns/{turn}/cancel")


async def test_an_unknown_agent_or_model_is_not_set(tmp_path: Path) -> None:
    """R1"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        for setting in ({"agent": "cook"}, {"model": "no/such"}):
            assert (await site.ask("PATCH", f"/api/conversations/{id}", {"settings": setting})).status == 422


async def test_an_answer_is_made_anew_from_one_of_its_calls_on(tmp_path: Path) -> None:
    """The new answer is a version next to the old one, and an invalid request is refused (T10)."""
    script = [calls("add", a=1, b=2), says("3"), says("30"), says("5")]
    async with served(tmp_path, script, tools=[add], allow=["add"]) as site:
        id = await site.conversation()
        await end_of(site, await site.say("go", id))
        (made,) = [
            part
            for message in (await site.get(f"/api/conversations/{id}/tree"))["messages"]
            for part in message["parts"]
            if part["type"] == "call"
        ]
        await end_of(site, (await site.post(f"/api/calls/{made['id']}/rerun", {"result": "30"}))["turn"])
        again = await site.post(f"/api/calls/{made['id']}/rerun", {"arguments": {"a": 2, "b": 3}})
        await end_of(site, again["turn"])
        tree = await site.get(f"/api/conversations/{id}/tree")
        results = [
            part["result"]["text"] for m in tree["messages"] for part in m["parts"] if part["type"] == "call"
        ]
        assert results == ["3", "30", "5"]
        wrong = await site.ask("POST", f"/api/calls/{made['id']}/rerun", {"arguments": {"a": "two"}})
        assert wrong.status == 422
        assert "do not fit" in wrong.body["detail"]
        assert (await site.ask("POST", "/api/calls/call_none/rerun", {})).status == 404
