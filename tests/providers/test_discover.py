"""Discovery finds local model servers, and sends no request elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.providers.catalog import load_catalog
from dragoman.providers.listing import HOST, PORTS, LocalServer, discover
from dragoman.wire.scripted import says
from tests.loopback import loopback


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[int]:
    """Run something on a port that is not a model server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1]


def http(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{extra}\r\n"
    return head.encode() + body


async def test_the_usual_ports_are_those_of_the_catalogs_local_servers() -> None:
    local = {p.name: p.base_url for p in load_catalog().providers.values() if p.local}
    assert {name: f"http://{HOST}:{port}/v1" for name, port in PORTS.items()} == local


async def test_a_server_that_runs_is_found_with_its_models_but_not_its_embeddings() -> None:
    async with loopback(says("hi"), models=["qwen3:8b", "nomic-embed-text"]) as server:
        found = await discover({"ollama": server.port})
    assert found == [LocalServer("ollama", server.url, ("qwen3:8b",))]


@pytest.mark.parametrize(
    ("reply", "models"),
    [
        (http(b'{"object": "list", "data": null}'), ()),
        (http(b'{"object": "list", "data": [{"id": "m"}, {"id": 5}, "x", null]}'), ("m", "5")),
        (http(b"<html>It works!</html>"), None),
        (http(b'{"data": "nothing of ours"}'), None),
        (http(b"[]"), None),
        (http(b"{}", "404 Not Found"), None),
        (http(b"", "302 Found", "Location: http://example.org/v1/models\r\n"), None),
        (http(b'"' + b"x" * (1 << 21) + b'"'), None),
        (b"SSH-2.0-OpenSSH_9.9\r\n", None),
        (b"", None),
    ],
    ids=[
        "no model",
        "odd ids",
        "page",
        "other JSON",
        "list",
        "404",
        "redirect",
        "huge",
        "no HTTP",
        "silence",
    ],
)
async def test_what_answers_otherwise_is_no_model_server(
    reply: bytes, models: tuple[str, ...] | None
) -> None:
    async with answering(reply) as port:
        found = await discover({"vllm": port})
    assert [server.models for server in found] == ([] if models is None else [models])


async def test_a_port_where_nobody_answers_in_time_costs_only_that_time() -> None:
    with socket.socket() as deaf:
        deaf.bind((HOST, 0))
        deaf.listen()
        port = deaf.getsockname()[1]
        began = asyncio.get_running_loop().time()
        assert await discover({"a": port, "b": port, "c": port}, seconds=0.2) == []
        assert asyncio.get_running_loop().time() - began < 2


async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(says("hi")) as proxy, loopback(says("hi"), models=["m"]) as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("all_proxy", proxy.url.removesuffix("/v1"))
        found = await discover({"ollama": server.port})
    assert [one.models for one in found] == [("m",)]
