"""Check messages about typos in settings and names, tables at a terminal, and findings of doctor and
tools."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.conftest import Cli
from tests.cli.person import CTRL_D, Person
from tests.cli.program import program
from tests.loopback import loopback
from tests.patience import eventually

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--agent", "zz", "hi"), "Unknown agent 'zz'"),
        (("run", "--model", "", "hi"), "--model: it is empty"),
        (("run", "--deny", "notes.writ", "hi"), "Did you mean 'notes.write'?"),
        (("list", "--store", "typo.db"), "Database"),
    ],
)
def test_a_slip_of_the_command_line_is_status_2(
    stage: Path, cli: Cli, arguments: tuple[str, ...], words: str
) -> None:
    """The error is one line, and no files are left."""
    assert words in cli(*arguments, status=2).err
    assert json.loads(cli("list", "--json").out) == []


def test_a_setting_out_of_its_range_is_named_with_its_line(stage: Path, cli: Cli) -> None:
    file = stage / "dragoman.toml"
    file.write_text("compact_at = 5\n" + file.read_text("utf-8"), "utf-8")
    assert "line 1: compact_at" in cli("config", "check", status=2).err


def test_a_file_of_an_editor_that_marks_its_bytes_is_read(stage: Path, cli: Cli) -> None:
    """As Windows writes it: settings, and the catalog in them."""
    file = stage / "dragoman.toml"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert cli("run", "hello").out == "Hello! How can I help?\n"


def test_what_was_not_found_is_said(stage: Path, cli: Cli) -> None:
    cli("run", "hello")
    assert "No message contains 'zzz'" in cli("search", "zzz", status=1).err


def test_a_table_has_heads_at_a_terminal_and_none_in_a_pipe(stage: Path, cli: Cli) -> None:
    cli("run", "hello")
    assert cli("list").out.startswith("conv_")
    somebody = Person("list", folder=stage)
    somebody.sees("conversation")
    somebody.sees("title")
    somebody.sees("hello")
    assert somebody.ended() == 0


def test_who_deletes_is_told_the_title_first(stage: Path, cli: Cli) -> None:
    """A missing conversation needs no confirmation."""
    cli("run", "hello")
    nobody = Person("rm", "nosuch", folder=stage)
    assert "Delete" not in nobody.sees("Unknown conversation 'nosuch'")
    somebody = Person("rm", "last", folder=stage)
    assert "(hello), used last on" in somebody.sees("Delete it? This cannot be undone")
    somebody.types("n")
    assert somebody.ended() == 1
    assert len(json.loads(cli("list", "--json").out)) == 1


def test_who_goes_away_from_a_question_of_a_run_has_not_said_no(stage: Path, cli: Cli) -> None:
    """The request waits and can be resumed (P6)."""
    somebody = Person("run", "note", folder=stage)
    somebody.sees("your choice:")
    somebody.types("", CTRL_D)
    somebody.sees("it waits for your answer: `dragoman resume conv_")
    assert somebody.ended() == 1
    assert len(json.loads(cli("questions", "--json").out)) == 1
    again = Person("resume", "last", folder=stage)
    again.sees("your choice:")
    again.types("e buy bread")
    again.sees("Invalid JSON")
    again.sees("your choice:")
    again.types("e")
    again.sees("which field")
    again.types("1")
    again.sees("[buy milk]")
    again.types("buy bread")
    again.sees("which field")
    again.types("")
    again.sees("wrote 'buy bread' under 'list'")
    again.sees("The note is written.")
    assert again.ended() == 0


def test_nothing_is_printed_behind_a_question(stage: Path) -> None:
    """While one call waits for its answer, another runs and ends. Its output is printed afterwards (P7)."""
    somebody = Person("run", "two", folder=stage)
    somebody.sees("your choice: ")
    somebody.types("y")
    somebody.sees("your choice: ")
    asyncio.run(eventually(lambda: _completed_calls(stage / "chat.db")))
    somebody.types("n not that")
    rest = somebody.sees("rejected: A person did not let this call run")
    assert rest.lstrip().startswith("n not that")
    assert somebody.ended() == 0


def _completed_calls(store: Path) -> int:
    with closing(sqlite3.connect(store)) as db:
        return int(db.execute("SELECT count(*) FROM calls WHERE state = 'completed'").fetchone()[0])


SETTINGS = """model = "acme/{model}"
[providers.acme]
base_url = "{url}"
keys = "ACME_KEY"
{more}
"""


async def doctor(folder: Path, url: str, model: str = "model", more: str = "") -> dict[str, dict[str, str]]:
    (folder / "dragoman.toml").write_text(SETTINGS.format(url=url, model=model, more=more), "utf-8")
    ended = await program("doctor", "--json", folder=folder, ACME_KEY="sk-1")
    return {one["name"]: one for one in json.loads(ended.out)["findings"]}


async def test_the_doctor_says_what_the_provider_answered(tmp_path: Path) -> None:
    """A model that it does not have is missing, and so is an MCP server that does not start."""
    async with loopback(says("hi"), models=["model", "other"]) as server:
        fine = await doctor(tmp_path, server.url)
        assert fine["model"]["state"] == "fine"
        assert "answers, with 2 models" in fine["model"]["said"]
        more = '[mcp.deaf]\ncommand = "sleep"\nargs = ["60"]\nstart_timeout = 1'
        ill = await doctor(tmp_path, server.url, "nosuch", more)
    assert ill["model"]["state"] == "missing"
    assert "has no nosuch" in ill["model"]["said"]
    assert ill["model"]["fix"].endswith("model, other")
    assert ill["mcp deaf"]["state"] == "missing"
    assert "did not start" in ill["mcp deaf"]["said"]


async def test_the_doctor_says_of_other_providers_what_they_answered(tmp_path: Path) -> None:
    async with loopback(says("hi")) as server:
        more = f'[providers.spare]\nbase_url = "{server.url}"\nlocal = true'
        found = await doctor(tmp_path, server.url, more=more)
    assert (found["spare"]["state"], found["spare"]["said"]) == ("fine", "answers, with 1 model")


def test_tools_are_those_that_the_model_is_offered(stage: Path, cli: Cli) -> None:
    """An empty group is not listed (C11)."""
    shown = cli("tools").out
    assert "offered to stage/model" in shown
    assert "skills" not in shown


@pytest.mark.parametrize(("typed", "text"), [("a2", "allow"), ("d", "deny")])
def test_a_run_takes_wider_rules_too(stage: Path, typed: str, text: str) -> None:
    """P11"""
    somebody = Person("run", "plan", folder=stage)
    somebody.sees("2  allow memos.write for 'work/*'")
    somebody.sees("your choice:")
    somebody.types(typed)
    somebody.sees("completed" if text == "allow" else "rejected")
    assert somebody.ended() == 0


async def test_an_answer_without_an_end_is_cut_off(tmp_path: Path) -> None:
    """T8: and calls to the end are no answer."""
    from tests.loopback import delta, stream

    replies = (
        (stream(delta(content="Half a sen"), finish=None, done=False), 4),
        (calls("nosuch"), 5),
    )
    for reply, status in replies:
        async with loopback(reply) as server:
            at = ("--model", "mine/m", "--base-url", server.url, "--forget")
            assert (await program("run", *at, "Hi", folder=tmp_path)).status == status


async def test_an_answer_of_a_type_is_printed_as_the_value_it_is(tmp_path: Path) -> None:
    """A reply that did not fit is requested again and never printed on standard output (R8)."""
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema), "utf-8")
    (tmp_path / "wrong.json").write_text("[1", "utf-8")
    async with loopback(says('{"total": "many"}'), says('Here: {"total": 3}')) as server:
        at = ("run", "--model", "mine/m", "--base-url", server.url, "--forget")
        text = await program(*at, "--output-type", "schema.json", "Sum it up.", folder=tmp_path)
        lines = await program(*at, "--output-type", "schema.json", "--json", "Sum it up.", folder=tmp_path)
        for name, words in (("wrong.json", "is not valid JSON"), ("nosuch.json", "Cannot read")):
            refused = await program(*at, "--output-type", name, "Sum it up.", folder=tmp_path)
            assert (refused.status, words in refused.err) == (2, True)
    assert (text.status, text.out) == (0, '{"total": 3}\n')
    assert (lines.status, lines.result["output"]) == (0, {"total": 3})
