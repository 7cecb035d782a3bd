"""Several users in one conversation, each with a browser, and readers who have only a link (V1, V2, V3)."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from dragoman import ToolContext, ToolOutput, tool
from dragoman.server.auth import key_hash
from dragoman.turn.agent import Agent
from dragoman.wire.scripted import calls, says
from tests.browser.stage import MARKS, Person, new_context
from tests.browser.test_setup import violations
from tests.browser.test_views import RESTED, WIDE
from tests.cli.program import program
from tests.fleet import Fleet, Node, node
from tests.loopback import Body, Reply, Stream, delta, loopback, sse
from tests.media.media_server import png
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import model_of
from tests.server.proxy import shown_below
from tests.server.site import Site, served
from tests.server.test_sharing import look, wipe

pytestmark = MARKS
TREE = "id => fetch(`/api/conversations/${id}/tree`).then(answer => answer.json())"
LOOKS_AT_PRESENCE = """() =>
    performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/presence")).length"""
SHOWN = """() => [...document.querySelectorAll("[data-testid=message], [data-testid=answer]")].map(one => [
    one.dataset.message, (one.querySelector(".bubble") ?? one.firstElementChild).innerText.trim()])"""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+(/\w+)*/?#(invitation=)?[\w-]{40,}$")


@tool
async def picture(context: ToolContext) -> ToolOutput:
    return ToolOutput("a picture", attachments=(await context.put_file(png(40, 30), "image/png", "a.png"),))


@asynccontextmanager
async def scene(folder: Path, *script: Any, **options: Any) -> AsyncIterator[Site]:
    """A server with the users ada, bob and eve, one tool that runs and one that asks."""
    lines = [calls("look", at="sda"), says("sda is **fine**."), *script, *[says("done")] * 20]
    more: dict[str, Any] = {"tools": [wipe, look], "allow": ["look"], "ask": ["wipe"], **options}
    async with served(folder, lines, **more) as site:
        for name in ("ada", "bob", "eve"):
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        yield site


@asynccontextmanager
async def at_it(browser: Browser, url: str, user: str, path: str = "/", key: str = "") -> AsyncIterator[Page]:
    """A user who opens this and signs in. Errors of the page's own scripts fail the test."""
    broken: list[str] = []
    context = await new_context(browser)
    page = await context.new_page()
    page.on("pageerror", lambda error: broken.append(str(error)))
    await page.goto(url + path)
    await page.get_by_label("Password or key").fill(key or f"key of {user}")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("sidebar")).to_be_visible(timeout=60_000)
    yield page
    await context.close()
    assert not broken, broken


async def begun(owner: Page) -> str:
    """Send a message as the owner, wait for the answer, and return the conversation's ID."""
    await owner.get_by_test_id("composer-text").fill("look at it")
    await owner.keyboard.press("Enter")
    await expect(owner.get_by_test_id("answer")).to_contain_text("sda is fine")
    return owner.url.rpartition("/")[2]


async def share(site: Site, id: str, user: str, role: str) -> None:
    answer = await site.ask("PUT", f"/api/conversations/{id}/members/{user}", {"role": role})
    assert answer.status == 200, answer.body


async def say(page: Page, text: str) -> None:
    await page.get_by_test_id("composer-text").fill(text)
    await page.get_by_test_id("composer-text").press("Enter")


async def looks(page: Page, site: Site, view: str) -> None:
    """Check the view at phone and desktop widths, light and dark: axe-core finds nothing, and nothing is cut
    off."""
    colours: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for width in (390, 1280):
        for one in colours:
            await page.set_viewport_size({"width": width, "height": 844})
            await page.emulate_media(color_scheme=one)
            await page.evaluate(RESTED)
            found = await violations(Person(page, site), view)  # type: ignore[arg-type]  # it asks the page alone
            assert found == [], (width, one, found)
            assert await page.evaluate(WIDE) == 0, (width, one)
    await page.set_viewport_size({"width": 1280, "height": 844})


async def test_the_owner_shares_it_by_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    """The owner adds, changes and removes members, and makes and revokes links (V1)."""
    async with scene(tmp_path) as site, at_it(browser, site.url, "local") as owner:
        by, press = owner.get_by_test_id, owner.keyboard.press
        id = await begun(owner)
        await press("Control+k")
        await by("palette").get_by_role("combobox").fill("share")
        await press("Enter")
        await by("member-name").focus()
        for name in ("nobody", "ada"):
            await by("member-name").fill(name)
            await press("Enter")
            if name == "nobody":
                await expect(by("share-problem")).to_contain_text("Unknown user 'nobody'")
        await expect(by("member")).to_have_count(2)
        await expect(by("share-problem")).to_have_count(0)
        await expect(by("member-name")).to_be_focused()
        await by("member-role").focus()
        await press("r")
        await expect(by("member-role")).to_have_value("reads")
        await by("make-invitation").press("Enter")
        await expect(by("invitation-address")).to_have_value(ADDRESS)
        await by("link-upto").select_option(index=1)
        await by("omit-results").press("Space")
        await by("make-link").press("Enter")
        await expect(by("copy-link")).to_be_focused()
        await owner.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await press("Enter")
        await expect(by("copy-link")).to_have_text("Copied")
        assert ADDRESS.match(await owner.evaluate("navigator.clipboard.readText()"))
        await expect(by("shared")).to_have_count(2)
        await expect(by("shared").last).to_contain_text("up to a message · without results of calls · until")
        await looks(owner, site, "share-dialog")
        for left in (1, 0):
            await by("revoke-share").first.press("Enter")
            await expect(by("shared")).to_have_count(left)
        await by("member-menu").press("Enter")
        await by("remove-member").press("Enter")
        await by("confirm-yes").press("Enter")
        await expect(by("member")).to_have_count(1)
        assert await site.runtime.store.members(id) == []
        await press("Escape")
        await expect(by("share-dialog")).to_have_count(0)


async def test_an_invitation_is_accepted_after_signing_in(browser: Browser, tmp_path: Path) -> None:
    """The invitation works once. A new member lands in the conversation, sees its owner, and can
    leave (V1)."""
    async with scene(tmp_path) as site, at_it(browser, site.url, "local") as owner:
        id = await begun(owner)
        made = await site.post(f"/api/conversations/{id}/invitations", {"role": "answers"})
        path = f"/#invitation={made['token']}"
        async with at_it(browser, site.url, "ada", path) as ada:
            by = ada.get_by_test_id
            await expect(by("invitation")).to_contain_text("You join as ada.")
            assert "invitation" not in ada.url
            await looks(ada, site, "invitation")
            await ada.keyboard.press("Enter")
            await expect(by("answer")).to_contain_text("sda is fine", timeout=60_000)
            assert ada.url.endswith(id)
            await expect(by("owner")).to_have_text("local")
            await expect(by("sender")).to_have_text("local")
            await expect(by("role-note")).to_contain_text("You can read here and answer questions")
            await expect(owner.get_by_test_id("present")).to_contain_text("ada", timeout=60_000)
            await by("share").click()
            await expect(by("member")).to_have_count(2)
            await expect(by("member-name")).to_have_count(0)
            await by("leave").click()
            await by("confirm-yes").click()
            await expect(by("welcome")).to_be_visible()
            await expect(by("conversation")).to_have_count(0)
        async with at_it(browser, site.url, "eve", path) as eve:
            await eve.get_by_test_id("join").click()
            await expect(eve.get_by_test_id("invitation-problem")).to_be_visible()
            await eve.get_by_test_id("not-now").click()
            await eve.reload()
            await expect(eve.get_by_test_id("composer-text")).to_be_visible()
            await expect(eve.get_by_test_id("invitation")).to_have_count(0)


async def test_each_sees_what_the_role_may_do(browser: Browser, tmp_path: Path) -> None:
    """A member can answer another user's call but not edit it, and a changed role shows immediately (V1, V2,
    V3)."""
    async with scene(tmp_path, calls("wipe", disk="sda")) as site, at_it(browser, site.url, "local") as owner:
        id = await begun(owner)
        for name, role in (("ada", "takes_part"), ("bob", "answers"), ("eve", "reads")):
            await share(site, id, name, role)
        at = f"/c/{id}"
        async with (
            at_it(browser, site.url, "ada", at) as ada,
            at_it(browser, site.url, "bob", at) as bob,
            at_it(browser, site.url, "eve", at) as eve,
        ):
            await expect(ada.get_by_test_id("composer-text")).to_be_focused()
            await expect(ada.get_by_test_id("model")).to_have_count(0)  # settings are the owner's
            await ada.keyboard.type("wipe it")
            await expect(owner.get_by_test_id("typing")).to_have_text("ada is typing…", timeout=60_000)
            await ada.keyboard.press("Enter")
            for page in (owner, bob, eve):
                await expect(page.get_by_test_id("sender").last).to_have_text("ada")
                await expect(page.get_by_test_id("question")).to_be_visible()
                await expect(page.get_by_test_id("turn-by")).to_have_text("sent by ada")
                for hidden in ("edit-arguments", "remember"):
                    await expect(page.get_by_test_id(hidden)).to_have_count(0)
            await expect(ada.get_by_test_id("edit-arguments")).to_be_visible()
            await expect(owner.get_by_test_id("edit-arguments")).to_have_count(0)
            await expect(eve.get_by_test_id("cannot-answer")).to_be_visible()
            for hidden in ("allow", "edit", "rerun", "open-inbox", "stop"):
                await expect(eve.get_by_test_id(hidden)).to_have_count(0)
            await expect(eve.get_by_test_id("role-note")).to_contain_text("You can only read here: ask local")
            await looks(eve, site, "")
            await share(site, id, "eve", "answers")
            await expect(eve.get_by_test_id("allow")).to_be_visible(timeout=60_000)
            await expect(bob.get_by_test_id("composer")).to_have_count(0)
            await say(owner, "and then?")
            await expect(ada.get_by_test_id("queued-by")).to_have_text("local")
            await expect(ada.get_by_test_id("edit-queued")).to_have_count(0)
            await bob.get_by_test_id("allow").click()
            await expect(owner.get_by_test_id("answer").last).to_contain_text("done")
            await owner.get_by_test_id("call").last.get_by_role("button").first.click()
            await expect(owner.get_by_test_id("decided")).to_contain_text("Allowed by bob")
            assert await owner.evaluate(LOOKS_AT_PRESENCE) <= 2  # the stream tells the rest


async def test_readers_can_save_images_but_not_edit_them(browser: Browser, tmp_path: Path) -> None:
    """V1: "edit" adds the image to a message."""
    script, tools = [calls("picture"), says("done")], [picture, wipe, look]
    async with (
        scene(tmp_path, *script, tools=tools, allow=["look", "picture"]) as site,
        at_it(browser, site.url, "local") as owner,
    ):
        id = await begun(owner)
        await say(owner, "draw it")
        await expect(owner.get_by_test_id("answer").last).to_contain_text("done")
        for name, role, edits in (("ada", "takes_part", 1), ("bob", "reads", 0)):
            await share(site, id, name, role)
            async with at_it(browser, site.url, name, f"/c/{id}") as page:
                await page.get_by_test_id("call").last.get_by_role("button").first.click()
                await expect(page.get_by_test_id("save-picture")).to_have_count(1)
                await expect(page.get_by_test_id("edit-picture")).to_have_count(edits)


async def test_a_member_chooses_who_answers_one_message(browser: Browser, tmp_path: Path) -> None:
    """V1, V2: it waits for the turn that runs, and no setting changes. Readers cannot comment."""
    script = [calls("wipe", disk="sda"), says("Wiped."), says("```html\n<p>by the clerk</p>\n```")]
    agents = [Agent(name="clerk", prompt="You are a clerk.")]
    async with scene(tmp_path, *script, agents=agents) as site, at_it(browser, site.url, "local") as owner:
        id = await begun(owner)
        await share(site, id, "ada", "takes_part")
        await share(site, id, "bob", "reads")
        async with (
            at_it(browser, site.url, "ada", f"/c/{id}") as ada,
            at_it(browser, site.url, "bob", f"/c/{id}") as bob,
        ):
            by = ada.get_by_test_id
            await say(ada, "wipe it")
            await expect(by("allow")).to_be_visible()
            await by("agent").click()
            await ada.get_by_role("menuitemradio", name="clerk").click()
            await expect(by("agent")).to_have_attribute("aria-label", "Agent for your next message: clerk")
            await looks(ada, site, "")
            await by("composer-text").fill("draw it")
            await expect(by("steer")).to_have_count(0)
            await by("send").click()
            await expect(by("queued-by")).to_have_count(1)
            await expect(by("agent")).to_have_text("No agent")
            await by("allow").click()
            for page, comments in ((ada, 1), (bob, 0)):
                await page.get_by_test_id("answer").last.get_by_role("button", name="Preview").click()
                await expect(page.get_by_test_id("preview-source")).to_be_visible()
                await expect(page.get_by_test_id("preview-comment")).to_have_count(comments)
            assert ["clerk" in one.system for one in model_of(site.runtime).requests[-2:]] == [False, True]
            assert "agent" not in (await site.get(f"/api/conversations/{id}"))["settings"]
            await by("share").click()
            await expect(by("member")).to_have_count(3)
            await site.ask("DELETE", f"/api/conversations/{id}/members/ada")
            await expect(by("welcome")).to_be_visible()
            await expect(by("share-dialog")).to_have_count(0)


async def test_the_later_of_two_answers_is_told_who_was_first(browser: Browser, tmp_path: Path) -> None:
    """The report names the first user, although the page of the second has not received that answer
    yet (V3)."""
    async with scene(tmp_path, calls("wipe", disk="sda")) as site, at_it(browser, site.url, "local") as owner:
        id = await begun(owner)
        await share(site, id, "ada", "answers")
        async with at_it(browser, site.url, "ada", f"/c/{id}") as ada:
            await say(owner, "wipe it")
            await expect(ada.get_by_test_id("allow")).to_be_visible()
            question = await site.question()

            async def later(route: Any) -> None:
                headers = {"authorization": "Bearer key of local"}
                first = {"verdict": "allow", "hash": question["hash"]}
                await site.post(f"/api/questions/{question['id']}/answer", first, headers=headers)
                await route.continue_()

            await owner.route("**/answer", later)
            await ada.route("**/answer", later)
            await ada.get_by_test_id("allow").click()
            await expect(ada.get_by_test_id("toast")).to_have_text(re.compile("Answered meanwhile by local"))


async def test_a_link_shows_the_conversation_and_nothing_else(browser: Browser, tmp_path: Path) -> None:
    """The link works live, below a path and without signing in. A frozen link stays unchanged, and a revoked
    link reports that (V1)."""
    async with (
        scene(tmp_path, path="/chat") as site,
        shown_below("/chat", site.url) as url,
        at_it(browser, url, "local") as owner,
    ):
        by = owner.get_by_test_id
        await begun(owner)
        addresses: list[str] = []
        await by("share").click()
        for frozen in ("true", "false"):
            await by("link-frozen").select_option(frozen)
            await by("omit-arguments").check()
            await by("make-link").click()
            await expect(by("shared")).to_have_count(len(addresses) + 1)
            addresses.append(await by("link-address").input_value())
        await owner.keyboard.press("Escape")
        context = await new_context(browser)
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        kept, live = [await context.new_page() for _ in addresses]
        for page, address in zip((kept, live), addresses, strict=True):
            assert address.startswith(f"{url}/shared#")
            await page.goto(address)
            await expect(page.get_by_test_id("shared-message")).to_have_count(3)
            await expect(page.get_by_test_id("shared-message").last).to_contain_text("sda is fine.")
            await expect(page.locator("strong")).to_have_text("fine")
        await live.get_by_test_id("shared-call").locator("summary").click()
        await expect(live.get_by_test_id("shared-call")).to_contain_text("sda is fine")
        await expect(live.get_by_test_id("shared-call")).not_to_contain_text('"at"')
        await expect(live.get_by_test_id("shared-omits")).to_contain_text("arguments of calls")
        await looks(live, site, "")
        await say(owner, "and more")
        await expect(live.get_by_test_id("shared-message").last).to_contain_text("done", timeout=60_000)
        await expect(live.get_by_test_id("shared-mark")).to_have_text("Read-only · Live")
        await kept.reload()
        await expect(kept.get_by_test_id("shared-message")).to_have_count(3)
        await expect(kept.get_by_test_id("shared-mark")).to_contain_text("As it was")
        assert {one.removeprefix(url).split("/")[1] for one in asked} <= {"shared", "assets", "api"}
        assert all("/api/shared/" in one for one in asked if "/api/" in one)
        await by("share").click()
        await by("revoke-share").last.click()
        await expect(live.get_by_test_id("link-ended")).to_be_visible(timeout=60_000)
        await expect(live.get_by_test_id("shared-message")).to_have_count(0)
        await looks(live, site, "")
        await context.close()


@pytest.mark.long
async def test_three_browsers_two_nodes_one_killed_one_member_removed(
    browser: Browser, tmp_path: Path, postgres: Server
) -> None:
    """A node dies while a member's turn streams there. All members see the turn to its stored end at the
    other node. A removed member is out immediately, and sees nothing of what follows (V1, V3, N2)."""
    asked: list[str] = []

    def play(body: Body) -> Reply:
        asked.append(said := str(body["messages"][-1]["content"]))
        if asked.count(said) == 1 and said == "write":
            return Stream((sse(delta(content="Half of it")),), then="stalls")
        return says(f"All of {said}.")

    def moving(first: Node, second: Node) -> str:
        return first.url if first.process.alive else second.url

    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url)) as first,
        node(fleet) as second,
        shown_below("", lambda: moving(first, second)) as address,
        asyncio.timeout(4 * PATIENCE),
    ):
        add = ("people", "add")
        keys = {
            name: (await program(*add, name, "--store", fleet.store, folder=fleet.work)).out.strip()
            for name in ("ada", "bob")
        }
        id = (await second.post("/api/conversations", {}))["id"]
        for name in keys:
            async with second.http.put(
                f"/api/conversations/{id}/members/{name}", json={"role": "takes_part"}
            ) as answer:
                assert answer.status == 200, await answer.text()
        at = f"/c/{id}"
        async with (
            at_it(browser, second.url, "local", at, second.token) as owner,
            at_it(browser, address, "ada", at, keys["ada"]) as ada,
            at_it(browser, address, "bob", at, keys["bob"]) as bob,
        ):
            pages = (owner, ada, bob)
            await expect(owner.get_by_test_id("present")).to_have_text(re.compile("ada, bob"), timeout=60_000)
            await say(ada, "write")
            for page in pages:
                await expect(page.get_by_test_id("answer")).to_contain_text("Half of it", timeout=60_000)
            first.process.send_signal(signal.SIGKILL)
            for page in pages:
                await expect(page.get_by_test_id("answer")).to_contain_text("All of write.", timeout=60_000)
                await expect(page.get_by_test_id("stop")).to_be_hidden(timeout=60_000)
            await owner.get_by_test_id("share").click()
            member = owner.get_by_test_id("member").filter(has_text="bob")
            await member.get_by_test_id("member-menu").click()
            await owner.get_by_test_id("remove-member").click()
            await owner.get_by_test_id("confirm-yes").click()
            await expect(member).to_have_count(0)
            await expect(bob.get_by_test_id("welcome")).to_be_visible()
            await expect(bob.get_by_test_id("conversation")).to_have_count(0)
            await owner.keyboard.press("Escape")
            for page, text in ((ada, "on"), (owner, "more")):
                await say(page, text)
                for other in (owner, ada):
                    answer_shown = other.get_by_test_id("answer").last
                    await expect(answer_shown).to_contain_text(f"All of {text}.", timeout=60_000)
                    await expect(other.get_by_test_id("stop")).to_be_hidden(timeout=60_000)
            tree = await owner.evaluate(TREE, id)
            stored = [[one["id"], one["parts"][0]["text"]] for one in tree["messages"]]
            assert [text for _, text in stored] == [
                *("write", "All of write.", "on", "All of on."),
                *("more", "All of more."),
            ]
            assert [one["by"] for one in tree["messages"][::2]] == ["ada", "ada", "local"]
            for page in (owner, ada):
                assert await page.evaluate(SHOWN) == stored
            assert await bob.evaluate(SHOWN) == []
            await bob.goto(f"{address}{at}")
            await expect(bob.get_by_test_id("gone-new")).to_be_visible(timeout=60_000)
