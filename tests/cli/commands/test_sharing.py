"""`dragoman share`: members, invitations and links, from the terminal (V1)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.server.auth import key_hash
from dragoman.wire.scripted import says
from tests.cli.conftest import Cli
from tests.runtimes import runtime_with

pytestmark = pytest.mark.slow


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A conversation of the admin, and another user."""
    async with runtime_with(tmp_path, [says("Hello."), says("Hello, Ada.")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("Hi")).result()
        await runtime.store.add_person("ada", key_hash("hers"), 1.0)
        await chat.share("ada", "takes_part")
        await (await chat.send("Ada here", by="ada")).result()
        await chat.unshare("ada")
    (tmp_path / "dragoman.toml").write_text('store = "chat.db"\n')
    return tmp_path


def test_a_conversation_is_shared_listed_and_no_longer_shared(folder: Path, cli: Cli) -> None:
    assert cli("share", "last").out.startswith("local\towns")
    assert "ada" in cli("share", "last", "--with", "ada", "--role", "takes_part").out
    listed = json.loads(cli("share", "last", "--json").out)
    assert [(one["user"], one["role"]) for one in listed["members"]] == [("ada", "takes_part")]
    assert "Unknown user 'eve'" in cli("share", "last", "--with", "eve", status=1).err
    assert "Transfer it" in cli("share", "last", "--leave", status=1).err
    cli("share", "last", "--transfer", "ada")
    cli("share", "last", "--leave")
    assert json.loads(cli("share", "last", "--json").out)["owner"] == "ada"
    actions = [one["action"] for one in json.loads(cli("audit", "--json").out)]
    assert actions == ["member.set", "conversation.transferred", "member.removed"]


def test_a_token_is_printed_once_and_is_nowhere(folder: Path, cli: Cli) -> None:
    for option in ("--link", "--invite"):
        made = cli("share", "last", option, "--expires", "2d")
        token = made.out.strip()
        share = made.err.split(":")[0]
        with closing(sqlite3.connect(folder / "chat.db")) as db:
            assert token not in "\n".join(db.iterdump())
        assert share in cli("share", "last").out
        assert share not in cli("share", "last", "--revoke", share).out
    assert "--expires 'soon'" in cli("share", "last", "--link", "--expires", "soon", status=1).err


def test_a_transcript_names_the_users_who_sent(folder: Path, cli: Cli) -> None:
    """V2"""
    shown = cli("show", "last").out
    assert "you: Hi" in shown
    assert "ada: Ada here" in shown
    markdown = cli("export", "last", "--format", "markdown").out
    assert "## Person (ada)" in markdown
