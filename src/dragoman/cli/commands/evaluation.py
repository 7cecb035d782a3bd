"""Run `dragoman eval`: make cases from stored turns, run them, and print reports."""

from __future__ import annotations

import asyncio
import difflib
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman.cli.commands.usage import parse_since
from dragoman.cli.flags.evaluation import (
    AddCasesFlags,
    ImportCasesFlags,
    ReportFlags,
    ReportFormat,
    ReportOptions,
    RunCasesFlags,
)
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import each_conversation, find_turn, match_id
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.approvals import LineInput
from dragoman.cli.terminal.forms import InputClosed
from dragoman.cli.terminal.tables import open_console
from dragoman.cli.terminal.text import count, one_line, plain, print_json
from dragoman.config.build import build_runtime, store_of
from dragoman.config.settings import Settings
from dragoman.config.workspaces import workspace_of
from dragoman.errors import BadRequest, ConfigError, DragomanError, NotFound
from dragoman.evaluation.bfcl import bfcl_cases, read_lines
from dragoman.evaluation.case import FOLDER, RUNS, Case, cases, save_cases, values_of
from dragoman.evaluation.evaluate import Check, Estimate, Progress, run
from dragoman.evaluation.expected import ExpectedCall, MadeCall, Rubric
from dragoman.evaluation.report import HEADS, CaseRun, Report, find_report, reports_in
from dragoman.evaluation.stored_turns import case_of_turn
from dragoman.messages.request import ToolSpec
from dragoman.runtime import Runtime
from dragoman.store.store import Rating, Store
from dragoman.tools.python_files import run_file

_SHOWN = 12  # maximum number of failed answers below a table
_MESSAGE = "msg_"
T = TypeVar("T")


def _folder(flags: AddCasesFlags | RunCasesFlags | ReportFlags, settings: Settings) -> Path:
    return flags.folder if flags.folder is not None else workspace_of(settings) / FOLDER


# ── add ───────────────────────────────────────────────────────────────────────────────────────────


async def add_cases(flags: AddCasesFlags) -> None:
    settings = settings_for(flags)
    chosen = await choose_model(settings, required=False)
    built = build_runtime(settings, model=chosen.models, adopts=False)
    found: list[Case] = []
    async with chosen.models, built.runtime as runtime:
        async for turn, message, rating in _turns(runtime.store, flags):
            try:
                case = await case_of_turn(runtime, turn, message=message, rating=rating)
                found.append(_with_expectations(case, flags))
            except DragomanError as error:
                print(f"{turn}: {error}", file=sys.stderr)
    written = save_cases(found, folder := _folder(flags, settings))
    if flags.json:
        print_json([str(file) for file in written])
        return
    for file in written:
        print(file)
    existing = len(found) - len(written)
    rest = f", {count(existing, 'case')} existed before" if existing else ""
    print(f"{count(len(written), 'new case')} in {folder}{rest}.", file=sys.stderr)
    if not found:
        print("No turn matches. `dragoman eval add last` makes a case of the latest.", file=sys.stderr)


async def _turns(store: Store, flags: AddCasesFlags) -> AsyncIterator[tuple[str, str | None, Rating | None]]:
    """Yield the named turns and replies. Without names, yield those that match every filter, newest first."""
    rated = {one.turn: one for one in await store.ratings()}
    filters = (flags.rated, flags.search, flags.tag, flags.since)
    if flags.turns or not any(filters):
        for name in flags.turns or ["last"]:
            turn, message = await _turn_of(store, name)
            yield turn, message, rated.get(turn)
        return
    since = parse_since(flags.since) if flags.since else 0.0
    messages = None
    if flags.search is not None:
        messages = {one.message for one in await store.search(flags.search, limit=10_000)}
    left = flags.limit
    async for conversation in each_conversation(store):
        if flags.tag is not None and flags.tag not in conversation.tags:
            continue
        rows = [row for row in await store.turns(conversation.id) if not row.live and row.created >= since]
        if messages is not None and rows:
            said, _ = await store.messages(conversation.id)
            hits = {one.turn for one in said if one.id in messages}
            rows = [row for row in rows if row.id in hits]
        for row in reversed(rows):
            rating = rated.get(row.id)
            if flags.rated is not None and (rating is None or rating.value != flags.rated.value):
                continue
            if not left:
                return
            left -= 1
            yield row.id, None, rating


async def _turn_of(store: Store, name: str) -> tuple[str, str | None]:
    """Return a turn by its ID, or by that of one of its messages, together with the message's ID."""
    if not name.startswith(_MESSAGE):
        return (await find_turn(store, name, ended=True)).id, None
    message = await store.message(name)
    if message.turn is None:
        raise NotFound("turn", name, "The message was imported. Name a message that was answered here.")
    return message.turn, message.id


def _with_expectations(case: Case, flags: AddCasesFlags) -> Case:
    """Replace the default expectations of the case by those that the command names."""
    named = (flags.contains, flags.lacks, flags.never, flags.rubric)
    if not any(named):
        return case
    kept = case.expect if case.origin is not None and case.origin.rating == "bad" else type(case.expect)()
    expect = replace(
        kept,
        contains=tuple(flags.contains or ()),
        lacks=tuple(flags.lacks or ()),
        never=tuple(ExpectedCall(tool) for tool in flags.never or ()),
        rubrics=(*kept.rubrics, *(Rubric(text) for text in flags.rubric or ())),
    )
    return replace(case, expect=expect)


# ── import ────────────────────────────────────────────────────────────────────────────────────────


def import_cases(flags: ImportCasesFlags) -> None:
    answers = read_lines(flags.answers) if flags.answers is not None else []
    found = [*bfcl_cases(read_lines(flags.questions), answers)][: flags.limit]
    file = flags.output or Path(FOLDER) / f"{flags.questions.stem}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(values_of(one), ensure_ascii=False) for one in found)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{count(len(found), 'case')} in {file}.", file=sys.stderr)


# ── run ───────────────────────────────────────────────────────────────────────────────────────────


class _Estimated(Exception):
    """Raised after the estimate, if only that was requested."""


async def run_cases(flags: RunCasesFlags) -> int:
    settings = settings_for(flags)
    if flags.model:
        settings = replace(settings, values={**settings.values, "model": flags.model[0]})
    chosen = await choose_model(settings)
    built = build_runtime(settings, model=chosen.models, adopts=False)
    folder, runtime = _folder(flags, settings), built.runtime
    _check_name(flags.name)
    if flags.unrecorded.value == "ask" and not sys.stdin.isatty():
        raise ConfigError("No terminal to ask at. Choose `--unrecorded fail` or `simulate`.")
    earlier = _earlier(flags, folder / RUNS)
    async with chosen.models:
        found = await _cases_of(flags, settings, runtime, folder)
        progress = _ProgressLine(sys.stderr.isatty())
        try:
            report = await run(
                found,
                models=flags.model or [chosen.name],
                prompts=_prompts(flags.prompt),
                agents=flags.agent or (None,),
                repeats=flags.repeat,
                like=runtime,
                tools=flags.tools.value,
                unrecorded=flags.unrecorded.value,
                answering=_ask_at_terminal if flags.unrecorded.value == "ask" else None,
                judge=flags.judge,
                checks=_checks(flags.checks),
                concurrency=flags.concurrency,
                max_cost=flags.max_cost,
                folder=folder / RUNS,
                name=flags.name,
                on_estimate=lambda estimate: _print_estimate(estimate, stop=flags.estimate),
                on_progress=progress,
            )
        except _Estimated:
            return 0
        finally:
            progress.end()
    return _print_report(report, earlier, flags)


def _check_name(name: str | None) -> None:
    if name is not None and (not name or name.startswith(".") or set("/\\") & set(name)):
        raise ConfigError(f"The run cannot be called '{name}'. Use a name without slashes.")


async def _cases_of(flags: RunCasesFlags, settings: Settings, runtime: Runtime, folder: Path) -> list[Case]:
    """Return the cases of the files and the named turns. The store is opened only for turns."""
    found = cases(*(flags.cases or [str(folder)])) if flags.cases or not flags.turn else []
    if flags.turn:
        if not store_of(settings).is_there:
            raise ConfigError(f"No database found at '{store_of(settings)}'. Name one with --store.")
        async with runtime:
            for name in flags.turn:
                turn, message = await _turn_of(runtime.store, name)
                found.append(await case_of_turn(runtime, turn, message=message))
    return found


def _prompts(files: Sequence[str] | None) -> dict[str, str | None] | None:
    prompts: dict[str, str | None] = {}
    for file in files or ():
        try:
            prompts[Path(file).name] = None if file == "settings" else Path(file).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"Cannot read the prompt '{file}': {error}.") from error
    return prompts or None


def _checks(file: Path | None) -> dict[str, Check]:
    """Return the functions in a file. Only the user can name the file, never a case."""
    names = vars(run_file(file)) if file is not None else {}
    return {name: one for name, one in names.items() if callable(one) and not name.startswith("_")}


_ASKING = asyncio.Lock()


async def _ask_at_terminal(case: Case, tool: ToolSpec, call: MadeCall) -> str:
    async with _ASKING:
        question = f"\n{case.id}: no result is recorded for {one_line(call.identity, 500)}\nResult: "
        try:
            return await LineInput().line(plain(question))
        except InputClosed:
            raise BadRequest("You gave no result.") from None


class _ProgressLine:
    """One line that is overwritten at a terminal. In a pipe, a line for each tenth."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal
        self._told = -1

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // progress.total
        text = (
            f"{progress.done} of {progress.total} answers, {progress.cached} cached, {progress.failed} failed"
        )
        text += f", ${progress.cost:.4f}" if progress.cost else ""
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif tenth > self._told:
            print(text, file=sys.stderr, flush=True)
        self._told = tenth

    def end(self) -> None:
        if self._terminal and self._told >= 0:
            print(file=sys.stderr)


def _print_estimate(estimate: Estimate, *, stop: bool) -> None:
    fresh = estimate.total - estimate.cached
    cost = "cost unknown" if estimate.cost is None else f"about ${estimate.cost:.4f}"
    print(
        f"{count(fresh, 'answer')} to ask for, {estimate.cached} cached: "
        f"about {estimate.tokens:,} tokens, {cost}, judges not included.",
        file=sys.stderr,
    )
    if stop:
        raise _Estimated


# ── report ────────────────────────────────────────────────────────────────────────────────────────


def show_report(flags: ReportFlags) -> int:
    folder = _folder(flags, settings_for(flags)) / RUNS
    file = find_report(folder, flags.run)
    report = Report.load(file)
    earlier = _earlier(flags, folder, before=file)
    if flags.case is None:
        return _print_report(report, earlier, flags)
    _print_case(open_console(), report, match_id("case", flags.case, [one.id for one in report.cases]))
    return 0


def _earlier(flags: ReportOptions, folder: Path, before: Path | None = None) -> Report | None:
    if flags.against is None:
        return None
    if flags.against == "last" and before is not None:
        files = [one for one in reports_in(folder) if one != before]
        files = files[: sum(one.stat().st_mtime <= before.stat().st_mtime for one in files)]
        return Report.load(files[-1] if files else find_report(folder, "an earlier one"))
    return Report.load(find_report(folder, flags.against))


def _print_report(report: Report, earlier: Report | None, flags: ReportOptions) -> int:
    match flags.format:
        case ReportFormat.json:
            text = report.json()
        case ReportFormat.junit:
            text = report.junit()
        case ReportFormat.markdown:
            text = report.markdown(earlier)
        case ReportFormat.table:
            text = ""
    if flags.output is not None:
        flags.output.parent.mkdir(parents=True, exist_ok=True)
        flags.output.write_text(text or report.markdown(earlier), "utf-8", errors="replace")
    elif text:
        print(text.rstrip("\n"))
    if not text:
        _print_tables(open_console(), report, earlier)
    return 0 if flags.threshold is None or report.meets(flags.threshold) else 1


def _print_tables(console: Console, report: Report, earlier: Report | None) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, head in enumerate(HEADS):
        table.add_column(head, overflow="fold", no_wrap=at > 0)
    for row in report.rows(earlier):
        table.add_row(*(Text(plain(one)) for one in row))
    console.print(table)
    than = "the recording" if earlier is None else earlier.name
    for title, style, better in (("worse", "red", False), ("better", "green", True)):
        chosen = [one for one in report.changes(earlier) if one.better is better]
        if chosen:
            console.print(Text(f"\n{title} than {than}", "bold"))
        for case in dict.fromkeys(one.case for one in chosen):
            variants = ", ".join(str(one.variant) for one in chosen if one.case == case)
            console.print(Text(f"  {case}  {variants}", style), soft_wrap=True)
    failed = [*report.failures()]
    if failed:
        console.print(Text("\nfailed", "bold"))
    for one, often, reasons in failed[:_SHOWN]:
        console.print(Text(f"  {one.case}  {one.variant}  {often}"), soft_wrap=True)
        for reason in reasons:
            console.print(Text(f"    {one_line(reason, 160)}", "red"), soft_wrap=True)
    rest = len(failed) - _SHOWN
    more = f"{count(rest, 'more failed case')}. " if rest > 0 else ""
    if report.skipped:
        console.print(Text(f"\n{report.skipped}", "yellow"))
    console.print(
        Text(f"\n{more}`dragoman eval report {report.name} --case ID` shows a case in full.", "dim")
    )


def _print_case(console: Console, report: Report, id: str) -> None:
    """Print the recorded answer, and how each other answer differs."""
    case = next(one for one in report.cases if one.id == id)
    console.print(Text(case.id, "bold"))
    console.print(Text(plain(case.question)), soft_wrap=True)
    recorded = report.recorded.get(id)
    if recorded is not None:
        console.print(Text(f"\nrecorded  {recorded.variant}  {_verdict(recorded)}", "bold"))
        _print_lines(console, [*_lines(recorded)])
    for one in [one for variant in report.variants for one in report.runs_of(id, variant)]:
        console.print(Text(f"\n{one.variant}  answer {one.repeat + 1}  {_verdict(one)}", "bold"))
        for reason in one.reasons:
            console.print(Text(f"  {plain(reason)}", "red"), soft_wrap=True)
        for met in one.met:
            for vote in met.votes:
                word = "yes" if vote.passed else "no"
                console.print(
                    Text(f"  {met.model} votes {word}: {one_line(vote.reason)}", "dim"), soft_wrap=True
                )
        lines = [*_lines(one)]
        _print_lines(console, [*_difference([*_lines(recorded)], lines)] if recorded is not None else lines)


def _lines(one: CaseRun) -> Iterator[str]:
    for call in one.answered.calls:
        mark = " (not recorded)" if call.unrecorded else " (simulated)" if call.simulated else ""
        yield f"call {one_line(call.identity, 300)}{mark}"
    yield from (one.answered.text or one.answered.error or one.skipped).splitlines()


def _verdict(one: CaseRun) -> str:
    return {True: "passed", False: "failed", None: "nothing expected"}[one.passed]


def _difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield a diff: `-` marks the earlier line and `+` the current one. Equal lines are included."""
    if list(before) == list(after):
        yield from (f"  {line}" for line in before)
        return
    yield from (line for line in difflib.ndiff(before, after) if not line.startswith("?"))


def _print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(Text(plain(line), {"-": "red", "+": "green"}.get(line[:1], "")), soft_wrap=True)
