"""`dragoman list`, `show`, `search`, `export`, `import`, `rm`, `questions`, `answer`: all about the store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import (
    AsJson,
    Config,
    Conversation,
    Store,
    complete_conversations,
    load_settings,
)

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "What was said"


class ExportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"
    RAW = "raw"  # the rows as they are in the database: of one that cannot be read


@app.command("list", rich_help_panel=PANEL, epilog="Example: `dragoman list --limit 5`")
def list_conversations(
    *,
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50,
    archived: Annotated[bool, typer.Option("--archived", help="Those in the archive.")] = False,
    tag: Annotated[str | None, typer.Option(metavar="WORD", help="Those with this tag.")] = None,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Your conversations, the last used first: id, when, title, and whether one waits for you."""
    from dragoman.cli.commands.conversations import list_conversations

    list_conversations(load_settings(config, store), limit=limit, archived=archived, tag=tag, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman label last --pin --tag work`")
def label(
    conversation: Conversation,
    *,
    pin: Annotated[
        bool | None, typer.Option("--pin/--unpin", help="Keep it, whatever the retention.")
    ] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Out of the list, until you write in it.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Add a tag; several times.")] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Take a tag away.")] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Pin a conversation, put it into the archive, or give it tags."""
    from dragoman.cli.commands.conversations import label_conversation

    settings = load_settings(config, store)
    label_conversation(conversation, settings, pin=pin, archive=archive, tag=tag or [], untag=untag or [])


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman show last | less`")
def show(
    conversation: Conversation,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thought, whole.")] = False,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """A conversation as it stands: what was said and called, and what it still asks."""
    from dragoman.cli.commands.conversations import show_conversation

    show_conversation(conversation, load_settings(config, store), thoughts=thoughts, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman search birthday cake`")
def search(
    words: Annotated[list[str], typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 20,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Messages in which these words are. The exit status is 1 where there is none."""
    from dragoman.cli.commands.conversations import search_messages

    if not search_messages(" ".join(words), load_settings(config, store), limit=limit, as_json=json):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman export last --format markdown -o talk.md`")
def export(
    conversation: Conversation,
    *,
    format: Annotated[
        ExportFormat, typer.Option(help="Everything as JSON, this branch to read, or its rows as they are.")
    ] = ExportFormat.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else it is printed.")
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """A conversation as a file: JSON that `dragoman import` takes, or Markdown."""
    from dragoman.cli.commands.conversations import export_conversation

    settings = load_settings(config, store)
    export_conversation(conversation, settings, format=format, output=output)


@app.command("import", rich_help_panel=PANEL, epilog="Example: `dragoman import talk.json`")
def import_conversation(
    file: Annotated[str, typer.Argument(help="What `dragoman export` wrote; `-` reads standard input.")],
    store: Store = None,
    config: Config = None,
) -> None:
    """A copy, under new ids, of a conversation that was exported. Prints its id."""
    from dragoman.cli.commands.conversations import import_conversation

    import_conversation(file, load_settings(config, store))


@app.command(
    "rm",
    rich_help_panel=PANEL,
    epilog="Example: `dragoman rm conv_9x3k conv_77ab`, or `dragoman rm --older-than 90d --dry-run`",
)
def delete(
    conversations: Annotated[
        list[str] | None,
        typer.Argument(help="Their ids, or beginnings of them.", autocompletion=complete_conversations),
    ] = None,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="All in which nothing happened for so long, and nothing waits."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask at the terminal.")] = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Delete conversations, with all branches and what their calls opened. There is no way back."""
    from dragoman.cli.commands.conversations import delete_conversations, delete_old

    if bool(conversations) == (older_than is not None):
        raise typer.BadParameter("name conversations, or say --older-than")
    settings = load_settings(config, store)
    if older_than is not None:
        delete_old(older_than, settings, dry_run=dry_run, confirmed=yes)
    else:
        delete_conversations(conversations or [], settings, dry_run=dry_run, confirmed=yes)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman questions --json`")
def questions(store: Store = None, config: Config = None, json: AsJson = False) -> None:
    """Everything that waits for you, in every conversation."""
    from dragoman.cli.commands.questions import list_questions

    list_questions(load_settings(config, store), as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman answer ask_77ab --reject 'not that file'`")
def answer(
    question: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")],
    *,
    allow: Annotated[bool, typer.Option("--allow", help="Let the call run, this time.")] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Let it run, and do not ask again in this conversation.")
    ] = False,
    hour: Annotated[
        bool, typer.Option("--hour", help="Let it run, and do not ask again for an hour.")
    ] = False,
    always: Annotated[bool, typer.Option("--always", help="Let it run, and do not ask again.")] = False,
    rule: Annotated[
        int, typer.Option(metavar="N", help="What is not asked about again: a rule that `questions` lists.")
    ] = 1,
    deny: Annotated[
        bool,
        typer.Option(
            "--deny",
            help="Do not let it run, this time; with --conversation, --hour or --always, nor its like.",
        ),
    ] = False,
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
    from dragoman.cli.commands.questions import AnswerFlags, answer_question

    flags = AnswerFlags(
        allow=allow,
        conversation=conversation,
        hour=hour,
        always=always,
        rule=rule,
        deny=deny,
        arguments=arguments,
        reject=reject,
        stop=stop,
        release=release,
        withhold=withhold,
        reply=reply,
    )
    answer_question(question, flags, load_settings(config, store))
