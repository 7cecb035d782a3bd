"""For any sequence of writes, changes by a user, reverts and reverted reverts, with a kill at any step, the
folder matches the records byte for byte, and nothing outside it changes (B1–B3)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoman.errors import RevertConflict
from dragoman.workspace.full_scan import WATCH_FROM
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.revert import inverse, limited
from dragoman.workspace.states import ChangeRecord
from tests.sweeps import examples
from tests.workspace.folders import history_of, picture

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f/g/h"])
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink a story about files takes minutes
TEXTS = st.sampled_from([b"", b"one\n", b"two\r\n", b"\0\xff", b"x" * 200])


def _clear(root: Path, name: str) -> Path:
    """Remove whatever stands at the path, as a command would."""
    path = root / name
    for above in reversed(path.relative_to(root).parents[:-1]):
        if (root / above).is_symlink() or (root / above).is_file():
            (root / above).unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    return path


def write(root: Path, name: str, data: bytes, mode: int) -> None:
    path = _clear(root, name)
    if path.is_symlink():
        path.unlink()
    path.write_bytes(data)
    path.chmod(mode)


def link(root: Path, name: str, target: str) -> None:
    path = _clear(root, name)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def remove(root: Path, name: str) -> None:
    path = root / name
    if any((root / above).is_symlink() for above in path.relative_to(root).parents):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.parent.is_dir():
        path.unlink(missing_ok=True)


def move(root: Path, name: str, to: str) -> None:
    source = root / name
    linked = any((root / above).is_symlink() for above in source.relative_to(root).parents)
    if not linked and source.is_file() and not source.is_symlink() and not to.startswith(f"{name}/"):
        data = source.read_bytes()
        source.unlink()
        write(root, to, data, 0o640)


def rename(root: Path, name: str, to: str) -> None:
    """A file or a whole folder, by one call of the system, in place of whatever is there."""
    source = root / name
    linked = any((root / above).is_symlink() for above in source.relative_to(root).parents)
    apart = not f"{to}/".startswith(f"{name}/") and not f"{name}/".startswith(f"{to}/")
    if not linked and apart and source.exists():
        target = _clear(root, to)
        target.unlink(missing_ok=True)
        if source.exists() and not source.is_symlink():  # it may have stood in the way
            source.rename(target)


def overwrite(root: Path, name: str, data: bytes) -> None:
    """The same file with other bytes and the times it had."""
    path = root / name
    if path.is_file() and not path.is_symlink() and not path.parent.is_symlink():
        times = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def folder(root: Path, name: str, mode: int) -> None:
    path = _clear(root, name)
    path.unlink(missing_ok=True)
    path.mkdir()
    path.chmod(mode)


ACTIONS: st.SearchStrategy[Callable[[Path], None]] = st.one_of(
    st.builds(
        lambda n, d, m: lambda root: write(root, n, d, m),
        NAMES,
        TEXTS,
        st.sampled_from([0o644, 0o755, 0o600]),
    ),
    st.builds(
        lambda n, t: lambda root: link(root, n, t), NAMES, st.sampled_from(["a", "../../outside", "/tmp"])
    ),
    st.builds(lambda n: lambda root: remove(root, n), NAMES),
    st.builds(lambda n, to: lambda root: move(root, n, to), NAMES, NAMES),
    st.builds(lambda n, to: lambda root: rename(root, n, to), NAMES, NAMES),
    st.builds(lambda n, d: lambda root: overwrite(root, n, d), NAMES, TEXTS),
    st.builds(lambda n, m: lambda root: folder(root, n, m), NAMES, st.sampled_from([0o755, 0o700])),
)
WORK = st.lists(ACTIONS, min_size=1, max_size=4)


class Killed(BaseException):
    """Raised in place of a process that died without cleanup."""


class AFolder(RuleBasedStateMachine):
    """`expected` is the folder as it was around each record."""

    watch_from = WATCH_FROM

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.root = self.top / "work"
        self.root.mkdir()
        self.outside = self.top / "outside"
        self.outside.mkdir()
        (self.outside / "a").write_text("not yours")
        self.history: WorkspaceHistory = self.opened()
        self.records: list[tuple[ChangeRecord, dict[str, tuple[str, int, bytes]]]] = []
        self.calls = 0

    def opened(self) -> WorkspaceHistory:
        return history_of(self.root, watch_from=self.watch_from)

    def teardown(self) -> None:
        self.history.close()
        shutil.rmtree(self.top)

    @rule(work=WORK)
    def a_call(self, work: list[Callable[[Path], None]]) -> None:
        before = picture(self.root)
        self.calls += 1
        name = f"call_{self.calls}"
        self.history.begin(conversation="c", turn="t", step=1, call=name, paths=None)
        for action in work:
            action(self.root)
        told = self.history.end("t", name)
        assert (told is None) == (picture(self.root) == before)
        if told is not None:
            changed = {change.path for change in told.changes}
            now = picture(self.root)
            assert changed == {
                path for path in before.keys() | now.keys() if before.get(path) != now.get(path)
            }
            self.records.append((told, before))

    @rule(work=WORK)
    def a_person(self, work: list[Callable[[Path], None]]) -> None:
        for action in work:
            action(self.root)

    @rule(work=WORK)
    def a_call_that_is_forgotten(self, work: list[Callable[[Path], None]]) -> None:
        """Delete the conversation: a sweep removes what only it needed, and nothing else."""
        self.history.begin(conversation="gone", turn="g", step=1, call="g", paths=None)
        for action in work:
            action(self.root)
        self.history.end("g", "g")
        self.history.forget(["gone"])
        assert self.history.of_conversation("gone") == []

    @rule()
    def packed(self) -> None:
        self.history.pack(least=1)

    @rule()
    def a_restart(self) -> None:
        self.history.close()
        self.history = self.opened()

    @precondition(lambda self: self.records)
    @rule(force=st.booleans())
    def back(self, force: bool) -> None:
        """The last record: it may be a revert itself."""
        told, before = self.records[-1]
        now = picture(self.root)
        try:
            made = self.history.revert([told], conversation="c", turn="t", force=force)
        except RevertConflict:
            assert picture(self.root) == now
            return
        for change in told.changes:
            kept = any(note.startswith(f"{change.path}:") for note in made.notes)
            assert kept or picture(self.root).get(change.path) == before.get(change.path)
        untouched = {path for path in now if not any(_concerns(c.path, path) for c in told.changes)}
        assert {path: now[path] for path in untouched} == {
            path: entry for path, entry in picture(self.root).items() if path in untouched
        }
        self.records[-1] = (made, now)

    @precondition(lambda self: self.records and self.records[-1][0].changes)
    @rule(data=st.data())
    def one_file_back_and_again(self, data: st.DataObject) -> None:
        """The last record, at one of its files: that is as it was before, and the others stay as they are."""
        told, before = self.records[-1]
        path = data.draw(st.sampled_from([change.path for change in told.changes]))
        now = picture(self.root)
        (part,) = limited([told], [path], self.history.contents)
        chosen = {change.path for change in part.changes}
        assert path in chosen
        try:
            made = self.history.revert([part], conversation="c", turn="t", in_part=True)
        except RevertConflict:
            assert picture(self.root) == now
            return
        after = picture(self.root)
        assert {*made.only} == chosen
        for name in now.keys() | after.keys():
            if now.get(name) != after.get(name):
                assert name in chosen
                assert after.get(name) == before.get(name)
        if made.changes:
            self.history.revert([made], conversation="c", turn="t")
            assert picture(self.root) == now

    @precondition(lambda self: self.records)
    @rule(at=st.integers(0, 12))
    def back_with_a_kill(self, at: int) -> None:
        """Everything or nothing is reverted after the folder is opened again."""
        told, _ = self.records[-1]
        now = picture(self.root)
        steps = 0

        def die(step: int) -> None:
            nonlocal steps
            steps += 1
            if steps > at:
                raise Killed

        try:
            made = self.history.revert([told], conversation="c", turn="t", on_step=die)
        except Killed:
            self.history.close()
            self.history = self.opened()
            made = self.history.of_conversation("c")[-1]
            assert made.kind == "revert"
            assert made.reverts == (told.id,)
        except RevertConflict:
            assert picture(self.root) == now
            return
        after = picture(self.root)
        assert not [path for path in after if ".dragoman-" in path]
        again = self.history.revert([made], conversation="c", turn="t")
        assert list(again.changes) == inverse(made.changes)
        assert picture(self.root) == now
        self.records.pop()

    @invariant()
    def nothing_outside_is_touched(self) -> None:
        assert picture(self.outside) == {"a": ("file", 0o644, b"not yours")}


def _concerns(changed: str, path: str) -> bool:
    return path == changed or path.startswith(f"{changed}/") or changed.startswith(f"{path}/")


TestAFolder = AFolder.TestCase
TestAFolder.settings = settings(
    max_examples=examples(20, 300), stateful_step_count=12, deadline=None, phases=_PHASES
)


class AWatchedFolder(AFolder):
    """The same for a folder whose changes the kernel reports."""

    watch_from = 0


TestAWatchedFolder = AWatchedFolder.TestCase
TestAWatchedFolder.settings = TestAFolder.settings


@given(steps=st.lists(WORK, min_size=1, max_size=5))
@settings(max_examples=examples(12, 40), deadline=None, phases=_PHASES)
def test_all_calls_together_are_taken_back_and_done_again(steps: list[list[Callable[[Path], None]]]) -> None:
    """B3: to before the first of several, and forward again."""
    with tempfile.TemporaryDirectory() as top:
        root = Path(top) / "work"
        root.mkdir()
        write(root, "a", b"in the beginning", 0o644)
        history = history_of(root)
        before = picture(root)
        told = []
        for number, work in enumerate(steps):
            history.begin(conversation="c", turn=f"t{number}", step=1, call="x", paths=None)
            for action in work:
                action(root)
            told.append(history.end(f"t{number}", "x"))
        after = picture(root)
        made = history.revert([one for one in told if one], conversation="c", turn="t")
        assert picture(root) == before
        history.revert([made], conversation="c", turn="t")
        assert picture(root) == after
        history.close()


@given(steps=st.lists(WORK, min_size=1, max_size=4), data=st.data())
@settings(max_examples=examples(20, 400), deadline=None, phases=_PHASES)
def test_one_file_goes_back_over_several_calls(
    steps: list[list[Callable[[Path], None]]], data: st.DataObject
) -> None:
    """The file is as it was before the first call. No bytes are lost of a file that existed then and that the
    calls only moved (B3)."""
    with tempfile.TemporaryDirectory() as top:
        root = Path(top) / "work"
        root.mkdir()
        for name in ("a", "b", "d/a"):
            write(root, name, f"{name}, in the beginning\n".encode(), 0o644)
        history = history_of(root)
        before = picture(root)
        told = []
        for number, work in enumerate(steps):
            history.begin(conversation="c", turn=f"t{number}", step=1, call="x", paths=None)
            for action in work:
                action(root)
            told.append(history.end(f"t{number}", "x"))
        now, records = picture(root), [one for one in told if one]
        if records:
            path = data.draw(st.sampled_from([change.path for one in records for change in one.changes]))
            parts = limited(records, [path], history.contents)
            chosen = {change.path for one in parts for change in one.changes}
            made = history.revert(parts, conversation="c", turn="t", in_part=True)
            after = picture(root)
            assert after.get(path) == before.get(path)
            assert {name for name in now | after if now.get(name) != after.get(name)} <= chosen
            assert all(after.get(name) in (now.get(name), before.get(name)) for name in now | after)
            moved = {before[name][2] for name in before.keys() - now.keys()} - {b""}
            assert moved & {entry[2] for entry in now.values()} <= {entry[2] for entry in after.values()}
            if made.changes:
                history.revert([made], conversation="c", turn="t")
            assert picture(root) == now
        history.close()


Work: TypeAlias = list[Callable[[Path], None]]
RULED = st.sampled_from(["a", "d", "d/a", "d/e/a", ".gitignore", "d/.gitignore", ".ignore", "node_modules/x"])
RULES = st.sampled_from([b"", b"a\n", b"!a\n", b"d/\n", b"/d/e\n", b"d/*\n!d/a\n", b"*\n!.gitignore\n"])
RULED_WORK = st.lists(
    st.one_of(
        st.builds(lambda n, d: lambda root: write(root, n, d, 0o644), RULED, RULES),
        st.builds(lambda n: lambda root: link(root, n, "a"), RULED),
        st.builds(lambda n: lambda root: remove(root, n), RULED),
        st.builds(lambda n, to: lambda root: rename(root, n, to), RULED, RULED),
    ),
    min_size=1,
    max_size=3,
)
NAMED = st.one_of(st.none(), st.lists(RULED, min_size=1, max_size=2))


@given(st.lists(st.tuples(RULED_WORK, NAMED, RULED_WORK, NAMED, RULED_WORK, st.booleans()), max_size=3))
@settings(max_examples=examples(10, 300), deadline=None, phases=_PHASES)
def test_no_file_looks_new_that_was_there_whatever_rules_change_beside(
    rounds: list[tuple[Work, list[str] | None, Work, list[str] | None, Work, bool]],
) -> None:
    """Two calls overlap, in one turn or two, while ignore files come, change and go. The kernel's reports and
    a walk give the same result (B1 × B3)."""
    told: list[object] = []
    for watch_from in (0, WATCH_FROM):
        found: list[object] = []
        with tempfile.TemporaryDirectory() as top:
            root = Path(top) / "work"
            root.mkdir()
            history = history_of(root, watch_from=watch_from)
            for beside, first, work, second, more, same_turn in rounds:
                _do(root, beside)
                turns = ("t", "t" if same_turn else "u")
                at_first = picture(root)
                history.begin(conversation="c", turn=turns[0], step=1, call="one", paths=first)
                _do(root, work)
                then = picture(root)
                history.begin(conversation="c", turn=turns[1], step=1, call="two", paths=second)
                _do(root, more)
                for record in (history.end(turns[0], "one"), history.end(turns[1], "two")):
                    changes = record.changes if record is not None else ()
                    for change in changes:
                        old = [seen[change.path][0] for seen in (at_first, then) if change.path in seen]
                        # A rule for folders may have hidden one, and not the file in its place.
                        is_file = change.after is not None and change.after.kind != "folder"
                        assert change.before is not None or len(old) < 2 or (is_file and "folder" in old)
                    found.append(changes)
            history.close()
        told.append(found)
    assert told[0] == told[1]


def _do(root: Path, work: Work) -> None:
    for action in work:
        with suppress(OSError):  # a link is in its way
            action(root)
