"""`make compared`: run ten programs with Dragoman and with pydantic-ai against the same model, and print a
table.

pydantic-ai is installed only into a separate environment, `.bench/compared`.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from expected import PROGRAMS, Program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENT = ROOT / ".bench" / "compared"
PEER = "pydantic-ai-slim[openai,mcp]"
SIDES = ("with_dragoman", "with_pydantic_ai")
TIMES = 3  # runs in a process
BEGIN = "<!-- made by `python benchmarks/compared/compare.py`: change the programs, not this -->"
END = "<!-- the comparison ends -->"


def main(page: Path, processes: int) -> None:
    python = environment()
    with _model(python) as url:
        rows = [row(program, python, url, processes) for program in PROGRAMS]
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(_table(rows, _version(python), processes))
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", "utf-8")


def environment() -> Path:
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / ".ready").exists():
        print("installing pydantic-ai into .bench/compared …")
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", f"{ROOT}[mcp]", PEER], check=True)
        (ENVIRONMENT / ".ready").touch()
    return python


def row(program: Program, python: Path, url: str, processes: int) -> list[str]:
    files = [HERE / side / f"{program.name}.py" for side in SIDES]
    print(f"{program.title} …", flush=True)
    runs = [[_measured(program, python, file, url) for file in files] for _ in range(processes)]
    ours, theirs = (min(times) for times in zip(*runs, strict=True))
    lines = [str(count_lines(file.read_text("utf-8"))) for file in files]
    cpu = [f"{ours * 1e3:.1f}", f"{theirs * 1e3:.1f}", f"×{theirs / ours:.1f}"]
    return [program.title, *lines, *cpu, program.dragoman, program.pydantic_ai]


def _measured(program: Program, python: Path, file: Path, url: str) -> float:
    command = [python, HERE / "run_program.py", file, url, str(TIMES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{file} failed:\n{done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    if said["answer"] != program.answer:
        raise SystemExit(f"{file} answered {said['answer']!r}, not {program.answer!r}")
    return float(said["cpu"])


def count_lines(source: str) -> int:
    """Lines with code: neither blank, nor a comment, nor of a docstring."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    texts = [
        node.body[0] for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)
    ]
    prose = {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    ignored = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    used = {
        line
        for token in tokens
        if token.type not in ignored
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(used - prose)


def _table(rows: list[list[str]], version: str, processes: int) -> Iterator[str]:
    yield f"With pydantic-ai {version}. CPU in milliseconds per run: the mean of {TIMES} runs in one process,"
    yield f"and the lowest of {processes} processes." if processes > 1 else "once."
    yield ""
    yield "| program | lines: Dragoman | pydantic-ai | CPU: Dragoman | pydantic-ai | ratio |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield from (f"| {' | '.join(row[:6])} |" for row in rows)
    lines = [sum(int(row[column]) for row in rows) for column in (1, 2)]
    yield f"| **total** | **{lines[0]}** | **{lines[1]}** | | | |"
    yield ""
    yield "| program | Dragoman | pydantic-ai |"
    yield "|---|---|---|"
    yield from (f"| {row[0]} | {row[6]} | {row[7]} |" for row in rows)


def _version(python: Path) -> str:
    program = "from importlib.metadata import version; print(version('pydantic-ai-slim'))"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def _model(python: Path) -> Iterator[str]:
    command = [python, HERE / "loopback_model.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    main(ROOT / "docs" / "project" / "compared.md", int(sys.argv[1]) if len(sys.argv) > 1 else 3)
