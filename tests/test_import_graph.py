"""How our modules import each other: without a cycle, and inside a function only for a reason.

An import inside a function hides a cycle, and the name of a missing package until the function runs. Both
kinds count here, and those that only a type checker sees.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"

# The number of imports of Dragoman modules inside functions, and the reason. A number can only fall.
LATE: dict[str, tuple[int, str]] = {
    "dragoman.cli": (9, "completion, and what few calls of the program need"),
    "dragoman.parameters": (3, "providers, if the caller brings no model; drivers that come with an extra"),
    "dragoman.server.setup.mcp_sign_in": (1, "the MCP SDK takes 0.8 s"),
    "dragoman.store.postgres": (1, "procrastinate, which only the queue of turns needs"),
    "dragoman.telemetry.start": (1, "the OpenTelemetry SDK comes with an extra"),
    "dragoman.tools.builtin": (8, "a group's tools, if the group is asked for: 80 ms for all"),
    "dragoman.tools.mcp": (5, "the MCP SDK takes 0.8 s"),
    "dragoman.workspace.ignore": (1, "pathspec, if there is an ignore file"),
}


@dataclass(frozen=True, slots=True)
class Import:
    """One statement in one module."""

    module: str
    line: int
    imported: frozenset[str]
    late: bool  # inside a function


@cache
def modules() -> dict[str, Path]:
    found = {}
    for file in (SRC / "dragoman").rglob("*.py"):
        parts = file.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports() -> list[Import]:
    return [one for module, file in modules().items() for one in _imports_in(module, file)]


def _imports_in(module: str, file: Path) -> Iterator[Import]:
    def visit(node: ast.AST, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                if ours := frozenset(_ours(child)):
                    yield Import(module, child.lineno, ours, late)
            else:
                yield from visit(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from visit(ast.parse(file.read_text("utf-8")), late=False)


def _ours(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (one.name for one in statement.names if one.name in modules())
    elif statement.module in modules():
        for one in statement.names:
            whole = f"{statement.module}.{one.name}"
            yield whole if whole in modules() else statement.module


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: set[str]() for module in modules()}
    for one in imports():
        graph[one.module] |= one.imported - {one.module}
    assert sum(map(len, graph.values())) > len(graph)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a cycle: {' → '.join(reversed(error.args[1]))}") from None


def test_imports_inside_functions_do_not_grow() -> None:
    """Each has a reason above. Import at the top of the module, or move what makes the cycle."""
    found: Counter[str] = Counter()
    for one in imports():
        if one.late:
            place = next((place for place in LATE if f"{one.module}.".startswith(f"{place}.")), None)
            assert place is not None, f"{one.module}:{one.line} imports {', '.join(one.imported)} late"
            found[place] += 1
    assert found == {place: number for place, (number, _) in LATE.items()}
