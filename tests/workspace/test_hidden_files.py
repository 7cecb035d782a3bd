"""A history neither records nor touches ignored files, whatever changes the ignore rules meanwhile (B1,
B3)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from dragoman.workspace.states import INTERRUPTED, SnapshotLimits
from tests.workspace.folders import go_back, history_of, paths_of, record, stored


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "b.py").write_text("print(1)\n")
    return root


def test_ignored_files_are_neither_recorded_nor_touched(root: Path) -> None:
    """The project's ignore rules apply, nested and negated, and its version control folder never counts
    (B1)."""
    (root / ".gitignore").write_text("*.log\n!keep.log\nsecret/\n/only-here\n")
    (root / "src" / ".gitignore").write_text("generated.*\n")
    (root / ".ignore").write_text("big/\n")
    (root / ".git").mkdir()
    history = history_of(root)

    def work() -> None:
        for name in ("x.log", "secret/key", "only-here", "src/generated.py", "big/data", ".git/config"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text("hush-hush")
        for name in ("keep.log", "src/only-here"):
            (root / name).write_text("seen")

    told = record(history, work)
    assert told is not None
    assert paths_of(told) == ["keep.log", "src/only-here"]
    assert b"hush-hush" not in stored(history)
    assert b"seen" in stored(history)
    go_back(history, told)
    assert (root / "secret" / "key").read_text() == "hush-hush"


def test_a_line_that_means_nothing_leaves_the_others(root: Path) -> None:
    """Neither does a file that is too long, or a folder of that name (B1)."""
    (root / ".gitignore").write_text("*.log\n!\nbroken\\\n*.tmp\n")
    (root / ".ignore").write_text("*.txt\n" + "# " * 500_000)
    (root / "src" / ".gitignore").mkdir()
    history = history_of(root)
    told = record(history, lambda: [(root / name).write_text("x") for name in ("x.log", "x.tmp", "x.txt")])
    assert told is not None
    assert paths_of(told) == ["x.txt"]


def test_a_call_cannot_hide_its_work_nor_make_old_files_look_new_by_ignore_rules(root: Path) -> None:
    """B1 × B3: the rules that held before a call hold for what it did: going back deletes no old file."""
    (root / ".gitignore").write_text("secret.txt\n")
    (root / "secret.txt").write_text("mine, and old")
    history = history_of(root)

    def work() -> None:
        (root / ".gitignore").write_text("a.txt\n")
        (root / "a.txt").write_text("hidden from now on")

    told = record(history, work)
    assert told is not None
    assert paths_of(told) == [".gitignore", "a.txt"]
    go_back(history, told)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert (root / "secret.txt").read_text() == "mine, and old"


@pytest.mark.parametrize("everything", [False, True])
def test_the_rules_that_held_before_hold_for_files_that_a_call_names(root: Path, everything: bool) -> None:
    """A patch can change an ignore file and the files that it hid or hides. The record lists what it leaves
    out, also files that do not exist yet (B1 × B3)."""
    (root / ".gitignore").write_text("secret.txt\nmade/\n")
    (root / "secret.txt").write_text("mine, and old")
    history = history_of(root)
    named = [".gitignore", "a.txt", "secret.txt", "made/new.txt"]
    history.begin(
        conversation="conv_1", turn="turn_1", step=1, call="call_1", paths=named, everything=everything
    )
    (root / "made").mkdir()
    for name in named:
        (root / name).write_text("a.txt\n")
    told = history.end("turn_1", "call_1")
    assert told is not None
    assert paths_of(told) == [".gitignore", "a.txt"]
    assert {note.partition(":")[0] for note in told.notes} == {"secret.txt", "made/new.txt"}
    go_back(history, told)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert (root / "secret.txt").read_text() == (root / "made" / "new.txt").read_text() == "a.txt\n"


@pytest.mark.parametrize("beside", ["in the same turn", "in another turn", "in another program"])
@pytest.mark.parametrize("last", [False, True])
def test_a_look_beside_a_call_that_changed_the_rules_makes_no_old_files_look_new_or_gone(
    root: Path, beside: str, last: bool
) -> None:
    """A call starts while another one runs that changed which files are ignored (B1 × B3)."""
    (root / ".gitignore").write_text("secret.txt\nmade/\n")
    (root / "made").mkdir()
    old = [root / "secret.txt", root / "made" / "old.txt", root / "a.txt"]
    for path in old:
        path.write_text("mine, and old")
    history = history_of(root)
    other = history_of(root) if beside == "in another program" else history
    turn = "turn_1" if beside == "in the same turn" else "turn_2"
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=None)
    (root / ".gitignore").write_text("a.txt\n")
    (root / "new.txt").write_text("by a call")
    other.begin(conversation="conv_1", turn=turn, step=1, call="two", paths=None)
    ends = [partial(other.end, turn, "two"), partial(history.end, "turn_1", "one")]
    told = [end() for end in (ends[::-1] if last else ends)]
    changed = [paths for one in told if one is not None and (paths := paths_of(one))]
    assert changed == [[".gitignore", "new.txt"]]
    go_back(history, *told)
    assert {path.read_text() for path in old} == {"mine, and old"}


def test_a_file_that_was_hidden_when_a_call_began_is_left_out_where_another_names_it(root: Path) -> None:
    """Both calls are one record with the earlier ignore rules, and a note names the file (B1 × B3)."""
    (root / ".gitignore").write_text("a.txt\n")
    history = history_of(root)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=None)
    (root / ".gitignore").write_text("\n")
    both = {"conversation": "conv_1", "turn": "turn_1", "step": 1}
    assert history.begin(**both, call="two", paths=["a.txt"]) == ["a.txt: it is ignored, and not recorded"]  # type: ignore[arg-type]
    (root / "a.txt").write_text("by the second")
    history.end("turn_1", "one")
    told = history.end("turn_1", "two")
    assert paths_of(told) == [".gitignore"]


def test_what_an_interrupted_call_hid_is_not_gone(root: Path) -> None:
    """Another call can scan the folder before the first one is settled (B1 × B3)."""
    history = history_of(root)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=None)
    (root / ".gitignore").write_text("a.txt\n")
    again = history_of(root)
    record(again, lambda: None, turn="turn_2")
    again.settle("turn_1")
    assert "a.txt" not in [change.path for one in again.of_turns(["turn_1"]) for change in one.changes]


@pytest.mark.parametrize("rules", ["\n", "old.txt\na.txt\n"])
def test_where_the_earlier_rules_are_unknown_no_old_file_looks_new_or_gone(root: Path, rules: str) -> None:
    """An older version did not store the rules of a turn whose program died (B1 × S4)."""
    (root / ".gitignore").write_text("old.txt\n")
    (root / "old.txt").write_text("hidden")
    history = history_of(root)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="c", paths=None)
    (root / ".gitignore").write_text(rules)
    (root / "a.txt").write_text("changed")
    history.close()
    with closing(sqlite3.connect(history.file, isolation_level=None)) as db:
        assert db.execute("DELETE FROM about WHERE key = 'rules of turn_1'").rowcount == 1
    history = history_of(root)
    history.settle("turn_1")
    (told,) = history.of_conversation("conv_1")
    assert paths_of(told) == [".gitignore", "a.txt"]
    assert None not in [change.after for change in told.changes]
    assert told.notes == (INTERRUPTED, "the ignore rules changed meanwhile: new files are not told")


def test_a_file_in_whose_place_comes_a_folder_that_is_ignored_comes_back(root: Path) -> None:
    """B1 × B3: a rule for folders does not hide what the call did to a file of that name."""
    (root / ".gitignore").write_text("a.txt/\n")
    history = history_of(root)

    def work() -> None:
        (root / ".gitignore").write_text("a.txt/\nmore\n")
        (root / "a.txt").unlink()
        (root / "a.txt").mkdir()

    go_back(history, record(history, work))
    assert (root / "a.txt").read_text() == "one\ntwo\n"


# ── in one turn ───────────────────────────────────────────────────────────────────────────────────

IGNORING = [".gitignore", ".ignore", "src/.gitignore", ".git/info/exclude"]


@pytest.mark.parametrize("watch_from", [0, 10**9])
@pytest.mark.parametrize("ignoring", IGNORING)
@pytest.mark.parametrize("between", ["nothing", "a restart", "kill -9", "another turn", "another program"])
@pytest.mark.parametrize("named", [False, True])
def test_what_a_turn_hides_by_an_ignore_file_comes_back(
    root: Path, ignoring: str, between: str, named: bool, watch_from: int
) -> None:
    """One call writes an ignore file and the next destroys the files it names, with anything in between
    (B4)."""
    (root / ".git" / "info").mkdir(parents=True)
    history = history_of(root, watch_from=watch_from)
    lost = "src/b.py"
    rule = "b.py\n" if ignoring.startswith("src/") else "src/b.py\n"
    if named:
        record(history, lambda: None, call="zero", paths=["a.txt"])  # the first to see rules, of one folder
    history.begin(
        conversation="conv_1", turn="turn_1", step=1, call="one", paths=[ignoring, lost] if named else None
    )
    (root / ignoring).write_text(rule)
    if between != "kill -9":
        history.end("turn_1", "one")
    if between in ("a restart", "kill -9"):
        history = history_of(root, watch_from=watch_from)
        history.settle("turn_1")
    elif between != "nothing":
        other = history if between == "another turn" else history_of(root, watch_from=watch_from)
        record(other, lambda: None, turn="turn_2")
    history.begin(conversation="conv_1", turn="turn_1", step=2, call="two", paths=[lost] if named else None)
    (root / lost).write_text("destroyed")
    told = history.end("turn_1", "two")
    assert paths_of(told) == [lost]
    assert paths_of(go_back(history, told)) == [lost]
    assert (root / lost).read_text() == "print(1)\n"


@pytest.mark.parametrize("named", [False, True])
def test_what_a_turn_shows_by_an_ignore_file_is_not_deleted(root: Path, named: bool) -> None:
    """Files ignored when the turn began are neither recorded nor touched, and the record names them (B4 ×
    B1)."""
    (root / ".gitignore").write_text("secret.txt\n")
    (root / "secret.txt").write_text("mine, and old")
    history = history_of(root)
    first = record(history, (root / ".gitignore").unlink)

    def work() -> None:
        (root / "secret.txt").write_text("by the call")
        (root / "a.txt").write_text("by the call")

    second = record(history, work, paths=["secret.txt", "a.txt"] if named else None)
    assert paths_of(second) == ["a.txt"]
    assert b"mine, and old" not in stored(history)
    back = go_back(history, first, second)
    assert (root / "secret.txt").read_text() == "by the call"
    assert (root / ".gitignore").read_text() == "secret.txt\n"
    assert [*back.notes] == (["secret.txt: it is ignored, and not recorded"] if named else [])


def test_the_rules_of_a_turn_are_forgotten_with_it(root: Path) -> None:
    """B4: the next turn reads what ignore files say then."""
    history = history_of(root)
    record(history, lambda: (root / ".gitignore").write_text("a.txt\n"))
    assert b"rules of turn_1" in stored(history)
    history.finish("turn_1", ended=True)
    told = record(
        history, lambda: [(root / name).write_text("x") for name in ("a.txt", "b.txt")], turn="turn_2"
    )
    assert paths_of(told) == ["b.txt"]


def test_the_rules_of_a_folder_made_in_a_turn_hold_in_another_program(root: Path) -> None:
    """B4: they are stored when the call ends that made it."""

    def work() -> None:
        (root / "new").mkdir()
        (root / "new" / ".gitignore").write_text("*.log\n")

    record(history_of(root), work)
    files = [root / "new" / name for name in ("a.log", "b")]
    assert paths_of(record(history_of(root), lambda: [file.write_text("x") for file in files])) == ["new/b"]


@pytest.mark.parametrize("known", [False, True])
def test_a_large_file_that_is_destroyed_is_told_before_and_after(root: Path, known: bool) -> None:
    """B1, B4: a notice before the call, a note with its diff, and one with the revert."""
    big = root / "big.bin"
    big.write_bytes(b"x" * 3000)
    history = history_of(root, limits=SnapshotLimits(file_bytes=1000))
    if known:
        assert record(history, lambda: None, turn="turn_0") is None
    before = history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=None)
    assert any("big.bin (0.0 MB)" in note for note in before)
    big.unlink()
    told = history.end("turn_1", "one")
    assert told is not None
    assert [*told.notes] == ["big.bin: its 0.0 MB were not recorded: it cannot be brought back"]
    assert [*go_back(history, told).notes] == ["big.bin: its bytes were not recorded"]
    quiet = record(history, lambda: None, turn="turn_2")
    assert quiet is None
