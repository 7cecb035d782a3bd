"""Define `dragoman list`, `label`, `show`, `search`, `export`, `import`, `rm`, `questions` and `answer`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, JsonFlags, StoreFlags
from dragoman.cli.flags.options import Conversation, complete_conversations

group = CommandGroup("Conversations")


class ExportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"
    RAW = "raw"  # the stored rows, for an unreadable conversation


@group.command("list", "commands.conversations:list_conversations", "`dragoman list --limit 5`")
class ListFlags(StoreFlags, JsonFlags):
    """List conversations, the latest first."""

    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 50
    archived: Annotated[bool, typer.Option("--archived", help="List archived conversations.")] = False
    tag: Annotated[str | None, typer.Option(metavar="WORD", help="List conversations with this tag.")] = None


@group.command("label", "commands.conversations:label", "`dragoman label last --pin --tag work`")
class LabelFlags(StoreFlags):
    """Pin, archive or tag a conversation."""

    conversation: Conversation
    pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Keep it despite the retention.")] = None
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Hide it until you send a message.")
    ] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Add a tag. Repeatable.")] = None
    untag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Remove a tag. Repeatable.")] = None


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
    """Print a conversation: messages, calls, pending approvals."""

    conversation: Conversation
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show the model's reasoning in full.")] = (
        False
    )


@group.command("search", "commands.conversations:search", "`dragoman search birthday cake`")
class SearchFlags(StoreFlags, JsonFlags):
    """Search messages. Exit status 1 if none matches."""

    words: Annotated[list[str], typer.Argument(help="Words to find.")]
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 20


@group.command(
    "export", "commands.conversations:export", "`dragoman export last --format markdown -o talk.md`"
)
class ExportFlags(StoreFlags):
    """Export a conversation as JSON or Markdown."""

    conversation: Conversation
    format: Annotated[
        ExportFormat, typer.Option(help="All as JSON, this branch as Markdown, or raw rows.")
    ] = ExportFormat.JSON
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")
    ] = None


@group.command("import", "commands.conversations:import_file", "`dragoman import talk.json`")
class ImportFlags(StoreFlags):
    """Import an exported conversation under new IDs. Prints its ID."""

    file: Annotated[str, typer.Argument(help="Exported file. `-`: standard input.")]


@group.command(
    "rm",
    "commands.conversations:delete",
    "`dragoman rm conv_9x3k conv_77ab`, or `dragoman rm --older-than 90d --dry-run`",
)
class DeleteFlags(StoreFlags):
    """Delete conversations permanently, with branches and sub-conversations."""

    conversations: Annotated[
        list[str] | None,
        typer.Argument(help="IDs or ID prefixes.", autocompletion=complete_conversations),
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Conversations without activity for this time, such as 90d."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them, and delete nothing.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False


@group.command("questions", "commands.questions:list_questions", "`dragoman questions --json`")
class QuestionsFlags(StoreFlags, JsonFlags):
    """List pending approval requests of all conversations."""


@group.command("answer", "commands.questions:answer", "`dragoman answer ask_77ab --reject 'not that file'`")
class AnswerFlags(StoreFlags):
    """Answer an approval request. Its turn resumes immediately."""

    question: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")]
    allow: Annotated[bool, typer.Option("--allow", help="Allow the call once.")] = False
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Allow it, and don't ask again in this conversation.")
    ] = False
    hour: Annotated[bool, typer.Option("--hour", help="Allow it, and don't ask again for an hour.")] = False
    always: Annotated[bool, typer.Option("--always", help="Allow it, and don't ask again.")] = False
    rule: Annotated[
        int, typer.Option(metavar="N", help="Number of the rule to keep, as `questions` lists them.")
    ] = 1
    deny: Annotated[
        bool,
        typer.Option(
            "--deny",
            help="Deny the call. With --conversation, --hour or --always, deny calls like it.",
        ),
    ] = False
    arguments: Annotated[str | None, typer.Option(help="Allow it with these arguments, as JSON.")] = None
    reject: Annotated[str | None, typer.Option(help="Reject the call, with a reason for the model.")] = None
    stop: Annotated[
        str | None, typer.Option(help="Stop all calls of the turn, with a reason for the model.")
    ] = None
    release: Annotated[bool, typer.Option("--release", help="Show the result to the model.")] = False
    withhold: Annotated[str | None, typer.Option(help="Withhold the result, with a reason.")] = None
    reply: Annotated[str | None, typer.Option(help="Answer to a tool that asks.")] = None
