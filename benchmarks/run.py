"""`make bench`: run every contestant in a separate process against the same loopback model; print ratios in
tables.

The other frameworks are installed only into a separate environment, `.bench`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".bench"
PEERS = ["pydantic-ai-slim[openai]", "openai-agents", "langchain", "langgraph", "langchain-openai"]
ENGINES = ["dragoman", "bare", "pydantic_ai", "openai_agents", "langgraph"]
WIRES = ["bare", "dragoman", "served", "openai"]
REPEATS = 3  # runs per contestant, of which the cheapest counts: the machine also runs other programs
ROUNDS = 10
PAIRS = 300  # of turns without and with tracing
CHUNKS = [  # a name, the model that plays it, turns, and how many of them one turn has
    ("streamed chunk", "chunks-2000", 10, 2000),
    ("streamed chunk, one a read", "paced-300", 3, 300),
]
PROSE = ("chunk of prose, code and markup", "prose-4000", 10, 4000)


def main() -> None:
    console = Console()
    python = _environment(console)
    with _server(python) as url:
        bench = Bench(console, python, url)
        tables = _engines(bench), _wires(bench), _tracing(bench)
    console.print(*tables, sep="\n")
    subprocess.run([python, HERE / "growth.py"], check=True)


def _engines(bench: Bench) -> Table:
    table = Table("CPU per …", *ENGINES, title="the engine: microseconds, and how many times Dragoman's")
    clients = [f"with_{name}" for name in ENGINES]
    whole = bench.cheapest(clients, f"rounds-{ROUNDS}", 20)
    without = bench.cheapest(clients, "rounds-0", 40)
    table.add_row("tool round, of the whole turn", *_ratios([turn / ROUNDS for turn in whole]))
    more = [(turn - base) / ROUNDS for turn, base in zip(whole, without, strict=True)]
    table.add_row("tool round, one more", *_ratios(more))
    for name, model, turns, count in CHUNKS:
        table.add_row(name, *_ratios([turn / count for turn in bench.cheapest(clients, model, turns)]))
    return table


def _wires(bench: Bench) -> Table:
    table = Table("CPU per …", *WIRES, "openai / dragoman", title="the wire alone: microseconds, and × bare")
    for name, model, turns, count in (*CHUNKS, PROSE):
        spent = [turn / count for turn in bench.cheapest([f"wire_{name}" for name in WIRES], model, turns)]
        table.add_row(name, *_ratios(spent), f"×{spent[-1] / spent[1]:.1f}")
    return table


def _tracing(bench: Bench) -> Table:
    """It must cost less than a twentieth of a tool round. Turned off, it is a lookup and two checks."""
    title = f"tracing to a collector: microseconds, medians of {PAIRS} pairs of turns"
    table = Table("CPU per …", "off", "more with it", title=title)
    bench.console.print("[dim]tracing off and on …[/]", highlight=False)
    told = bench.printed("tracing", f"rounds-{ROUNDS}", PAIRS)
    for name, key in (("tool round, in the event loop", "loop"), ("tool round, with what sends", "cpu")):
        off, more, error = (told[key][one] / ROUNDS for one in ("off", "more", "error"))
        share = f"{100 * more / off:+.1f} % (± {100 * error / off:.1f})"
        table.add_row(name, f"{off * 1e6:,.0f}", f"{more * 1e6:,.0f}  {share}")
    return table


def _ratios(spent: list[float]) -> list[str]:
    """Seconds as microseconds, and as times the first."""
    return [f"{one * 1e6:,.1f}  ×{one / spent[0]:.2f}" for one in spent]


@dataclass(slots=True, frozen=True)
class Bench:
    """The environments of the contestants, and the model that they call."""

    console: Console
    python: Path
    url: str

    def cheapest(self, clients: list[str], model: str, turns: int) -> list[float]:
        """Return the seconds of CPU that each contestant needs for a turn. They alternate, so that a busy
        moment affects all."""
        self.console.print(f"[dim]{model}: {', '.join(clients)} …[/]", highlight=False)
        rounds = [[self.measured(client, model, turns)["cpu"] for client in clients] for _ in range(REPEATS)]
        return [min(times) for times in zip(*rounds, strict=True)]

    def measured(self, client: str, model: str, turns: int) -> dict[str, float]:
        spent: dict[str, float] = self.printed(client, model, turns)
        assert spent["seen"], f"{client} saw no text"
        return spent

    def printed(self, client: str, model: str, turns: int) -> Any:
        """The last line that it printed, read as JSON."""
        command = [self.python, HERE / "clients" / f"{client}.py", self.url, model, str(turns)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{client} failed:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def _environment(console: Console) -> Path:
    """The peers and this checkout, installed once."""
    python = ENVIRONMENT / "bin" / "python"
    ready = ENVIRONMENT / ".ready"
    if not ready.exists():
        console.print("installing the other frameworks into .bench …")
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", f"{HERE.parent}[otel]", *PEERS], check=True)
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


if __name__ == "__main__":
    main()
