"""Run the real bundled model: downloaded once into the cache, served by a child process, used in a turn."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.errors import ConfigError
from dragoman.messages.events import MessageEnd
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import load_catalog
from dragoman.providers.local.server import LlamaServer, can_serve
from dragoman.providers.local.weights import IN_THE_PACKAGE, cache_folder, check_hash, fetch, find_adapter
from dragoman.providers.models import Models
from dragoman.tools.builtin import BUILTIN
from tests.patience import PATIENCE
from tests.runtimes import only_call

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def weights() -> Path:
    """The file, downloaded once on this machine."""
    try:
        return asyncio.run(fetch())
    except ConfigError as error:
        pytest.skip(str(error))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@slow
@pytest.mark.usefixtures("weights")
async def test_a_real_model_calls_a_real_tool(tmp_path: Path) -> None:
    tools = [tool for tool in BUILTIN["basics"]().tools if tool.name == "calculator"]  # each is 1 s to read
    async with Runtime(tmp_path / "chat.db", model="local/smollm2", tools=tools) as runtime:
        turn = await runtime.send("What is 17 * 23?")
        events = [event.type async for event in turn.events()]
        result = await turn.result()
    assert "step.retry" not in events  # its server disconnects after each reply
    call = only_call(result)
    assert (call.tool, call.result and call.result.text) == ("calculator", "391")
    assert "391" in result.text


@pytest.mark.long
@slow
async def test_a_server_wants_its_key_ends_with_its_house_and_comes_back(weights: Path) -> None:
    async def found() -> Path:
        return weights

    server = LlamaServer(found, threads=1)
    first = await server.address()
    assert first.url.startswith("http://127.0.0.1:")
    assert first.key not in repr(first)
    assert await server.address() == first  # one server for all who ask
    assert server._process is not None
    server._process.kill()
    await server._process.wait()
    assert await server.address() != first
    again = server.process
    assert again is not None
    await server.close()
    assert not is_alive(again)


@slow
async def test_w2_any_file_is_served_by_its_path_and_over_the_ordinary_wire(
    weights: Path, tmp_path: Path
) -> None:
    (tmp_path / "dragoman.toml").write_text(
        f'providers.local.models.mine = {{ file = "{weights.as_posix()}" }}'
    )
    tools = (BUILTIN["basics"]().tools[0].spec(),)
    sent = (RequestMessage("user", (Text("Say hello."),)),)
    request = Request("local/mine", sent, tools=tools, options={"max_tokens": 1})
    async with Models("local/mine", catalog=load_catalog(tmp_path / "dragoman.toml")) as models:
        events = [event async for batch in models().stream(request, "msg_1") for event in batch]
    assert isinstance(events[-1], MessageEnd)
    assert events[-1].usage.output > 0
    assert (models().traits.adapter, models().traits.note) == (None, "")


PARENT = """
import asyncio, pathlib, sys
from dragoman.providers.local.server import LlamaServer

async def main():
    async def found():
        return pathlib.Path(sys.argv[1])
    server = LlamaServer(found, threads=1)
    await server.address()
    print(server.process, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux lets us wait for a grandchild")
async def test_s3_a_server_does_not_outlive_a_killed_parent(weights: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(weights)), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    handle = os.pidfd_open(int(await parent.stdout.readline()))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    try:
        parent.kill()
        await parent.wait()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


@slow
@pytest.mark.skipif(not can_serve(), reason="dragoman[local] is not installed")
async def test_a_file_that_is_no_model_is_told_and_we_live(tmp_path: Path) -> None:
    (tmp_path / "no.gguf").write_bytes(b"GGUF, or so it says")
    async with Runtime(tmp_path / "chat.db", model=f"local/{tmp_path}/no.gguf") as runtime:
        with pytest.raises(ConfigError, match=r"cannot serve .*no\.gguf"):
            await (await runtime.send("Hello")).result()


async def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def nowhere() -> Path:
        return tmp_path / "no.gguf"

    with pytest.raises(ConfigError, match=r"Model file .*no\.gguf" if can_serve() else "dragoman.local"):
        await LlamaServer(nowhere).address()


def test_a_name_that_is_no_file_is_told() -> None:
    with pytest.raises(ConfigError, match=r"local/smollm2.*local/PATH\.gguf"):
        Models()("local/llama")


def test_it_is_plain_that_it_errs() -> None:
    assert "135 million" in Models()("local/smollm2").traits.note


@pytest.mark.long
@slow
async def test_what_a_server_has_read_is_there_for_the_next_one(weights: Path, tmp_path: Path) -> None:
    """The first server processes the tools. A second one loads that from a file, which holds no user's text
    (W2)."""
    (tmp_path / "dragoman.toml").write_text(
        f'providers.local.models.mine = {{ file = "{weights.as_posix()}", adapter = "smollm2-tools.gguf" }}'
    )
    tools = tuple(tool.spec() for tool in BUILTIN["basics"]().tools)
    asked = (RequestMessage("user", (Text("What is the secret word? It is xylophone."),)),)
    request = Request("local/mine", asked, tools=tools, options={"max_tokens": 8})
    for _ in range(2):
        async with Models("local/mine", catalog=load_catalog(tmp_path / "dragoman.toml")) as models:
            await models().prepare(tools)
            batches = [batch async for batch in models().stream(request, "msg_1")]
        assert isinstance(batches[-1][-1], MessageEnd)
    folder = cache_folder() / "prompts"
    assert any(folder.glob("*.state"))
    assert all(b"xylophone" not in file.read_bytes() for file in folder.glob("*.state"))


def test_an_adapter_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Dragoman loads only the adapter file that it was released with (P9)."""
    assert find_adapter(IN_THE_PACKAGE).is_file()
    changed = tmp_path / IN_THE_PACKAGE
    changed.write_bytes(find_adapter(IN_THE_PACKAGE).read_bytes() + b"x")
    with pytest.raises(ConfigError, match="Install Dragoman again"):
        check_hash(changed)
