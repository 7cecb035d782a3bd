"""Define `dragoman explain`, `top`, `usage`, `audit`, `decode` and `parse`: details of turns and streams."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, Flags, JsonFlags, StoreFlags

group = CommandGroup("Debugging")


@group.command(
    "explain",
    "commands.explain:explain",
    "`dragoman explain --trace`, or `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`",
)
class ExplainFlags(StoreFlags, JsonFlags):
    """Print the facts of a turn, its states and pending approvals."""

    turn: Annotated[str, typer.Argument(help="ID or ID prefix of a turn or conversation, or `last`.")] = (
        "last"
    )
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Print a timeline: durations, and why each call ran."),
    ] = False
    request: Annotated[
        bool, typer.Option("--request", help="Print its requests, with the setting behind each part.")
    ] = False


@group.command("top", "commands.top:show_top", "`dragoman top --store postgresql://db.example/chat`")
class TopFlags(StoreFlags, JsonFlags):
    """Show the processes of the store, their turns, and waiting turns.

    Updates every second at a terminal, until Ctrl-C. Prints once into a pipe.
    """

    once: Annotated[bool, typer.Option("--once", help="Print once, and exit.")] = False


@group.command(
    "usage",
    "commands.usage:show_usage",
    "`dragoman usage --by day,model --since 30d`, or `dragoman usage --by person --csv`",
)
class UsageFlags(StoreFlags, JsonFlags):
    """Print replies, tokens and cost, also of deleted conversations.

    Cost needs known prices. By tool, it counts calls. Days are in UTC.
    """

    by: Annotated[str, typer.Option(help="day, person, model, agent, tool, or several with commas.")] = (
        "day,model"
    )
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Start: 2026-11-01, 7d, 2w, 12h.")] = None
    person: Annotated[str | None, typer.Option(help="Only this user.")] = None
    team: Annotated[str | None, typer.Option(help="Only the members of this team.")] = None
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False


@group.command("audit", "commands.people:show_audit", "`dragoman audit --since 7d --json`")
class AuditFlags(StoreFlags, JsonFlags):
    """List sign-ins, users, rules, answers, deletions and changed settings, oldest first."""

    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only since then: 2026-11-01, 7d, 2w, 12h.")
    ] = None


@group.command("decode", "commands.debug:decode", "`dragoman decode --wire openai_chat < stream.sse`")
class DecodeFlags(Flags):
    """Decode a provider's stream to one JSON object.

    It has text, reasoning, tool_calls, finish, usage and error. An error in the stream is part of it.
    """

    wire: Annotated[
        str,
        typer.Option(help="openai_chat, openai_responses, anthropic_messages, gemini or bedrock_converse."),
    ] = "openai_chat"


@group.command(
    "parse", "commands.debug:parse", "`dragoman parse --dialect xml_tag --tools tools.json < reply.txt`"
)
class ParseFlags(Flags):
    """Parse a model's reply: calls, remaining text, errors.

    With --jsonl, the exit status is 1 if a line is not a JSON string.
    """

    dialect: Annotated[str, typer.Option(help="Dialect: xml_tag, json_strict, hermes, …")]
    tools: Annotated[
        Path | None, typer.Option(help="Tools as JSON, in the form of a provider's request.")
    ] = None
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read a JSON string per line, print an object per line.")
    ] = False
