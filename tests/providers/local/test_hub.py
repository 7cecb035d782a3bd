"""Models from a hub: over real HTTP, from one that drops connections, lies, and fills the disk."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman.errors import ConfigError
from dragoman.providers.listing import LocalServer
from dragoman.providers.local.downloaded import downloads, find_download, models_folder, remove_download
from dragoman.providers.local.handover import hand_over
from dragoman.providers.local.hub import Hub, HubModel, read_wanted
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.patience import PATIENCE
from tests.providers.local.hub_site import DATA, REPO, HubSite, hub_site

TOKEN = "hf_secret"
SOON = Retry(first_wait=0.001, longest_wait=0.001)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))


async def find(client: HttpClient, site: HubSite, typed: str = REPO) -> tuple[Hub, HubModel]:
    hub = Hub(client, token=TOKEN, environment={"HF_ENDPOINT": site.url})
    (model,) = await hub.models(read_wanted(typed))
    return hub, model


def left() -> list[str]:
    return sorted(one.name for one in models_folder().iterdir() if one.suffix != ".lock")


async def test_a_download_that_breaks_off_resumes_where_it_was_and_says_how_far_it_is() -> None:
    reported: list[tuple[int, int]] = []
    async with hub_site(HubSite(drops=[1_200_000, 0, 900_000])) as site, HttpClient(retry=SOON) as client:
        hub, model = await find(client, site)
        record = await hub.download(model, lambda done, total: reported.append((done, total)))
    assert record.file.read_bytes() == DATA
    assert (record.name, record.repo, record.license) == ("tiny-Q4_K_M", REPO, "apache-2.0")
    assert [one.name for one in downloads()] == ["tiny-Q4_K_M"]
    assert reported[-1] == (len(DATA), len(DATA))
    ranges = [wanted for path, wanted, _ in site.asked if path == "/tiny-Q4_K_M.gguf"]
    assert ranges[0] is None
    assert len(set(ranges)) == 3  # after a reply without a byte, the same range is requested again
    assert left() == ["tiny-Q4_K_M.gguf", "tiny-Q4_K_M.json"]


async def test_a_hub_without_ranges_sends_the_file_again_from_its_beginning() -> None:
    async with (
        hub_site(HubSite(drops=[1_200_000], ignores_ranges=True)) as site,
        HttpClient(retry=SOON) as client,
    ):
        hub, model = await find(client, site)
        assert (await hub.download(model)).file.read_bytes() == DATA


async def test_the_token_goes_to_the_hub_and_not_where_it_redirects_to() -> None:
    async with hub_site() as site, HttpClient() as client:
        hub, model = await find(client, site)
        await hub.download(model)
    tokens = [(path.startswith("/tiny"), token) for path, _, token in site.asked]
    assert tokens == [(False, f"Bearer {TOKEN}"), (False, f"Bearer {TOKEN}"), (True, None)]


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (HubSite(hashes={"tiny-Q4_K_M.gguf": "0" * 64}), "another SHA-256"),
        (HubSite(more=b"more"), "more than the size"),
        (HubSite(sizes={"tiny-Q4_K_M.gguf": 1000}), "more than the size"),
        (HubSite(sizes={"tiny-Q4_K_M.gguf": len(DATA) + 9}), "did not arrive"),
        (HubSite(sizes={"tiny-Q4_K_M.gguf": 10**15}), "Free space"),
    ],
    ids=["hash", "larger", "smaller size", "larger size", "no room"],
)
async def test_a_hub_that_lies_leaves_no_model(site: HubSite, said: str) -> None:
    async with hub_site(site), HttpClient(retry=SOON) as client:
        hub, model = await find(client, site)
        with pytest.raises(ConfigError, match=said):
            await hub.download(model)
    assert downloads() == []
    assert not [name for name in left() if name.endswith((".gguf", ".json"))]


async def test_a_full_disk_keeps_what_arrived_and_the_next_download_resumes(tmp_path: Path) -> None:
    def half_a_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))

    async with hub_site() as site:
        for limit in (half_a_disk, None):
            program = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dragoman", "models", "get", REPO),
                env={**os.environ, "HF_ENDPOINT": site.url, "HOME": str(tmp_path)},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                preexec_fn=limit,
            )
            async with asyncio.timeout(PATIENCE):
                out, err = await program.communicate()
            if limit is not None:
                assert (program.returncode, b"is full" in err) == (2, True), err
                assert downloads() == []
        assert program.returncode == 0, err
        assert b"local/tiny-Q4_K_M is ready" in out
    assert site.asked[-1][1] == "bytes=1500000-"


async def test_what_is_there_is_not_downloaded_again_and_another_of_its_name_is_kept_beside_it() -> None:
    async with hub_site() as site, HttpClient() as client:
        hub, model = await find(client, site)
        first = await hub.download(model)
        asked = len(site.asked)
        assert await hub.download(model) == first
        assert len(site.asked) == asked
        site.files["tiny-Q4_K_M.gguf"] = DATA[:-1]
        hub, other = await find(client, site)
        second = await hub.download(other)
    assert (second.name, second.file.read_bytes()) == ("acme-tiny-Q4_K_M", DATA[:-1])
    assert first.file.read_bytes() == DATA
    remove_download(first)
    assert find_download("tiny-Q4_K_M") is None
    assert [one.name for one in downloads()] == ["acme-tiny-Q4_K_M"]


async def test_the_models_of_a_repository_are_those_that_can_be_checked_and_parts_are_one() -> None:
    parts = {f"big-Q8_0-0000{n}-of-00002.gguf": DATA[:n] for n in (1, 2)}
    odd = {"mmproj-F16.gguf": DATA, "lone-00001-of-00002.gguf": DATA, "README.md": b"# tiny"}
    site = HubSite(hashes={"unhashed.gguf": "none"})
    site.files |= {**parts, **odd, "unhashed.gguf": DATA}
    async with hub_site(site), HttpClient() as client:
        hub = Hub(client, environment={"HF_ENDPOINT": site.url})
        found = await hub.models(read_wanted(f"https://huggingface.co/{REPO}"))
        assert [(one.name, one.size) for one in found] == [("big-Q8_0", 3), ("tiny-Q4_K_M", len(DATA))]
        assert [one.name for one in await hub.models(read_wanted(f"{REPO}:q8_0"))] == ["big-Q8_0"]
        (one,) = await hub.models(read_wanted(f"{REPO}/tiny-Q4_K_M.gguf"))
        assert one.name == "tiny-Q4_K_M"
        record = await hub.download(found[0])
        assert json.loads((models_folder() / "big-Q8_0.json").read_text())["files"] == list(parts)
        assert record.file.name == "big-Q8_0-00001-of-00002.gguf"


@pytest.mark.parametrize("typed", ["", "tiny", "../..", "a/..", "acme/ti ny"])
def test_what_is_no_repository_is_refused_before_anybody_is_asked(typed: str) -> None:
    with pytest.raises(ConfigError, match="not a model of the hub"):
        read_wanted(typed)


async def test_ollama_gets_the_file_under_its_hash_where_dragoman_cannot_serve_it() -> None:
    blobs: dict[str, bytes] = {}
    made: list[dict[str, object]] = []

    async def take(request: web.Request) -> web.Response:
        blobs[request.match_info["digest"]] = await request.read()
        return web.Response(status=201)

    async def make(request: web.Request) -> web.Response:
        made.append(await request.json())
        return web.json_response({"status": "success"})

    ollama = web.Application(client_max_size=1 << 30)
    ollama.router.add_post("/api/blobs/{digest}", take)
    ollama.router.add_post("/api/create", make)
    async with hub_site() as site, HttpClient() as client, TestServer(ollama) as server:
        hub, model = await find(client, site)
        record = await hub.download(model)
        running = LocalServer("ollama", f"{str(server.make_url('')).rstrip('/')}/v1", ())
        assert await hand_over(client, record, running) == "ollama/tiny-q4_k_m"
    digest = f"sha256:{record.sha256[0]}"
    assert blobs == {digest: DATA}
    assert made == [{"model": "tiny-q4_k_m", "files": {"tiny-Q4_K_M.gguf": digest}, "stream": False}]
