"""Serve a hub on the loopback address that drops connections and sends wrong data on demand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

REPO = "acme/tiny-GGUF"
DATA = b"GGUF" + os.urandom(3_000_000)


@dataclass
class HubSite:
    """The hub's files, their descriptions, and its behavior. A second server sends the files."""

    files: dict[str, bytes] = field(default_factory=lambda: {"tiny-Q4_K_M.gguf": DATA})
    sizes: dict[str, int] = field(default_factory=dict)  # sizes sent in place of the true ones
    hashes: dict[str, str] = field(default_factory=dict)
    drops: list[int] = field(default_factory=list)  # bytes after which each of the next replies breaks off
    more: bytes = b""  # sent after the end of a file
    ignores_ranges: bool = False
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)  # path, Range, token
    url: str = ""
    files_url: str = ""

    async def describe(self, request: web.Request) -> web.Response:
        self._note(request)
        siblings = [
            {
                "rfilename": name,
                "lfs": {
                    "size": self.sizes.get(name, len(data)),
                    "sha256": self.hashes.get(name, hashlib.sha256(data).hexdigest()),
                },
            }
            for name, data in self.files.items()
        ]
        about = {"sha": "0" * 40, "cardData": {"license": "apache-2.0"}, "siblings": siblings}
        return web.json_response(about)

    async def redirect(self, request: web.Request) -> web.Response:
        self._note(request)
        raise web.HTTPFound(f"{self.files_url}/{request.match_info['file']}")

    async def send(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        data = self.files[request.match_info["file"]]
        begun = 0
        if (wanted := request.headers.get("Range")) is not None and not self.ignores_ranges:
            begun = int(wanted.removeprefix("bytes=").removesuffix("-"))
        rest = data[begun:] + self.more
        headers = {"Content-Range": f"bytes {begun}-{len(data) - 1}/{len(data)}"} if begun else {}
        response = web.StreamResponse(status=206 if begun else 200, headers=headers)
        response.content_length = len(rest)
        await response.prepare(request)
        if self.drops:
            await response.write(rest[: self.drops.pop(0)])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(rest)
        return response

    def _note(self, request: web.Request) -> None:
        self.asked.append((request.path, request.headers.get("Range"), request.headers.get("Authorization")))


@asynccontextmanager
async def hub_site(site: HubSite | None = None) -> AsyncIterator[HubSite]:
    site = site or HubSite()
    api, files = web.Application(), web.Application()
    api.router.add_get("/api/models/{org}/{repo}/revision/main", site.describe)
    api.router.add_get("/{org}/{repo}/resolve/{revision}/{file}", site.redirect)
    files.router.add_get("/{file}", site.send)
    async with TestServer(files) as file_server, TestServer(api) as server:
        site.url = str(server.make_url("")).rstrip("/")
        site.files_url = str(file_server.make_url("")).rstrip("/")
        yield site
