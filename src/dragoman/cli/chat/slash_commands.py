"""Define the `/commands` of a chat in one table, and the completions while a message is typed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from rich.text import Text

from dragoman.cli.chat import branch_commands as branches
from dragoman.cli.chat import conversation_commands as here
from dragoman.cli.chat import turn_commands as turns
from dragoman.cli.chat.session import Session
from dragoman.cli.terminal.text import one_line
from dragoman.errors import BadRequest
from dragoman.turn.api.turn_handle import TurnHandle

Arguments = Callable[[], Iterable[str]]

# a file name that is being typed, as in `attachments.py`
_BEGUN = re.compile(r'(?<!\S)@(?:"([^"\n]*)|(\S*))\Z')
_TAKE_FILES = ("attach", "export")


class ChatCompleter(Completer):
    """Completes messages. `commands` are the words after a slash with their help. `arguments` are their
    possible arguments."""

    def __init__(self, commands: Mapping[str, str], arguments: Mapping[str, Arguments]) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/"):
            command, space, rest = text[1:].partition(" ")
            if not space:
                for name, help in self._commands.items():
                    if name.startswith(command):
                        yield Completion(f"/{name}", -len(text), display_meta=help)
            elif command in _TAKE_FILES:
                yield from self._files.get_completions(Document(rest), complete_event)
            elif command in self._arguments:
                for argument in self._arguments[command]():
                    if argument.startswith(rest):
                        yield Completion(argument, -len(rest))
            return
        if (mention := _BEGUN.search(text)) is not None:
            quoted, bare = mention.groups()
            begun = bare if quoted is None else quoted
            for found in self._files.get_completions(Document(begun), complete_event):
                path = begun + found.text
                if quoted is None and not any(sign.isspace() for sign in path):
                    yield found
                else:  # Without quotes, the name would end at its first space.
                    end = "" if found.display_text.endswith("/") else '"'
                    yield Completion(f'"{path}{end}', 1 - len(mention[0]), display=found.display)


Action: TypeAlias = Callable[[Session, str], Awaitable[TurnHandle | None]]


class Quit(Exception):
    """Raised when the user leaves the chat."""


@dataclass(slots=True, frozen=True)
class Command:
    usage: str
    help: str
    run: Action


async def help(session: Session, argument: str) -> None:
    for command in COMMANDS.values():
        session.console.print(f"  {command.usage:<28}{command.help}", markup=False, highlight=False)
    for template in session.templates.values():
        line = f"  /{template.name:<27}{one_line(template.help, 60)}"
        session.console.print(Text(line), highlight=False)
    session.notify("Enter sends, Alt-Enter begins a new line, Ctrl-C or Esc stops the turn, Ctrl-D leaves.")
    session.notify("!COMMAND runs a command here; the model sees its output with your next message.")
    session.notify(
        "While a turn runs, Enter sends your message before the next step, and Tab after the turn."
    )
    session.notify(
        "@FILE in a message attaches a file. Put a space before a message that begins with a slash."
    )


async def quit(session: Session, argument: str) -> None:
    raise Quit


COMMANDS: dict[str, Command] = {
    "model": Command("/model [NAME]", "show or choose the model", here.model),
    "agent": Command("/agent [NAME | none]", "show or choose the agent", here.agent),
    "mode": Command("/mode [WORD]", "how calls are approved: auto, ask, manual or off", here.mode),
    "tools": Command("/tools [GROUP on|off|always]", "list tools, or switch one or a group", here.tools),
    "allow": Command(
        "/allow [RULE [hour|always]]", "allow calls such as shell:git *, or what the cage refused", here.allow
    ),
    "deny": Command("/deny RULE [hour|always]", "deny calls", here.deny),
    "grants": Command("/grants [revoke N]", "list or revoke your rules", here.grants),
    "queue": Command("/queue [drop N]", "list or drop queued messages", turns.queue),
    "compact": Command("/compact", "compact the earlier messages with your next message", turns.compact),
    "context": Command("/context", "show what fills the model's context", turns.context),
    "trace": Command("/trace", "show steps, durations and reasons of the last turn", turns.trace),
    "cost": Command("/cost", "tokens and money spent in this conversation", here.cost),
    "reasoning": Command("/reasoning", "show reasoning whole, or only its first line", here.reasoning),
    "rerun": Command("/rerun [MODEL]", "regenerate the last answer", branches.rerun),
    "edit": Command("/edit", "edit your last message and send it again", branches.edit),
    "undo": Command("/undo [force]", "undo your last message and its file changes", branches.undo),
    "redo": Command("/redo [force]", "redo the last /undo", branches.redo),
    "diff": Command("/diff [all]", "show file changes of the last turn, or of all turns", branches.diff),
    "branches": Command("/branches [N]", "list branches, or switch to one", branches.branches),
    "fork": Command("/fork [folder]", "continue in a copy, with or without the files", branches.fork),
    "workspace": Command("/workspace [NAME]", "show or choose the folder for tools", here.workspace),
    "attach": Command("/attach FILE", "send a file with your next message", here.attach),
    "prompt": Command("/prompt [SERVER NAME …]", "use a prompt of an MCP server", here.prompt),
    "export": Command("/export FILE", "write the conversation as .md, or else JSON", here.export),
    "title": Command("/title [TEXT]", "show or set the title", here.title),
    "new": Command("/new", "begin a new conversation", branches.new),
    "list": Command("/list", "your conversations", branches.list_conversations),
    "open": Command("/open [ID]", "choose or open another conversation", branches.open),
    "unfold": Command("/unfold", "show shortened calls whole", branches.unfold),
    "help": Command("/help", "list commands", help),
    "quit": Command("/quit", "quit; open approval requests stay open", quit),
}


async def run_command(session: Session, line: str) -> TurnHandle | None:
    """Run a command. Returns the turn that it started, if any."""
    word, _, rest = line.removeprefix("/").partition(" ")
    if word in session.templates and word not in COMMANDS:
        return await session.send(session.templates[word].fill(rest.strip()))
    if word not in COMMANDS:
        near = get_close_matches(word, [*COMMANDS, *session.templates], n=1)
        hint = f"Did you mean /{near[0]}?" if near else "Type /help to list commands."
        raise BadRequest(f"Unknown command /{word}. {hint}")
    return await COMMANDS[word].run(session, rest.strip())
