"""Check approval requests: their reasons, what an answer remembers, and how a user ends them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Route, expect

from dragoman import Plugin, TurnView, tool
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import calls, says
from tests.browser.plays import TORN
from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.server.site import served

pytestmark = MARKS


@pytest.mark.long
async def test_a_question_tells_why_it_is_asked(person: Person) -> None:
    """P9"""
    await person.say("note")
    await person.by("more").click()
    await expect(person.by("because")).to_have_text("Asked because no rule allows it.", timeout=60_000)
    await person.by("reject").click()
    await person.say("settings")
    await expect(person.by("because")).to_contain_text("protected", timeout=60_000)
    await expect(person.by("remember")).to_have_count(0)
    await person.by("reject").click()
    await person.set(mode="ask")
    await person.say("add")
    await expect(person.by("because")).to_contain_text("you approve every call", timeout=60_000)
    await expect(person.by("remember")).to_have_count(0)
    await person.by("allow").click()
    await person.sees("It is 5.")


@pytest.mark.long
async def test_the_reason_is_told_in_the_language_of_the_page(browser: Browser, server: Server) -> None:
    """P9"""
    async with at_the_page(browser, server, locale="zh-CN") as person:
        await person.say("note")
        await person.by("more").click()
        await expect(person.by("because")).to_contain_text("没有规则允许它", timeout=60_000)
        await expect(person.question).to_contain_text("允许 note 用这些参数运行吗？")
        await person.by("reject").click()
        await person.say("loop")
        await expect(person.question).to_contain_text("add 在这个回合中已用这些参数调用了 2 次")
        await person.by("stop").click()


async def test_what_the_server_says_is_told_in_the_language_of_the_page(
    browser: Browser, server: Server
) -> None:
    """Codes translate an error, a notice, a limit and a refusal, and after a reload the stored codes
    do (U3)."""
    async with at_the_page(browser, server, locale="zh-CN") as person:
        TORN.set()
        await person.say("torn")
        for reloaded in (False, True):
            if reloaded:
                await person.page.reload()
            await expect(person.by("error")).to_contain_text("已收到的内容已保存；请重试。")
        await person.set(max_rounds=1)
        await person.say("late")
        await expect(person.by("notice").last).to_contain_text("达到了上限（1 轮工具调用）：请模型作答。")
        await person.sees("word word")
        await person.by("stop").click()
        await person.page.reload()
        await expect(person.by("limit")).to_contain_text("本回合达到了上限：1 轮工具调用。")
        wrong: FilePayload = {"name": "a.json", "mimeType": "application/json", "buffer": b'{"format": "x"}'}
        await person.by("import-file").set_input_files(files=wrong)
        await expect(person.by("toast").last).to_contain_text("这不是导出的对话。")


@pytest.mark.long
async def test_a_small_change_is_little_to_read(person: Person) -> None:
    """The request shows the file and its change, every answer without a menu, and the names of folded
    arguments (P3, P9)."""
    await person.say("draft")
    await expect(person.by("question-diff")).to_contain_text("draft.txt", timeout=60_000)
    shown = await person.question.inner_text()
    for noise in ("diff --git", "/dev/null", "Make change", "no rule allows"):
        assert noise not in shown
    assert "new file" in shown
    await person.by("remember").click()
    await expect(person.by("rule")).to_contain_text("files.write for “draft.txt”")
    await person.by("remember").click()
    await expect(person.by("more")).to_have_text("Details · path · text")
    await person.by("more").click()
    await expect(person.by("arguments").locator("dt")).to_have_text(["path", "text"])
    await person.by("composer-text").press("ArrowUp")
    await expect(person.by("allow").locator("kbd")).to_be_visible()
    await person.page.keyboard.press("e")
    await expect(person.by("value-editor")).to_be_visible()
    await person.page.keyboard.press("Escape")  # leave the field, which would take the keys as text
    await person.page.keyboard.press("e")
    await person.page.keyboard.press("a")
    await person.sees("It is written.")


@pytest.mark.long
async def test_what_was_begun_stands_there_again(person: Person) -> None:
    """U2: a reply, a reason, arguments, a message: after another conversation, and after a reload."""
    await person.say("note")
    await person.by("reject-with").click()
    await person.by("reason").fill("not on a Sunday")
    noted = person.page.url
    await person.by("new-conversation").click()
    await person.say("ask")
    await person.by("reply-text").fill("a dark")
    asked = person.page.url
    await person.page.goto(noted)
    await expect(person.by("reason")).to_have_value("not on a Sunday")
    await person.by("reason").press("Escape")  # back to the answers, and the turn resumes
    await expect(person.by("reason")).to_have_count(0)
    await person.page.keyboard.press("e")
    await person.by("value-editor").locator("textarea, input").first.fill("of mine")
    await person.page.reload()
    await expect(person.by("value-editor").locator("textarea, input").first).to_have_value("of mine")
    await person.by("allow").click()
    await person.sees("The note is written.")
    await person.by("message").hover()
    await person.by("edit").click()
    await person.by("message").locator("textarea").fill("notes of today")
    await person.page.goto(asked)
    await expect(person.by("reply-text")).to_have_value("a dark")
    await person.page.goto(noted)
    await expect(person.by("message").locator("textarea")).to_have_value("notes of today")
    await person.page.keyboard.press("Escape")
    await expect(person.by("edit-send")).to_have_count(0)


@pytest.mark.long
async def test_what_was_typed_into_a_question_that_was_closed_elsewhere_is_not_kept(person: Person) -> None:
    """Text typed into a request that is still open is kept (U3 × P6)."""
    begun = "() => Object.keys(sessionStorage).filter(key => key.startsWith('dragoman.draft.ask.')).length"
    ids = list[str]()
    for _ in range(2):
        await person.say("ask")
        await person.by("reply-text").fill("a dark")
        where = f"/api/questions?conversation={person.page.url.rpartition('/')[2]}"
        ids += [one["id"] for one in (await person.told(where))["items"]]
        await person.by("new-conversation").click()
    assert await person.page.evaluate(begun) == len(ids) == 2
    await person.page.evaluate(
        """id => fetch(`/api/questions/${id}/answer`, {method: "POST",
        body: '{"verdict": "reply", "value": "red"}', headers: {"content-type": "application/json"}})""",
        ids[0],
    )
    await person.say("note")
    await expect(person.question).to_be_visible()
    await person.page.wait_for_function(f"() => ({begun})() === 1")
    kept = await person.page.evaluate("() => Object.keys(sessionStorage).join()")
    assert ids[1] in kept


async def test_a_tools_question_is_answered_and_a_turn_that_came_to_a_limit_can_go_on(person: Person) -> None:
    """The user answers with a choice or with free text, next to the choices or in the message field (C8). A
    limit is shown, also after a reload (T7)."""
    await person.say("ask")
    await expect(person.question).to_contain_text("Which colour?", timeout=60_000)
    await expect(person.call.get_by_text("Which colour?")).to_have_count(1)
    await person.by("choice").filter(has_text="blue").click()
    await person.sees("Thank you.")
    await person.say("ask")
    await expect(person.by("choice")).to_have_text(["red", "blue"])
    await person.by("reply-text").fill("a dark teal")
    await person.by("reply").click()
    await expect(person.call).to_contain_text("Which colour? → a dark teal")
    await person.sees("Thank you.")
    await person.say("ask")
    await expect(person.by("composer-text")).to_have_attribute("placeholder", "Your reply")
    await person.by("composer-text").fill("ochre")
    await person.by("composer-text").press("Enter")
    await expect(person.call).to_contain_text("Which colour? → ochre")
    await expect(person.by("steering")).to_have_count(0)
    await person.sees("Thank you.")
    await person.set(max_rounds=1)
    await person.say("rounds")
    await person.sees("That is what I have.")
    await expect(person.by("limit")).to_contain_text("1 round of tool calls")
    await person.page.reload()
    await expect(person.by("limit")).to_contain_text("1 round of tool calls", timeout=60_000)
    await expect(person.by("go-on")).to_have_text("1 more round")
    await person.by("go-on").click()
    await person.sees("You said: Go on.")
    await expect(person.by("limit")).to_have_count(0)


@pytest.mark.long
async def test_what_is_typed_while_an_answer_is_on_its_way_is_not_lost(person: Person) -> None:
    """An answer that came too late is not lost either, and one key pressed twice is one answer (C8 × P6)."""
    field, sent, held = person.by("composer-text"), list[str](), asyncio.Event()

    async def hold(route: Route) -> None:
        sent.append(route.request.url)
        await held.wait()
        await route.continue_()

    await person.page.route("**/api/questions/*/answer", hold)
    await person.say("ask")
    await expect(field).to_have_attribute("placeholder", "Your reply")
    await field.fill("ochre")
    await field.press("Enter")
    await field.press("Enter")
    await field.press_sequentially(" and more")
    held.set()
    await expect(person.call).to_contain_text("Which colour? → ochre")
    await expect(field).to_have_value(" and more")
    assert len(sent) == 1
    await person.page.unroute("**/api/questions/*/answer")
    await field.fill("")
    await person.page.route(
        "**/api/questions/*/answer", lambda route: route.fulfill(status=409, json={"detail": "answered"})
    )
    await person.say("ask")
    await expect(field).to_have_attribute("placeholder", "Your reply")
    await field.fill("green")
    await field.press("Enter")
    await expect(person.by("toast")).to_contain_text("already")
    await expect(field).to_have_value("green")


async def test_who_has_gone_to_a_question_is_not_called_back_by_what_was_sent(person: Person) -> None:
    """The request can arrive before the server's reply to the message, and the key is not for the message
    field (U3)."""
    replied = asyncio.Event()

    async def hold(route: Route) -> None:
        response = await route.fetch()
        await expect(person.question).to_be_visible()
        await person.page.keyboard.press("ArrowUp")
        await expect(person.question).to_be_focused()
        await route.fulfill(response=response)
        replied.set()

    await person.say("hello")
    await person.sees("How can I help?")
    await person.page.route("**/turns", hold)
    await person.say("note")
    await replied.wait()
    await person.page.evaluate("new Promise(requestAnimationFrame)")
    await person.page.keyboard.press("a")
    await person.sees("The note is written.")


@pytest.mark.long
async def test_what_was_being_written_is_not_lost_where_another_tab_answers(person: Person) -> None:
    """The UI reports the other answer, and the text can be copied (P9 × U2)."""
    await person.say("note")
    await person.by("reject-with").click()
    await person.by("reason").fill("not on a Sunday")
    other = await person.page.context.new_page()
    await other.goto(person.page.url)
    await other.get_by_test_id("allow").click()
    await person.sees("The note is written.")
    await expect(person.by("toast")).to_contain_text("Another client answered it while you wrote")
    await person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await person.by("toast").get_by_role("button", name="Copy").click()
    copied = "() => navigator.clipboard.readText().then(text => text === 'not on a Sunday')"
    await person.until(copied)
    await other.close()


@tool(permission="deploy")
async def deploy(target: str) -> str:
    """Deploy to a machine."""
    return f"deployed to {target}"


class Careful(Plugin):
    """Wants a person to look at every deployment."""

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        call.ask("This is PRODUCTION. Really?")


@pytest.mark.long
async def test_a_plugins_question_is_in_its_words_and_offers_nothing_longer(
    browser: Browser, tmp_path: Path
) -> None:
    """P9: a grant would not dissolve it."""
    script = [calls("deploy", target="prod-1"), says("It is out.")]
    async with served(tmp_path, script, tools=[deploy], plugins=[Careful()], allow=["deploy"]) as site:
        server = Server(tmp_path, port=0, link=f"{site.url}/?token={site.auth.token}")
        async with at_the_page(browser, server) as person:
            await person.say("go")
            await expect(person.question).to_contain_text("This is PRODUCTION. Really?", timeout=60_000)
            await expect(person.by("because")).to_contain_text("a plugin wants you to look")
            await person.by("more").click()
            for longer in ("remember", "rule"):
                await expect(person.by(longer)).to_have_count(0)
            await person.by("allow").click()
            await person.sees("It is out.")


async def test_a_program_shows_its_line_and_its_calls_below_it(browser: Browser, tmp_path: Path) -> None:
    """The request is in the card of the call, under the program, whose line is marked (G2)."""
    code = "for n in (1, 2):\n    print(await deploy(target=f'prod-{n}'))"
    script = [calls("run_program", code=code), says("Both are out.")]
    async with served(tmp_path, script, tools=[deploy, "programs"], allow=[]) as site:
        server = Server(tmp_path, port=0, link=f"{site.url}/?token={site.auth.token}")
        async with at_the_page(browser, server) as person:
            await person.say("go")
            for n in (1, 2):
                inner = person.by("inner").get_by_test_id("call").nth(n - 1)
                await expect(inner.get_by_test_id("question")).to_contain_text("Line 2", timeout=60_000)
                await expect(inner.get_by_test_id("call-line")).to_have_text("Line 2")
                await expect(person.by("program").locator("[aria-current=step]")).to_contain_text(
                    "await deploy"
                )
                await inner.get_by_test_id("allow").click()
            await person.sees("Both are out.")
            await person.page.reload()
            await person.sees("Both are out.")
            await person.page.locator("[data-tool=run_program] button").first.click()
            await expect(person.by("inner").get_by_test_id("call")).to_have_count(2)
            await expect(person.by("program").locator("[aria-current=step]")).to_have_count(0)


@pytest.mark.long
async def test_what_else_would_run_is_told_before_a_wider_rule_is_made(person: Person) -> None:
    """P9, P11: also what waits in another conversation."""
    await person.say("plan")
    await expect(person.by("remember")).to_be_visible(timeout=60_000)
    await person.by("new-conversation").click()
    await person.say("report")
    await expect(person.question).to_contain_text("work/report", timeout=60_000)
    await person.by("remember").click()
    await expect(person.by("covered-elsewhere")).to_have_count(0)  # not by the rule for this alone
    await person.by("rule-choice").select_option(label="memos.write for “work/*”")
    await expect(person.by("covered-elsewhere")).to_contain_text("also answers a pending call elsewhere")
    await expect(person.by("covered-elsewhere").locator("code")).to_have_text(["work/plan"])
    await person.by("reject").click()
    await person.by("open-inbox").click()
    waiting = person.by("inbox-item").filter(has_text="work/plan")  # others may have left something open
    await waiting.click()
    await person.by("inbox-shown").get_by_test_id("reject").click()
    await expect(waiting).to_have_count(0)


async def test_a_wider_rule_and_a_denial_are_chosen_and_remembered(person: Person) -> None:
    """The list shows both, and the user removes them for the tests that follow (P11)."""
    await person.say("plan")
    await person.by("remember").click()
    await expect(person.by("rule-choice").locator("option")).to_have_text(
        ["memos.write for “work/plan”", "memos.write for “work/*”", "memos.write for everything"],
        timeout=60_000,
    )
    await person.by("rule-choice").select_option(label="memos.write for “work/*”")
    await expect(person.by("covered")).to_contain_text("It would have covered")
    await expect(person.by("covered").locator("code", has_text="work/plan").first).to_be_visible()
    await person.by("allow-always").click()
    await person.sees("Planned.")
    await person.say("report")
    await person.sees("Reported.")
    await person.say("diary")
    await expect(person.question).to_contain_text("May memo run", timeout=60_000)
    await person.by("remember").click()
    await person.by("deny-hour").click()
    await person.sees_call("rejected")
    await person.say("diary")
    await expect(person.by("call")).to_have_count(4, timeout=60_000)
    await person.sees_call("rejected")
    await expect(person.by("question")).to_have_count(0)
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    for rule, until in (
        ("allowed memos.write for “work/*”", ""),
        ("denied memos.write for “home/diary”", "until"),
    ):
        grant = person.by("grant").filter(has_text=rule)
        await expect(grant).to_have_count(1)
        await expect(grant).to_contain_text(until)
        await grant.get_by_test_id("revoke").click()
        await expect(grant).to_have_count(0)


@pytest.mark.long
async def test_a_rejection_may_stop_all_calls_of_the_turn(person: Person) -> None:
    """P10"""
    await person.say("pair")
    await expect(person.by("question")).to_have_count(2, timeout=60_000)
    await person.by("more").first.click()
    await person.by("question").first.get_by_test_id("stop-calls").click()
    await person.sees("Then without.")
    states = [await call.get_attribute("data-state") for call in await person.by("call").all()]
    assert states == ["rejected", "skipped"]
    await expect(person.by("limit")).to_contain_text("A user stopped the calls of this turn.")
