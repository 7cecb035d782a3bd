"""Several servers on one database: what one of them does is seen, and carried on, at every other (N2, N3)."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.program import clean_environment
from tests.loopback import Body, Reply, Stream, delta, loopback, sse
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow


@dataclass
class Node:
    """`dragoman serve`, one of several."""

    process: Process
    url: str
    token: str
    http: aiohttp.ClientSession

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        async with self.http.post(path, json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def get(self, path: str) -> Any:
        async with self.http.get(path) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def follow(self, conversation: str) -> AsyncIterator[tuple[str, Any]]:
        """What a page at this node sees, until the turn is over."""
        kind = ""
        async with self.http.get(f"/api/conversations/{conversation}/events") as events:
            async for line in events.content:
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])
                    if kind == "turn.end":
                        return


@asynccontextmanager
async def node(folder: Path, store: str, model: str) -> AsyncIterator[Node]:
    work = folder.parent / "work"  # the same for all of them, as on a shared disk
    for made in (work, folder):
        made.mkdir(exist_ok=True)
    settings = f"""
        store = "{store}"
        workspace = "{work}"
        model = "stage/actor"
        tools = ["shell"]
        [providers.stage]
        base_url = "{model}"
    """
    (folder / "dragoman.toml").write_text(settings, "utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman.cli.main", "serve", "--port", "0"),
        cwd=folder,
        env=clean_environment(folder),
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found is not None, line
        headers = {"Authorization": f"Bearer {found[2]}"}
        async with aiohttp.ClientSession(found[1], headers=headers) as http:
            yield Node(process, found[1], found[2], http)
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE)


async def test_a_conversation_is_the_same_at_every_node(tmp_path: Path, postgres: Server) -> None:
    """N3: the turn runs at one node; it is followed, and its question answered, at another."""

    def play(body: Body) -> Reply:
        done = body["messages"][-1]["role"] == "tool"
        return says("It is done.") if done else calls("shell", command="echo once >> effects")

    async with (
        loopback(play) as model,
        node(tmp_path / "a", postgres.url(schema_of(tmp_path)), model.url) as first,
        node(tmp_path / "b", postgres.url(schema_of(tmp_path)), model.url) as second,
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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to stop"])
async def test_a_node_that_ends_is_replaced_by_another(
    tmp_path: Path, postgres: Server, how: signal.Signals
) -> None:
    """N2, N4: what it had begun is carried on, and whoever watches elsewhere sees it to its end."""
    asked: list[int] = []

    def play(body: Body) -> Reply:
        asked.append(1)
        half = sse(delta(content="Half of it"))
        return Stream((half,), then="stalls") if len(asked) == 1 else says("All of it.")

    async with (
        loopback(play) as model,
        node(tmp_path / "a", postgres.url(schema_of(tmp_path)), model.url) as first,
        node(tmp_path / "b", postgres.url(schema_of(tmp_path)), model.url) as second,
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


async def test_who_has_signed_in_at_one_node_is_known_to_all(tmp_path: Path, postgres: Server) -> None:
    """N3, U1: and each says whether it is alive, and whether it can serve."""
    async with (
        loopback(says("x")) as model,
        node(tmp_path / "a", postgres.url(schema_of(tmp_path)), model.url) as first,
        node(tmp_path / "b", postgres.url(schema_of(tmp_path)), model.url) as second,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
    ):
        async with browser.post(f"{first.url}/api/login", json={"password": first.token}) as signed_in:
            assert signed_in.status < 300, await signed_in.text()
        async with browser.get(f"{second.url}/api/me") as me:
            assert me.status == 200
        for path, host in (("/healthz", "10.0.0.7"), ("/readyz", "10.0.0.7")):
            async with aiohttp.request("GET", second.url + path, headers={"Host": host}) as answer:
                assert answer.status == 200
