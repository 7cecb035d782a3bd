"""`dragoman acp`: what an editor starts to talk with a model."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.flags.options import Config, Log, LogLevel, Mode, Model, Store, System, Trust, start_logs

app = typer.Typer(rich_markup_mode="markdown")


@app.command(
    rich_help_panel="Talking",
    epilog="Example: `dragoman acp --model ollama/qwen3`, as the agent's command in the editor's settings",
)
def acp(
    *,
    model: Model = None,
    mode: Mode = None,
    system: System = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="PERMISSION or PERMISSION:PATTERN that needs no question. Can be given again."),
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="What must not run. Can be given again.")] = None,
    store: Store = None,
    config: Config = None,
    trust: Trust = False,
    log: Log = None,
    log_level: LogLevel = None,
) -> None:
    """An agent for editors such as Zed, JetBrains and Neovim: the Agent Client Protocol on standard input
    and output. The editor starts it, names the folder, and asks you what is to be asked."""
    from dragoman.cli.acp.agent import acp
    from dragoman.cli.acp.folders import AcpFlags

    start_logs(log, log_level)
    acp(
        AcpFlags(
            model=model,
            mode=mode,
            system=system,
            allow=allow or (),
            deny=deny or (),
            store=store,
            config=config,
            trust=trust,
        )
    )
