"""The `/commands` of a chat, in one table: how each is typed, its line of help, and the function it calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from dragoman.cli.chat import branch_commands as branches
from dragoman.cli.chat import conversation_commands as here
from dragoman.cli.chat import file_commands as files
from dragoman.cli.chat.session import Session
from dragoman.errors import BadRequest
from dragoman.turn.handles import TurnHandle

Action: TypeAlias = Callable[[Session, str], Awaitable[TurnHandle | None]]


class Quit(Exception):
    """The person leaves the chat."""


@dataclass(slots=True, frozen=True)
class Command:
    usage: str
    help: str
    run: Action


async def help(session: Session, argument: str) -> None:
    for command in COMMANDS.values():
        session.console.print(f"  {command.usage:<28}{command.help}", markup=False, highlight=False)
    session.notify("Enter sends, Alt-Enter begins a new line, Ctrl-C stops the turn, Ctrl-D leaves.")
    session.notify(
        "@FILE in a message attaches a file. Put a space before a message that begins with a slash."
    )


async def quit(session: Session, argument: str) -> None:
    raise Quit


COMMANDS: dict[str, Command] = {
    "model": Command("/model [NAME]", "which model answers here; another one", here.model),
    "agent": Command("/agent [NAME | none]", "which agent answers here; another one", here.agent),
    "mode": Command("/mode [WORD]", "who decides about calls: auto, ask, manual or off", here.mode),
    "tools": Command("/tools [GROUP on|off]", "the tools there are; switch a group or a tool", here.tools),
    "grants": Command("/grants [revoke N]", "what you allowed for good; take it back", here.grants),
    "cost": Command("/cost", "tokens and money spent in this conversation", here.cost),
    "thoughts": Command("/thoughts", "show what the model thinks, or only its first line", here.thoughts),
    "rerun": Command("/rerun [MODEL]", "a new version of the last answer", branches.rerun),
    "edit": Command("/edit", "a new version of what you said last", branches.edit),
    "undo": Command("/undo [force]", "go back before what you said last, files too", files.undo),
    "redo": Command("/redo [force]", "take the last /undo back", files.redo),
    "diff": Command("/diff [all]", "what the last turn did to your files; the whole talk", files.diff),
    "branches": Command("/branches [N]", "the versions of this conversation; go to one", branches.branches),
    "fork": Command("/fork", "go on in a copy of this conversation", branches.fork),
    "attach": Command("/attach FILE", "send a file with your next message", here.attach),
    "export": Command("/export FILE", "write it down: .md for reading, else JSON", here.export),
    "title": Command("/title [TEXT]", "the title of this conversation; another one", here.title),
    "new": Command("/new", "begin another conversation", branches.new),
    "list": Command("/list", "your conversations", branches.list_conversations),
    "open": Command("/open ID", "go to another conversation", branches.open),
    "help": Command("/help", "this list", help),
    "quit": Command("/quit", "leave; what runs goes on at the next start", quit),
}


async def run_command(session: Session, line: str) -> TurnHandle | None:
    """Returns the turn it started, if it did."""
    word, _, rest = line.removeprefix("/").partition(" ")
    if word not in COMMANDS:
        near = get_close_matches(word, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists what there is"
        raise BadRequest(f"there is no /{word}: {hint}")
    return await COMMANDS[word].run(session, rest.strip())
