"""Check `dragoman doctor`: it names what is missing and the command that repairs it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.sweeps import some

pytestmark = pytest.mark.slow


def test_the_doctor_names_what_is_missing_and_what_mends_it(stage: Path, cli: Cli) -> None:
    assert "✓ model      stage/model" in cli("doctor").out
    config = stage / "dragoman.toml"
    nobody = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", config.read_text())
    config.write_text(f'{nobody}\n[mcp.x]\ncommand = "no-such-program"\n')
    ill = cli("doctor", "--json", status=1)
    findings = {one["name"]: one for one in json.loads(ill.out)["findings"]}
    assert findings["model"]["state"] == "missing"
    assert "does not answer" in findings["model"]["said"]
    assert findings["mcp x"]["fix"] == "install no-such-program, or: dragoman mcp remove x"
    for settings in ("model = 5\n", 'workspace = "nowhere"\n', 'store = "mysql://host/chat"\n'):
        config.write_text(settings)
        assert "✗ settings" in cli("doctor", status=1).out


@pytest.fixture
def spoken(stage: Path, cli: Cli) -> Path:
    """A store with a conversation in it. Its file."""
    cli("run", "hello")
    return next(stage.rglob("*.db"))


def _stored(cli: Cli, *flags: str, status: int = 0) -> list[dict[str, str]]:
    """Return the doctor's findings about the store."""
    findings = json.loads(cli("doctor", "--json", *flags, status=status).out)["findings"]
    return [one for one in findings if one["name"] == "store"][1:]


def _change(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        for statement in statements:
            db.execute(statement)


def test_a_store_that_is_well_has_nothing_to_mend(spoken: Path, cli: Cli) -> None:
    """S2"""
    assert _stored(cli, "--repair") == []


def test_what_can_be_mended_is_named_and_then_mended(spoken: Path, cli: Cli) -> None:
    """S2: a missing index, and rows that belong to nothing. A file that may be another store's stays."""
    blobs = spoken.with_name(spoken.name + ".files") / "blobs" / "ab"
    blobs.mkdir(parents=True)
    (blobs / ("d" * 62)).write_bytes(b"x")
    then = time.time() - 9 * 24 * 3600
    os.utime(blobs / ("d" * 62), (then, then))
    account = int(time.time() - 7 * 24 * 3600) // 60  # the file is older: perhaps another database's
    _change(
        spoken,
        f"PRAGMA user_version = {account}",
        "DROP INDEX messages_by_parent",
        "INSERT INTO facts VALUES ('turn_gone', 1, 1, '{}')",
    )
    for flags, state in (((), "missing"), (("--repair",), "fine")):
        found = _stored(cli, *flags, status=1 if state == "missing" else 0)
        assert [one["said"].removeprefix("repaired: ") for one in found] == [
            "the index messages_by_parent is missing",
            "1 of the table facts belong to turns that are not there",
            "1 files (0.0 MiB) that nothing mentions, older than this database",
        ]
        assert [one["state"] for one in found] == [state, "fine" if flags else "optional", "optional"]
    assert len(_stored(cli)) == 1
    assert [path.name for path in blobs.iterdir()] == ["d" * 62]


def test_an_index_that_is_damaged_is_made_anew(spoken: Path, cli: Cli) -> None:
    """S2: as by a disk that lost a page of it."""
    with closing(sqlite3.connect(spoken)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'turns_of_message'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with spoken.open("r+b") as file:  # an index without entries, like one that was never written
        file.seek((page - 1) * size)
        file.write(bytes([10, 0, 0, 0, 0, size >> 8, size & 255, 0]))
    (one, *_) = _stored(cli, status=1)
    assert "index" in one["said"]
    assert one["fix"] == "dragoman doctor --repair"
    assert _stored(cli, "--repair")[0]["said"].startswith("repaired: an index was damaged")
    assert _stored(cli) == []


@pytest.mark.parametrize(
    ("damage", "table", "column"),
    some(
        [
            ("UPDATE messages SET body = '{' WHERE role = 'user'", "messages", "body"),
            ("UPDATE conversations SET settings = '{'", "conversations", "settings"),
            ("UPDATE facts SET body = '{' WHERE seq = 2", "facts", "body"),
        ],
        2,
    ),
)
def test_what_cannot_be_read_is_named_with_how_to_take_it_out(
    spoken: Path, cli: Cli, damage: str, table: str, column: str
) -> None:
    """Its rows can be exported as they are, and the rest of the store works (S1)."""
    _change(spoken, damage)
    (one,) = _stored(cli, "--repair", status=1)
    assert "cannot be read" in one["said"]
    export, remove = one["fix"].split(", then: ")
    cli(*export.removeprefix("dragoman ").split())
    conversation = remove.split()[-1]
    rows = json.loads(Path(f"{conversation}.json").read_text())["tables"]
    assert "{" in [row[column] for row in rows[table]]
    cli(*remove.removeprefix("dragoman ").split(), "--yes")
    assert _stored(cli) == []


def test_an_attachment_that_is_gone_is_named(spoken: Path, cli: Cli) -> None:
    """S4"""
    key = "ab" * 32
    _change(spoken, f"INSERT INTO blob_references SELECT '{key}', 'message', 'msg_1', id FROM conversations")
    (one,) = _stored(cli, status=1)
    assert f"Unknown blob '{key}'" in one["said"]
    assert "restore that file" in one["fix"]


def test_a_damaged_file_is_reported_and_left_alone(spoken: Path, cli: Cli) -> None:
    """A repair could only lose more (S2)."""
    with closing(sqlite3.connect(spoken)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'facts'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with spoken.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    found = _stored(cli, "--repair", status=1)
    assert "the file is damaged" in found[0]["said"]
    assert ".recover" in found[0]["fix"]
