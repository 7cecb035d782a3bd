"""`make cluster`: PostgreSQL, two web nodes behind a proxy and three workers on this machine, with the web
UI.

Everything is in a folder that is deleted when you stop it, except the conversations if you name a database:
    python scripts/cluster.py --store postgresql://dragoman@db.example/chat
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import secrets
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.postgres import programs, served

PORT = 8720
DRAGOMAN = (sys.executable, "-m", "dragoman.cli.main")
PASSWORD = "DRAGOMAN_CLUSTER_PASSWORD"


async def main(store: str, webs: int, workers: int, folder: Path) -> None:
    password = os.environ.get(PASSWORD) or secrets.token_urlsafe(9)
    environment = {**os.environ, PASSWORD: password}
    settings = folder / "cluster.toml"
    settings.write_text(f'[server]\npassword_from = "{PASSWORD}"\nopen = false\n', "utf-8")
    common = ("--store", store, "--config", str(settings))
    stop = asyncio.Event()
    for told in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(told, stop.set)
    async with AsyncExitStack() as running:
        ports = [
            int(await running.enter_async_context(_program(environment, r"http://[^:]+:(\d+)/", *words)))
            for words in [("serve", "--role", "web", "--port", "0", *common)] * webs
        ]
        for _ in range(workers):
            await running.enter_async_context(_program(environment, "(a worker)", "worker", *common))
        proxy = await asyncio.start_server(_Proxy(ports).serve, "127.0.0.1", PORT)
        running.callback(proxy.close)
        print(f"\nDragoman  http://127.0.0.1:{PORT}   password  {password}")
        print(f"  web nodes at {', '.join(map(str, ports))} and {workers} workers. Ctrl-C stops all of them.")
        program = Path(sys.executable).with_name("dragoman")
        print(f"  who does what:  {program} top --store {shlex.quote(store)}", flush=True)
        await stop.wait()
        print("\nstopping …", flush=True)


@asynccontextmanager
async def _program(environment: dict[str, str], ready: str, *words: str) -> AsyncIterator[str]:
    """One node, from the time it is ready. Its log is shown."""
    process = await asyncio.create_subprocess_exec(
        *DRAGOMAN,
        *words,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # this process handles Ctrl-C: it stops the nodes in order
    )
    try:
        assert process.stdout is not None
        found = None
        while found is None and (line := (await process.stdout.readline()).decode()):
            found = re.search(ready, line)
        if found is None:
            raise SystemExit(f"{' '.join(words[:3])} did not start: see above")
        print(f"  {words[0]:7} ready", flush=True)
        yield found[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


class _Proxy:
    """Forward connections to the web nodes in turn, and skip those that do not answer."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._next = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._ports:
            port = self._ports[self._next % len(self._ports)]
            self._next += 1
            try:
                there = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
            return
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(ConnectionError):
        writer.close()


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--store", help="a database that is there; without it one is started, and forgotten")
    words.add_argument("--webs", type=int, default=2)
    words.add_argument("--workers", type=int, default=3)
    wanted = words.parse_args()
    with ExitStack() as opened:
        store = wanted.store
        if store is None:
            if programs() is None:
                raise SystemExit(
                    "there is no PostgreSQL server here to start: install one, or name a --store"
                )
            store = opened.enter_context(served()).url("dragoman")
        place = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        asyncio.run(main(store, wanted.webs, wanted.workers, place))
