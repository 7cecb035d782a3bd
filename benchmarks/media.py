"""`make bench-media`: measure blocking and memory in a conversation with fifty images of ten megabytes.

The provider is a separate process. A task on Dragoman's event loop checks the clock continuously: its longest
wait is the longest that any other request would have waited. On a busy machine other programs cause part of
it. Therefore the same is measured without images. For each wait, the kernel also reports how long this
process's threads could have worked but got no CPU. The rest is caused by Dragoman.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dragoman import Runtime
from dragoman.messages.message import File, Part, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.files.pictures import NO_LIMITS, FileLimits

LONGEST_WAIT = 0.05  # seconds of blocking
UPLOADED_AT_ONCE = 1 << 16  # bytes, as they come from a socket
LIMITS = {
    "as Claude takes them": FileLimits(picture_edge=1568, picture_bytes=3_900_000, together=22_000_000),
    "as they are, what fits": NO_LIMITS,
}

PROVIDER = """
import asyncio, sys
from aiohttp import web

async def answer(request):
    size = 0
    async for piece in request.content.iter_any():
        size += len(piece)
    chunk = '{"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":"stop"}]}' % size
    text = f"data: {chunk}\\n\\ndata: [DONE]\\n\\n"
    return web.Response(text=text, content_type="text/event-stream")

async def main():
    app = web.Application(client_max_size=0)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@dataclass
class Waits:
    """Records how long a task that only reads the clock had to wait."""

    longest: float = 0.0
    own: float = 0.0  # seconds of a wait that no other program caused
    busy: float = 0.0  # seconds of the loop's CPU between two checks
    over: int = 0
    memory: list[int] = field(default_factory=list)  # megabytes

    def __str__(self) -> str:
        times = (self.longest, self.own, self.busy)
        longest, own, busy = (f"{seconds * 1000:.0f} ms" for seconds in times)
        return (
            f"  longest wait {longest} ({self.over} over {LONGEST_WAIT * 1000:.0f}), {own} of our own doing; "
            f"the loop itself was busy for {busy} at most\n"
        )


@asynccontextmanager
async def watched() -> AsyncIterator[Waits]:
    waits = Waits()

    async def look() -> None:
        while True:
            began, worked, starved = time.perf_counter(), time.thread_time(), without_cpu()
            await asyncio.sleep(0.002)
            late = time.perf_counter() - began - 0.002
            waits.own = max(waits.own, late - since(starved))
            waits.busy = max(waits.busy, time.thread_time() - worked)
            waits.longest = max(waits.longest, late)
            waits.over += late > LONGEST_WAIT
            waits.memory.append(memory())

    task = asyncio.create_task(look())
    try:
        yield waits
    finally:
        task.cancel()


def without_cpu() -> dict[str, int]:
    """Return the nanoseconds in which each thread of this process could have worked and had no CPU."""
    waited = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            waited[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return waited


def since(before: dict[str, int]) -> float:
    """Seconds of that since then."""
    return sum(spent - before.get(thread, 0) for thread, spent in without_cpu().items()) / 1e9


def memory() -> int:
    """Return the memory of this process in megabytes."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096 >> 20


def picture(megabytes: float) -> bytes:
    """A photograph of about this size."""
    from PIL import Image

    edge = int((megabytes * 1_000_000 / 0.9) ** 0.5)
    out = io.BytesIO()
    Image.effect_noise((edge, edge), 90).convert("RGB").save(out, "JPEG", quality=95)
    return out.getvalue()


async def arriving(photo: bytes, number: int) -> AsyncIterator[bytes]:
    """The same photograph as another file, as a browser would send it."""
    for at in range(0, len(photo), UPLOADED_AT_ONCE):
        yield photo[at : at + UPLOADED_AT_ONCE]
    yield str(number).encode()


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROVIDER, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/v1"
    finally:
        process.stdin.close()
        await process.wait()


async def converse(
    url: str, folder: str, limits: FileLimits, photo: bytes, count: int
) -> tuple[Waits, float]:
    """Send one message for each image. The history contains all images sent before."""
    server = Provider(
        "acme", "Acme", url, local=True, defaults={"modalities": ["text", "image"]}, files=limits
    )
    catalog = load_catalog().with_provider(server)
    keys = Keys(environment={}, use_keyring=False)
    began = time.perf_counter()
    async with (
        Models("acme/m", catalog=catalog, keys=keys) as models,
        Runtime(f"{folder}/chat.db", model=models, compact_at=None) as runtime,
    ):
        chat = await runtime.conversation()
        await (await chat.send("hello")).result()  # imports at the first request are not measured
        waits = await send_pictures(runtime, chat, photo, count)
    return waits, time.perf_counter() - began


async def send_pictures(runtime: Runtime, chat: ConversationHandle, photo: bytes, count: int) -> Waits:
    async with watched() as waits:
        for number in range(count):
            parts: list[Part] = [Text(f"picture {number}")]
            if photo:
                blob, size = await runtime.store.put_blob_pieces(arriving(photo, number))
                parts.append(File("image/jpeg", blob=blob, name="a.jpg", size=size))
            await (await chat.send(parts)).result()
    return waits


async def measure(count: int, megabytes: float) -> bool:
    photo = await asyncio.to_thread(picture, megabytes)
    fine = True
    async with provider() as url:
        for name, limits in LIMITS.items():
            with tempfile.TemporaryDirectory() as folder:
                before = memory()
                waits, took = await converse(url, folder, limits, photo, count)
            half = len(waits.memory) // 2
            early, late = max(waits.memory[:half]) - before, max(waits.memory[half:]) - before
            fine = fine and waits.own <= LONGEST_WAIT
            print(
                f"{count} pictures of {len(photo) / 1e6:.1f} MB, {name}: {took:.1f} s\n{waits}"
                f"  memory: +{early} MB in the first half, +{late} MB in the second"
            )
        with tempfile.TemporaryDirectory() as folder:
            waits, took = await converse(url, folder, NO_LIMITS, b"", count * 4)
            print(f"{count * 4} messages without a picture: {took:.1f} s\n{waits}", end="")
    return fine


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=50)
    parser.add_argument("--megabytes", type=float, default=10)
    asked = parser.parse_args()
    sys.exit(0 if asyncio.run(measure(asked.pictures, asked.megabytes)) else 1)
