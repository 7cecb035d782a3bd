"""Compare Dragoman without and with tracing, turn by turn in one process, so that a busy moment affects both.

Prints, in seconds of CPU per turn, the cost without tracing and the extra cost with it: for the event loop's
thread, and for the whole process, which also creates and sends spans and metrics.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from statistics import median, quantiles

from contest import model, url

from dragoman import Runtime, tool
from dragoman.telemetry.observer import Telemetry
from dragoman.telemetry.start import telemetry_from_environment
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import WIRE

PUT_OFF = 20  # turns after which deferred work is done: some seconds of them, as in a server
SENDING = 0.05  # seconds, enough for the sending thread


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def turn(runtime: Runtime) -> tuple[float, float]:
    """Seconds of CPU, of the process and of this thread."""
    cpu, loop = time.process_time(), time.thread_time()
    handle = await runtime.send("go")
    async for _ in handle.events():
        pass
    await handle.result()
    return time.process_time() - cpu, time.thread_time() - loop


async def put_off(telemetry: Telemetry) -> float:
    cpu = time.process_time()
    await telemetry.tell()
    await asyncio.sleep(SENDING)
    return (time.process_time() - cpu) / PUT_OFF


async def measure(plain: Runtime, traced: Runtime, telemetry: Telemetry, pairs: int) -> None:
    for runtime in (plain, traced) * 3:
        await turn(runtime)
    await put_off(telemetry)
    off, more, later = [], [], []
    for number in range(1, pairs + 1):
        if number % 2:
            one, two = await turn(plain), await turn(traced)
        else:
            two, one = await turn(traced), await turn(plain)
        off.append(one)
        more.append((two[0] - one[0], two[1] - one[1]))
        if number % PUT_OFF == 0:
            later.append(await put_off(telemetry))
    told = {}
    for place, (name, added) in enumerate((("cpu", median(later)), ("loop", 0.0))):
        low, middle, high = quantiles([one[place] for one in more])
        error = 0.93 * (high - low) / pairs**0.5  # standard error of a median
        told[name] = {"off": median(one[place] for one in off), "more": middle + added, "error": error}
    print(json.dumps(told))


async def main() -> None:
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url().removesuffix("/v1")
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "1"  # deferred work is sent immediately, and counted
    endpoint = replace(ENDPOINTS["openai_chat"], base_url=url(), auth=KeyAuth("secret"))
    client = HttpClient(use_environment=False)
    served = HttpModel(client, WIRE(), endpoint, model=model())
    telemetry = telemetry_from_environment()
    assert telemetry is not None
    telemetry.moment = 3600.0  # no automatic export: its cost belongs to the turns with tracing
    with tempfile.TemporaryDirectory() as folder:

        def runtime(name: str, telemetry: Telemetry | None = None) -> Runtime:
            store = f"{folder}/{name}.db"
            return Runtime(
                store, model=served, tools=[add], allow=["*"], max_rounds=1000, telemetry=telemetry
            )

        async with runtime("plain") as plain, runtime("traced", telemetry) as traced:
            await measure(plain, traced, telemetry, int(sys.argv[3]))
    await client.close()


asyncio.run(main())
