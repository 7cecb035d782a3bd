"""B2, B3 over HTTP: changes of turns to files, the approval request that shows them, and how to undo them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.builtin import files_group, shell_group
from dragoman.wire.scripted import Line, calls, says
from dragoman.workspace.diff import diff_texts
from tests.patience import eventually
from tests.server.site import Site, served

pytestmark = pytest.mark.slow

SCRIPT = [says("hello"), calls("shell", command="echo two >> a.txt"), says("done")]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    return tmp_path / "work"


async def _over(site: Site, turn: str) -> None:
    await site.runtime.turn(turn).result()


async def test_a_turn_is_shown_taken_back_and_done_again(tmp_path: Path, work: Path) -> None:
    """B3"""
    tools = [files_group(), shell_group()]
    async with served(tmp_path, SCRIPT, tools=tools, workspace=work) as site:
        id = await site.conversation()
        await _over(site, await site.say("hi", id))
        leaf = (await site.get(f"/api/conversations/{id}"))["leaf"]
        turn = await site.say("add", id)
        await _over(site, turn)

        (file,) = (await site.get(f"/api/turns/{turn}/diff"))["files"]
        assert (file["path"], file["status"], file["added"]) == ("a.txt", "modified", 1)
        assert "+two" in file["text"]
        assert (await site.get(f"/api/conversations/{id}/diff"))["files"] == [file]

        done = await site.post(f"/api/turns/{turn}/revert")
        assert done == {"paths": ["a.txt"], "notes": [], "leaf": leaf, "moved": True}
        assert (work / "a.txt").read_text() == "one\n"
        assert (await site.get(f"/api/conversations/{id}"))["leaf"] == leaf
        await site.post(f"/api/conversations/{id}/redo")
        assert (work / "a.txt").read_text() == "one\ntwo\n"


async def test_steps_and_calls_are_told_apart(tmp_path: Path, work: Path) -> None:
    """The turn has two steps, one of which makes two calls at the same time (B2)."""
    script = [
        calls("write_file", path="b.txt", text="b\n") + calls("write_file", path="c.txt", text="c\n"),
        calls("shell", command="echo two >> a.txt; rm b.txt"),
        says("done"),
    ]
    async with served(tmp_path, script, tools=[files_group(), shell_group()], workspace=work) as site:
        turn = await site.say("go")
        await _over(site, turn)
        id = (await site.get(f"/api/turns/{turn}"))["conversation"]
        said, first, second, last = (await site.get(f"/api/conversations/{id}/tree"))["messages"]

        async def changed(kind: str, one: dict[str, Any]) -> list[str]:
            found = (await site.get(f"/api/{kind}/{one['id']}/diff"))["files"]
            return [f"{file['status']} {file['path']}" for file in found]

        assert await changed("messages", said) == ["modified a.txt", "added c.txt"]
        assert await changed("messages", first) == ["added b.txt", "added c.txt"]
        assert await changed("messages", second) == ["modified a.txt", "deleted b.txt"]
        assert await changed("messages", last) == []
        assert await changed("calls", second["parts"][0]) == ["modified a.txt", "deleted b.txt"]
        assert "added b.txt" in await changed("calls", first["parts"][0])
        assert (await site.ask("GET", "/api/calls/call_none/diff")).status == 404
        for kind, one, left in (
            ("calls", second["parts"][0], {"b.txt", "c.txt"}),
            ("messages", first, set()),
        ):
            await site.post(f"/api/{kind}/{one['id']}/revert")
            assert {name for name in ("b.txt", "c.txt") if (work / name).exists()} == left
        fork = await site.post(f"/api/conversations/{id}/fork", {"message": last["id"]})
        copies = (await site.get(f"/api/conversations/{fork['id']}/tree"))["messages"]
        assert [await changed("messages", one) for one in copies] == [[], [], [], []]
        assert await changed("calls", copies[1]["parts"][0]) == []


async def test_conflicts_are_named_with_409(tmp_path: Path, work: Path) -> None:
    """B3"""
    async with served(tmp_path, SCRIPT[1:], tools=[shell_group()], workspace=work) as site:
        turn = await site.say("add")
        await _over(site, turn)
        (work / "a.txt").write_text("mine")
        refused = await site.ask("POST", f"/api/turns/{turn}/revert", {"files_only": True})
        assert refused.status == 409
        assert refused.body["conflicts"] == [{"path": "a.txt", "why": "it was changed since"}]
        assert not (await site.get(f"/api/turns/{turn}/diff"))["undone"]
        await site.post(f"/api/turns/{turn}/revert", {"files_only": True, "force": True})
        assert (work / "a.txt").read_text() == "one\n"
        assert (await site.get(f"/api/turns/{turn}/diff"))["undone"]


async def test_what_is_taken_back_twice_can_still_be_done_again(tmp_path: Path, work: Path) -> None:
    """B3: with what a person had written meanwhile."""
    async with served(tmp_path, SCRIPT[1:], tools=[shell_group()], workspace=work) as site:
        turn = await site.say("add")
        await _over(site, turn)
        (work / "a.txt").write_text("mine")
        forced = {"files_only": True, "force": True}
        for paths in (["a.txt"], []):
            assert (await site.post(f"/api/turns/{turn}/revert", forced))["paths"] == paths
        id = (await site.get(f"/api/turns/{turn}"))["conversation"]
        again = f"/api/conversations/{id}/redo"
        assert [(await site.ask("POST", again, {})).status for _ in range(2)] == [200, 422]  # no second time
        assert (work / "a.txt").read_text() == "mine"
        assert not (await site.get(f"/api/turns/{turn}/diff"))["undone"]


async def test_what_was_taken_back_before_the_conversation_is_done_again_after_it(
    tmp_path: Path, work: Path
) -> None:
    """The files are undone first, so undoing the conversation leaves them alone. Redo repeats both steps
    (B3)."""
    async with served(tmp_path, SCRIPT, tools=[files_group(), shell_group()], workspace=work) as site:
        id = await site.conversation()
        await _over(site, await site.say("hi", id))
        turn = await site.say("add", id)
        await _over(site, turn)
        await site.post(f"/api/turns/{turn}/revert", {"files_only": True})
        assert (await site.post(f"/api/turns/{turn}/revert"))["moved"]
        again = f"/api/conversations/{id}/redo"
        await site.post(again)
        assert (await site.get(f"/api/turns/{turn}/diff"))["undone"]
        assert (work / "a.txt").read_text() == "one\n"
        await site.post(again)
        assert (work / "a.txt").read_text() == "one\ntwo\n"


async def test_what_is_not_there_is_404(tmp_path: Path, work: Path) -> None:
    """For objects of other users, `test_safety.py` checks this (B3)."""
    async with served(tmp_path, SCRIPT[1:], tools=[shell_group()], workspace=work) as site:
        for path in ("turns/turn_none/diff", "conversations/conv_none/diff"):
            assert (await site.ask("GET", f"/api/{path}")).status == 404
        for path in ("turns/turn_none", "messages/msg_none", "calls/call_none"):
            assert (await site.ask("POST", f"/api/{path}/revert", {})).status == 404


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (calls("write_file", path="new.txt", text="all new\n"), "+all new"),
        (calls("apply_patch", patch="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n"), "+two"),
    ],
)
async def test_a_question_shows_what_would_be_written(
    tmp_path: Path, work: Path, call: Line, line: str
) -> None:
    """The approval request shows the change before anything is written (B2)."""
    script = [call, says("done")]
    async with served(tmp_path, script, tools=[files_group()], workspace=work, allow=()) as site:
        turn = await site.say("write")
        question = await site.question()
        assert line in question["diff"].splitlines()
        assert [path.name for path in work.iterdir()] == ["a.txt"]  # noqa: ASYNC240
        assert (work / "a.txt").read_text() == "one\n"
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
        await _over(site, turn)
        await eventually(lambda: "\n".join(p.read_text() for p in work.iterdir()).find(line[1:]) >= 0)


async def test_a_part_of_a_change_is_allowed(tmp_path: Path, work: Path) -> None:
    """The answer contains the arguments for some hunks, and the approval checks are as strict as ever (B2 ×
    P3)."""
    old = "".join(f"{number}\n" for number in range(20)).encode()
    (work / "a.txt").write_bytes(old)
    patch = diff_texts("a.txt", old, b"zero\n" + old[2:-3])
    script = [calls("apply_patch", patch=patch.text), says("done")]
    async with served(tmp_path, script, tools=[files_group()], workspace=work, allow=()) as site:
        turn = await site.say("change it")
        path = f"/api/questions/{(await site.question())['id']}"
        for hunks in ([], [{"hunk": 2}], [{"hunk": -1}], [{"hunk": "0"}], "all"):
            assert (await site.ask("POST", f"{path}/hunks", {"hunks": hunks})).status in (400, 422)
        part = await site.post(f"{path}/hunks", {"hunks": [{"hunk": 0}]})
        await site.post(f"{path}/answer", {"verdict": "allow", "arguments": part["arguments"]})
        await _over(site, turn)
        assert (work / "a.txt").read_text().split("\n")[:2] == ["zero", "1"]
        assert (work / "a.txt").read_text().endswith("18\n19\n")
        assert (await site.ask("POST", f"{path}/hunks", {"hunks": [{"hunk": 0}]})).status == 409


async def test_a_conversation_names_a_folder_and_its_fork_gets_a_copy(tmp_path: Path, work: Path) -> None:
    """Over HTTP, no client can name a folder that the server was not given (R9, B3)."""
    site_folder = tmp_path / "site"
    site_folder.mkdir()
    script = [SCRIPT[1], says("done"), SCRIPT[1], says("done")]
    async with served(
        tmp_path, script, tools=[shell_group()], workspace=work, workspaces={"site": site_folder}
    ) as site:
        assert (await site.get("/api/me"))["workspaces"] == ["site"]
        id = await site.conversation()
        for name in ("/etc", "..", "@", "sites"):
            refused = await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"workspace": name}})
            assert refused.status == 404, refused.body
        await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"workspace": "site"}})
        turn = await site.say("add", id)
        await _over(site, turn)
        assert (site_folder / "a.txt").read_text() == "two\n"
        leaf = (await site.get(f"/api/conversations/{id}"))["leaf"]
        fork = await site.post(f"/api/conversations/{id}/fork", {"message": leaf, "own_folder": True})
        await _over(site, await site.say("add", fork["id"]))
        assert (site_folder / "a.txt").read_text() == "two\n"
        (file,) = (await site.get(f"/api/conversations/{fork['id']}/diff"))["files"]
        assert "+two" in file["text"]


async def test_a_new_version_begins_with_the_files_as_they_were(tmp_path: Path, work: Path) -> None:
    """This happens on request, for a version of an answer, of a message and of a call (B2 × T10)."""
    write = calls("write_file", path="b.txt", text="b\n")
    tools = [files_group(), shell_group()]
    async with served(
        tmp_path,
        [write, says("done"), says("other"), *[write, says("done")] * 2],
        tools=tools,
        workspace=work,
    ) as site:
        turn = await site.say("go")
        await _over(site, turn)
        id = (await site.get(f"/api/turns/{turn}"))["conversation"]
        said, reply, _ = (await site.get(f"/api/conversations/{id}/tree"))["messages"]
        (call,) = reply["parts"]
        other = {"path": "b.txt", "text": "other\n"}
        for path, body in (
            (f"calls/{call['id']}/rerun", {"arguments": other}),
            (f"messages/{reply['id']}/rerun", {}),
            (f"messages/{said['id']}/edit", {"text": "again"}),
        ):
            begun = await site.post(f"/api/{path}", {**body, "revert_files": True})
            result = await site.runtime.turn(begun["turn"]).result()
            states = [one.state for message in result.messages for one in message.calls]
            assert states[-1:] == ["completed"], path
    assert (work / "b.txt").read_text() == "b\n"
