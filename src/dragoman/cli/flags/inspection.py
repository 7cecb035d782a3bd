"""`dragoman explain`, `replay`, `usage`, `decode`, `parse`: a closer look at turns, at costs, at a stream."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Config, Store, load_settings


class ReplayTools(StrEnum):
    recorded = "recorded"
    live = "live"


app = typer.Typer(rich_markup_mode="markdown")
PANEL = "Looking closer"


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman explain --trace`, or `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`",
)
def explain(
    turn: Annotated[
        str | None,
        typer.Argument(help="Its id, or that of its conversation, the beginning of one, or `last`."),
    ] = None,
    *,
    store: Store = None,
    config: Config = None,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="A waterfall instead: what took how long, and why each call ran."),
    ] = False,
    request: Annotated[
        bool, typer.Option("--request", help="What its requests hold instead, and which setting gave it.")
    ] = False,
    json: AsJson = False,
) -> None:
    """What happened in a turn: its facts, the states they led to, and what it still asks."""
    from dragoman.cli.commands.explain import explain, explain_request
    from dragoman.config.build import store_of

    if request:
        explain_request(turn, load_settings(config, store), as_json=json)
        return
    explain(turn, store_of(load_settings(config, store)), as_json=json, trace=trace)


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman replay turn_9x3k2m7qw1r5t8v0 --model ollama/qwen3 --model openai/gpt-5.4`",
)
def replay(
    turns: Annotated[
        list[str] | None, typer.Argument(help="Turns by id, or `last`; without any, the latest.")
    ] = None,
    *,
    model: Annotated[list[str], typer.Option("--model", "-m", help="Run them on this one; more than once.")],
    tools: Annotated[
        ReplayTools, typer.Option("--tools", help="What calls get: the results of then, or real ones.")
    ] = ReplayTools.recorded,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Run stored turns again on another model: calls, answer, tokens, cost and time beside what they were.

    Nothing of it is stored. With recorded results no tool runs; with live ones, what no rule allows does not.
    """
    from dragoman.cli.commands.replay import show_replays

    show_replays(load_settings(config, store), turns or [], model, tools=tools.value, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman top --store postgresql://db.example/chat`")
def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """The nodes that share the store, the turns they run, and what waits: for people, and for workers.

    Drawn anew every second at a terminal, until Ctrl-C; printed once into a pipe.
    """
    from dragoman.cli.commands.top import show_top

    show_top(load_settings(config, store), once=once, as_json=json)


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman usage --by day,model --since 30d`, or `dragoman usage --by person --csv`",
)
def usage(
    *,
    by: Annotated[
        str, typer.Option(help="By what: day, person, model, agent, tool, or several with commas.")
    ] = "day,model",
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only since then: 2026-11-01, 7d, 2w, 12h.")
    ] = None,
    person: Annotated[str | None, typer.Option(help="Only of this person.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")] = False,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What was spent: replies, tokens, and what they cost as far as prices are known. Days are in UTC.

    By tool, it is calls that are counted. What was spent in deleted conversations is counted.
    """
    from dragoman.cli.commands.usage import show_usage

    form = "json" if json else "csv" if as_csv else "table"
    show_usage(load_settings(config, store), by=by, since=since, person=person, form=form)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman decode --wire openai_chat < stream.sse`")
def decode(
    wire: Annotated[
        str,
        typer.Option(help="openai_chat, openai_responses, anthropic_messages, gemini or bedrock_converse."),
    ] = "openai_chat",
) -> None:
    """A provider's stream, as one JSON object: text, reasoning, tool_calls, finish, usage, error.

    An error inside the stream is part of what is printed, and not one of this program.
    """
    from dragoman.cli.commands.debug import decode

    decode(wire)


@app.command(
    rich_help_panel=PANEL, epilog="Example: `dragoman parse --dialect xml_tag --tools tools.json < reply.txt`"
)
def parse(
    dialect: Annotated[str, typer.Option(help="How calls are written: xml_tag, json_strict, hermes, …")],
    tools: Annotated[
        Path | None, typer.Option(help="The tools as JSON, as providers are sent them: their schemas help.")
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read a JSON string from each line, print an object for each.")
    ] = False,
) -> None:
    """A model's reply as a dialect reads it: its calls, the remaining text, and what is wrong with it.

    With --jsonl the exit status is 1 if a line was no JSON string; its object says so.
    """
    from dragoman.cli.commands.debug import parse

    if not parse(dialect, tools, jsonl=jsonl):
        raise typer.Exit(1)
