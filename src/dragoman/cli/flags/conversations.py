"""`dragoman list`, `label`, `show`, `search`, `export`, `import`, `rm`, `questions` and `answer`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, JsonFlags, StoreFlags
from dragoman.cli.flags.options import Conversation, complete_conversations

group = CommandGroup("What was said")


class ExportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"
    RAW = "raw"  # the rows as they are in the database: of one that cannot be read


@group.command("list", "commands.conversations:list_conversations", "`dragoman list --limit 5`")
class ListFlags(StoreFlags, JsonFlags):
    """Your conversations, the last used first: id, when, title, and whether one waits for you."""

    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50
    archived: Annotated[bool, typer.Option("--archived", help="Those in the archive.")] = False
    tag: Annotated[str | None, typer.Option(metavar="WORD", help="Those with this tag.")] = None


@group.command("label", "commands.conversations:label", "`dragoman label last --pin --tag work`")
class LabelFlags(StoreFlags):
    """Pin a conversation, put it into the archive, or give it tags."""

    conversation: Conversation
    pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Keep it, whatever the retention.")] = None
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Out of the list, until you write in it.")
    ] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Add a tag; several times.")] = None
    untag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Take a tag away.")] = None


class RoleName(StrEnum):
    READS = "reads"
    ANSWERS = "answers"
    TAKES_PART = "takes_part"


class OmittedPart(StrEnum):
    ARGUMENTS = "arguments"
    RESULTS = "results"
    FILES = "files"
    REASONING = "reasoning"


@group.command("share", "commands.sharing:share", "`dragoman share last --with ada --role takes_part`")
class ShareFlags(StoreFlags, JsonFlags):
    """Share a conversation with users of a server, or by a link."""

    conversation: Conversation
    user: Annotated[str | None, typer.Option("--with", metavar="USER", help="Share it with this user.")] = (
        None
    )
    role: Annotated[
        RoleName, typer.Option(help="Role of the member: read, answer questions, or take part.")
    ] = RoleName.READS
    invite: Annotated[
        bool, typer.Option("--invite", help="Print an invitation, which makes one user a member.")
    ] = False
    link: Annotated[bool, typer.Option("--link", help="Print a link, with which anyone can read.")] = False
    upto: Annotated[str | None, typer.Option(metavar="MESSAGE", help="The last message a link shows.")] = None
    frozen: Annotated[bool, typer.Option("--frozen", help="Let a link show the present state only.")] = False
    omit: Annotated[list[OmittedPart] | None, typer.Option(help="Leave this out of a link. Repeatable.")] = (
        None
    )
    expires: Annotated[str, typer.Option(metavar="TIME", help="How long an invitation or link is valid.")] = (
        "7d"
    )
    list_all: Annotated[
        bool, typer.Option("--list", help="List members, invitations and links. This is the default.")
    ] = False
    remove: Annotated[str | None, typer.Option(metavar="USER", help="Share it no more with this user.")] = (
        None
    )
    revoke: Annotated[str | None, typer.Option(metavar="ID", help="Revoke an invitation or a link.")] = None
    transfer: Annotated[str | None, typer.Option(metavar="USER", help="Make this member the owner.")] = None
    leave: Annotated[bool, typer.Option("--leave", help="Leave a conversation of another user.")] = False


@group.command("show", "commands.conversations:show", "`dragoman show last | less`")
class ShowFlags(StoreFlags, JsonFlags):
    """A conversation as it stands: what was said and called, and what it still asks."""

    conversation: Conversation
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thought, whole.")] = False


@group.command("search", "commands.conversations:search", "`dragoman search birthday cake`")
class SearchFlags(StoreFlags, JsonFlags):
    """Messages in which these words are. The exit status is 1 where there is none."""

    words: Annotated[list[str], typer.Argument(help="What to look for.")]
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 20


@group.command(
    "export", "commands.conversations:export", "`dragoman export last --format markdown -o talk.md`"
)
class ExportFlags(StoreFlags):
    """A conversation as a file: JSON that `dragoman import` takes, or Markdown."""

    conversation: Conversation
    format: Annotated[
        ExportFormat, typer.Option(help="Everything as JSON, this branch to read, or its rows as they are.")
    ] = ExportFormat.JSON
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; else it is printed.")] = (
        None
    )


@group.command("import", "commands.conversations:import_file", "`dragoman import talk.json`")
class ImportFlags(StoreFlags):
    """A copy, under new ids, of a conversation that was exported. Prints its id."""

    file: Annotated[str, typer.Argument(help="What `dragoman export` wrote; `-` reads standard input.")]


@group.command(
    "rm",
    "commands.conversations:delete",
    "`dragoman rm conv_9x3k conv_77ab`, or `dragoman rm --older-than 90d --dry-run`",
)
class DeleteFlags(StoreFlags):
    """Delete conversations, with all branches and what their calls opened. There is no way back."""

    conversations: Annotated[
        list[str] | None,
        typer.Argument(help="Their ids, or beginnings of them.", autocompletion=complete_conversations),
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="All in which nothing happened for so long, and nothing waits."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask at the terminal.")] = False


@group.command("questions", "commands.questions:list_questions", "`dragoman questions --json`")
class QuestionsFlags(StoreFlags, JsonFlags):
    """Everything that waits for you, in every conversation."""


@group.command("answer", "commands.questions:answer", "`dragoman answer ask_77ab --reject 'not that file'`")
class AnswerFlags(StoreFlags):
    """Decide about something that waits. Whoever runs the conversation goes on with it at once."""

    question: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")]
    allow: Annotated[bool, typer.Option("--allow", help="Let the call run, this time.")] = False
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Let it run, and do not ask again in this conversation.")
    ] = False
    hour: Annotated[bool, typer.Option("--hour", help="Let it run, and do not ask again for an hour.")] = (
        False
    )
    always: Annotated[bool, typer.Option("--always", help="Let it run, and do not ask again.")] = False
    rule: Annotated[
        int, typer.Option(metavar="N", help="What is not asked about again: a rule that `questions` lists.")
    ] = 1
    deny: Annotated[
        bool,
        typer.Option(
            "--deny",
            help="Do not let it run, this time; with --conversation, --hour or --always, nor its like.",
        ),
    ] = False
    arguments: Annotated[str | None, typer.Option(help="Let it run with these, as JSON.")] = None
    reject: Annotated[str | None, typer.Option(help="Do not let it run: the model reads why.")] = None
    stop: Annotated[str | None, typer.Option(help="To a loop: no more calls; the model reads why.")] = None
    release: Annotated[bool, typer.Option("--release", help="Let the model see the result.")] = False
    withhold: Annotated[str | None, typer.Option(help="Do not let it see the result: why.")] = None
    reply: Annotated[str | None, typer.Option(help="What you say to a tool that asks.")] = None
