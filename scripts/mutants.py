"""`make mutants`: break the code in one place at a time, and see whether the tests notice.

First the tests of the packages below run once, and it is noted which functions each of them enters. Then each
mutant is one change to one expression or statement. The quickest tests that enter its function run against
it, in a fork that has imported everything but Dragoman. A mutant that no test notices is printed.

    python scripts/mutants.py [--count 300] [--seed 1] [--only turn/machine.py]
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PACKAGES = ("turn", "tools", "store", "server", "workspace")
NOTES = ROOT / ".cache" / "mutants.json"
MOST_TESTS = 25  # for one mutant: the quickest that enter its function
PATIENCE = 60.0  # seconds for one mutant
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
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


@dataclass(frozen=True, slots=True)
class Mutant:
    file: Path
    line: int
    function: str  # file and first line, as the notes have it
    was: str
    now: str
    source: bytes


# ── which tests enter which functions ─────────────────────────────────────────────────────────────


class Recorder:
    """A plugin of pytest that notes the functions of ours that each test enters, and how long it takes."""

    def __init__(self) -> None:
        self.entered: dict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self._names: dict[Any, str | None] = {}
        self._test = ""

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._names:
            inside = code.co_filename.startswith(str(SRC))
            self._names[code] = (
                f"{code.co_filename[len(str(SRC)) + 1 :]}:{code.co_firstlineno}" if inside else None
            )
        if (name := self._names[code]) is not None:
            self.entered[name].add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._test = item.nodeid
        began = time.monotonic()
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.seconds[item.nodeid] = time.monotonic() - began


def record() -> None:
    recorder = Recorder()
    folders = [str(ROOT / "tests" / name) for name in PACKAGES]
    pytest.main(
        ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", *folders], plugins=[recorder]
    )
    entered = {
        name: sorted(tests, key=recorder.seconds.__getitem__) for name, tests in recorder.entered.items()
    }
    NOTES.parent.mkdir(exist_ok=True)
    NOTES.write_text(json.dumps({"entered": entered, "seconds": recorder.seconds}))


# ── mutants ───────────────────────────────────────────────────────────────────────────────────────


def broken(node: ast.AST) -> ast.AST | None:
    """The same, and wrong; None where nothing is to be broken."""
    changed: Any = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITES:
            changed.ops = [OPPOSITES[type(op)]()]  # type: ignore[list-item]
        case ast.BoolOp(op=op):
            changed.op = OPPOSITES[type(op)]()  # type: ignore[assignment]
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


def mutants_of(file: Path) -> Iterator[Mutant]:
    raw = file.read_bytes()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def walk(node: ast.AST, function: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                inside = f"{file.relative_to(SRC)}:{first}"
            if inside and isinstance(child, ast.expr | ast.stmt) and (wrong := broken(child)) is not None:
                begin = starts[child.lineno - 1] + child.col_offset
                end = starts[(child.end_lineno or child.lineno) - 1] + (child.end_col_offset or 0)
                text = ast.unparse(wrong)
                text = f"({text})" if isinstance(child, ast.expr) else text
                source = raw[:begin] + text.encode() + raw[end:]
                yield Mutant(file, child.lineno, inside, raw[begin:end].decode(), text, source)
            if not isinstance(child, ast.JoinedStr | ast.arguments):
                yield from walk(child, inside)

    yield from walk(ast.parse(raw), "")


# ── running them ──────────────────────────────────────────────────────────────────────────────────


class Finder(importlib.abc.MetaPathFinder):
    """Imports one module from another file."""

    def __init__(self, name: str, file: str) -> None:
        self._name = name
        self._file = file

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        return importlib.util.spec_from_file_location(name, self._file) if name == self._name else None


def survives(mutant: Mutant, tests: list[str]) -> bool:
    with tempfile.NamedTemporaryFile(suffix=".py") as changed:
        changed.write(mutant.source)
        changed.flush()
        child = os.fork()
        if not child:
            _be_tested(mutant, changed.name, tests)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status) == 0
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return False  # it hangs: that is noticed


def _be_tested(mutant: Mutant, file: str, tests: list[str]) -> None:
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    module = ".".join(mutant.file.relative_to(SRC).with_suffix("").parts)
    sys.meta_path.insert(0, Finder(module, file))
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", default="", help="a file or folder in src/dragoman")
    words.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    words.add_argument("--again", action="store_true", help="note anew which tests enter which functions")
    chosen = words.parse_args()
    os.chdir(ROOT)
    if chosen.record:
        record()
        return
    if chosen.again or not NOTES.exists():
        print("running the tests once, to see what each of them enters …", flush=True)
        subprocess.run([sys.executable, __file__, "--record"], check=True, stdout=subprocess.DEVNULL)
    entered: dict[str, list[str]] = json.loads(NOTES.read_text())["entered"]
    for name in ("aiohttp", "fastapi", "hypothesis", "pydantic", "typer", "_pytest.python"):
        importlib.import_module(name)  # once, for all forks
    sys.path.insert(0, str(ROOT))
    files = [file for package in PACKAGES for file in sorted((SRC / "dragoman" / package).rglob("*.py"))]
    every = [
        mutant
        for file in files
        if file.name != "__init__.py" and str(file).startswith(str(SRC / "dragoman" / chosen.only))
        for mutant in mutants_of(file)
        if mutant.function in entered
    ]
    sample = random.Random(chosen.seed).sample(every, min(chosen.count, len(every)))
    began, survived = time.monotonic(), 0
    for number, mutant in enumerate(sorted(sample, key=lambda one: (one.file, one.line)), 1):
        if survives(mutant, entered[mutant.function][:MOST_TESTS]):
            survived += 1
            place = f"{mutant.file.relative_to(ROOT)}:{mutant.line}"
            print(f"{place}: {' '.join(mutant.was.split())[:90]} → {mutant.now[:60]}", flush=True)
        if number % 25 == 0:
            print(f"[{number} of {len(sample)}, {survived} survived]", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    share = 100 * survived / max(1, len(sample))
    print(f"{len(sample)} mutants of {len(every)}: {survived} survived ({share:.1f} in 100), {seconds:.0f} s")


if __name__ == "__main__":
    main()
