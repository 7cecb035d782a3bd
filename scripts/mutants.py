"""`make mutants`: break the code in one place at a time, and check whether the tests notice.

The tests of the packages are collected once, and each runs once to record the lines it runs, also in the
programs it forks. Tests that take longer than twenty seconds are excluded.

A mutant is one change to one expression or statement inside a function. A fork of the process that has
imported everything replaces the function's code, and so do the programs that its tests fork. Then it runs
the tests that run the changed line until one fails, for at most a minute: the quickest for half of it, then
the quickest left of each file, the second of each, and so on. A mutant that no test notices is printed. At
the end, the tests that noticed one run against the original code. If one fails there, too, its mutants run
again without it.

These are excluded, since no test should notice them:

- calls of a logger, and `__repr__`
- numbers that only say how long something waits or how much one read takes: arguments of `sleep`, `read`,
  `timeout` and `wait`, arguments with these names, and operands of `<<`
- `assert_never(…)`, and `raise` in a last `case _`: the type checker shows that they are unreachable
- the length of a random text: arguments of `token_urlsafe`, `token_bytes` and `token_hex`
- the text of an error or of a prompt, defaults of parameters, decorators, and everything outside functions

A function that none of these tests enters (because it runs in another process, for example) has no mutants in
the sample: the last line says how many there would be.

The records are kept, and new tests are added to them. After a change of a test, record all again with
`--again`.

    python scripts/mutants.py [--count 300] [--seed 1] [--only turn/machine.py]
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "dragoman"
PACKAGES = ("turn", "tools", "store", "server", "workspace")
TESTS = (
    *PACKAGES,
    "cli",
    "conversation",
    "crash",
    "media",
    "plugins",
    "protocols",
    "telemetry",
    "test_runtime.py",
    "test_sync.py",
)
NOTES = ROOT / ".cache" / "mutants.json"
TRACED = tuple(str(SRC / package) + "/" for package in PACKAGES)
AT_ONCE = 2  # processes
QUICK = 20.0  # seconds of a test while lines are recorded: longer tests are excluded
MOST_TESTS = 400  # tests that run a line
MOST = 60.0  # recorded seconds of tests for one mutant
STARTING_POSTGRES = 3.0  # seconds of the first test that uses it
PATIENCE = 8.0  # extra seconds for a test, plus five times its recorded time: a longer one hangs
LONGEST = 300.0  # seconds for one mutant
HANGS = 3  # the exit code of a process with a hanging test
RECORDING = 3600.0  # seconds for all tests
MEMORY = 8 << 30  # bytes of one
NOT_BROKEN = "the code cannot be exchanged"
WAITING = {"sleep", "read", "timeout", "wait", "token_urlsafe", "token_bytes", "token_hex"}
OPPOSITES: dict[type[ast.AST], Any] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(slots=True)
class Mutant:
    file: Path
    number: int  # the node's index in `ast.walk`
    line: int
    places: list[str]  # its lines, as recorded
    tests: list[str] = field(default_factory=list)
    noticed: str = ""  # the test that failed

    def __str__(self) -> str:
        _, node = self.find()
        was, now = (" ".join(ast.unparse(one).split()) for one in (node, broken(node) or node))
        return f"{self.file.relative_to(ROOT)}:{self.line}: {was[:100]} → {now[:60]}"

    def find(self) -> tuple[ast.Module, ast.AST]:
        """The file, and the node in it to change."""
        tree = ast.parse(self.file.read_text("utf-8"))
        return tree, next(node for number, node in enumerate(ast.walk(tree)) if number == self.number)


# ── mutants ───────────────────────────────────────────────────────────────────────────────────────


def broken(node: ast.AST) -> ast.AST | None:
    """Return a wrong copy of the node, or None if nothing is to be changed."""
    changed: Any = copy.copy(node)
    match changed:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITES:
            changed.ops = [OPPOSITES[type(op)]()]
        case ast.BoolOp(op=op):
            changed.op = OPPOSITES[type(op)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            changed.value = not value
        case ast.Constant(value=int(value)):
            changed.value = value + 1
        case ast.BinOp(op=ast.Add()):
            changed.op = ast.Sub()
        case ast.BinOp(op=ast.Sub()):
            changed.op = ast.Add()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            changed.value = ast.Constant(None)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            return ast.Pass()
        case _:
            return None
    return changed  # type: ignore[no-any-return]


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _left_out(node: ast.AST) -> bool:
    """Exclude everything inside it."""
    match node:
        case ast.FunctionDef(name="__repr__") | ast.JoinedStr() | ast.arguments():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "_log")) | ast.Name(id="assert_never")):
            return True
        case ast.match_case(pattern=ast.MatchAs(pattern=None, name=None), body=[ast.Raise()]):
            return True
        case ast.keyword(arg=str(name), value=ast.Constant()) if name in WAITING:
            return True
    return False


def _only_waits(parent: ast.AST, node: ast.AST) -> bool:
    match parent, node:
        case ast.BinOp(op=ast.LShift()), ast.Constant():
            return True
        case ast.Call(func=called), ast.Constant():
            return _name(called) in WAITING
    return False


def _key(file: str, name: str) -> str:
    return f"{file.removeprefix(str(SRC))}:{name}"


@cache
def _places(file: str) -> dict[int, str]:
    """The lines of a file: the innermost function that has it, and which of its lines it is."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            within = scope
            if isinstance(child, ast.ClassDef):
                within = f"{scope}{child.name}."
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                within = f"{scope}{child.name}.<locals>."
                begin = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                for line in range(begin, (child.end_lineno or begin) + 1):
                    found[line] = f"{_key(file, scope + child.name)}:{line - begin}"
            walk(child, within)

    walk(ast.parse(Path(file).read_text("utf-8")), "")
    return found


def mutants_of(file: Path) -> Iterator[Mutant]:
    tree = ast.parse(file.read_text("utf-8"))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}

    places = _places(str(file))

    def walk(node: ast.AST) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if _left_out(child) or (isinstance(child, ast.Expr) and _left_out(child.value)):
                continue
            if child in getattr(node, "decorator_list", ()):
                continue
            line = getattr(child, "lineno", 0)
            if line in places and not _only_waits(node, child) and broken(child) is not None:
                lines = range(line, getattr(child, "end_lineno", line) + 1)
                yield Mutant(file, numbers[id(child)], line, [places[one] for one in lines])
            yield from walk(child)

    yield from walk(tree)


class Exchange(ast.NodeTransformer):
    """Return the tree with one node changed. A removed statement stays in a branch that is never taken, so
    that the function has the same variables."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    def visit(self, node: ast.AST) -> Any:
        if node is not self._node:
            return self.generic_visit(node)
        wrong: Any = broken(node)
        if isinstance(node, ast.stmt):
            wrong = ast.If(ast.Constant(False), [node], [wrong])
        return ast.copy_location(wrong, node)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def exchange(mutant: Mutant, functions: list[FunctionType]) -> None:
    """Make the functions of the file run the mutant's code."""
    tree, node = mutant.find()
    broken_tree = ast.fix_missing_locations(Exchange(node).visit(tree))
    module = compile(broken_tree, str(mutant.file), "exec", dont_inherit=True)
    codes = {(code.co_firstlineno, code.co_qualname): code for code in _codes(module)}
    exchanged = 0
    for function in functions:
        code = codes.get((function.__code__.co_firstlineno, function.__code__.co_qualname))
        if code is not None and code != function.__code__:
            function.__code__ = code
            exchanged += 1
    if not exchanged:
        raise LookupError(f"no function has the code of {mutant}")


# ── running tests ─────────────────────────────────────────────────────────────────────────────────


def serve_forks(trace: Callable[[FrameType, str, object], Any] | None = None) -> None:
    """Let this process, as it is now, be the one that the tests fork programs from."""
    server: Any = forkserver

    def spawn(_: object, __: object, descriptors: list[int]) -> int:
        if process := os.fork():
            return process
        threading.settrace(trace)
        sys.settrace(trace)
        server.main(*descriptors, [])
        os._exit(0)

    resource_tracker.ensure_running()  # a process of its own kind
    usual = server.util.spawnv_passfds
    server.util.spawnv_passfds = spawn
    server.ensure_running()
    server.util.spawnv_passfds = usual


class Recorder:
    """Records the lines of Dragoman that each test runs, and how long it takes.

    A process writes a line to a common file when it runs it for the first time in a test.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float | None] = {}  # None: the test is excluded
        self.run_by: dict[str, list[str]] = defaultdict(list)  # file, function and line in it: tests
        file = Path(tempfile.gettempdir(), "lines")
        self._write = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)  # whole lines, of all processes
        self._read = os.open(file, os.O_RDWR)
        self._test = mmap.mmap(-1, 4)  # the number of the present test, for all processes
        self._tracers: dict[CodeType, Callable[[FrameType, str, object], Any] | None] = {}

    def enter(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code not in self._tracers:
            self._tracers[code] = self._tracer(code) if code.co_filename.startswith(TRACED) else None
        tracer = self._tracers[code]
        return tracer and tracer(frame, event, None)

    def _tracer(self, code: CodeType) -> Callable[[FrameType, str, object], Any]:
        last_in: dict[int, bytes] = {}  # line: test
        test, file = self._test, self._write

        def trace(frame: FrameType, _: str, __: object) -> Any:
            line, now = frame.f_lineno, test[:]
            if last_in.get(line) != now:
                last_in[line] = now
                os.write(file, f"{code.co_filename}\t{line}\n".encode())
            return trace

        return trace

    def _lines(self, number: int) -> set[tuple[str, int]]:
        """The lines that were run since the last call. What runs next counts for this test."""
        ran = os.pread(self._read, os.fstat(self._read).st_size, 0)
        os.ftruncate(self._read, 0)
        rows = [row.split("\t") for row in ran.decode().splitlines()]
        self._test[:] = number.to_bytes(4)
        return {(file, int(line)) for file, line in rows if line != "None"}  # code that belongs to no line

    def run(self, items: list[pytest.Item]) -> None:
        serve_forks(self.enter)
        for number, (item, next_item) in enumerate(zip(items, [*items[1:], None], strict=False)):
            self._lines(number)
            began = time.monotonic()
            threading.settrace(self.enter)
            sys.settrace(self.enter)
            try:
                reports = runtestprotocol(item, nextitem=next_item, log=False)
            finally:
                sys.settrace(None)
            seconds = time.monotonic() - began
            ran = self._lines(number)
            passed = len(reports) == 3 and all(report.passed for report in reports)
            if seconds > QUICK or not passed:
                self.seconds[item.nodeid] = None
                continue
            self.seconds[item.nodeid] = seconds
            for file, line in ran:
                if (place := _places(file).get(line)) is not None:
                    self.run_by[place].append(item.nodeid)


def _varied(tests: Iterable[str], seconds: Mapping[str, float | None]) -> list[str]:
    """Sort tests: the quickest of each file, then the second of each, and so on."""
    quickest = sorted(tests, key=lambda test: seconds[test] or 0)
    before: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for test in quickest:
        file = test.partition("::")[0]
        rank[test] = before[file]
        before[file] += 1
    return sorted(quickest, key=rank.__getitem__)


def _record(items: list[pytest.Item]) -> dict[str, Any]:
    """Return the records of these tests: for each line, the quickest tests of each file that run it."""
    recorder = Recorder()
    recorder.run(items)
    number = {test: at for at, test in enumerate(recorder.seconds)}
    lines = {
        line: [number[test] for test in _varied(tests, recorder.seconds)[:MOST_TESTS]]
        for line, tests in recorder.run_by.items()
    }
    return {"seconds": recorder.seconds, "lines": lines}


def first_failed(items: list[pytest.Item], seconds: Mapping[str, float] | None = None) -> str:
    """Return the first of these tests that fails, or "" if all pass. A test that takes far longer than
    recorded ends the process."""
    serve_forks()
    signal.signal(signal.SIGALRM, lambda *_: os._exit(HANGS))
    for item, next_item in zip(items, [*items[1:], None], strict=False):
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE + 5 * seconds[item.nodeid])
        if not all(report.passed for report in runtestprotocol(item, nextitem=next_item, log=False)):
            item.session._setupstate.teardown_exact(None)  # it stops PostgreSQL
            return item.nodeid
    return ""


@dataclass(slots=True)
class Child:
    """A fork that does one job in a separate folder, and leaves its result there."""

    folder: Path
    process: int
    end: float

    @classmethod
    def start(cls, work: Callable[[], Any], patience: float) -> Child:
        folder = Path(tempfile.mkdtemp(prefix="m-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        folder.chmod(0o711)  # PostgreSQL runs as another user
        if process := os.fork():
            return cls(folder, process, time.monotonic() + patience)
        try:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(folder)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            (folder / "answer").write_text(json.dumps(work()))
        except BaseException as error:
            (folder / "failed").write_text(repr(error))
        finally:
            os._exit(0)

    def answer(self) -> tuple[Any, str] | None:
        """Return its result and the reason if it has none, or None while it works."""
        ended, status = os.waitpid(self.process, os.WNOHANG)
        if not ended and time.monotonic() < self.end:
            return None
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        if not ended:
            os.waitpid(self.process, 0)
        try:
            if (file := self.folder / "answer").exists():
                return json.loads(file.read_text()), ""
            failed = self.folder / "failed"
            hangs = not ended or os.waitstatus_to_exitcode(status) == HANGS
            return None, failed.read_text() if failed.exists() else "it hangs" if hangs else "it ended"
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self) -> Any:
        while (found := self.answer()) is None:
            time.sleep(0.1)
        answer, failed = found
        if failed:
            raise RuntimeError(failed)
        return answer


class Breaker:
    """A plugin of pytest that runs mutants where pytest would run the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def pytest_sessionstart(self) -> None:
        importlib.import_module("tests.preloaded")  # also modules that are imported on first use

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # otherwise nothing in it is found
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                self._functions[found.__code__.co_filename].append(found)
        gc.freeze()
        self._items = {item.nodeid: item for item in session.items}
        self._note()
        self._break()
        return True

    def _note(self) -> None:
        """Run each test without a record once."""
        notes: dict[str, Any] = {"seconds": {}, "lines": {}}
        if NOTES.exists() and not self._options.again:
            notes = json.loads(NOTES.read_text())
        if new := [item for item in self._items.values() if item.nodeid not in notes["seconds"]]:
            print(f"running {len(new)} tests once, to see which lines each of them runs …", flush=True)
            files = sorted({item.path for item in new})
            parts = [[item for item in new if item.path in files[n::AT_ONCE]] for n in range(AT_ONCE)]
            for child in [Child.start(partial(_record, part), RECORDING) for part in parts]:
                found, before = child.wait(), len(notes["seconds"])
                notes["seconds"] |= found["seconds"]
                for line, tests in found["lines"].items():
                    notes["lines"].setdefault(line, []).extend(before + test for test in tests)
            NOTES.parent.mkdir(exist_ok=True)
            NOTES.write_text(json.dumps(notes))
        self._tests: list[str] = list(notes["seconds"])
        self._seconds: dict[str, float] = {
            test: seconds
            for test, seconds in notes["seconds"].items()
            if seconds is not None and test in self._items
        }
        self._lines: dict[str, list[int]] = notes["lines"]
        self._entered = {line.rpartition(":")[0] for line in self._lines}

    def _nearest(self, mutant: Mutant, without: set[str]) -> list[str]:
        """The tests that run one of its lines: the quickest, then the quickest left of each file."""
        tests = {self._tests[test] for place in mutant.places for test in self._lines.get(place, ())}
        tests = (tests & self._seconds.keys()) - without
        left, nearest, started = MOST, dict[str, None](), False
        for quick in (True, False):
            rest = tests - nearest.keys()
            order = sorted(rest, key=self._seconds.__getitem__) if quick else _varied(rest, self._seconds)
            for test in order:
                starts = not started and "postgres" in getattr(self._items[test], "fixturenames", ())
                after = left - self._seconds[test] - STARTING_POSTGRES * starts
                if after > (MOST / 2 if quick else 0):
                    nearest[test] = None
                    left, started = after, started or starts
        return list(nearest)

    def _break(self) -> None:
        files = [file for package in PACKAGES for file in sorted((SRC / package).rglob("*.py"))]
        chosen = [file for file in files if str(file).startswith(str(SRC / self._options.only))]
        every = [mutant for file in chosen for mutant in mutants_of(file)]
        within = [mutant for mutant in every if mutant.places[0].rpartition(":")[0] in self._entered]
        sample = random.Random(self._options.seed).sample(within, min(self._options.count, len(within)))
        began, bad = time.monotonic(), set[str]()
        todo, hung = sorted(sample, key=lambda one: (one.file, one.line)), 0
        spent: Counter[str] = Counter()
        while todo:
            for mutant in todo:
                mutant.tests, mutant.noticed = self._nearest(mutant, bad), ""
            for mutant, seconds in self._run(todo):
                spent[_package(mutant)] += round(seconds * 1000)
            bad |= (worse := self._failing_anyway({mutant.noticed for mutant in todo} & self._items.keys()))
            todo = [mutant for mutant in sample if mutant.noticed in worse]
        for package in sorted(spent):
            of = [mutant for mutant in sample if _package(mutant) == package]
            alive = sum(not mutant.noticed for mutant in of)
            print(f"{package}: {len(of)} mutants, {alive} survived, {spent[package] / 1000:.0f} s")
        hung = sum(mutant.noticed == "it hangs" for mutant in sample)
        alive = sum(not mutant.noticed for mutant in sample)
        share = 100 * alive / max(1, len(sample))
        seconds = time.monotonic() - began
        print(f"{len(sample)} mutants: {alive} survived ({share:.1f} in 100), {hung} hung, {seconds:.0f} s")
        elsewhere = len(every) - len(within)
        print(f"there are {len(within)}, and {elsewhere} in functions that none of the tests enters")
        if bad:
            print(f"these tests fail by themselves, and were left out: {', '.join(sorted(bad))}")

    def _run(self, mutants: list[Mutant]) -> Iterator[tuple[Mutant, float]]:
        todo, running = deque(mutants), list[tuple[Mutant, Child]]()
        while todo or running:
            while todo and len(running) < AT_ONCE:
                mutant = todo.popleft()
                running.append((mutant, Child.start(partial(self._try, mutant), LONGEST)))
            time.sleep(0.01)
            for mutant, child in list(running):
                if (found := child.answer()) is None:
                    continue
                running.remove((mutant, child))
                mutant.noticed = found[1] if found[0] is None else found[0]
                if mutant.noticed.startswith(NOT_BROKEN):
                    print(mutant.noticed, file=sys.stderr)
                    mutant.noticed = ""  # as if no test had noticed it
                if not mutant.noticed:
                    print(f"{mutant}  ({len(mutant.tests)} tests)", flush=True)
                elif self._options.verbose:
                    print(f"    {mutant}: {mutant.noticed}", flush=True)
                yield mutant, time.monotonic() - child.end + LONGEST
                if (done := len(mutants) - len(todo) - len(running)) % 25 == 0:
                    print(f"[{done} of {len(mutants)}]", file=sys.stderr, flush=True)

    def _try(self, mutant: Mutant) -> str:
        try:
            exchange(mutant, self._functions[str(mutant.file)])
        except (LookupError, ValueError) as error:
            return f"{NOT_BROKEN}: {error}"
        return first_failed([self._items[test] for test in mutant.tests], self._seconds)

    def _failing_anyway(self, tests: set[str]) -> set[str]:
        failing = set[str]()
        while tests:
            items = [self._items[test] for test in sorted(tests)]
            if not (failed := Child.start(partial(first_failed, items), RECORDING).wait()):
                break
            failing.add(failed)
            tests = tests - {failed}
        return failing


def _package(mutant: Mutant) -> str:
    return mutant.file.relative_to(SRC).parts[0]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", default="", help="a file or folder in src/dragoman")
    words.add_argument("--again", action="store_true", help="note anew which lines each test runs")
    words.add_argument("--verbose", action="store_true", help="name the test that noticed each mutant, too")
    options = words.parse_args()
    os.chdir(ROOT)
    os.nice(10)
    sys.path.insert(0, str(ROOT))
    folders = [str(ROOT / "tests" / name) for name in TESTS]
    sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", *folders], plugins=[Breaker(options)]))


if __name__ == "__main__":
    main()
