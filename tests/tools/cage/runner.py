"""Run a command in the cage with the settings of the current folder, as the product does, to attack it.

    python -m tests.tools.cage.runner [--allow HOST:PORT] [--protect PATH] [--no-watch] -- WORDS...

No approval is requested: everything that is not allowed is refused. A link on a protected path would need
approval first, so it counts as approved, and its effects are held back as well.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from dragoman.config.build import store_of
from dragoman.config.settings import load
from dragoman.config.workspaces import workspaces_of
from dragoman.errors import ToolFailed
from dragoman.messages.questions import Rule
from dragoman.tools.builtin.shell import ShellOutput, run_program
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import CageSettings


async def main() -> int:
    place = sys.argv.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow", action="append", default=[])
    parser.add_argument("--protect", action="append", default=[])
    parser.add_argument("--no-watch", action="store_true")
    given = parser.parse_args(sys.argv[1:place])
    settings = load(start=Path.cwd(), decide=lambda contents: True)
    main, _ = workspaces_of(settings, store_of(settings))
    bounds = [*main.find_bounds(), *main.bounds, *(Rule("files.write", one, "ask") for one in given.protect)]
    cage = cage_in(Path.cwd(), CageSettings(watch=not given.no_watch), bounds, look=False)

    async def gate(pattern: str, question: str, permission: str) -> None:
        if pattern not in given.allow:
            raise ToolFailed(question)

    output = ShellOutput()
    words = sys.argv[place + 1 :]
    status, refused = await run_program(words, Path.cwd(), output, lambda text: None, cage=cage, gate=gate)
    sys.stdout.write(output.text())
    sys.stderr.write("".join(f"[cage] {one}\n" for one in refused))
    assert status is not None
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
