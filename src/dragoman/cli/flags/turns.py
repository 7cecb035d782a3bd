"""Define `dragoman resume`, `cancel`, `steer` and `queue`: turns that this or another program has started."""

from typing import Annotated

import typer

from dragoman.cli.flags.chat import TurnFlags
from dragoman.cli.flags.command import CommandGroup, JsonFlags, StoreFlags, TrustFlags, WorkspaceFlags
from dragoman.cli.flags.options import Conversation, complete_conversations

group = CommandGroup("Turns")

Turn = Annotated[
    str,
    typer.Argument(
        help="ID or ID prefix of a turn or conversation, or `last`.",
        autocompletion=complete_conversations,
    ),
]


@group.command("resume", "commands.run:resume", "`dragoman resume last --allow files.read`")
class ResumeFlags(TurnFlags):
    """Resume an interrupted turn with its model.

    This is `run --continue` without a message. If you named the model's address, name both again. Exit status
    as for `run`.
    """

    conversation: Conversation


@group.command("cancel", "commands.turns:cancel", "`dragoman cancel last --reason 'not today'`")
class CancelFlags(WorkspaceFlags, TrustFlags):
    """Stop a turn of any process, or close an interrupted one."""

    turn: Turn
    reason: Annotated[str, typer.Option(help="Reason, stored with the turn.")] = ""


@group.command("steer", "commands.turns:steer", "`dragoman steer last 'in French, please'`")
class SteerFlags(StoreFlags):
    """Send a message to a running turn, before its next step."""

    turn: Turn
    message: Annotated[list[str], typer.Argument(help="Your message.")]


@group.command(
    "queue",
    "commands.turns:queue",
    "`dragoman queue last 'then run the tests'`, or `dragoman queue` to see what waits",
)
class QueueFlags(StoreFlags, TrustFlags, JsonFlags):
    """Queue a message after the running turn. Without one, list the queue."""

    conversation: Annotated[
        str | None,
        typer.Argument(
            help="ID, ID prefix, or `last`. Default: all.",
            autocompletion=complete_conversations,
        ),
    ] = None
    message: Annotated[list[str] | None, typer.Argument(help="Your message.")] = None
    drop: Annotated[str | None, typer.Option(metavar="TURN", help="Remove a queued turn.")] = None
