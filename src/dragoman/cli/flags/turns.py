"""`dragoman resume`, `cancel`, `steer` and `queue`: turns that were begun, here or by another program."""

from typing import Annotated

import typer

from dragoman.cli.flags.chat import TurnFlags
from dragoman.cli.flags.command import CommandGroup, JsonFlags, StoreFlags, TrustFlags, WorkspaceFlags
from dragoman.cli.flags.options import Conversation, complete_conversations

group = CommandGroup("Turns under way")

Turn = Annotated[
    str,
    typer.Argument(
        help="Its id, or that of its conversation, the beginning of one, or `last`.",
        autocompletion=complete_conversations,
    ),
]


@group.command("resume", "commands.run:resume", "`dragoman resume last --allow files.read`")
class ResumeFlags(TurnFlags):
    """Go on with a turn that was interrupted: the same as `run --continue` without a message.

    It is answered by the model it was begun with, or not at all; where that was named with an address, name
    both again. The exit status is that of `run`.
    """

    conversation: Conversation


@group.command("cancel", "commands.turns:cancel", "`dragoman cancel last --reason 'not today'`")
class CancelFlags(WorkspaceFlags, TrustFlags):
    """Stop a turn, whichever program runs it; one that was interrupted is closed."""

    turn: Turn
    reason: Annotated[str, typer.Option(help="Why; it is stored with the turn.")] = ""


@group.command("steer", "commands.turns:steer", "`dragoman steer last 'in French, please'`")
class SteerFlags(StoreFlags):
    """Say something to a turn that runs: it reads it before its next step."""

    turn: Turn
    message: Annotated[list[str], typer.Argument(help="What you say to it.")]


@group.command(
    "queue",
    "commands.turns:queue",
    "`dragoman queue last 'then run the tests'`, or `dragoman queue` to see what waits",
)
class QueueFlags(StoreFlags, TrustFlags, JsonFlags):
    """Say something when the turn that runs is over; without a message, list what waits for its turn."""

    conversation: Annotated[
        str | None,
        typer.Argument(
            help="Its id, the beginning of it, or `last`; without it, all.",
            autocompletion=complete_conversations,
        ),
    ] = None
    message: Annotated[list[str] | None, typer.Argument(help="What is to be said.")] = None
    drop: Annotated[str | None, typer.Option(metavar="TURN", help="Call off what waits.")] = None
