"""Set-up in the page: a key for a provider, an MCP server that comes, breaks and says why."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from tests.browser import test_reading
from tests.browser.plays import obey
from tests.browser.stage import MARKS, Person, at_the_page, staged
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.providers.local.hub_site import REPO, hub_site
from tests.tools.mcp.guarded import Said, guarded
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.servers import RAW

pytestmark = MARKS
KEY = "a-key-of-my-own-42"
DELETE = """path => fetch(path, {method: "DELETE", body: "{}",
headers: {"content-type": "application/json"}})"""


@pytest_asyncio.fixture(loop_scope="session")
async def owner(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Person]:
    """Yield an admin of a separate server with separate folders, so that nothing on this machine changes."""
    for name in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    (tmp_path / "stage").mkdir()
    async with staged(tmp_path / "stage") as server, at_the_page(browser, server) as person:
        yield person


async def open_setup(person: Person, part: str) -> None:
    await person.by("open-settings").click()
    await person.by("tab-setup").click()
    await person.by(f"setup-{part}").click()


async def violations(person: Person, view: str = "") -> list[str]:
    found = await test_reading.violations(person, view)
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


async def _add_provider(owner: Person, url: str) -> Locator:
    """Add a provider named `mine` and return its row."""
    await open_setup(owner, "providers")
    await owner.by("open-new-provider").click()
    await owner.by("provider-name").fill("mine")
    await owner.by("provider-address").fill(url)
    await owner.by("provider-key").fill(KEY)
    await owner.by("add-provider").click()
    return owner.page.locator("[data-testid=provider][data-provider='mine']")


async def test_a_provider_is_added_with_its_key_and_answers(owner: Person, tmp_path: Path) -> None:
    """A key goes in through the page and is never shown again, and the next turn is answered with it."""
    async with loopback(obey) as model:
        model.models = ["fine"]
        row = await _add_provider(owner, model.url)
        await expect(row.get_by_test_id("provider-state")).to_contain_text("OWN_MINE_KEY")
        await expect(owner.by("open-new-provider")).to_be_focused()
        await row.get_by_test_id("test-provider").click()
        await expect(row.get_by_test_id("provider-test")).to_contain_text("It works")
        assert KEY not in await owner.page.content()
        assert KEY not in json.dumps(await owner.told("/api/setup/providers"))
        await owner.page.keyboard.press("Escape")
        await owner.by("model").click()
        await owner.by("model-search").fill("fin")  # from its own list, which the page requested by itself
        await expect(owner.page.locator("[data-testid=model-choice][data-model='mine/fine']")).to_be_visible()
        await owner.by("model-search").fill("mine/any")
        await owner.page.locator("[data-testid=model-choice][data-model='mine/any']").click()
        await owner.say("hello")
        await owner.sees("How can I help?")
        await open_setup(owner, "providers")
        await row.get_by_test_id("remove-key").click()
        await owner.by("confirm-yes").click()
        await expect(row.get_by_test_id("provider-state")).to_contain_text("no key")
        await row.get_by_test_id("remove-provider").press("Enter")
        await expect(owner.by("confirm")).to_contain_text("Remove mine?")
        await owner.page.keyboard.press("Enter")  # the safe one has the focus
        await expect(owner.by("confirm")).to_be_hidden()
        await expect(row.get_by_test_id("remove-provider")).to_be_focused()
        await row.get_by_test_id("remove-provider").click()
        await owner.page.go_back()  # leave the conversation that was started
        await expect(owner.by("confirm")).to_be_hidden()
        await open_setup(owner, "providers")
        await owner.page.evaluate(DELETE, "/api/setup/providers/mine")  # by another tab
        await row.get_by_test_id("remove-provider").click()
        await owner.by("confirm-yes").click()
        await expect(row).to_be_hidden()
        await expect(owner.by("providers")).to_be_focused()  # the pressed button is gone
        await owner.by("toast").get_by_role("button").click()  # the error is visible above the dialog
    assert json.loads((tmp_path / "data" / "dragoman" / "keys.json").read_text()) == {}
    assert KEY not in owner.server.printed


@pytest.mark.long
async def test_nothing_bars_the_way_to_a_provider(owner: Person) -> None:
    """This covers adding a provider and confirming its removal (U3)."""
    async with loopback(obey) as model:
        row = await _add_provider(owner, model.url)
        await row.get_by_test_id("test-provider").click()
        await expect(row.get_by_test_id("provider-test")).to_contain_text("It works")
        assert await violations(owner, "settings") == []
        await row.get_by_test_id("remove-provider").click()
        await expect(owner.by("confirm")).to_be_visible()
        assert await violations(owner, "confirm") == []


@pytest.mark.long
async def test_a_servers_prompt_is_filled_in_and_stands_where_one_types(owner: Person) -> None:
    """The user reads the prompt before sending it, and the UI asks for its arguments first (F1)."""
    await open_setup(owner, "servers")
    await owner.by("open-new-server").click()
    await owner.by("server-name").fill("mine")
    await owner.by("server-command").fill(NODE)
    await owner.by("server-args").fill(script("server-everything", "dist/index.js"))
    await owner.by("plan-server").click()
    await owner.by("confirm-server").click()
    row = owner.page.locator("[data-testid=mcp-server][data-server='mine']")
    await expect(row).to_have_attribute("data-state", "running")
    await owner.page.keyboard.press("Escape")
    await owner.by("composer-text").fill("/mine:args")
    await owner.by("prompt-list").get_by_role("option").first.click()
    await owner.page.locator("[data-testid=prompt-argument][data-name=city]").fill("Rome")
    assert await violations(owner) == []
    await owner.by("insert-prompt").click()
    await expect(owner.by("composer-text")).to_have_value(re.compile("Rome"))


@pytest.mark.long
async def test_a_server_is_added_breaks_and_says_why(owner: Person, tmp_path: Path) -> None:
    """The UI shows the command before it runs, then the tools, and the reason when the server breaks
    (P11)."""
    program = tmp_path / "program.py"
    program.write_text(f"import runpy\nrunpy.run_path({RAW!r}, run_name='__main__')\n")
    await open_setup(owner, "servers")
    await owner.by("open-new-server").click()
    await expect(owner.by("server-name")).to_be_focused()
    await owner.by("server-name").fill("mine")
    await owner.by("server-command").fill(sys.executable)
    await owner.by("server-args").fill(f"{program}\nwell")
    await owner.by("server-pairs").fill(f"API_TOKEN={KEY}\nCOLOUR=red")
    await owner.by("plan-server").click()
    await expect(owner.by("plan-runs")).to_contain_text(str(program))
    await expect(owner.by("server-plan")).to_contain_text("COLOUR: red")
    await expect(owner.by("server-plan")).not_to_contain_text(KEY)
    assert (await owner.told("/api/setup/servers"))["items"] == []
    await owner.by("confirm-server").click()
    row = owner.page.locator("[data-testid=mcp-server][data-server='mine']")
    await expect(row).to_have_attribute("data-state", "running")
    await row.get_by_test_id("server-tools").click()
    await expect(row).to_contain_text("Say it again")
    assert await violations(owner) == []
    program.write_text("import os, sys\nsys.exit('no luck with ' + os.environ['API_TOKEN'])\n")
    await row.get_by_test_id("restart-server").click()
    await expect(row).to_have_attribute("data-state", "failed")
    await expect(row.get_by_test_id("server-error")).to_contain_text("no luck with")
    await row.get_by_test_id("server-log").click()
    await expect(row).to_contain_text(re.compile("no luck with ‹key›"))
    assert KEY not in await owner.page.content()
    await row.get_by_test_id("remove-server").click()
    await owner.by("confirm-yes").click()
    await expect(row).to_be_hidden()
    assert KEY not in owner.server.printed


@pytest.mark.long
async def test_one_signs_in_to_a_server_that_wants_to_know_who_one_is(owner: Person) -> None:
    """The page offers the sign-in, leads there, follows its state and cancels it. No token reaches the page
    (P11)."""
    async with guarded() as server:
        await open_setup(owner, "servers")
        await owner.by("open-new-server").click()
        await owner.by("kind-url").check()
        await owner.by("server-name").fill("far")
        await owner.by("server-url").fill(server.url)
        await owner.by("plan-server").click()
        await owner.by("confirm-server").click()
        row = owner.page.locator("[data-testid=mcp-server][data-server='far']")
        await expect(row).to_have_attribute("data-state", "login")
        state = row.get_by_test_id("login-state")
        endings: dict[Said, str | None] = {"nothing": None, "no": "refused", "yes": "done"}
        for server.person_says, ended in endings.items():
            async with owner.page.context.expect_page() as opened:
                await row.get_by_test_id("sign-in-server").click()
            tab = await opened.value
            if ended is None:
                await expect(tab).to_have_url(re.compile("/authorize"))
                await expect(state).to_contain_text(server.base.removeprefix("http://"))
                assert await violations(owner) == []
                await row.get_by_test_id("call-off-sign-in").click()
                await expect(state).to_be_hidden()
            else:
                returned = tab.get_by_test_id("returned")
                await expect(returned).to_have_attribute("data-login", ended)
                await expect(tab).to_have_url(f"{owner.server.url}/callback")
                await expect(state).to_have_attribute("data-login", ended)
            await tab.close()
        await expect(row).to_have_attribute("data-state", "running")
        await row.get_by_test_id("server-tools").click()
        await expect(row).to_contain_text("far_secret")
        assert await violations(owner) == []
        shown = await owner.page.content() + json.dumps(await owner.told("/api/setup/servers"))
        assert not any(secret in shown + owner.server.printed for secret in (*server.valid, "the-code"))


@pytest.mark.long
async def test_an_agent_is_written_used_changed_and_removed(owner: Person) -> None:
    """Unsaved text is restored, and an invalid agent is reported without losing text (P11, U2)."""
    await open_setup(owner, "agents")
    await owner.by("open-new-agent").press("Enter")
    await expect(owner.by("agent-name")).to_be_focused()
    await owner.by("agent-name").fill("poet")
    await owner.by("agent-prompt").fill("You write poems.")
    await owner.by("agent-tools").fill("basics\nfiles.reed_file")
    await owner.by("agent-allow").fill("files.read")
    assert await violations(owner) == []
    await owner.page.keyboard.press("Escape")
    await open_setup(owner, "agents")
    await expect(owner.by("agent-prompt")).to_have_value("You write poems.")
    await owner.by("save-agent").click()
    await expect(owner.by("agent-problem")).to_contain_text("Did you mean files.read_file")
    await owner.by("agent-tools").fill("basics\nfiles.read_file")
    await owner.by("save-agent").click()
    mine = owner.by("agent-setup").filter(has_text="poet")
    await expect(mine).to_contain_text("tools: basics, files.read_file")
    await mine.get_by_test_id("edit-agent").click()
    await expect(owner.by("agent-allow")).to_have_value("files.read")
    await owner.by("agent-description").fill("Rhymes.")
    await owner.by("save-agent").click()
    await expect(mine).to_contain_text("Rhymes.")
    assert 'prompt = "You write poems."' in owner.server.config.read_text("utf-8")
    await owner.page.keyboard.press("Escape")
    await owner.by("agent").click()
    await owner.page.get_by_role("menuitemradio", name="poet").click()
    await expect(owner.by("agent")).to_contain_text("poet")
    await open_setup(owner, "agents")
    await mine.get_by_test_id("remove-agent").click()
    await owner.by("confirm-yes").click()
    await expect(mine).to_have_count(0)
    await expect(owner.by("agent")).to_contain_text("No agent")


@pytest.mark.long
async def test_who_comes_back_to_the_set_up_is_where_they_were(owner: Person) -> None:
    """Typed text is visible immediately. Without any skill, the page explains what a skill is (C12, U3)."""
    await open_setup(owner, "agents")
    await expect(owner.page.get_by_text("A skill tells the model how to do something.")).to_be_visible()
    await owner.by("open-new-skill").click()
    await owner.by("skill-text").fill("1. Knead.")
    await owner.page.keyboard.press("Escape")
    await owner.by("open-settings").click()
    await owner.by("tab-setup").click()
    await expect(owner.by("skill-text")).to_have_value("1. Knead.")


@pytest.mark.long
async def test_a_skill_is_written_loaded_changed_and_removed(owner: Person, tmp_path: Path) -> None:
    """The model of the next turn loads it. A user who edits an outdated skill is warned first (C12, P11)."""
    file = tmp_path / "config" / "dragoman" / "skills" / "bake" / "SKILL.md"
    await open_setup(owner, "agents")
    await owner.by("open-new-skill").click()
    await owner.by("skill-name").fill("NUL")
    await owner.by("skill-description").fill("How to bake: bread.")
    await owner.by("skill-text").fill("1. Knead.\n2. Wait.")
    assert await violations(owner) == []
    await owner.page.reload()
    await open_setup(owner, "agents")
    await expect(owner.by("skill-text")).to_have_value("1. Knead.\n2. Wait.")
    await owner.by("save-skill").click()
    await expect(owner.by("skill-problem")).to_contain_text("Windows")
    await owner.by("skill-name").fill("bake")
    await owner.by("skill-name").press("Enter")
    mine = owner.by("skill-setup").filter(has_text="bake")
    await expect(mine).to_contain_text("How to bake: bread.")
    assert file.read_text("utf-8").endswith("\n---\n\n1. Knead.\n2. Wait.\n")
    assert await violations(owner) == []
    await owner.page.keyboard.press("Escape")
    await owner.say("bake")
    await owner.sees("It is in the oven.")
    await owner.call.get_by_role("button").first.click()
    await expect(owner.call).to_contain_text("2. Wait.")
    await open_setup(owner, "agents")
    await mine.get_by_test_id("edit-skill").click()
    await owner.by("skill-when").fill("bread is wanted")
    file.write_text(file.read_text("utf-8").replace("2. Wait.", "2. Sleep."), "utf-8")
    await owner.by("save-skill").click()
    await expect(owner.by("skill-changed")).to_contain_text("changed since you opened it")
    await expect(owner.by("skill-now")).to_contain_text("2. Sleep.")
    await expect(owner.by("skill-problem")).to_have_count(0)  # the problem is reported once
    assert await violations(owner) == []
    await owner.by("save-skill").click()
    await expect(owner.by("skill-form")).to_have_count(0)
    assert "when: bread is wanted" in file.read_text("utf-8")
    await mine.get_by_test_id("edit-skill").click()
    await owner.by("skill-text").fill("Buy it.")
    file.unlink()  # the typed text is for a new skill then
    await owner.by("save-skill").click()
    await expect(owner.by("skill-name")).to_be_editable()
    await expect(owner.by("skill-text")).to_have_value("Buy it.")
    await owner.by("save-skill").click()
    await expect(owner.by("skill-form")).to_have_count(0)
    assert "Buy it." in file.read_text("utf-8")
    await mine.get_by_test_id("remove-skill").click()
    await owner.by("confirm-yes").click()
    await expect(mine).to_have_count(0)
    assert not file.parent.exists()


@pytest.mark.long
async def test_the_set_up_is_chinese_where_the_page_is(owner: Person, browser: Browser) -> None:
    async with at_the_page(browser, owner.server, locale="zh-CN") as person:
        await open_setup(person, "agents")
        await expect(person.by("settings")).to_contain_text("智能体与技能")
        await person.by("open-new-agent").click()
        await expect(person.by("agent-form")).to_contain_text("它擅长什么")
        await person.by("open-new-skill").click()
        await expect(person.by("skill-form")).to_contain_text("何时使用")
        assert await violations(person) == []
        await person.page.keyboard.press("Escape")
        await person.by("open-tools").click()
        await expect(person.by("tools")).to_contain_text("计算算术表达式")


@pytest.mark.long
async def test_options_and_limits_are_set_for_one_conversation(owner: Person) -> None:
    """The conversation stores the settings, and an emptied setting returns to its default (R1)."""
    await owner.say("hello")
    await owner.sees("How can I help?")
    id = owner.page.url.rpartition("/")[2]
    await owner.by("open-tools").click()
    await owner.by("conversation-options").locator("summary").click()
    await owner.by("option-temperature").fill("0.4")
    await owner.by("option-others").fill('{"top_p": 0.9}')
    await owner.by("setting-max_rounds").fill("3")
    await owner.by("setting-review").select_option("on_error")
    await owner.by("setting-dialect").select_option("hermes")
    await owner.by("setting-review").select_option("by tool")
    await owner.by("setting-review-patterns").fill("shell=always\nmcp.*=on_error")
    await owner.by("setting-private").fill("Berta=Berta Meier")
    await owner.by("setting-private").blur()
    wanted = {
        "options": {"temperature": 0.4, "top_p": 0.9},
        "max_rounds": 3,
        "review": {"shell": "always", "mcp.*": "on_error"},
        "dialect": "hermes",
        "private": {"Berta": "Berta Meier"},
    }
    await eventually_set(owner, id, wanted)
    assert await violations(owner) == []
    await owner.by("option-temperature").fill("")
    await owner.by("setting-private").fill("")
    await owner.by("setting-private").blur()
    del wanted["private"]
    await eventually_set(owner, id, {**wanted, "options": {"top_p": 0.9}})


@pytest.mark.long
async def test_what_cannot_be_saved_stays_in_its_field_and_says_why(owner: Person) -> None:
    """This also holds if Escape closed the dialog. Valid values are saved (U3)."""
    await owner.say("hello")
    await owner.sees("How can I help?")
    id = owner.page.url.rpartition("/")[2]
    await owner.by("open-tools").click()
    await owner.by("conversation-options").locator("summary").click()
    await owner.by("option-temperature").fill("9")
    await owner.by("setting-max_rounds").fill("2.5")
    await owner.by("option-max_tokens").fill("0")
    await owner.by("option-others").fill("{top_p")
    await owner.by("setting-history").fill("4")
    await owner.by("setting-history").blur()
    await expect(owner.by("saved-history")).to_have_text("Saved.")
    await expect(owner.by("problem-temperature")).to_have_text("A number from 0 to 2.")
    await expect(owner.by("problem-max_rounds")).to_have_text("A whole number of 0 or more.")
    await expect(owner.by("problem-max_tokens")).to_have_text("A whole number of 1 or more.")
    await expect(owner.by("problem-others")).to_have_text("This is not a JSON object.")
    assert await violations(owner) == []
    await owner.by("setting-private").fill("Berta=Berta Meier")
    await owner.by("option-temperature").fill("x")
    await owner.page.keyboard.press("Escape")
    await expect(owner.by("tools")).to_have_count(0)
    await eventually_set(owner, id, {"history": 4, "private": {"Berta": "Berta Meier"}})
    await owner.by("open-tools").click()
    await expect(owner.by("option-temperature")).to_have_value("x")
    await expect(owner.by("problem-temperature")).to_be_visible()
    await expect(owner.by("option-others")).to_have_value("{top_p")
    await owner.by("option-temperature").fill("0.4")
    await owner.by("option-temperature").blur()
    await expect(owner.by("problem-temperature")).to_have_count(0)
    await expect(owner.by("saved-temperature")).to_be_visible()


async def eventually_set(person: Person, id: str, wanted: dict[str, object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while (found := (await person.told(f"/api/conversations/{id}"))["settings"]) != wanted:
            assert set(found) <= {*wanted, "model", "private"}
            await asyncio.sleep(0.1)


async def test_a_model_is_downloaded_and_chosen_by_name(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hub_site() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)  # the server's process begins with it
        monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
        (tmp_path / "stage").mkdir()
        async with staged(tmp_path / "stage") as server, at_the_page(browser, server) as owner:
            await _download(owner)


async def _download(owner: Person) -> None:
    await open_setup(owner, "providers")
    await owner.by("open-downloads").click()
    await expect(owner.by("offer").first).to_contain_text("Apache-2.0")
    await owner.by("other-download").fill(REPO)
    await owner.by("begin-other").click()
    await expect(owner.by("download-state")).to_contain_text("ready")
    assert await violations(owner) == []
    await owner.page.keyboard.press("Escape")
    await owner.by("model").click()
    await owner.by("model-search").fill("tiny")
    choice = owner.page.locator("[data-testid=model-choice][data-model='local/tiny-Q4_K_M']")
    await expect(choice).to_be_visible()


@pytest.mark.long
async def test_a_folder_is_trusted_by_a_button_after_its_files_are_seen(owner: Person) -> None:
    """The answer names exactly the files that were shown (P11)."""
    folder = {
        "folder": "/projects/notes",
        "state": "not_trusted",
        "would": ["starts the MCP server notes: python3 server.py"],
        "changes": [],
        "reason": "",
        "files": ["dragoman.toml", "server.py"],
        "seen": "these files",
    }
    said: list[object] = []

    async def answer(route: Route) -> None:
        decided = route.request.method == "PUT"
        if decided:
            said.append(route.request.post_data_json)
        now = {**folder, "state": "trusted", "restart": True} if decided else folder
        await route.fulfill(json={"items": [now]})

    await owner.page.route("**/api/setup/trust", answer)
    await open_setup(owner, "trust")
    await expect(owner.by("folder-trust")).to_contain_text("server.py")
    assert await violations(owner, "settings") == []
    await owner.by("trust").click()
    await expect(owner.by("trust-restart")).to_be_visible()
    await expect(owner.by("distrust")).to_be_visible()
    assert said == [{"folder": "/projects/notes", "trusted": True, "seen": "these files"}]


@pytest.mark.long
async def test_a_server_that_fails_is_told_of_at_the_tools(owner: Person) -> None:
    """F1: where its tools would be, and not in the answers."""
    await open_setup(owner, "servers")
    await owner.by("open-new-server").click()
    await owner.by("server-name").fill("mine")
    await owner.by("server-command").fill(sys.executable)
    await owner.by("server-args").fill("nothing-here.py")
    await owner.by("plan-server").click()
    await owner.by("confirm-server").click()
    row = owner.page.locator("[data-testid=mcp-server][data-server='mine']")
    await expect(row).to_have_attribute("data-state", "failed", timeout=60_000)
    await owner.page.keyboard.press("Escape")
    await owner.say("hello")
    await owner.sees("How can I help?")
    await expect(owner.by("open-tools")).to_have_accessible_name(re.compile("mine: "), timeout=60_000)
    await expect(owner.by("notice")).to_have_count(0)
    await owner.by("open-tools").click()
    await expect(owner.by("group-problem")).to_be_visible()
    assert await violations(owner, "tools") == []
