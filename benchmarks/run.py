"""`make bench`: every contestant in its own process against the same loopback model; ratios in one table.

The other frameworks are installed into an environment of their own, `.bench`, and nowhere else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".bench"
PEERS = ["pydantic-ai-slim[openai]", "openai-agents", "langchain", "langgraph", "langchain-openai"]
CONTESTANTS = ["dragoman", "pydantic_ai", "openai_agents", "langgraph"]
SCENARIOS = [  # a name, the model that plays it, turns, and how many of what one turn has
    ("tool round", "rounds-10", 20, 10),
    ("streamed chunk", "chunks-2000", 8, 2000),
    ("streamed chunk, one a read", "paced-300", 3, 300),
]


def main() -> None:
    console = Console()
    python = _environment(console)
    table = Table("CPU per …", *CONTESTANTS, title="microseconds, and how many times Dragoman's")
    with _server(python) as url:
        for name, model, turns, count in SCENARIOS:
            spent = {}
            for contestant in CONTESTANTS:
                console.print(f"[dim]{contestant}: {name} …[/]", highlight=False)
                spent[contestant] = _contest(python, contestant, url, model, turns) / count * 1e6
            ours = spent["dragoman"]
            table.add_row(name, *(f"{spent[c]:,.1f}  ×{spent[c] / ours:.1f}" for c in CONTESTANTS))
    console.print(table)
    subprocess.run([python, HERE / "growth.py"], check=True)


def _environment(console: Console) -> Path:
    """The peers and this checkout, installed once."""
    python = ENVIRONMENT / "bin" / "python"
    ready = ENVIRONMENT / ".ready"
    if not ready.exists():
        console.print("installing the other frameworks into .bench …")
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", HERE.parent, *PEERS], check=True)
        ready.touch()
    return python


@contextmanager
def _server(python: Path) -> Iterator[str]:
    with subprocess.Popen([python, HERE / "server.py"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


def _contest(python: Path, contestant: str, url: str, model: str, turns: int) -> float:
    client = HERE / "clients" / f"with_{contestant}.py"
    done = subprocess.run(
        [python, client, url, model, str(turns)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{contestant} failed:\n{done.stderr}")
    spent = json.loads(done.stdout.splitlines()[-1])
    assert spent["seen"], f"{contestant} saw no text"
    cpu: float = spent["cpu"]
    return cpu


if __name__ == "__main__":
    main()
