"""M3: the record of an upload to a provider outlives the process that made it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.messages.message import File, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.files.pictures import FileLimits
from tests.fork_server import KILL, python
from tests.patience import PATIENCE, eventually
from tests.wire.test_uploads import FileServer, file_server

KEY = "sk-files-0123456789"
PAPER = b"%PDF" + bytes(5000)
ANOTHER_PROCESS = """
import asyncio, sys
from tests.media.test_kept_uploads import send_and_wait

asyncio.run(send_and_wait(*sys.argv[1:]))
"""


def models_at(url: str, wire: str, key: str = KEY) -> Models:
    acme = Provider("acme", "Acme", url, keys=("ACME_KEY",), wire=wire, files=FileLimits(upload_above=1000))
    keys = Keys(environment={"ACME_KEY": key}, use_keyring=False)
    return Models("acme/m", catalog=load_catalog().with_provider(acme), keys=keys)


@asynccontextmanager
async def opened(folder: Path, server: FileServer, key: str = KEY) -> AsyncIterator[tuple[Runtime, Models]]:
    async with (
        models_at(server.url, server.wire, key) as models,
        Runtime(folder / "chat.db", model=models) as runtime,
    ):
        yield runtime, models


async def ask(runtime: Runtime, conversation: str | None = None) -> str:
    """Send the paper, into a conversation or a new one, whose id comes back."""
    chat = await runtime.conversation(conversation)
    blob = await runtime.store.put_blob(PAPER)
    file = File("application/pdf", blob=blob, name="paper.pdf", size=len(PAPER))
    await (await chat.send([Text("Look:"), file])).result()
    return chat.id


async def send_and_wait(folder: str, url: str, wire: str) -> None:
    """Send the document in another process, report it, and wait to be killed."""
    async with models_at(url, wire) as models, Runtime(Path(folder) / "chat.db", model=models) as runtime:
        sys.stdout.write(f"{await ask(runtime)}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


@pytest.mark.slow
@pytest.mark.parametrize("wire", ["anthropic_messages", "gemini", "openai_responses"])
async def test_after_a_kill_nothing_is_uploaded_twice_and_it_is_deleted_in_the_end(
    tmp_path: Path, wire: str
) -> None:
    """The next process names the file by the ID that the killed one received. It deletes the file with its
    conversation (M3 × T13)."""
    async with file_server(wire) as server:
        killed = await asyncio.create_subprocess_exec(
            *python("-c", ANOTHER_PROCESS, str(tmp_path), server.url, wire),
            stdout=asyncio.subprocess.PIPE,
        )
        assert killed.stdout is not None
        async with asyncio.timeout(PATIENCE):
            chat = (await killed.stdout.readline()).decode().strip()
        killed.send_signal(KILL)
        await killed.wait()
        async with opened(tmp_path, server) as (runtime, models):
            await ask(runtime, chat)
            assert server.uploads == 1
            await models.delete_unwanted_files(runtime.store)
            assert server.deleted == []
            await runtime.store.delete_conversation(chat)
            await models.delete_unwanted_files(runtime.store)
            assert server.deleted == ["file-1"]
            assert await runtime.store.unwanted_provider_files(0.0) == []


async def test_whoever_opens_the_store_next_deletes_what_was_left(tmp_path: Path) -> None:
    """No further request to the model is needed (M3)."""
    async with file_server("anthropic_messages") as server:
        async with opened(tmp_path, server) as (runtime, _):
            chat = await ask(runtime)
        assert server.deleted == []  # the conversation can still refer to it
        async with opened(tmp_path, server, "another-key-of-theirs-0123") as (runtime, _):
            await runtime.store.delete_conversation(chat)
        assert server.deleted == []  # another account's
        async with opened(tmp_path, server):
            await eventually(lambda: server.deleted == ["file-1"])


async def test_two_processes_at_once_keep_one(tmp_path: Path) -> None:
    """Both upload it without knowing of each other. One upload is deleted, and both use the other (M3)."""
    async with (
        file_server("anthropic_messages") as server,
        opened(tmp_path, server) as (one, _),
        opened(tmp_path, server) as (other, _),
    ):
        server.together = asyncio.Barrier(2)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(ask(one), ask(other))
        server.together = None
        (kept,) = set(server.files) - set(server.deleted)
        await ask(one)
        await ask(other)
        assert server.uploads == 2
        assert all(kept in body for body in server.asked[-2:])


async def test_a_file_that_is_gone_there_is_uploaded_anew_after_a_restart(tmp_path: Path) -> None:
    """It is uploaded once, and its new ID is stored (M3)."""
    async with file_server("anthropic_messages") as server:
        async with opened(tmp_path, server) as (runtime, _):
            chat = await ask(runtime)
        server.files.clear()
        for _ in range(2):
            async with opened(tmp_path, server) as (runtime, _):
                await ask(runtime, chat)
        assert server.uploads == 2
        assert "file-2" in server.asked[-1]


async def test_a_store_that_does_not_last_is_not_told(tmp_path: Path) -> None:
    """M3: of `dragoman run --forget` nothing stays, at the provider neither."""
    async with file_server("anthropic_messages") as server:
        async with opened(tmp_path, server) as (runtime, models):
            models.uploads.lasting = False
            await ask(runtime)
        assert server.deleted == ["file-1"]
