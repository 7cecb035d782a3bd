"""Cards for the screen: a call with its arguments and result, or a question with what it is about."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from dragoman.cli.terminal.diffs import render_diff
from dragoman.cli.terminal.text import format_json, head, one_line, rows
from dragoman.messages.asked import cause, untold
from dragoman.messages.message import Arguments, CallState, File, ToolResult
from dragoman.messages.questions import Question
from dragoman.tools.permissions import rules_in_words
from dragoman.visible_text import visible

LINES = 12  # of arguments or of a result
DIFF_LINES = 40
ASKED_LINES = 200  # where a person decides about them

_COLOURS = {
    CallState.COMPLETED: "green",
    CallState.FAILED: "red",
    CallState.REJECTED: "yellow",
    CallState.WITHHELD: "yellow",
    CallState.SKIPPED: "yellow",
    CallState.CANCELLED: "yellow",
    CallState.INTERRUPTED: "red",
}


def call_card(
    tool: str,
    arguments: Arguments,
    state: CallState,
    result: ToolResult | None,
    *,
    server: str | None = None,
    seconds: float | None = None,
    original: Arguments | None = None,
) -> Panel:
    """A call that is settled, or one that still waits."""
    colour = _COLOURS.get(state, "cyan")
    title = Text.assemble((f"⚙ {one_line(tool)}", "bold"), *([f" at {one_line(server)}"] if server else []))
    title.append(f" · {state}", colour)
    if seconds is not None:
        title.append(f" · {seconds:.1f} s", "dim")
    diff = result.metadata.get("diff") if result is not None and state is CallState.COMPLETED else None
    parts: list[RenderableType] = [Text(head(format_json(arguments), LINES))]
    if isinstance(diff, str) and diff:
        shown = arguments if len(format_json(arguments)) <= 80 else _without_texts(arguments)
        parts = [*([Text(head(format_json(shown), LINES))] if shown else []), render_diff(diff, DIFF_LINES)]
    if original is not None and original != arguments:
        parts.append(Text(f"the model had asked for {one_line(format_json(original))}", "dim"))
    if result is not None:
        parts += [Rule(style="dim"), *_render_result(result, LINES)]
    return _panel(Group(*parts), title, colour)


def question_card(question: Question, agent: str | None = None, lines: int | None = ASKED_LINES) -> Panel:
    """What a person is asked about, by whom where it is another agent's work: whole, or so many lines of each
    part, and how many more there are."""
    title = Text.assemble(("? ", "bold yellow"), (one_line(visible(question.tool)), "bold"))
    if question.server:
        title.append(f" at {one_line(visible(question.server))}")
    if agent is not None:
        title.append(f" · called by {one_line(agent)}")
    text = question.text.removesuffix(f" (always would mean: {rules_in_words(question.rules)})")
    parts: list[RenderableType] = [Text(visible(text).strip(), "bold")]
    if question.diff:
        parts.append(render_diff(question.diff, lines))
    if rest := untold(question):
        parts.append(Text(head(format_json(rest), lines)))
    if question.result is not None:
        parts += [Rule(style="dim"), *_render_result(question.result, lines)]
    parts.append(Text(cause(question), "dim"))
    return _panel(Group(*parts), title, "yellow")


def hidden_lines(question: Question) -> int:
    """How many lines of what a person decides about are not shown before they ask for them."""
    rest = format_json(untold(question))
    result = question.result.text if question.result is not None else ""
    counts = (rows(text.rstrip("\n")) for text in (question.diff, rest, result))
    return sum(max(0, lines - ASKED_LINES) for lines in counts)


def _without_texts(arguments: Arguments) -> Arguments:
    """What the diff does not show: the short ones."""
    return {name: value for name, value in arguments.items() if len(format_json(value)) <= 80}


def describe_file(file: File) -> str:
    size = f", {file.size:,} bytes" if file.size is not None else ""
    return f"[{one_line(file.name or 'a file')}: {one_line(file.media_type)}{size}]"


def _render_result(result: ToolResult, lines: int | None) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(head(visible(result.text).rstrip("\n"), lines) or "(nothing)")]
    parts += [Text(describe_file(file), "cyan") for file in result.attachments]
    if result.note:
        parts.append(Text(one_line(result.note), "dim"))
    return parts


def _panel(inside: RenderableType, title: Text, colour: str) -> Panel:
    return Panel(inside, title=title, title_align="left", border_style=colour, box=box.ROUNDED)
