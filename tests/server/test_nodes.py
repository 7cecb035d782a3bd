"""Several servers on one database: every server sees and continues the work of every other (N2, N3)."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.fleet import Fleet, Node, node, worker
from tests.loopback import Body, Reply, Stream, delta, loopback, sse
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow


async def test_a_conversation_is_the_same_at_every_node(tmp_path: Path, postgres: Server) -> None:
    """A turn runs at one node, and clients follow it and answer its approval request at another (N3)."""

    def play(body: Body) -> Reply:
        done = body["messages"][-1]["role"] == "tool"
        return says("It is done.") if done else calls("shell", command="echo once >> effects")

    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url)) as first,
        node(fleet) as second,
        asyncio.timeout(PATIENCE),
    ):
        id = (await first.post("/api/conversations", {}))["id"]
        seen: dict[str, list[tuple[str, Any]]] = {"first": [], "second": []}
        sent = asyncio.Event()

        async def watch(name: str, node: Node) -> None:
            async for kind, data in node.follow(id):
                if kind == "snapshot":
                    sent.set() if name == "second" else None
                elif kind != "message.added" or data["message"]["role"] != "user":
                    seen[name].append((kind, data.get("seq")))
                if name == "second" and kind == "call.asked":
                    await second.post(f"/api/questions/{data['question']}/answer", {"verdict": "allow"})

        watching = [asyncio.create_task(watch("first", first)), asyncio.create_task(watch("second", second))]
        await sent.wait()
        await first.post(f"/api/conversations/{id}/turns", {"text": "do it"})
        await asyncio.gather(*watching)
        own = [one for one in seen["first"] if one[1]]
        assert [one for one in seen["second"] if one[1]] == own
        assert "call.asked" in dict(own)
        assert (tmp_path / "work" / "effects").read_text() == "once\n"
        tree = await second.get(f"/api/conversations/{id}/tree")
        assert tree == await first.get(f"/api/conversations/{id}/tree")


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to stop"])
async def test_a_node_that_ends_is_replaced_by_another(
    tmp_path: Path, postgres: Server, how: signal.Signals
) -> None:
    """Another node continues the work of the node that ended, and watchers elsewhere see it to its end (N2,
    N4)."""
    asked: list[int] = []

    def play(body: Body) -> Reply:
        asked.append(1)
        half = sse(delta(content="Half of it"))
        return Stream((half,), then="stalls") if len(asked) == 1 else says("All of it.")

    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url)) as first,
        node(fleet) as second,
        asyncio.timeout(PATIENCE),
    ):
        id = (await first.post("/api/conversations", {}))["id"]
        turn = (await first.post(f"/api/conversations/{id}/turns", {"text": "go"}))["turn"]
        while not asked:  # noqa: ASYNC110 - by the other process
            await asyncio.sleep(0.02)
        first.process.send_signal(how)
        while (await second.get(f"/api/turns/{turn}"))["live"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)
        tree = await second.get(f"/api/conversations/{id}/tree")
        assert tree["messages"][-1]["parts"][-1]["text"] == "All of it."
        assert (await second.get(f"/api/turns/{turn}"))["state"] == "completed"


@pytest.mark.long
async def test_who_has_signed_in_at_one_node_is_known_to_all(tmp_path: Path, postgres: Server) -> None:
    """N3, U1: and each says whether it is alive, and whether it can serve."""
    async with (
        loopback(says("x")) as model,
        node(fleet := Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url)) as first,
        node(fleet) as second,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
    ):
        async with browser.post(f"{first.url}/api/login", json={"password": first.token}) as signed_in:
            assert signed_in.status < 300, await signed_in.text()
        saved = {one.key: one.value for one in browser.cookie_jar}
        async with browser.get(f"{second.url}/api/me") as me:
            assert me.status == 200
        async with browser.post(f"{second.url}/api/logout") as signed_out:
            assert signed_out.status == 204
        async with aiohttp.request("GET", f"{first.url}/api/me", cookies=saved) as me:
            assert me.status == 401  # void at every node
        for path, host in (("/healthz", "10.0.0.7"), ("/readyz", "10.0.0.7")):
            async with aiohttp.request("GET", second.url + path, headers={"Host": host}) as answer:
                assert answer.status == 200


@pytest.mark.long
async def test_whoever_watches_over_the_nodes_sees_them(tmp_path: Path, postgres: Server) -> None:
    """The overview shows what each node runs, which turns wait for a person, and which wait for a worker
    (N2)."""
    store = postgres.url(schema_of(tmp_path))
    async with loopback(calls("shell", command="true")) as model:
        fleet = Fleet(tmp_path, store, model.url)
        async with node(fleet, "web") as web, worker(fleet):
            id = (await web.post("/api/conversations", {}))["id"]
            await web.post(f"/api/conversations/{id}/turns", {"text": "go"})
            async with asyncio.timeout(PATIENCE):
                while not (await web.get("/api/questions"))["items"]:  # noqa: ASYNC110 - the worker asks
                    await asyncio.sleep(0.05)
            ended = await program("top", "--json", "--store", store, folder=fleet.work)
            assert ended.status == 0, ended.err
            (seen,) = ended.lines
            assert (len(seen["nodes"]), seen["questions"], seen["jobs"]) == (2, 1, 0)
            drawn = await program("top", "--store", store, folder=fleet.work)
            assert "1 question waits for a person" in drawn.out


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGTERM, id="told", marks=pytest.mark.long),
        pytest.param(signal.SIGSTOP, id="paused", marks=pytest.mark.long),
    ],
)
async def test_the_turns_of_a_worker_that_is_gone_are_taken_over(
    tmp_path: Path, postgres: Server, how: signal.Signals
) -> None:
    """Another worker takes them over, and a watcher at a web node sees the turn to its end, each event once.
    A paused worker that wakes up can do nothing (N2, N4)."""
    asked: list[int] = []

    def play(body: Body) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return says("All of it.")
        asked.append(1)
        half = sse(delta(content="Half of it"))
        if len(asked) == 1:
            return Stream((half,), then="stalls")
        return calls("shell", command="echo once >> effects")

    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url), "web") as web,
        worker(fleet) as first,
        asyncio.timeout(PATIENCE),
    ):
        id = (await web.post("/api/conversations", {}))["id"]
        seen: list[tuple[str, Any]] = []
        begun = asyncio.Event()

        async def watch() -> None:
            async for kind, data in web.follow(id):
                begun.set()
                seen.append((kind, data.get("seq")))
                if kind == "call.asked":
                    await web.post(f"/api/questions/{data['question']}/answer", {"verdict": "allow"})

        watching = asyncio.create_task(watch())
        await begun.wait()
        await web.post(f"/api/conversations/{id}/turns", {"text": "go"})
        while "text.delta" not in dict(seen):  # noqa: ASYNC110 - by the other process
            await asyncio.sleep(0.02)
        async with worker(fleet):
            first.send_signal(how)
            await watching
            if how is signal.SIGSTOP:
                first.send_signal(signal.SIGCONT)
                await asyncio.sleep(0.5)
        tree = await web.get(f"/api/conversations/{id}/tree")
        assert tree["messages"][-1]["parts"][-1]["text"] == "All of it."
        assert (tmp_path / "work" / "effects").read_text() == "once\n"
        numbers = [seq for _, seq in seen if seq]
        assert numbers == sorted(set(numbers))
        assert [kind for kind, _ in seen].count("call.end") == 1
