"""`/commands` of `dragoman chat`: versions, copies, other conversations, files, forms, and other programs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.browser.plays import furnish
from tests.cli.person import Person
from tests.cli.program import program
from tests.loopback import loopback

pytestmark = pytest.mark.slow

FORM = '''
from dragoman import ToolContext, tool


@tool
async def order(context: ToolContext) -> str:
    """Order something."""
    schema = {
        "type": "object",
        "properties": {
            "pieces": {"type": "integer", "minimum": 1, "title": "Pieces"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "gift": {"type": "boolean"},
        },
        "required": ["pieces"],
    }
    return str(await context.ask("What shall it be?", schema=schema))
'''


def person(stage: Path, *arguments: str) -> Person:
    return Person("chat", *arguments, folder=stage)


def test_versions_are_made_listed_and_switched(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("hello")
    somebody.sees("Hello! How can I help?")
    somebody.says("/edit")
    somebody.sees("your message as it shall be")
    somebody.says(", please")  # behind the old message
    somebody.sees("You said: hello, please")
    somebody.says("/branches")
    somebody.sees("1  hello — Hello!")
    somebody.sees("→ 2  hello, please — You said")
    somebody.says("/branches 1")
    somebody.sees("on branch 1 of 2")
    somebody.sees("Hello! How can I help?")
    somebody.says("/rerun")
    somebody.sees("Hello! How can I help?")
    somebody.says("/branches")
    somebody.sees("→ 3  hello — Hello!")
    assert somebody.leaves() == 0


def test_one_can_go_back_copy_and_change_conversations(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("hello")
    somebody.sees("How can I help?")
    somebody.says("think")
    somebody.sees("I have thought about it.")
    somebody.says("/context")
    somebody.sees("tokens for stage/model")
    somebody.sees("descriptions of tools")
    somebody.says("/undo")
    somebody.sees("back before “think”")
    somebody.says("/fork")
    somebody.sees("a copy")
    somebody.says("/title A copy of it")
    somebody.sees("A copy of it")
    somebody.says("/new")
    somebody.sees("a new conversation")
    somebody.says("/list")
    somebody.sees("A copy of it")
    somebody.says("/open last")
    somebody.sees("How can I help?")
    somebody.says("/cost")
    somebody.sees("tokens in")
    somebody.says("/context")
    somebody.sees("No messages yet.")
    somebody.says("/oepn x")
    somebody.sees("Did you mean /open?")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_going_back_before_the_first_message_begins_a_new_conversation(stage: Path) -> None:
    """The old conversation stays unchanged, without further messages about it (B3)."""
    somebody = person(stage)
    somebody.says("hello")
    somebody.sees("How can I help?")
    somebody.says("/undo")
    before = somebody.sees("that was the first message: this is a new")
    assert "stays where it is" not in before
    somebody.says("/redo")
    somebody.sees("as it was before the undo")
    somebody.sees("How can I help?")
    somebody.says("/redo")
    somebody.sees("Nothing to redo")
    assert somebody.leaves() == 0


def test_files_of_a_first_message_come_back_too(stage: Path) -> None:
    """This also works after a rule was added in the conversation that the undo started (B3)."""
    somebody = Person("chat", "--allow", "files.write", folder=stage)
    somebody.says("draft")
    somebody.sees("It is written.")
    written = stage / "draft.txt"
    text = written.read_text()
    somebody.says("/undo")
    somebody.sees("/redo goes back")
    assert not written.exists()
    somebody.says("/allow files.read")
    somebody.sees("allow files.read for everything")
    somebody.says("/redo")
    somebody.sees("1 file changed: draft.txt")
    somebody.sees("as it was before the undo")
    assert somebody.leaves() == 0
    assert written.read_text() == text


def test_settings_of_a_conversation_are_changed_and_kept(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("/mode off")
    somebody.sees("mode off")
    somebody.says("/mode loud")
    somebody.sees("Choose one of")
    somebody.says("/model stage/other")
    somebody.sees("stage/other answers here")
    somebody.says("/model nowhere/x")
    somebody.sees("Unknown provider")
    somebody.says("/agent helper")
    somebody.sees("helper answers here")
    somebody.says("/tools files off")
    somebody.sees("files is off in this conversation")
    somebody.says("/tools")
    somebody.sees("off files:")
    somebody.says("hello")
    somebody.sees("How can I help?")
    assert somebody.leaves() == 0
    kept = {"mode": "off", "model": "stage/other", "agent": "helper", "tools": {"files": False}}
    assert settings_in(stage) == kept
    again = person(stage, "--last", "--model", "stage/third", "--mode", "ask")
    again.sees("Dragoman · stage/third (named by --model)")
    again.sees("How can I help?")
    assert again.leaves() == 0
    assert settings_in(stage) == kept | {"mode": "ask", "model": "stage/third"}


def test_flags_hold_with_an_agent_that_may_have_its_own(stage: Path) -> None:
    somebody = person(stage, "--agent", "helper", "--model", "stage/third", "--mode", "off")
    somebody.says("hello")
    somebody.sees("How can I help?")
    assert somebody.leaves() == 0
    assert settings_in(stage) == {"agent": "helper", "model": "stage/third", "mode": "off"}


def settings_in(stage: Path) -> object:
    """Return the settings of the only conversation."""
    with closing(sqlite3.connect(stage / "chat.db")) as db, db:
        ((settings,),) = db.execute("SELECT settings FROM conversations").fetchall()
    db.close()
    return json.loads(settings)


def test_files_go_with_a_message_and_a_conversation_into_a_file(stage: Path) -> None:
    (stage / "notes.txt").write_text("remember the milk")
    somebody = person(stage)
    somebody.says("/attach notes.txt")
    somebody.sees("[notes.txt: text/plain, 17 bytes]")
    somebody.says("hello\x1b\rLook at @notes.txt.")
    somebody.sees("How can I help?")
    somebody.says("/export talk.md")
    somebody.sees("written to talk.md")
    somebody.says("/attach none.txt")
    somebody.sees("none.txt cannot be read")
    assert somebody.leaves() == 0
    assert (stage / "talk.md").read_text().count("[notes.txt](") == 2


async def test_a_form_is_filled_in_field_by_field(tmp_path: Path) -> None:
    async with loopback(calls("order"), says("Ordered.")) as server:
        config = furnish(tmp_path, server.url)
        config.write_text(config.read_text().replace('"add"', '"order"'))
        (tmp_path / "tools" / "stage.py").write_text(FORM)
        await asyncio.to_thread(_fill_in, tmp_path)


def _fill_in(folder: Path) -> None:
    somebody = person(folder)
    somebody.says("order")
    somebody.sees("What shall it be?")
    for typed, hint in (("", "This field is required."), ("many", "a whole number"), ("0", "pieces: ")):
        somebody.sees("Pieces:")
        somebody.types(typed)
        somebody.sees(hint)
    somebody.sees("Pieces:")
    somebody.types("3")
    somebody.sees("colour (red / blue) [red]:")
    somebody.types("")
    somebody.sees("gift (y / n) (optional):")
    somebody.types("y")
    somebody.sees("{'pieces': 3, 'colour': 'red', 'gift': True}")
    somebody.sees("Ordered.")
    assert somebody.leaves() == 0


@pytest.mark.long
async def test_p6_a_question_answered_by_another_program_goes_away(stage: Path) -> None:
    somebody = await asyncio.to_thread(person, stage)
    await asyncio.to_thread(somebody.says, "note")
    await asyncio.to_thread(somebody.sees, "your choice:")
    waiting = json.loads((await program("questions", "--json", folder=stage)).out)
    assert [question["tool"] for question in waiting] == ["note"]
    answered = await program("answer", waiting[0]["id"], "--allow", folder=stage)
    assert answered.status == 0
    await asyncio.to_thread(somebody.sees, "Already settled: allow, answered elsewhere")
    await asyncio.to_thread(somebody.sees, "The note is written.")
    assert await asyncio.to_thread(somebody.leaves) == 0


def test_a_turn_of_another_program_is_followed_and_answered(stage: Path) -> None:
    """P6, with two terminals at one conversation."""
    one = person(stage)
    one.says("note")
    one.sees("your choice:")
    other = person(stage, "last")
    other.sees("another program carries this turn on")
    other.answers("N not now")
    one.sees("Already settled: reject, answered elsewhere")
    one.sees("They said: not now")
    one.sees("The note is written.")
    other.sees("The note is written.")
    assert (one.leaves(), other.leaves()) == (0, 0)


def test_a_conversation_works_in_another_folder_or_in_a_copy(stage: Path) -> None:
    """R9, B3: the line below the prompt says where one is."""
    (stage / "other").mkdir()
    with (stage / "dragoman.toml").open("a", encoding="utf-8") as settings:
        settings.write('\n[workspaces.other]\nfolder = "other"\n')
    somebody = person(stage)
    somebody.says("/workspace")
    somebody.sees("others: other")
    somebody.says("/workspace othr")
    somebody.sees("Did you mean other?")
    somebody.says("/workspace other")
    somebody.sees("tools work in ")
    somebody.says("hello")
    somebody.sees("How can I help?")
    somebody.says("/fork folders")
    somebody.sees("or /fork folder to")
    somebody.says("/fork folder")
    somebody.sees("works in a copy of the folder")
    somebody.says("/workspace")
    somebody.sees("/copies/conv_")
    somebody.says("/workspace none")
    somebody.sees("tools work in ")
    assert somebody.leaves() == 0
