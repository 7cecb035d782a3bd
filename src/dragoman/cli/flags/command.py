"""Create a command from a class whose fields are its parameters. Its work is imported when it is called."""

from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, Signature, get_annotations, iscoroutine
from typing import Any, ClassVar, TypeVar, dataclass_transform

import typer
from typer.core import TyperGroup

from dragoman.cli.flags.options import AsJson, Config, Log, LogLevel, Store, Trust, Workspace
from dragoman.errors import ConfigError

F = TypeVar("F", bound="Flags")
# options that come last in every help
_LAST = ("store", "workspace", "config", "trust", "json", "log", "log_level")


@dataclass_transform(kw_only_default=True)
class Flags:
    """The parameters of a command. Each field is annotated for typer, and the docstring is the help.

    To a type checker, these are dataclasses. They are created at every start, and real dataclasses would take
    20 ms.
    """

    work: ClassVar[str]  # "module:function", relative to dragoman.cli

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


class ConfigFlags(Flags):
    config: Config = None


class TrustFlags(ConfigFlags):
    """Flags of a command that uses the content of a folder. It asks whether the user trusts the folder."""

    trust: Trust = False


class StoreFlags(ConfigFlags):
    store: Store = None


class WorkspaceFlags(StoreFlags):
    workspace: Workspace = None


class JsonFlags(Flags):
    json: AsJson = False


class LogFlags(Flags):
    log: Log = None
    log_level: LogLevel = None

    def start_logs(self) -> None:
        """Configure the log on standard error for this command."""
        from dragoman.telemetry.logs import configure_logs

        match self.log:
            case "text" | "json" | None as form:
                configure_logs(form, self.log_level or ())
            case other:
                raise ConfigError(f"Invalid --log {other!r}. Choose text or json.")


class GroupWithDefault(TyperGroup):
    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or not ({args[0]} & {*self.commands, "--help"}):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class CommandGroup:
    """Commands that are listed together: in one panel of `dragoman --help`, or after the same word."""

    def __init__(self, panel: str | None = None, *, default: str | None = None, **about: Any) -> None:
        """`default` is the command to run if the next word is not a command."""
        if default is not None:
            about["cls"] = type("Group", (GroupWithDefault,), {"default": default})
        self.app = typer.Typer(rich_markup_mode="markdown", **about)
        self.panel = panel

    def command(self, name: str, work: str, example: str) -> Callable[[type[F]], type[F]]:
        """Register the class below as the command of this name. It calls `work` with its parameters, and
        exits with the status that `work` returns, if any."""

        def add(flags: type[F]) -> type[F]:
            def call(**given: Any) -> None:
                parameters = flags(**given)
                if isinstance(parameters, LogFlags):
                    parameters.start_logs()
                module, _, function = flags.work.partition(":")
                status = getattr(import_module(f"dragoman.cli.{module}"), function)(parameters)
                if iscoroutine(status):
                    # This import takes 30 ms, which `--help` does not need.
                    status = import_module("asyncio").run(status)
                if status:
                    raise typer.Exit(status)

            flags.work = work
            call.__doc__ = flags.__doc__
            call.__signature__ = _signature(flags)  # type: ignore[attr-defined]  # which typer reads
            self.app.command(name, rich_help_panel=self.panel, epilog=f"Example: {example}")(call)
            return flags

        return add


def _signature(flags: type[Flags]) -> Signature:
    fields: dict[str, Any] = {}
    for one in reversed(flags.__mro__[:-2]):  # without Flags itself
        fields |= get_annotations(one)
    return Signature(
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=getattr(flags, name, Parameter.empty),
                annotation=fields[name],
            )
            for name in sorted(fields, key=lambda one: _LAST.index(one) if one in _LAST else -1)
        ]
    )
