"""`dragoman models`, `tools`, `doctor`, `trust`, and the groups `config`, `keys`, `people` and `store`."""

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

group = CommandGroup("Setting up")
config = CommandGroup(help="The settings, and where they come from.", no_args_is_help=True)
models = CommandGroup(help="The models that can answer, and how to get one.", default="list")
keys = CommandGroup(help="The keys of providers.", no_args_is_help=True)
people = CommandGroup(help="Who may use your server, with keys of their own.", no_args_is_help=True)
store = CommandGroup(
    help="Copy everything to another database, and bring tables up to date.", no_args_is_help=True
)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask at the terminal.")]
Name = Annotated[str, typer.Argument(help="What the person is called.")]


@models.command("list", "commands.models:show_models", "`dragoman models list --check openai anthropic`")
class ModelsFlags(TrustFlags, JsonFlags):
    """List the models: those that run here first, then those whose key is set.

    `dragoman models openai` is short for `dragoman models list openai`.
    """

    providers: Annotated[list[str] | None, typer.Argument(help="These providers, not all.")] = None
    all: Annotated[bool, typer.Option("--all", help="The models of providers without a key, too.")] = False
    check: Annotated[
        bool, typer.Option("--check", help="Ask the providers whose keys are there for their own lists.")
    ] = False
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Ask the server at this address for its list.")
    ] = None
    api_key: Annotated[str | None, typer.Option("--api-key", help="The key for that server.")] = None
    learned: Annotated[
        bool, typer.Option("--learned", help="What servers were found to refuse, and until when that counts.")
    ] = False
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget that, of these providers or of all, and ask them again."),
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
    """The tools a model is offered here: what each may touch, and whether you would be asked first."""

    check: Annotated[bool, typer.Option("--check", help="Start the MCP servers and ask for theirs.")] = False


@group.command("doctor", "commands.doctor:examine", "`dragoman doctor --mend`")
class DoctorFlags(TrustFlags, JsonFlags):
    """What works here, what is missing, and the command that mends it. Status 1 where something must be."""

    mend: Annotated[
        bool, typer.Option("--mend", help="Mend in the store what can be mended without losing anything.")
    ] = False


@group.command("trust", "commands.trust:decide_trust", "`dragoman trust project`")
class FolderFlags(JsonFlags):
    """Let a folder's settings, tools, MCP servers and skills act, after a look at what they would do."""

    folder: Annotated[
        Path | None, typer.Argument(help="The folder, if not the one whose dragoman.toml holds here.")
    ] = None
    list_all: Annotated[bool, typer.Option("--list", help="The folders you decided about.")] = False
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer: it is asked about again.")] = (
        False
    )
    yes: Yes = False


# ── dragoman config ───────────────────────────────────────────────────────────────────────────────


@config.command("path", "commands.config:show_paths", "`dragoman config path`")
class ConfigPathFlags(ConfigFlags, JsonFlags):
    """Where settings are read from, and where conversations are kept."""


@config.command("show", "commands.config:show_settings", "`dragoman config show --json`")
class ConfigShowFlags(ConfigFlags, JsonFlags):
    """Every setting that was made, with the file and line, the variable or the flag it comes from."""


@config.command("check", "commands.config:check_settings", "`dragoman config check && dragoman serve`")
class ConfigCheckFlags(TrustFlags):
    """Whether the settings can be followed. The exit status is 2 where they cannot; each reason is a line."""


@config.command("schema", "commands.config:print_schema", "`dragoman config schema > dragoman.schema.json`")
class ConfigSchemaFlags(Flags):
    """What `dragoman.toml` may say, as a JSON schema for editors."""


# ── dragoman keys ─────────────────────────────────────────────────────────────────────────────────


ProviderName = Annotated[str, typer.Argument(help="A provider, as `dragoman models` names it.")]


@keys.command("set", "commands.keys:set_key", "`dragoman keys set openai < key.txt`")
class SetKeyFlags(ConfigFlags):
    """Store a provider's key: in the system's keyring, else in a file that only you can read."""

    provider: ProviderName
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not test it with a request.")] = False


@keys.command("list", "commands.keys:list_keys", "`dragoman keys list --json`")
class ListKeysFlags(ConfigFlags, JsonFlags):
    """The providers with a key, and where it is. No key is shown."""


@keys.command("remove", "commands.keys:remove_key", "`dragoman keys remove openai`")
class RemoveKeyFlags(ConfigFlags):
    """Remove a stored key, from the keyring and the file."""

    provider: ProviderName


# ── dragoman people ───────────────────────────────────────────────────────────────────────────────


@people.command("add", "commands.people:add_person", "`dragoman people add anna`")
class AddPersonFlags(StoreFlags):
    """Add a user, and print the key once: the store keeps only a hash."""

    name: Name
    restore: Annotated[
        bool, typer.Option("--restore", help="Give the new user what a removed one with this name has left.")
    ] = False


@people.command("list", "commands.people:list_people", "`dragoman people list --json`")
class ListPeopleFlags(StoreFlags, JsonFlags):
    """List users: since when, and the account of those who sign in at a provider."""


@people.command("remove", "commands.people:remove_person", "`dragoman people remove anna`")
class RemovePersonFlags(StoreFlags):
    """Remove a user: end key, sign-ins, links and live streams, and cancel turns.

    Conversations stay. Nobody else gets the name, unless you add it with `--restore`.
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
    """Copy conversations, turns, questions, people and attachments, and compare every row.

    Stop what uses the store first. A copy that broke off goes on where it was when it is run again. Where the
    attachments are is known of the store that the settings name.
    """

    source: Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://…")]
    target: Annotated[str, typer.Argument(metavar="TO", help="The same; it is made if it is not there.")]
    blobs_from: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="Where its attachments are, if not beside or in it: s3://…, file:///…"
        ),
    ] = None
    blobs_to: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Where the copy's attachments go.")
    ] = None


@store.command("migrate", "commands.store:migrate", "`dragoman store migrate --dry-run`")
class MigrateFlags(ConfigFlags):
    """Bring the tables of a store to this version, a step at a time. Of several at once, one does it.

    Programs do it themselves when they start, unless the settings say `migrate = false`.
    """

    place: Annotated[
        str | None,
        typer.Argument(metavar="STORE", help="A file, or postgresql://…; else that of the settings."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = (
        False
    )
