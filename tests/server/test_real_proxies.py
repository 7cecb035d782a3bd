"""Behind the proxies that people put in front: Caddy and nginx, as their systems have them (N2, U1)."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from dragoman.wire.scripted import says
from tests.patience import PATIENCE
from tests.server.site import served

pytestmark = pytest.mark.slow

PATH = f"{os.environ['PATH']}:/usr/sbin"  # where Debian has nginx
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /chat/ {{
            proxy_pass {server}/;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_http_version 1.1;
        }}
    }}
}}
"""
CADDY = """
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    handle_path /chat/* {{
        reverse_proxy {server}
    }}
}}
"""
COMMANDS = {
    "nginx": (NGINX, ["-c", "{file}", "-e", "stderr"]),
    "caddy": (CADDY, ["run", "--adapter", "caddyfile", "--config", "{file}"]),
}


@asynccontextmanager
async def behind(name: str, folder: Path, server: str) -> AsyncIterator[str]:
    """The address below which the proxy shows the server."""
    if (program := shutil.which(name, path=PATH)) is None:
        pytest.skip(f"{name} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings, words = COMMANDS[name]
    file = folder / f"{name}.conf"
    file.write_text(settings.format(folder=folder, port=port, server=server))
    os.chmod(folder, 0o755)  # noqa: PTH101 - nginx works as another user
    home = {"HOME": str(folder), "PATH": PATH}
    process = await asyncio.create_subprocess_exec(
        program, *(word.format(file=file) for word in words), env=home, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(OSError):
                    (await asyncio.open_connection("127.0.0.1", port))[1].close()
                    break
                assert process.returncode is None, f"{name} does not start"
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}/chat"
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_turn_streams_through_a_proxy_below_a_path(tmp_path: Path, name: str) -> None:
    """N2, U1, E2: each chunk comes when it is made, and a cursor continues through the proxy."""
    words = [f"w{n} " for n in range(40)]
    key = {"authorization": "Bearer key of local"}
    async with (
        served(tmp_path, [says("".join(words), waits=0.05)], proxies=["127.0.0.1"], path="/chat") as site,
        behind(name, tmp_path, site.url) as url,
        aiohttp.ClientSession(headers=key) as http,
        asyncio.timeout(PATIENCE),
    ):
        async with http.get(f"{url}/") as page:
            assert '"/chat/assets/' in await page.text()
        async with http.post(f"{url}/api/conversations", json={}) as made:
            id = (await made.json())["id"]
        path = f"{url}/api/conversations/{id}/events"
        async with http.get(path) as events:
            assert await events.content.readuntil(b"\n\n") == b": welcome\n\n"  # before anything happens
            async with http.post(f"{url}/api/conversations/{id}/turns", json={"text": "hi"}) as begun:
                turn = (await begun.json())["turn"]
            heard = b""
            while b"w3" not in heard:
                heard += await events.content.readuntil(b"\n\n")
            assert (await site.state(turn)) == "streaming"
            cursor = heard.split(b"id: ")[-1].split(b"\n")[0].decode()
        async with http.get(path, headers={"last-event-id": cursor}) as events:
            while b"turn.end" not in heard:
                heard += await events.content.readuntil(b"\n\n")
        assert heard.count(b"event: snapshot") == 1
        told = b"".join(
            piece.split(b'"text":"')[1].split(b'"')[0] for piece in heard.split(b"event: text.delta")[1:]
        )
        assert told.decode() == "".join(words)


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_proxy_says_whose_guesses_are_slowed_down(tmp_path: Path, name: str) -> None:
    """A client that guesses passwords does not slow down another address and cannot claim to be one
    (N2, U2)."""
    async with (
        served(tmp_path, [says("x")], password="open sesame", proxies=["127.0.0.1"], path="/chat") as site,
        behind(name, tmp_path, site.url) as url,
        asyncio.timeout(PATIENCE),
    ):

        async def guesses(address: str, password: str, n: int = 0) -> int:
            connector = aiohttp.TCPConnector(local_addr=(address, 0))
            made_up = {"x-forwarded-for": f"192.0.2.{n}"}
            async with (
                aiohttp.ClientSession(connector=connector) as http,
                http.post(f"{url}/api/login", json={"password": password}, headers=made_up) as answer,
            ):
                return answer.status

        answers = [await guesses("127.0.0.2", "wrong", n) for n in range(20)]
        assert 429 in answers
        assert await guesses("127.0.0.3", "open sesame") < 300
