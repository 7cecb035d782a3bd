"""`make soak`: run everything at the same time against one server for half an hour, to check that it frees
memory.

Users chat, attach files, answer approval requests, cancel, edit, rerun, search, export and delete. Every
minute the server's memory, open files and threads are read from the system. The first minutes are a
warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

WARM = 0.1  # fraction of the time before measuring starts
MOST = 1.2  # times its value after the warm-up
TOKEN = "soak"


# ── the server ────────────────────────────────────────────────────────────────────────────────────


async def serve(port: int) -> None:
    import uvicorn

    from dragoman import Runtime, ScriptedModel, tool
    from dragoman.messages.request import Request
    from dragoman.server.app import server
    from dragoman.server.auth import Auth
    from dragoman.wire.scripted import Line, calls, says

    @tool
    async def look(what: str) -> str:
        """Look at something."""
        return what * 2000

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        return f"{amount} paid"

    def answer(request: Request) -> Line:
        model.requests.clear()  # that the check reads afterwards
        last = request.messages[-1]
        said = " ".join(part.text for part in last.parts if part.type == "text")
        if last.role == "user" and said.startswith("look"):
            return calls("look", what=said)
        if last.role == "user" and said.startswith("pay"):
            return calls("pay", amount=3)
        return says("word " * 200, waits=0.002 if said.startswith("slowly") else 0.0)

    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(answer)
        async with Runtime(f"{folder}/chat.db", model=model, tools=[look, pay], allow=["look"]) as runtime:
            auth = Auth(runtime.store, b"0" * 32, token=TOKEN)
            config = uvicorn.Config(server(runtime, auth), port=port, log_level="warning", lifespan="off")
            await uvicorn.Server(config).serve()


# ── the people ────────────────────────────────────────────────────────────────────────────────────


class Client:
    """Act as a user: do random operations in conversations, and delete each conversation at the end."""

    def __init__(self, http: aiohttp.ClientSession, seed: int) -> None:
        self._http = http
        self._chance = random.Random(seed)
        self.done = 0

    async def live(self, until: float) -> None:
        while time.monotonic() < until:
            id = (await self._call("POST", "/api/conversations", {}))["id"]
            for _ in range(self._chance.randint(1, 4)):
                await self._converse(f"/api/conversations/{id}")
            if self._chance.random() < 0.3:
                await self._call("GET", "/api/conversations?search=word")
                await self._call("GET", f"/api/conversations/{id}/export")
            await self._call("DELETE", f"/api/conversations/{id}")
            self.done += 1

    async def _converse(self, path: str) -> None:
        kind = self._chance.choice(["talk", "slowly", "look", "pay", "cancel", "attach", "rerun"])
        said: dict[str, Any] = {"text": f"{kind} {self._chance.random()}"}
        if kind == "cancel":
            said["text"] = "slowly"
        if kind == "attach":
            data, headers = self._chance.randbytes(100_000), {"Content-Type": "application/octet-stream"}
            async with self._http.post(
                "/api/files?name=a.png&type=image/png", data=data, headers=headers
            ) as answer:
                assert answer.status < 300, await answer.text()
                said["parts"] = [{"type": "text", "text": said.pop("text")}, await answer.json()]
        turn = (await self._call("POST", f"{path}/turns", said))["turn"]
        if kind == "cancel":
            await self._call("POST", f"/api/turns/{turn}/cancel", {})
        await self._hear_out(path, turn)
        if kind == "rerun":
            tree = await self._call("GET", f"{path}/tree")
            replies = [one["id"] for one in tree["messages"] if one["role"] == "assistant"]
            if replies:
                again = await self._call("POST", f"/api/messages/{replies[-1]}/rerun", {})
                await self._hear_out(path, again["turn"])

    async def _hear_out(self, path: str, turn: str) -> None:
        """Follow the turn to its end and answer its approval requests."""
        while True:
            for question in (await self._call("GET", "/api/questions"))["items"]:
                if question["turn"] == turn:
                    verdict = {"verdict": self._chance.choice(["allow", "reject"])}
                    await self._call("POST", f"/api/questions/{question['id']}/answer", verdict)
            if not (await self._call("GET", f"/api/turns/{turn}"))["live"]:
                return
            try:
                async with asyncio.timeout(2), self._http.get(f"{path}/events") as events:
                    async for line in events.content:
                        if line.startswith((b"event: turn.end", b"event: call.asked")):
                            break
            except TimeoutError:
                pass

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        async with self._http.request(method, path, json=body) as answer:
            if answer.status >= 400:
                raise SystemExit(f"{method} {path}: {answer.status} {await answer.text()}")
            return await answer.json() if "json" in answer.headers.get("Content-Type", "") else {}


# ── one run ───────────────────────────────────────────────────────────────────────────────────────


def _read(process: int) -> dict[str, float]:
    status = Path(f"/proc/{process}/status").read_text()
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    threads = next(line for line in status.splitlines() if line.startswith("Threads")).split()[1]
    files = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return {"megabytes": int(memory) / 1024, "files": files, "threads": int(threads)}


async def main(minutes: float, people: int) -> bool:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    console, rows = Console(), list[tuple[float, dict[str, float]]]()
    with subprocess.Popen([sys.executable, __file__, "--serve", str(port)]) as server:  # noqa: ASYNC220
        try:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as http:
                await _up(http)
                begin = time.monotonic()
                end = begin + minutes * 60
                clients = [Client(http, seed) for seed in range(people)]
                work = [asyncio.create_task(client.live(end)) for client in clients]
                while not all(task.done() for task in work):
                    await asyncio.wait(work, timeout=max(2.0, minutes * 60 / 30))
                    rows.append((time.monotonic() - begin, _read(server.pid)))
                    console.print(f"{rows[-1][0]:6.0f} s  {rows[-1][1]}", highlight=False)
                await asyncio.gather(*work)
                await asyncio.sleep(5)  # the last deleted conversations are removed in the background
                rows.append((time.monotonic() - begin, _read(server.pid)))
        finally:
            server.terminate()
    warm = next(row for at, row in rows if at >= minutes * 60 * WARM)
    table = Table("", "warm", "at the end", "ratio", title=f"{sum(c.done for c in clients)} conversations")
    for name, before in warm.items():
        after = rows[-1][1][name]
        table.add_row(name, f"{before:.0f}", f"{after:.0f}", f"{after / before:.2f}")
    console.print(table)
    return rows[-1][1]["megabytes"] <= MOST * warm["megabytes"]


async def _up(http: aiohttp.ClientSession) -> None:
    for _ in range(200):
        try:
            async with http.get("/api/conversations"):
                return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.1)
    raise SystemExit("the server does not start")


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--serve", type=int)
    flags.add_argument("--minutes", type=float, default=30)
    flags.add_argument("--people", type=int, default=12)
    wanted = flags.parse_args()
    if wanted.serve:
        asyncio.run(serve(wanted.serve))
    elif not asyncio.run(main(wanted.minutes, wanted.people)):
        raise SystemExit(f"memory is more than {MOST} times what it was when warm")
