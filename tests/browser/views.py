"""Every view of the web UI, one after another, for what must be true in each: axe-core's rules, pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from playwright.async_api import FilePayload, Route, expect

from dragoman import ScriptedModel
from dragoman.evaluation import Case, Expected, ExpectedCall, run
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.wire.scripted import calls, says
from tests.browser.stage import Person
from tests.media.media_server import png

PROMPT = """() => fetch("/api/prompts/trip", {method: "PUT", headers: {"content-type": "application/json"},
    body: JSON.stringify({text: "Plan a day in {{city}}."})})"""
FOLDER = {
    "folder": "/projects/notes",
    "state": "not_trusted",
    "would": ["starts the MCP server notes: python3 server.py"],
    "changes": [],
    "reason": "",
    "files": ["dragoman.toml", "server.py"],
    "seen": "these files",
}
PICTURE: FilePayload = {"name": "cat.png", "mimeType": "image/png", "buffer": png(40, 30)}


async def evaluate(folder: Path) -> None:
    """Two models, two cases, one of which one model fails."""
    recorded = Answered("old", "About 400.", (MadeCall("calculator", {"expression": "17 * 23"}, "391"),))
    cases = [
        Case(
            name,
            (CaseMessage("user", f"{name}: 17 * 23?"),),
            Expected(contains=(wanted,), any_order=(ExpectedCall("calculator"),)),
            tools=("basics",),
            recorded=recorded,
        )
        for name, wanted in (("sum", "391"), ("product", "<b>391</b>"))
    ]
    line = calls("calculator", expression="17 * 23")
    models = {
        "right": ScriptedModel([line, says("It is <b>391</b>.")] * 2),
        "wrong": ScriptedModel([line, says("It is 391."), calls("calculator", expression="1"), says("391")]),
    }
    await run(cases, models=models, folder=folder, name="morning", concurrency=1)


View = tuple[str, str]  # its name, and the part of the page that is new in it


async def views(person: Person) -> AsyncIterator[View]:
    """All of them. The server must be the person's own."""
    for each in (_answers, _calls, _changes, _questions, _choices, _evaluations, _settings):
        async for view in each(person):
            yield view


async def _begin(person: Person) -> None:
    await person.page.goto(f"{person.server.url}/")
    await expect(person.by("composer-text")).to_be_visible()


async def _close(person: Person, view: str) -> None:
    await person.page.keyboard.press("Escape")
    await expect(person.by(view)).to_have_count(0)


async def _answers(person: Person) -> AsyncIterator[View]:
    by = person.by
    yield "welcome", ""
    await by("attach-file").set_input_files(PICTURE)
    await expect(by("attachment")).to_have_count(1)
    await by("composer-text").fill("what is it?")
    await expect(by("send")).to_be_enabled()
    await by("send").click()
    await expect(by("modality")).to_be_visible()
    yield "attachment", "composer"
    await person.page.locator("[data-offer=anyway]").click()
    await person.sees("You said")
    await person.say("markdown")
    await expect(person.answer.locator(".katex").first).to_be_visible()
    await by("rate-bad").last.click()
    await expect(by("rating-note")).to_be_visible()
    yield "answer rated", ""
    await by("rating-note").fill("too short")
    await by("save-rating").click()


async def _calls(person: Person) -> AsyncIterator[View]:
    by = person.by
    await _begin(person)
    for play, words in (("people", "These are they."), ("batch", "is done."), ("tasks", "Begun.")):
        await person.say(play)
        await person.sees(words)
    for button in await person.page.locator("[data-call] > button, [data-calls] > button").all():
        await button.click()
    await expect(by("todo")).to_be_visible()
    yield "calls open", ""
    await by("open-trace").last.click()
    await by("compare-trace").select_option(label="people")
    await expect(by("trace-totals")).to_have_count(2)
    yield "trace of two turns", "trace"
    await _close(person, "trace")
    await person.say("mail")
    await by("edit-arguments").click()
    yield "question edited", ""
    await by("reject-with").click()
    yield "question rejected", "question"
    await person.page.keyboard.press("Escape")
    await by("reject").click()
    await person.sees("It is sent.")


async def _changes(person: Person) -> AsyncIterator[View]:
    by = person.by
    await _begin(person)
    for play, words in (("two drafts", "Both are written."), ("chart", "Drawn.")):
        await person.say(play)
        await expect(by("question-diff").first).to_be_visible()
        if play == "chart":
            yield "question with a diff", ""
        for _ in range(2):
            await by("allow").first.click()
        await person.sees(words)
    await by("review-changes").first.click()
    await by("comment-line").first.click()
    await expect(by("line-comment")).to_be_visible()
    yield "review", "changes"
    await _close(person, "changes")
    await by("open-preview").last.click()
    await expect(by("preview-frame")).to_be_visible()
    await by("preview-comment").click()
    yield "preview of a page", ""
    await by("answer").last.get_by_role("button", name="Preview").last.click()
    await expect(by("preview")).to_have_attribute("data-kind", "csv")
    yield "preview of a table", "preview"
    await by("close-preview").click()


async def _questions(person: Person) -> AsyncIterator[View]:
    by = person.by
    for play in ("plan", "two", "draft", "ask", "note"):
        await _begin(person)
        await person.say(play)
        await expect(person.question).to_be_visible()
    await by("remember").click()
    yield "question remembered", "question"
    for opener, name in (("inbox-item", "one question"), ("inbox-kind", "one kind")):
        await person.page.keyboard.press("Alt+i")
        await by(opener).first.click()
        await expect(by("inbox-shown")).to_be_visible()
        yield f"inbox, {name}", "inbox"
        await _close(person, "inbox")


async def _choices(person: Person) -> AsyncIterator[View]:
    by = person.by
    await person.page.evaluate(PROMPT)
    await _begin(person)
    await by("model").click()
    await expect(by("model-group").nth(1)).to_be_visible()
    yield "models", "models"
    await _close(person, "models")
    await by("composer-text").fill("/")
    await expect(by("prompt-list")).to_be_visible()
    yield "slash", ""
    await by("composer-text").fill("/trip")
    await by("composer-text").press("Enter")
    await expect(by("prompt-argument")).to_be_focused()
    yield "slash form", "prompt-form"
    await _close(person, "prompt-form")
    await by("composer-text").fill("")
    await by("open-tools").click()
    await by("conversation-options").locator("summary").click()
    yield "tools", "tools"
    await _close(person, "tools")


async def _evaluations(person: Person) -> AsyncIterator[View]:
    by = person.by
    await person.page.keyboard.press("Control+k")
    await by("palette").get_by_role("combobox").fill("eval")
    yield "palette", "palette"
    await person.page.keyboard.press("Enter")
    await expect(by("evaluation-variant")).to_have_count(2)
    yield "evaluation", "evaluations"
    await by("evaluation-case").last.get_by_role("button").click()
    await expect(by("evaluated-answer")).to_have_count(3)
    yield "evaluated case", "evaluations"
    await _close(person, "evaluations")


async def _settings(person: Person) -> AsyncIterator[View]:
    by = person.by

    async def answer(route: Route) -> None:
        await route.fulfill(json={"items": [FOLDER]})

    await person.page.route("**/api/setup/trust", answer)
    await by("open-settings").click()
    for tab in ("general", "permissions", "prompts", "usage", "help", "setup"):
        await by(f"tab-{tab}").click()
        yield f"settings, {tab}", "settings"
    for part, opener in (("servers", "open-new-server"), ("agents", "open-new-skill"), ("trust", "")):
        await by(f"setup-{part}").click()
        await by(opener).click() if opener else await expect(by("folder-trust")).to_be_visible()
        yield f"settings, {part}", "settings"
    await _close(person, "settings")
