"""`dragoman config …`: which settings apply, where each comes from, and whether they can be followed."""

from __future__ import annotations

import typer

from dragoman.cli.flags.options import AsJson, Config, Trust, load_settings

app = typer.Typer(
    help="The settings, and where they come from.", no_args_is_help=True, rich_markup_mode="markdown"
)


@app.command(epilog="Example: `dragoman config path`")
def path(config: Config = None, json: AsJson = False) -> None:
    """Where settings are read from, and where conversations are kept."""
    from dragoman.cli.commands.config import show_paths

    show_paths(load_settings(config, None), as_json=json)


@app.command(epilog="Example: `dragoman config show --json`")
def show(config: Config = None, json: AsJson = False) -> None:
    """Every setting that was made, with the file and line, the variable or the flag it comes from."""
    from dragoman.cli.commands.config import show_settings

    show_settings(load_settings(config, None), as_json=json)


@app.command(epilog="Example: `dragoman config check && dragoman serve`")
def check(config: Config = None, trust: Trust = False) -> None:
    """Whether the settings can be followed. The exit status is 2 where they cannot; each reason is a line."""
    from dragoman.cli.commands.config import check_settings

    if not check_settings(config, trust=trust):
        raise typer.Exit(2)


@app.command(epilog="Example: `dragoman config schema > dragoman.schema.json`")
def schema() -> None:
    """What `dragoman.toml` may say, as a JSON schema for editors."""
    from dragoman.cli.commands.config import print_schema

    print_schema()
