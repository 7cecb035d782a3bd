"""The records of a thousand turns are packed, and swept when nothing names them (B1)."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.states import FileState
from tests.fork_server import KILL, python
from tests.sweeps import WHOLE, some
from tests.workspace.folders import history_of, stored

TURNS = 1_000 if WHOLE else 300
OLD_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE objects (hash TEXT PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE files (
  path TEXT PRIMARY KEY,
  kind TEXT NOT NULL, mode INTEGER NOT NULL, object TEXT NOT NULL, size INTEGER NOT NULL,
  changed INTEGER NOT NULL, bytes INTEGER NOT NULL, inode INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 1;
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def versions(count: int) -> list[bytes]:
    """Return versions of a file in which each turn changes a line, the same for every run by a fixed seed."""
    chance = random.Random(13)
    lines = [f"{number} {chance.random()}" for number in range(300)]
    made = []
    for number in range(count):
        lines[chance.randrange(len(lines))] = f"changed in turn {number}: {chance.random()}"
        made.append("\n".join(lines).encode())
    return made


def record_all(history: WorkspaceHistory, root: Path, contents: list[bytes], conversations: int) -> None:
    for number, data in enumerate(contents):
        call = {"turn": f"turn_{number}", "step": 1, "call": "x", "paths": ["a.py"]}
        history.begin(conversation=f"conv_{number % conversations}", **call)  # type: ignore[arg-type]
        (root / "a.py").write_bytes(data)
        assert history.end(f"turn_{number}", "x") is not None


def states(history: WorkspaceHistory, *conversations: str) -> dict[str, FileState]:
    """Return the states that records of these conversations name, by the hash of their bytes."""
    records = [record for one in conversations for record in history.of_conversation(one)]
    found = [state for record in records for one in record.changes for state in (one.before, one.after)]
    return {state.object: state for state in found if state is not None}


def lost_with(history: WorkspaceHistory, root: Path, others: list[str]) -> list[FileState]:
    """Return the states that only these conversations name, and neither the first one nor the current
    file."""
    needed = {*states(history, "conv_0"), sha256((root / "a.py").read_bytes()).hexdigest()}
    return [state for name, state in states(history, *others).items() if name not in needed]


def intact(history: WorkspaceHistory, conversation: str) -> bool:
    """Whether every version it recorded is still there, byte for byte."""
    for state in states(history, conversation).values():
        data = history.contents(state)
        if data is None or sha256(data).hexdigest() != state.object:
            return False
    return True


@pytest.mark.slow
def test_a_thousand_turns_are_packed_and_swept(root: Path) -> None:
    """Packed records take a fraction of their bytes, and deleting a conversation frees its space (B1)."""
    contents = versions(TURNS)
    history = history_of(root)
    record_all(history, root, contents, conversations=10)
    history.close()  # running packs are complete
    history = history_of(root)
    recorded = len(stored(history))
    assert recorded < sum(map(len, contents)) / 5
    history.pack(least=1)
    assert all(intact(history, f"conv_{number}") for number in range(10))
    others = [f"conv_{number}" for number in range(1, 10)]
    lost = lost_with(history, root, others)
    history.forget(others)
    assert intact(history, "conv_0")
    assert lost
    assert not [state for state in lost if history.contents(state) is not None]
    kept = len(stored(history))
    assert kept < recorded / 2
    history.forget(["conv_0"])
    assert len(stored(history)) < kept
    history.close()


@pytest.mark.slow
def test_packs_are_made_by_themselves(root: Path) -> None:
    """Packing runs next to other work, as soon as there is enough to pack (B1)."""
    history = history_of(root)
    record_all(history, root, versions(140), conversations=1)
    history.close()
    db = sqlite3.connect(history.file)
    (packs,) = db.execute("SELECT count(*) FROM packs").fetchone()
    (loose,) = db.execute("SELECT count(*) FROM objects WHERE pack IS NULL").fetchone()
    db.close()
    assert packs >= 1
    assert loose < 140
    assert intact(history_of(root), "conv_0")


SWEEPS = """
import sys
from pathlib import Path
from tests.workspace.folders import history_of

history = history_of(Path(sys.argv[1]))
print("ready", flush=True)
history.forget([f"conv_{number}" for number in range(1, 4)])
history.pack(least=1)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", some([0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2], 3))
def test_a_sweep_that_is_killed_loses_nothing_and_leaves_nothing(root: Path, delay: float) -> None:
    """The kill can come at any moment. Named states still exist, and the next sweep finishes (B1 × S1)."""
    history = history_of(root)
    record_all(history, root, versions(60), conversations=4)
    history.pack(least=1)
    others = [f"conv_{number}" for number in range(1, 4)]
    lost = lost_with(history, root, others)
    history.close()
    child = subprocess.Popen(python("-c", SWEEPS, str(root)), stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(delay)  # not to wait for anything: the kill may come when it likes
    child.send_signal(KILL)
    child.communicate()
    history = history_of(root)
    assert intact(history, "conv_0")
    history.forget(others)
    assert not [state for state in lost if history.contents(state) is not None]
    assert intact(history, "conv_0")
    history.close()


@pytest.mark.parametrize("packs", [0, 1])
def test_bytes_that_were_deleted_are_in_no_file_any_more(root: Path, packs: int) -> None:
    """B1: neither in a pack nor in a page that is free. The system has their space again."""
    history = history_of(root)
    secret = b"a passing secret"
    record_all(history, root, [secret, random.randbytes(1_000_000), b"the end"], conversations=2)
    assert secret in stored(history)  # short texts are stored uncompressed
    assert not packs or history.pack(least=1) == packs
    history.forget(["conv_0", "conv_1"])
    history.close()
    assert secret not in stored(history)
    assert len(stored(history)) < 1_000_000


def test_records_of_the_version_before_are_read_and_packed(root: Path) -> None:
    """The upgrade changes the tables in place (B1 × S4)."""
    history = history_of(root)
    history.file.parent.mkdir()
    rest = Path("src/dragoman/workspace/schema.sql").read_text().partition("-- What looks found changed")[2]
    db = sqlite3.connect(history.file)
    db.executescript(OLD_TABLES + "--" + rest)
    db.execute("INSERT INTO about VALUES ('workspace', ?)", (str(root),))
    name = sha256(b"from before").hexdigest()
    db.execute("INSERT INTO objects VALUES (?, 0, ?)", (name, b"from before"))
    db.commit()
    db.close()
    assert history.contents(FileState("file", 0o644, name, 11)) == b"from before"
    record_all(history, root, versions(5), conversations=1)
    assert history.pack(least=1) == 1
    history.close()
    assert intact(history_of(root), "conv_0")  # the upgrade is done
