"""Define `dragoman eval add`, `run`, `report` and `import`: cases from stored turns, and their answers."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, ConfigFlags, Flags, JsonFlags, TrustFlags, WorkspaceFlags

group = CommandGroup(
    help="Ask stored questions again, and report what got better and worse.", no_args_is_help=True
)


class RatingChoice(StrEnum):
    good = "good"
    bad = "bad"


class ToolsChoice(StrEnum):
    recorded = "recorded"
    cage = "cage"


class UnrecordedChoice(StrEnum):
    fail = "fail"
    simulate = "simulate"
    ask = "ask"


class ReportFormat(StrEnum):
    table = "table"
    json = "json"
    junit = "junit"
    markdown = "markdown"


Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder of the cases and runs. Default: `evals` in the workspace."),
]
Texts = list[str] | None


class ReportOptions(Flags):
    format: Annotated[ReportFormat, typer.Option("--format", "-f", help="Form of the report.")] = (
        ReportFormat.table
    )
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the report.")] = None
    against: Annotated[
        str | None,
        typer.Option(help="Earlier run to compare with, by name or `last`. Default: the recording."),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of answers that has to pass. Below it, the exit status is 1."),
    ] = None


@group.command(
    "add",
    "commands.evaluation:add_cases",
    "`dragoman eval add last --contains 391`, or `dragoman eval add --rated bad`",
)
class AddCasesFlags(WorkspaceFlags, TrustFlags, JsonFlags):
    """Make cases of stored turns, without secrets.

    A case is a TOML file. Read it, and write into `[expect]` what a good answer is.
    """

    turns: Annotated[
        Texts,
        typer.Argument(
            help="ID of a turn, a message or a conversation, an ID prefix, or `last`. Repeatable."
        ),
    ] = None
    rated: Annotated[RatingChoice | None, typer.Option(help="Turns that users rated like this.")] = None
    search: Annotated[str | None, typer.Option(help="Turns with these words.")] = None
    tag: Annotated[str | None, typer.Option(help="Turns of conversations with this tag.")] = None
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Turns since then: 2026-11-01, 7d, 12h.")
    ] = None
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of turns.")] = 50
    contains: Annotated[Texts, typer.Option(help="Expect this text in the answer. Repeatable.")] = None
    lacks: Annotated[Texts, typer.Option(help="Expect an answer without this text. Repeatable.")] = None
    never: Annotated[Texts, typer.Option(help="Expect no call of this tool. Repeatable.")] = None
    rubric: Annotated[
        Texts, typer.Option(help="Expect that a judging model agrees with this. Repeatable.")
    ] = None
    folder: Folder = None


@group.command(
    "run",
    "commands.evaluation:run_cases",
    "`dragoman eval run --model ollama/qwen3 --model openai/gpt-5.4 --repeat 3`",
)
class RunCasesFlags(WorkspaceFlags, TrustFlags, ReportOptions):
    """Ask every case of every model, prompt and agent.

    Tools answer from the recording. An answer that exists is not asked for again. To resume an
    interrupted run, repeat the command.
    """

    cases: Annotated[Texts, typer.Argument(help="Files and folders with cases. Default: `--folder`.")] = None
    turn: Annotated[
        Texts, typer.Option(help="Stored turn to use as a case, by ID or `last`. Repeatable.")
    ] = None
    model: Annotated[
        Texts, typer.Option("--model", "-m", help="Model to ask. Default: that of your settings. Repeatable.")
    ] = None
    prompt: Annotated[
        Texts,
        typer.Option(help="File with a system prompt, or `settings` for that of your settings. Repeatable."),
    ] = None
    agent: Annotated[Texts, typer.Option(help="Agent to ask. Default: that of the case. Repeatable.")] = None
    repeat: Annotated[int, typer.Option("--repeat", "-n", min=1, help="How often to ask each case.")] = 1
    tools: Annotated[
        ToolsChoice,
        typer.Option("--tools", help="Results of calls: as recorded, or of file tools and shell in a cage."),
    ] = ToolsChoice.recorded
    unrecorded: Annotated[
        UnrecordedChoice,
        typer.Option(
            help="What a call without a recorded result does: fail, get one from the judge, or ask you."
        ),
    ] = UnrecordedChoice.fail
    judge: Annotated[str | None, typer.Option(help="Model that judges by rubrics.")] = None
    checks: Annotated[
        Path | None, typer.Option(help="Python file with the functions that cases name in `checks`.")
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, help="Answers to ask for at the same time.")] = 8
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop when the run has cost this many dollars.")
    ] = None
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what the run would cost, and stop.")] = (
        False
    )
    name: Annotated[str | None, typer.Option(help="Name of the run. Default: the time.")] = None
    folder: Folder = None


@group.command(
    "report",
    "commands.evaluation:show_report",
    "`dragoman eval report --against 20261118-0900 --format markdown`",
)
class ReportFlags(WorkspaceFlags, ReportOptions):
    """Print the report of a run, or one case of it in full."""

    run: Annotated[str, typer.Argument(help="Name of a run, or `last`.")] = "last"
    case: Annotated[str | None, typer.Option(help="Case to show, by ID or an ID prefix.")] = None
    folder: Folder = None


@group.command(
    "import",
    "commands.evaluation:import_cases",
    "`dragoman eval import BFCL_v4_simple_python.json --answers possible_answer/BFCL_v4_simple_python.json`",
)
class ImportCasesFlags(ConfigFlags):
    """Import questions in the format of the Berkeley Function-Calling Leaderboard, as one file of cases."""

    questions: Annotated[Path, typer.Argument(help="JSON lines with questions and functions.")]
    answers: Annotated[
        Path | None, typer.Option(help="JSON lines with the possible answers. Default: none expects a call.")
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of cases.")] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: `evals/NAME.jsonl`.")
    ] = None
