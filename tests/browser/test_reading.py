"""Check that model output cannot act, that long content stays smooth, and that every user can read
it (U3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import axe_playwright_python  # type: ignore[import-untyped]  # it is only where axe-core lies
import pytest
from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page

pytestmark = MARKS

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


async def test_markdown_is_shown_as_it_is_meant_and_nothing_that_a_model_writes_can_act(
    person: Person,
) -> None:
    """U3"""
    await person.say("markdown")
    await expect(person.answer.get_by_role("heading", name="A heading")).to_be_visible(timeout=60_000)
    await expect(person.answer.get_by_role("cell", name="shell")).to_be_visible()
    await expect(person.answer.locator("pre code .hljs-keyword").first).to_be_visible(timeout=60_000)
    await expect(person.answer.locator(".katex").first).to_be_visible(timeout=60_000)
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    await person.say("attacks")
    await expect(person.answer).to_contain_text("window.hacked=13", timeout=60_000)
    await person.page.wait_for_timeout(500)
    assert await person.page.evaluate("window.hacked") is None
    assert [url for url in asked if "evil.example" in url] == []
    for link in await person.answer.get_by_role("link").all():
        assert (await link.get_attribute("href") or "").startswith(("http", "mailto:", "#", "/"))
    assert await person.answer.locator("script, iframe, form, style, base, [onerror], [onload]").count() == 0


def long_conversation(messages: int) -> dict[str, Any]:
    """An export with so many messages."""
    made = []
    for n in range(messages):
        role = "user" if n % 2 == 0 else "assistant"
        text = f"Message {n}. " + "**Some** `words`.\n\n- one\n- two\n\n```python\nx = 1\n```\n" * 2
        made.append(
            {
                "id": f"m{n}",
                "conversation": "c",
                "parent": f"m{n - 1}" if n else None,
                "role": role,
                "parts": [{"type": "text", "text": text}],
                "turn": f"t{n // 2}",
                "created": 1.0 + n,
            }
        )
    conversation = {"id": "c", "title": "Long", "leaf": f"m{messages - 1}"}
    return {"format": "dragoman.conversation/1", "conversation": conversation, "messages": made, "blobs": {}}


FRAMES = """async () => {
  const times = []; let last = performance.now(); let on = true;
  const tick = now => { times.push(now - last); last = now; if (on) requestAnimationFrame(tick) };
  requestAnimationFrame(tick);
  const pane = [...document.querySelectorAll('*')].filter(e => e.scrollHeight > e.clientHeight + 500
    && /auto|scroll/.test(getComputedStyle(e).overflowY)).sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
  for (let n = 0; n < 40; n++) { pane.scrollTop = pane.scrollHeight * (n % 20) / 20;
    await new Promise(done => setTimeout(done, 25)) }
  on = false; times.sort((a, b) => a - b);
  return {median: times[times.length >> 1], worst: times[Math.floor(times.length * 0.95)]}
}"""


@pytest.mark.long
async def test_five_hundred_messages_stay_smooth(person: Person) -> None:
    """Frame times are loose bounds against a freeze: this machine may be busy."""
    made = await person.page.evaluate(
        """data => fetch("/api/import", {method: "POST", body: data,
        headers: {"content-type": "application/json"}}).then(a => a.json())""",
        json.dumps(long_conversation(500)),
    )
    await person.page.goto(f"{person.server.url}/c/{made['id']}")
    await person.sees("Message 499.")
    frames = await person.page.evaluate(FRAMES)
    assert frames["median"] < 1000, frames
    await person.say("slow")
    await person.sees("word word word")
    frames = await person.page.evaluate(FRAMES)
    assert frames["median"] < 1000, frames


@pytest.mark.long
async def test_a_megabyte_of_output_is_shown_on_demand_and_stays_smooth(person: Person) -> None:
    """C9"""
    await person.say("big")
    await person.sees("That was much.")
    await person.page.set_viewport_size({"width": 1200, "height": 420})
    head = person.call.get_by_role("button").first
    await head.click()
    await expect(person.by("full-output")).to_be_visible()
    await expect(head).to_be_in_viewport()  # opened content starts at its beginning
    await person.by("full-output").click()
    await expect(person.call).to_contain_text("line 0:", timeout=60_000)
    took = await person.page.evaluate(
        """async () => { const at = performance.now();
        for (let n = 0; n < 10; n++) await new Promise(requestAnimationFrame);
        return performance.now() - at }"""
    )
    assert took < 30_000
    await person.by("show-all").click()  # a part of it, since the whole would keep the page busy
    await expect(person.call).to_contain_text("line 3000:")
    await expect(person.by("show-all")).to_contain_text("Show more")
    assert "line 6000:" not in await person.call.inner_text()


@pytest.mark.long
async def test_everything_is_reached_with_the_keyboard_alone(person: Person) -> None:
    await person.page.keyboard.type("note")
    await person.page.keyboard.press("Enter")
    await expect(person.question).to_be_visible(timeout=60_000)
    for _ in range(200):
        await person.page.keyboard.press("Tab")
        if await person.page.evaluate("document.activeElement?.dataset.testid") == "allow":
            break
    else:
        pytest.fail("Tab does not reach the answer")
    await person.page.keyboard.press("Enter")
    await person.sees("The note is written.")
    await person.page.keyboard.press("Control+k")
    await expect(person.page.get_by_test_id("palette")).to_be_visible()
    await person.page.keyboard.press("Escape")
    await expect(person.page.get_by_test_id("palette")).to_be_hidden()


async def test_it_is_read_on_paper_in_larger_letters_and_in_colours_of_ones_own(person: Person) -> None:
    """The content is complete and follows the browser's font size, and a selection is marked by more than its
    background (U3)."""
    page = person.page
    await person.say("long")
    await person.sees("Paragraph 19")
    await page.emulate_media(media="print", color_scheme="dark")
    assert await page.evaluate("document.documentElement.scrollHeight > innerHeight + 200")
    await expect(person.by("sidebar")).to_be_hidden()
    await expect(person.by("composer")).to_be_hidden()
    ink = await page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(29, 29, 27)"  # on white
    await page.emulate_media(media="screen", color_scheme="light", forced_colors="active")
    await page.evaluate("document.documentElement.style.fontSize = '200%'")
    await expect(person.by("composer-text")).to_have_css("font-size", "30px")
    await person.by("header-menu").click()
    for chosen in (page.get_by_role("menuitem").first, page.locator("[aria-current=page]")):
        await expect(chosen).to_have_css("outline-style", "solid")
    await page.emulate_media(forced_colors="none", reduced_motion="reduce")
    await person.answer.evaluate("e => e.classList.add('found')")  # as one that a search led to
    await expect(person.answer).to_have_css("outline-style", "solid")
    await page.emulate_media(reduced_motion="no-preference")


async def test_it_fits_a_phone_and_speaks_chinese(browser: Browser, server: Server) -> None:
    phone = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "locale": "zh-CN"}
    async with at_the_page(browser, server, **phone) as person:
        await expect(person.page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
        await person.say("note")
        await expect(person.question).to_be_visible(timeout=60_000)
        wide = await person.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        assert not wide
        await person.by("allow").tap()
        await person.sees("The note is written.")
        await person.by("open-drawer").tap()
        await expect(person.by("conversation-list")).to_be_in_viewport()
        assert "对话" in await person.page.inner_text("body")


async def faults(person: Person, view: str = "") -> list[str]:
    """Return the faults in the shown page, or in this part of it."""
    await person.page.wait_for_timeout(400)  # until what moves has come to rest
    return [
        f"{fault['id']}: {fault['help']}: {[node['html'][:120] for node in fault['nodes'][:3]]}"
        for fault in await violations(person, view)
        if fault["impact"] in ("serious", "critical")
    ]


async def violations(person: Person, view: str = "") -> list[dict[str, Any]]:
    """Return the findings of axe-core, minor ones included. Each page loads its half a megabyte once."""
    if not await person.page.evaluate("'axe' in window"):
        await person.page.evaluate(AXE)
    part = f"[data-testid={view}]" if view else "html"
    found = await person.page.evaluate("part => axe.run(part, {resultTypes: ['violations']})", part)
    return list(found["violations"])
