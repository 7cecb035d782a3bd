"""`dragoman list, show, search, export, import, rm, questions, answer`: what is in the store."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import AsJson, Config, Conversation, Store, conversations_like, settings_of

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "What was said"


class Format(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"


@app.command("list", rich_help_panel=PANEL, epilog="Example: `dragoman list --limit 5`")
def list_conversations(
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Your conversations, the last used first: id, when, title, and whether one waits for you."""
    from dragoman.cli.kept import list_conversations

    list_conversations(settings_of(config, store), limit=limit, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman show last | less`")
def show(
    conversation: Conversation,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thought, whole.")] = False,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """A conversation as it stands: what was said and called, and what it still asks."""
    from dragoman.cli.kept import show

    show(conversation, settings_of(config, store), thoughts=thoughts, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman search birthday cake`")
def search(
    words: Annotated[list[str], typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 20,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Messages in which these words are. The exit status is 1 where there is none."""
    from dragoman.cli.kept import search

    if not search(" ".join(words), settings_of(config, store), limit=limit, as_json=json):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman export last --format markdown -o talk.md`")
def export(
    conversation: Conversation,
    format: Annotated[Format, typer.Option(help="Everything as JSON, or this branch to read.")] = Format.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else it is printed.")
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """A conversation as a file: JSON that `dragoman import` takes, or Markdown."""
    from dragoman.cli.kept import export

    export(conversation, settings_of(config, store), format=format, output=output)


@app.command("import", rich_help_panel=PANEL, epilog="Example: `dragoman import talk.json`")
def import_file(
    file: Annotated[str, typer.Argument(help="What `dragoman export` wrote; `-` reads standard input.")],
    store: Store = None,
    config: Config = None,
) -> None:
    """A copy, under new ids, of a conversation that was exported. Prints its id."""
    from dragoman.cli.kept import import_file

    print(import_file(file, settings_of(config, store)))


@app.command("rm", rich_help_panel=PANEL, epilog="Example: `dragoman rm conv_9x3k conv_77ab`")
def remove(
    conversations: Annotated[
        list[str],
        typer.Argument(help="Their ids, or beginnings of them.", autocompletion=conversations_like),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask at the terminal.")] = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Delete conversations, with all branches and what their calls opened. There is no way back."""
    from dragoman.cli.kept import remove
    from dragoman.cli.plain import one_line

    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete {', '.join(conversations)}? There is no way back", abort=True)
    for gone in remove(conversations, settings_of(config, store)):
        print(f"deleted {gone.id} ({one_line(gone.title or 'untitled', 60)})")


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman questions --json`")
def questions(store: Store = None, config: Config = None, json: AsJson = False) -> None:
    """Everything that waits for you, in every conversation."""
    from dragoman.cli.waiting import questions

    questions(settings_of(config, store), as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman answer ask_77ab --reject 'not that file'`")
def answer(
    question: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")],
    *,
    allow: Annotated[bool, typer.Option("--allow", help="Let the call run, this time.")] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Let it run, and do not ask again in this conversation.")
    ] = False,
    always: Annotated[bool, typer.Option("--always", help="Let it run, and do not ask again.")] = False,
    arguments: Annotated[str | None, typer.Option(help="Let it run with these, as JSON.")] = None,
    reject: Annotated[str | None, typer.Option(help="Do not let it run: the model reads why.")] = None,
    stop: Annotated[str | None, typer.Option(help="To a loop: no more calls; the model reads why.")] = None,
    release: Annotated[bool, typer.Option("--release", help="Let the model see the result.")] = False,
    withhold: Annotated[str | None, typer.Option(help="Do not let it see the result: why.")] = None,
    reply: Annotated[str | None, typer.Option(help="What you say to a tool that asks.")] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Decide about something that waits. Whoever runs the conversation goes on with it at once."""
    from dragoman.cli.waiting import Decision, answer

    decision = Decision(
        allow=allow,
        conversation=conversation,
        always=always,
        arguments=arguments,
        reject=reject,
        stop=stop,
        release=release,
        withhold=withhold,
        reply=reply,
    )
    settled = answer(question, decision, settings_of(config, store))
    print(f"answered {settled.id}")
    print(f"If no program is at work on it: dragoman chat {settled.conversation} goes on.")
