"""`dragoman worker`: runs turns that the servers of the same database take in, until somebody stops it."""

from __future__ import annotations

import asyncio
import signal

from rich.console import Console

from dragoman.cli.commands.serve import fetch_model, show_setup
from dragoman.cli.listening import log_warnings
from dragoman.cli.model_choice import choose_model
from dragoman.config.build import build_runtime, turns_of
from dragoman.config.settings import Settings


def work(settings: Settings) -> None:
    """Until Ctrl-C, or SIGTERM. What runs then is handed to the others."""
    log_warnings()
    asyncio.run(_work(settings))


async def _work(settings: Settings) -> None:
    chosen = await choose_model(settings)
    await fetch_model(chosen)
    built = build_runtime(settings, model=chosen.models, **{**turns_of(settings), "role": "worker"})
    stop = asyncio.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(told, stop.set)
    async with chosen.models, built.runtime:
        console = Console(highlight=False, soft_wrap=True)
        console.print("[bold]Dragoman[/bold]  a worker")
        show_setup(console, settings, chosen, built)
        console.print("  Ctrl-C stops it; what runs is handed to the others.", style="dim")
        await stop.wait()
