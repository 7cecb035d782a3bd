"""`dragoman explain`, `top`, `usage`, `audit`, `decode` and `parse`: turns, costs and streams up close."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, Flags, JsonFlags, StoreFlags

group = CommandGroup("Looking closer")


@group.command(
    "explain",
    "commands.explain:explain",
    "`dragoman explain --trace`, or `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`",
)
class ExplainFlags(StoreFlags, JsonFlags):
    """What happened in a turn: its facts, the states they led to, and what it still asks."""

    turn: Annotated[
        str, typer.Argument(help="Its id, or that of its conversation, the beginning of one, or `last`.")
    ] = "last"
    trace: Annotated[
        bool,
        typer.Option("--trace", help="A waterfall instead: what took how long, and why each call ran."),
    ] = False
    request: Annotated[
        bool, typer.Option("--request", help="What its requests hold instead, and which setting gave it.")
    ] = False


@group.command("top", "commands.top:show_top", "`dragoman top --store postgresql://db.example/chat`")
class TopFlags(StoreFlags, JsonFlags):
    """The nodes that share the store, the turns they run, and what waits: for people, and for workers.

    Drawn anew every second at a terminal, until Ctrl-C; printed once into a pipe.
    """

    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False


@group.command(
    "usage",
    "commands.usage:show_usage",
    "`dragoman usage --by day,model --since 30d`, or `dragoman usage --by person --csv`",
)
class UsageFlags(StoreFlags, JsonFlags):
    """What was spent: replies, tokens, and what they cost as far as prices are known. Days are in UTC.

    By tool, it is calls that are counted. What was spent in deleted conversations is counted.
    """

    by: Annotated[
        str, typer.Option(help="By what: day, person, model, agent, tool, or several with commas.")
    ] = "day,model"
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only since then: 2026-11-01, 7d, 2w, 12h.")
    ] = None
    person: Annotated[str | None, typer.Option(help="Only of this person.")] = None
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")] = False


@group.command("audit", "commands.people:show_audit", "`dragoman audit --since 7d --json`")
class AuditFlags(StoreFlags, JsonFlags):
    """List sign-ins, users, rules, answers, deletions and changed settings, oldest first."""

    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only since then: 2026-11-01, 7d, 2w, 12h.")
    ] = None


@group.command("decode", "commands.debug:decode", "`dragoman decode --wire openai_chat < stream.sse`")
class DecodeFlags(Flags):
    """A provider's stream, as one JSON object: text, reasoning, tool_calls, finish, usage, error.

    An error inside the stream is part of what is printed, and not one of this program.
    """

    wire: Annotated[
        str,
        typer.Option(help="openai_chat, openai_responses, anthropic_messages, gemini or bedrock_converse."),
    ] = "openai_chat"


@group.command(
    "parse", "commands.debug:parse", "`dragoman parse --dialect xml_tag --tools tools.json < reply.txt`"
)
class ParseFlags(Flags):
    """A model's reply as a dialect reads it: its calls, the remaining text, and what is wrong with it.

    With --jsonl the exit status is 1 if a line was no JSON string; its object says so.
    """

    dialect: Annotated[str, typer.Option(help="How calls are written: xml_tag, json_strict, hermes, …")]
    tools: Annotated[
        Path | None, typer.Option(help="The tools as JSON, as providers are sent them: their schemas help.")
    ] = None
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read a JSON string from each line, print an object for each.")
    ] = False
