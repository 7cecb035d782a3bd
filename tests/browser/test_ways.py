"""Everybody gets everywhere (U3): written from right to left, twice as large, and with the keyboard alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.test_way_back import nothing_at

pytestmark = MARKS

# Controls that cannot be used in place: outside the window, cut off without scrolling, or covered by another
# element. Content that is only scrolled away is not a fault, nor is content under the button that scrolls to
# the end.
FAULTS = """() => {
  const faults = [];
  const said = e => e.dataset.testid ?? (e.ariaLabel || e.textContent.trim() || e.outerHTML).slice(0, 80);
  const top = document.querySelector("dialog[open], nav.drawer") ?? document.body;
  const scrolls = e => /auto|scroll/.test(getComputedStyle(e).overflow);
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  for (const pane of document.querySelectorAll("[data-testid=messages], dialog[open] *, nav"))
    if (pane.scrollWidth > pane.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(pane).overflowY)
      && !pane.closest("pre, table, .diff, [role=region], textarea"))
      faults.push(`${pane.className} scrolls sideways`);
  for (const e of top.querySelectorAll("a[href], button, input, textarea, select")) {
    if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true}) || e.matches(".skip")) continue;
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    let away = false;
    for (let up = e.parentElement; up; up = up.parentElement) {
      const frame = up.getBoundingClientRect();
      const inside = x > frame.left && x < frame.right && y > frame.top + 4 && y < frame.bottom - 4;
      away ||= scrolls(up) && !inside;
    }
    if (away) continue;
    if (box.left < -1 || box.right > innerWidth + 1) faults.push(`${said(e)} reaches out of the window`);
    const found = document.elementFromPoint(x, y);
    const over = !found || !(e.contains(found) || found.contains(e) || found.closest("label")?.control === e);
    if (over && !found?.closest(".jump, .toasts, [data-stuck]"))
      faults.push(`${said(e)} is under ${found ? said(found) : "nothing"}`);
  }
  return faults;
}"""

# A focused element, or its surroundings, differs from its unfocused state.
SEEN = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return "nothing has the focus";
  const look = () => {
    const looks = [];
    for (let up = e, n = 0; up && n < 4; up = up.parentElement, n++) {
      const {outline, outlineStyle, borderColor, boxShadow, backgroundColor} = getComputedStyle(up);
      looks.push([outlineStyle === "none" ? "" : outline, borderColor, boxShadow, backgroundColor].join());
    }
    return looks.join(";");
  };
  for (const up of [e, e.parentElement, e.parentElement?.parentElement]) if (up) up.style.transition = "none";
  const focused = look();
  e.blur();
  const plain = look();
  e.focus({focusVisible: true, preventScroll: true});
  return focused === plain ? `the focus cannot be seen on ${e.outerHTML.slice(0, 120)}` : "";
}"""

MIDDLES = """() => {
  const names = ["sidebar", "composer", "send", "attach", "title", "header-menu"];
  return Object.fromEntries(names.map(name => {
    const box = document.querySelector(`[data-testid=${name}]`).getBoundingClientRect();
    return [name, box.left + box.width / 2];
  }));
}"""


async def faults(person: Person) -> list[str]:
    await person.page.wait_for_timeout(300)  # until what moves has come to rest
    found: list[str] = await person.page.evaluate(FAULTS)
    return found


async def talk(person: Person) -> None:
    """Words, tables, calls, a diff and a question that is still open."""
    nothing_at(person.server.config.with_name("draft.txt"))
    for play, words in (("markdown", "two"), ("think", "thought"), ("people", "These are they.")):
        await person.say(play)
        await person.sees(words)
    await person.call.get_by_role("button").first.click()
    await expect(person.by("result-table")).to_be_visible()
    await person.say("draft")
    await expect(person.by("allow")).to_be_visible()


async def views(person: Person) -> AsyncIterator[str]:
    """Open every main view in turn, yield its name, and restore it afterwards."""
    yield "a question"
    for key, view in (("Alt+i", "inbox"), ("Control+k", "palette")):
        await person.page.keyboard.press(key)
        await expect(person.by(view)).to_be_visible()
        yield view
        await person.page.keyboard.press("Escape")
    for opener, view in (("model", "models"), ("open-tools", "tools")):
        await person.by(opener).click()
        await expect(person.by(view)).to_be_visible()
        yield view
        await person.page.keyboard.press("Escape")
    if await person.by("open-drawer").is_visible():
        await person.by("open-drawer").click()
        await expect(person.by("new-conversation")).to_be_in_viewport()
        yield "the drawer"
    await person.by("open-settings").first.click()
    for tab in ("general", "setup", "permissions", "prompts", "usage", "help"):
        await person.by(f"tab-{tab}").click()
        yield tab
    await person.page.keyboard.press("Escape")
    await person.by("reject").first.scroll_into_view_if_needed()
    yield "the answers to a question"


@pytest.mark.long
async def test_from_right_to_left_the_page_is_its_own_mirror(browser: Browser, server: Server) -> None:
    async with at_the_page(browser, server) as person:
        await person.say("hello")
        await person.sees("How can I help?")
        plain = await person.page.evaluate(MIDDLES)
        await person.page.evaluate("document.documentElement.dir = 'rtl'")
        mirrored = await person.page.evaluate(MIDDLES)
        for name, middle in plain.items():
            assert abs(1200 - middle - mirrored[name]) < 20, (name, middle, mirrored[name])
        said = await person.by("message").last.locator(".bubble").bounding_box()
        column = await person.by("message").last.bounding_box()
        assert said is not None
        assert column is not None
        assert abs(said["x"] - column["x"]) < 2  # messages of the user are aligned to the end of the line
        await person.by("header-menu").click()
        menu = await person.page.get_by_role("menu").bounding_box()
        assert menu is not None
        assert menu["x"] < 300
        await person.page.keyboard.press("Escape")
        await talk(person)
        async for view in views(person):
            assert await faults(person) == [], view
        diff = person.by("question-diff").first
        assert await diff.evaluate("e => getComputedStyle(e).direction") == "ltr"  # code is
        await person.by("reject").first.click()


@pytest.mark.long
async def test_from_right_to_left_a_phone_has_its_drawer_on_the_other_side(
    browser: Browser, server: Server
) -> None:
    async with at_the_page(browser, server, viewport={"width": 390, "height": 760}) as person:
        await person.page.evaluate("document.documentElement.dir = 'rtl'")
        await expect(person.by("new-conversation")).not_to_be_in_viewport()
        assert await faults(person) == []
        await person.by("open-drawer").click()
        await expect(person.by("new-conversation")).to_be_in_viewport()
        await person.page.wait_for_timeout(300)
        drawer = await person.by("sidebar").bounding_box()
        assert drawer is not None
        assert abs(drawer["x"] + drawer["width"] - 390) < 2
        assert await faults(person) == []


@pytest.mark.long
async def test_at_twice_the_size_everything_is_reached_and_nothing_is_cut_off(
    browser: Browser, server: Server
) -> None:
    """A window of 1280 × 800 at 200 %, as WCAG 1.4.4 and 1.4.10 want it."""
    size = {"width": 640, "height": 400}
    async with at_the_page(browser, server, viewport=size, device_scale_factor=2) as person:
        assert (
            await person.by("messages").evaluate("e => e.scrollTop") == 0
        )  # the first screen begins at its top
        assert await faults(person) == []
        await talk(person)
        async for view in views(person):
            assert await faults(person) == [], view
            dialog = person.page.locator("dialog[open]")
            if await dialog.count():
                box = await dialog.bounding_box()
                assert box is not None
                assert 0 <= box["y"] <= 400 - box["height"], (view, box)
        await person.by("more").first.click()
        for name in ("allow", "edit-arguments", "reject", "reject-with", "remember", "stop-calls"):
            if name == "stop-calls":
                await person.by(name).first.scroll_into_view_if_needed()
            await expect(person.by(name).first).to_be_in_viewport(ratio=0.99)
        await person.by("reject").first.click()


async def test_the_main_way_with_the_keyboard_alone(person: Person) -> None:
    """The user begins, sends, answers, changes settings, searches and navigates, and the focus is visible at
    every step."""
    keys, page = person.page.keyboard, person.page

    async def seen() -> None:
        assert await page.evaluate(SEEN) == ""

    async def tab_to(testid: str, key: str = "Tab") -> None:
        for _ in range(120):
            await keys.press(key)
            await seen()
            if await page.evaluate("document.activeElement?.dataset.testid") == testid:
                return
        raise AssertionError(f"{key} does not lead to {testid}")

    await expect(person.by("composer-text")).to_be_focused()
    await seen()
    await keys.type("hands off the mouse")  # said nowhere else in the list
    await keys.press("Enter")
    await person.sees("You said: hands off the mouse")
    first = page.url

    await keys.press("Control+Shift+O")
    await expect(person.by("composer-text")).to_be_focused()
    await expect(person.by("answer")).to_have_count(0)
    await keys.type("note")
    await keys.press("Enter")
    await expect(person.by("allow")).to_be_visible()
    await tab_to("allow", "Shift+Tab")
    await keys.press("a")
    await person.sees("The note is written.")

    await keys.press("Control+/")
    await expect(person.by("composer-text")).to_be_focused()
    await tab_to("open-settings", "Shift+Tab")
    await keys.press("Enter")
    await expect(person.by("settings")).to_be_visible()
    await tab_to("tab-general")
    await keys.press("ArrowDown")
    await expect(person.by("tab-setup")).to_be_focused()
    await seen()
    await keys.press("Escape")
    await expect(person.by("settings")).to_be_hidden()
    await expect(person.by("open-settings").first).to_be_focused()  # back where one was

    await tab_to("search", "Shift+Tab")
    await keys.type("hands off")
    row = person.by("conversation").filter(has=page.locator("mark"))
    await expect(row.first).to_be_visible()
    while await page.evaluate("!document.activeElement?.closest('[data-testid=conversation]')"):
        await keys.press("Tab")
        await seen()
    await keys.press("Enter")
    await page.wait_for_url(first)
    await person.sees("You said: hands off the mouse")
