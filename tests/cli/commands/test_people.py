"""Check `dragoman people`: keys are printed once and stored as hashes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.server.auth import key_hash
from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow


def test_people_get_keys_that_are_kept_as_hashes(stage: Path, cli: Cli) -> None:
    added = cli("people", "add", "anna")
    key = added.out.strip()
    assert key not in added.err
    with closing(sqlite3.connect(stage / "chat.db")) as db, db:
        dump = "\n".join(db.iterdump())
    db.close()
    assert key not in dump
    assert key_hash(key) in dump
    assert cli("people", "list").out.startswith("anna\t")
    assert "already" in cli("people", "add", "anna", status=1).err
    assert "needs no key" in cli("people", "add", "local", status=1).err
    assert "Cancelled turns: 0" in cli("people", "remove", "anna").out
    assert "was used before" in cli("people", "add", "anna", status=1).err
    cli("people", "add", "anna", "--restore")
    cli("people", "remove", "anna")
    actions = [one["action"] for one in json.loads(cli("audit", "--json").out)]
    assert actions == ["user.added", "user.removed", "user.added", "user.removed"]
    assert "user.removed" in cli("audit", "--since", "1h").out
    assert cli("audit", "--since", "2999-01-01").out == ""
    assert cli("people", "list", "--json").out == "[]\n"
    assert "No users yet" in cli("people", "list").err
    assert "Unknown person 'anna'" in cli("people", "remove", "anna", status=1).err
