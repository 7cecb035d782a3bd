"""Check commands on the store: list, show, search, export, import, delete and answer."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from dragoman import tool
from dragoman.wire.scripted import calls, says
from tests.cli.conftest import Cli
from tests.cli.person import Person
from tests.cli.program import program
from tests.runtimes import runtime_with

pytestmark = pytest.mark.slow


@tool(permission="files.delete", pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    return "gone"


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Two conversations, the second of which waits for a person."""
    script = [says("Bake it **slowly**."), calls("delete", path="a.txt"), says("Done.")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        first = await runtime.conversation()
        await (await first.send("How do I bake a cake?")).result()
        await first.rename("Cake")
        assert await (await runtime.send("Delete \x1b[31ma.txt")).reached("waiting")
    (tmp_path / "dragoman.toml").write_text('store = "chat.db"\n')
    return tmp_path


def test_the_list_says_what_waits(folder: Path, cli: Cli) -> None:
    lines = cli("list").out.splitlines()
    assert [line.split("\t")[2:] for line in lines] == [["Delete a.txt", "waits for you"], ["Cake"]]
    listed = json.loads(cli("list", "--limit", "1", "--json").out)
    assert [(one["questions"], one["running"]) for one in listed] == [(1, True)]


def test_a_conversation_is_shown_by_the_beginning_of_its_id(folder: Path, cli: Cli) -> None:
    listed = json.loads(cli("list", "--json").out)
    shown = cli("show", listed[1]["id"][:12]).out
    assert "you: How do I bake a cake?" in shown
    assert "Bake it **slowly**.\n" in shown  # as written, since output into a pipe is not rendered
    assert max(map(len, shown.splitlines())) < 80  # no line is padded with blanks
    assert "\x1b" not in shown
    waiting = cli("show", "last").out
    assert "May delete run" in waiting
    assert "\x1b" not in waiting  # control characters of the text are removed, too
    whole = json.loads(cli("show", listed[1]["id"], "--json").out)
    assert whole["conversation"]["title"] == "Cake"
    ambiguous = cli("show", "conv", status=1)
    assert "is the beginning of 2 ids" in ambiguous.err
    missing = cli("show", "conv_u", status=1)  # ids have no u
    assert missing.err == "dragoman: Unknown conversation 'conv_u'.\n"


def test_conversations_are_pinned_tagged_and_put_away(folder: Path, cli: Cli) -> None:
    """The marks also filter the list, and an unknown mark cannot be removed (S1)."""
    (cake,) = [one["id"] for one in json.loads(cli("list", "--json").out) if one["title"] == "Cake"]
    assert (
        "Cake pinned #food #at home" in cli("label", cake, "--pin", "--tag", "food", "--tag", "at home").out
    )
    listed = json.loads(cli("list", "--tag", "food", "--json").out)
    assert [(one["id"], one["pinned"], one["tags"]) for one in listed] == [(cake, True, ["food", "at home"])]
    assert "in the archive" in cli("label", cake, "--archive", "--unpin", "--untag", "food").out
    assert cake not in cli("list").out
    assert "Cake #at home" in cli("list", "--archived").out
    assert "has no tag 'food'" in cli("label", cake, "--untag", "food", status=1).err


def test_words_are_found(folder: Path, cli: Cli) -> None:
    found = cli("search", "bake", "cake").out
    assert "\tCake\t" in found
    assert cli("search", "nothing-like-it", status=1).out == ""


def test_an_export_can_be_imported_elsewhere(folder: Path, cli: Cli) -> None:
    cli("export", "last", "-o", "talk.json")
    id = cli("import", "talk.json", "--store", "other.db").out.strip()
    shown = cli("show", id, "--store", "other.db").out
    assert "Delete" in shown
    markdown = cli("export", "last", "--format", "markdown").out
    assert markdown.startswith("# Delete")
    marked = "\ufeff" + (folder / "talk.json").read_text()  # as some editors save it
    piped = cli("import", "-", "--store", "other.db", stdin=marked)
    assert piped.out.strip() != id
    for broken in ("{", "[" * 5000 + "]" * 5000):
        assert "is not valid JSON" in cli("import", "-", status=1, stdin=broken).err
    assert "cannot be read" in cli("import", "none.json", status=1).err
    assert "cannot be written" in cli("export", "last", "-o", "no/such/x", status=1).err


def test_conversations_are_deleted_all_or_none(folder: Path, cli: Cli) -> None:
    ids = [one["id"] for one in json.loads(cli("list", "--json").out)]
    cli("rm", ids[0], "conv_none", status=1)
    assert len(json.loads(cli("list", "--json").out)) == 2
    assert cli("rm", *ids).out.count("deleted conv_") == 2
    assert json.loads(cli("list", "--json").out) == []


def test_what_is_old_is_shown_first_and_then_deleted(folder: Path, cli: Cli) -> None:
    """A conversation that waits for an answer is neither shown nor deleted (S1)."""
    assert "nothing is older than 90d" in cli("rm", "--older-than", "90d").err
    with closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as db:
        db.execute("UPDATE conversations SET updated = 1e9")
    cake = next(one["id"] for one in json.loads(cli("list", "--json").out) if not one["questions"])
    preview = cli("rm", "--older-than", "90 days", "--dry-run").out
    assert preview == f"would delete {cake} (Cake), untouched since 2001-09-09\n"
    assert len(json.loads(cli("list", "--json").out)) == 2
    assert cli("rm", "--older-than", "12w").out == f"deleted {cake} (Cake)\n"
    assert [one["questions"] for one in json.loads(cli("list", "--json").out)] == [1]
    assert "would delete" in cli("rm", "last", "--dry-run").out
    assert len(json.loads(cli("list", "--json").out)) == 1
    for wrong in ("90", "3 months", "0 days", "soon", "-1d"):
        assert "a number and hours, days, weeks or years" in cli("rm", f"--older-than={wrong}", status=2).err
    cli("rm", status=2)
    cli("rm", "last", "--older-than", "1d", status=2)


def test_p6_what_waits_is_answered_once_and_within_reason(folder: Path, cli: Cli) -> None:
    (question,) = json.loads(cli("questions", "--json").out)
    assert (question["tool"], question["arguments"]) == ("delete", {"path": "a.txt"})
    assert 'delete {"path": "a.txt"}' in cli("questions").out
    assert (question["because"], "asked because no rule allows it" in cli("questions").out) == ("rule", True)
    id = question["id"]
    wrong = {
        (): "--allow, --reject",
        ("--release",): "'release' does not answer",
        ("--allow", "--reject", "no"): "Pass one answer",
        ("--arguments", "{"): "is not valid JSON",
        ("--arguments", '{"path": 5}'): "do not fit: path:",
        ("--always", "--rule", "9"): "has no rule 9",
        ("--deny", "--allow"): "Pass one answer",
        ("--deny", "--rule", "2"): "Add --conversation, --hour or --always",
    }
    for options, complaint in wrong.items():
        assert complaint in cli("answer", id, *options, status=1).err
    answered = cli("answer", id[:9], "--reject", "keep it").out
    assert f"answered {id}" in answered
    assert f"dragoman resume {question['conversation']} continues" in answered
    assert "already has an answer" in cli("answer", id, "--allow", status=1).err
    assert json.loads(cli("questions", "--json").out) == []


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (("--always", "--rule", "2"), ("allow", "*", None)),
        (("--hour",), ("allow", "a.txt", None)),
        (("--deny", "--conversation", "--rule", "2"), ("deny", "*", "here")),
        (("--deny", "--always"), ("deny", "a.txt", None)),
    ],
)
def test_a_rule_is_kept_by_an_answer_from_a_script(
    folder: Path, cli: Cli, flags: tuple[str, ...], kept: tuple[str, str, str | None]
) -> None:
    """The rule is one of those listed (P11)."""
    assert "2  allow files.delete for everything" in cli("questions").out
    cli("answer", "last", *flags)
    with closing(sqlite3.connect(folder / "chat.db")) as db:
        ((action, pattern, conversation),) = db.execute("SELECT action, pattern, conversation FROM grants")
    assert (action, pattern, "here" if conversation else None) == kept


def test_a_denial_without_a_word_on_how_long_is_for_this_call(folder: Path, cli: Cli) -> None:
    """P11: it covers no later call."""
    cli("answer", "last", "--deny")
    with closing(sqlite3.connect(folder / "chat.db")) as db:
        assert db.execute("SELECT * FROM grants").fetchall() == []
    assert json.loads(cli("questions", "--json").out) == []


def test_where_nothing_is_kept_nothing_is_made(tmp_path: Path, cli: Cli) -> None:
    assert cli("list").out == ""
    assert cli("questions", "--json").out == "[]\n"
    assert "Database" in cli("show", "last", status=2).err
    assert not (tmp_path / "home").exists()


def test_what_is_exported_to_a_terminal_does_not_control_it(stage: Path, cli: Cli) -> None:
    """In a pipe, the output is the exact message."""
    said = "a \x1b]0;title\x07 b\x9b2J"
    cli("run", said)
    for format in ("json", "markdown"):
        somebody = Person("export", "last", "--format", format, folder=stage)
        somebody.program.expect(pexpect.EOF)
        shown = somebody.program.before or ""
        assert "b" in shown
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert said in cli("export", "last", "--format", "markdown").out
    assert said in cli("export", "last").out.encode().decode("unicode_escape")


def test_a_conversation_that_cannot_be_read_is_exported_raw_and_deleted(folder: Path, cli: Cli) -> None:
    """It is listed, and the remaining commands take its ID as for any other (S1)."""
    (_, cake) = json.loads(cli("list", "--json").out)
    with closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as db:
        db.execute("UPDATE conversations SET settings = '{' WHERE id = ?", (cake["id"],))
    assert "Cake (cannot be read)" in cli("list").out
    assert "cannot read" in cli("export", cake["id"], status=1).err
    raw = json.loads(cli("export", "--format", "raw", cake["id"]).out)
    assert raw["tables"]["conversations"][0]["settings"] == "{"
    assert "Bake it **slowly**." in json.dumps(raw)
    assert cake["id"] in cli("rm", "--yes", cake["id"]).out
    assert cake["id"] not in cli("list").out


@pytest.fixture
async def interrupted(tmp_path: Path) -> str:
    """A conversation whose turn ended with its process."""
    async with runtime_with(tmp_path, [says("never said", waits=60)]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
        (conversation,) = await runtime.conversations()
    (tmp_path / "dragoman.toml").write_text('store = "chat.db"\n')
    return conversation.id


def test_a_conversation_in_which_nobody_is_at_work_any_more_is_deleted(interrupted: str, cli: Cli) -> None:
    """Its turn is not over, and no process runs it (T14)."""
    assert interrupted in cli("rm", "--yes", interrupted).out


async def test_a_question_in_one_branch_does_not_let_a_running_one_be_deleted(tmp_path: Path) -> None:
    """T14 × T3: another process is at work in there."""
    script = [says("Yes."), calls("delete", path="a.txt"), says("never said", waits=600)]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        (tmp_path / "dragoman.toml").write_text('store = "chat.db"\n')
        conversation = await runtime.conversation()
        root = (await (await conversation.send("Are you there?")).result()).messages[-1].id
        asks = await conversation.send("Delete a.txt", parent=root)
        assert await asks.reached("waiting")
        runs = await conversation.send("Tell me a story", parent=root)
        assert await runs.reached("streaming")
        refused = await program("rm", "--yes", conversation.id, folder=tmp_path)
        assert (refused.status, "is running" in refused.err) == (1, True)
        await runs.cancel()
        await runs.result()
        assert conversation.id in (await program("rm", "--yes", conversation.id, folder=tmp_path)).out
