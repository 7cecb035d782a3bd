"""Define `dragoman models`, `tools`, `doctor`, `trust`, and the groups `config`, `keys`, `people`,
`store`."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import (
    CommandGroup,
    ConfigFlags,
    Flags,
    JsonFlags,
    StoreFlags,
    TrustFlags,
    WorkspaceFlags,
)

group = CommandGroup("Setup")
config = CommandGroup(help="Show and check the settings.", no_args_is_help=True)
models = CommandGroup(help="List models, or download one.", default="list")
keys = CommandGroup(help="Manage provider keys.", no_args_is_help=True)
people = CommandGroup(help="Manage users of your server.", no_args_is_help=True)
store = CommandGroup(help="Copy a store, or update its tables.", no_args_is_help=True)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Name = Annotated[str, typer.Argument(help="Name of the user.")]


@models.command("list", "commands.models:show_models", "`dragoman models list --check openai anthropic`")
class ModelsFlags(TrustFlags, JsonFlags):
    """List models: those on this machine first, then those with a key.

    `dragoman models openai` is short for `dragoman models list openai`.
    """

    providers: Annotated[list[str] | None, typer.Argument(help="Providers to list. Default: all.")] = None
    all: Annotated[bool, typer.Option("--all", help="Include providers without a key.")] = False
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the lists of providers whose keys are set.")
    ] = False
    base_url: Annotated[str | None, typer.Option("--base-url", help="List the models of this server.")] = None
    api_key: Annotated[str | None, typer.Option("--api-key", help="Key for that server.")] = None
    learned: Annotated[
        bool,
        typer.Option("--learned", help="List what servers refuse, and until when Dragoman remembers it."),
    ] = False
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget that, for these providers or all."),
    ] = False


@models.command(
    "get",
    "commands.get_model:get_model",
    "`dragoman models get`, or `dragoman models get unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M`",
)
class GetModelFlags(TrustFlags, JsonFlags):
    """Download a model that runs on this machine.

    Without a name, you choose from a list that suits this machine. An interrupted download resumes.
    `HF_ENDPOINT` names a mirror, `HF_TOKEN` is your key.
    """

    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="ORG/REPO, ORG/REPO:NAME or ORG/REPO/FILE.gguf.")
    ] = None


@group.command("tools", "commands.tools:list_tools", "`dragoman tools --check`")
class ToolsFlags(WorkspaceFlags, TrustFlags, JsonFlags):
    """List the tools that a model is offered, with their permissions."""

    check: Annotated[bool, typer.Option("--check", help="Start MCP servers and list their tools.")] = False


@group.command("doctor", "commands.doctor:examine", "`dragoman doctor --repair`")
class DoctorFlags(TrustFlags, JsonFlags):
    """Check your setup and print a fix for each problem. Exit status 1 if a fix is required."""

    repair: Annotated[bool, typer.Option("--repair", help="Repair the store without losing anything.")] = (
        False
    )


@group.command("trust", "commands.trust:decide_trust", "`dragoman trust project`")
class FolderFlags(JsonFlags):
    """Trust a folder: show what its settings, tools and skills would do."""

    folder: Annotated[
        Path | None, typer.Argument(help="Folder. Default: that of the nearest dragoman.toml.")
    ] = None
    list_all: Annotated[bool, typer.Option("--list", help="List your decisions.")] = False
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke trust, and ask again.")] = False
    yes: Yes = False


# ── dragoman config ───────────────────────────────────────────────────────────────────────────────


@config.command("path", "commands.config:show_paths", "`dragoman config path`")
class ConfigPathFlags(ConfigFlags, JsonFlags):
    """Print the files with settings, and the store."""


@config.command("show", "commands.config:show_settings", "`dragoman config show --json`")
class ConfigShowFlags(ConfigFlags, JsonFlags):
    """Print every setting with its file and line, variable or flag."""


@config.command("check", "commands.config:check_settings", "`dragoman config check && dragoman serve`")
class ConfigCheckFlags(TrustFlags):
    """Check the settings. Exit status 2 if they are invalid, with a line for each reason."""


@config.command("schema", "commands.config:print_schema", "`dragoman config schema > dragoman.schema.json`")
class ConfigSchemaFlags(Flags):
    """Print a JSON schema of `dragoman.toml` for editors."""


# ── dragoman keys ─────────────────────────────────────────────────────────────────────────────────


ProviderName = Annotated[str, typer.Argument(help="Provider, as in `dragoman models`.")]


@keys.command("set", "commands.keys:set_key", "`dragoman keys set openai < key.txt`")
class SetKeyFlags(ConfigFlags):
    """Store a provider's key in the keyring, or in a private file."""

    provider: ProviderName
    no_test: Annotated[bool, typer.Option("--no-test", help="Don't test it with a request.")] = False


@keys.command("list", "commands.keys:list_keys", "`dragoman keys list --json`")
class ListKeysFlags(ConfigFlags, JsonFlags):
    """List providers with a key, and its place."""


@keys.command("remove", "commands.keys:remove_key", "`dragoman keys remove openai`")
class RemoveKeyFlags(ConfigFlags):
    """Remove a stored key, from the keyring and the file."""

    provider: ProviderName


# ── dragoman people ───────────────────────────────────────────────────────────────────────────────


@people.command("add", "commands.people:add_person", "`dragoman people add anna`")
class AddPersonFlags(StoreFlags):
    """Add a user. Prints their key once, and stores only a hash."""

    name: Name
    restore: Annotated[
        bool, typer.Option("--restore", help="Give the new user what a removed one with this name has left.")
    ] = False


@people.command("list", "commands.people:list_people", "`dragoman people list --json`")
class ListPeopleFlags(StoreFlags, JsonFlags):
    """List users, and the account of those who sign in at a provider."""


@people.command("remove", "commands.people:remove_person", "`dragoman people remove anna`")
class RemovePersonFlags(StoreFlags):
    """Remove a user: end key, sign-ins, links and live streams, and cancel turns.

    Conversations stay. No other user gets the name, unless you add it with `--restore`.
    """

    name: Name


# ── dragoman store ────────────────────────────────────────────────────────────────────────────────


@store.command(
    "copy",
    "commands.store:copy",
    "`dragoman store copy ~/chat.db postgresql://dragoman@db.example/chat`; or, attachments: "
    "`dragoman store copy ~/chat.db ~/chat.db --blobs-to s3://bucket/chat`",
)
class CopyFlags(ConfigFlags):
    """Copy a store with its attachments, and compare every row.

    Stop all programs that use the store first. Run the command again to continue a copy that broke off. The
    settings name the place of attachments for their own store only.
    """

    source: Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://…")]
    target: Annotated[str, typer.Argument(metavar="TO", help="The same. Created if it does not exist.")]
    blobs_from: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="Place of its attachments, if not in the store: s3://…, file:///…"
        ),
    ] = None
    blobs_to: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Place for the copy's attachments.")
    ] = None


@store.command("migrate", "commands.store:migrate", "`dragoman store migrate --dry-run`")
class MigrateFlags(ConfigFlags):
    """Update the tables of a store to this version.

    Programs do this at their start, unless you set `migrate = false`.
    """

    place: Annotated[
        str | None,
        typer.Argument(metavar="STORE", help="A file, or postgresql://…. Default: from the settings."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps, and change nothing.")] = False
