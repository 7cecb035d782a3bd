"""Draw cards: calls with results, approval requests with their content, diffs, and sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from dragoman.cli.terminal.text import count, format_json, head, one_line, rows
from dragoman.messages.asked import cause, untold
from dragoman.messages.message import Arguments, CallState, Citation, File, ToolResult
from dragoman.messages.questions import Question
from dragoman.tools.permissions import rules_in_words
from dragoman.visible_text import visible
from dragoman.workspace.diff import words

_LONGEST = 2_000  # maximum characters of a line that is compared word by word
_HEADS = (
    "diff --git ",
    "--- ",
    "+++ ",
    "new file",
    "deleted file",
    "rename ",
    "old mode",
    "new mode",
    "Binary ",
)
LINES = 12  # maximum lines of arguments or of a result
DIFF_LINES = 40
ASKED_LINES = 200  # the same in an approval request
_COLOURS = {
    CallState.COMPLETED: "green",
    CallState.FAILED: "red",
    CallState.REJECTED: "yellow",
    CallState.WITHHELD: "yellow",
    CallState.SKIPPED: "yellow",
    CallState.CANCELLED: "yellow",
    CallState.INTERRUPTED: "red",
}


def render_diff(diff: str, lines: int | None = None) -> Text:
    """Return the whole diff, or its first lines and the number of others."""
    every = diff.rstrip("\n").split("\n")
    shown = every if lines is None else every[:lines]
    text = Text()
    for line in _styled(shown):
        text.append_text(line)
        text.append("\n")
    if len(shown) < len(every):
        text.append(f"… {count(len(every) - len(shown), 'more line')}", "dim")
    else:
        text.rstrip()
    return text


def _styled(lines: list[str]) -> Iterator[Text]:
    place, within = 0, False
    while place < len(lines):
        line = lines[place]
        if line.startswith("diff --git "):
            within = False
        if line.startswith("@@"):
            within = True
            yield Text(visible(line), "cyan")
        elif within and line.startswith("-"):
            removed, added = _block(lines, place)
            yield from _changed(removed, added)
            place += len(removed) + len(added)
            continue
        elif within and line.startswith("+"):
            yield Text(visible(line), "green")
        else:
            yield Text(visible(line), "bold" if not within and line.startswith(_HEADS) else "dim")
        place += 1


def _block(lines: list[str], place: int) -> tuple[list[str], list[str]]:
    """Return removed lines, and added lines that follow directly."""
    end = place
    while end < len(lines) and lines[end].startswith("-"):
        end += 1
    last = end
    while last < len(lines) and lines[last].startswith("+"):
        last += 1
    return lines[place:end], lines[end:last]


def _changed(removed: list[str], added: list[str]) -> Iterator[Text]:
    """Yield changed lines. With equal numbers of removed and added lines, pairs are compared word by word."""
    if len(removed) != len(added) or any(len(line) > _LONGEST for line in (*removed, *added)):
        yield from (Text(visible(line), "red") for line in removed)
        yield from (Text(visible(line), "green") for line in added)
        return
    pairs = [words(old[1:], new[1:]) for old, new in zip(removed, added, strict=True)]
    for mark, side, colour in (("-", 0, "red"), ("+", 1, "green")):
        for pair in pairs:
            line = Text(mark, colour)
            for differs, piece in pair[side]:
                line.append(visible(piece), f"bold reverse {colour}" if differs else colour)
            yield line


def item_line(kind: str, text: str) -> str:
    """Return a line such as `⌕ web_search_call: population of Lyon`."""
    return f"⌕ {one_line(kind)}: {one_line(text)}" if text.strip() else f"⌕ {one_line(kind)}"


def source_lines(citations: Iterable[Citation]) -> Iterator[str]:
    """Yield one line for each source, however often it is cited."""
    shown: set[tuple[str | None, str | None]] = set()
    for citation in citations:
        name = (citation.url, citation.title)
        if name in shown or not any(name):
            continue
        shown.add(name)
        number = len(shown)
        yield f"[{number}] " + " · ".join(one_line(one, 300) for one in (citation.title, citation.url) if one)


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
    """Return the card of a settled or waiting call."""
    colour = _COLOURS.get(state, "cyan")
    title = Text.assemble((f"⚙ {one_line(tool)}", "bold"), *([f" at {one_line(server)}"] if server else []))
    title.append(f" · {state}", colour)
    if seconds is not None:
        title.append(f" · {seconds:.1f} s", "dim")
    refused = refusals_of(result)
    if refused is not None:
        title.append(f" · ⛨ {len(refused)} refused" if refused else " · ⛨", "yellow" if refused else "green")
    diff = result.metadata.get("diff") if result is not None and state is CallState.COMPLETED else None
    parts: list[RenderableType] = [Text(head(format_json(arguments), LINES))]
    if isinstance(diff, str) and diff:
        shown = arguments if len(format_json(arguments)) <= 80 else _without_texts(arguments)
        parts = [*([Text(head(format_json(shown), LINES))] if shown else []), render_diff(diff, DIFF_LINES)]
    if original is not None and original != arguments:
        parts.append(Text(f"the model had asked for {one_line(format_json(original))}", "dim"))
    if result is not None and isinstance(diff, str) and diff:
        parts.append(Text(one_line(result.text, 200), "dim"))  # The diff shows the same.
    elif result is not None:
        parts += [Rule(style="dim"), *_render_result(result, LINES)]
    if refused:
        parts += [Text(f"⛨ {visible(text)}", "yellow") for text, _ in refused]
        parts.append(Text("/allow runs it again with this allowed, /allow outside without the cage", "dim"))
    return _panel(Group(*parts), title, colour)


def folded_line(
    tool: str, arguments: Arguments, state: CallState, result: ToolResult | None, seconds: float | None
) -> Text:
    """Return a call as one line: its arguments, and the size of its result."""
    values = (value if isinstance(value, str) else format_json(value) for value in arguments.values())
    line = Text(f"⚙ {one_line(tool)}", "bold")
    if about := ", ".join(one_line(value, 60) for value in values if "\n" not in value):
        line.append(f" {about}", "not bold")
    line.append(f" · {state}", "not bold green")
    diff = result.metadata.get("diff") if result is not None else None
    if isinstance(diff, str) and diff:
        line.append(f" · {describe_changes(diff)}", "dim")
    elif result is not None:
        line.append(f" · {count(rows(result.text.rstrip()), 'line')}", "dim")
    if seconds is not None and seconds >= 1:
        line.append(f" · {seconds:.1f} s", "dim")
    return line


def describe_changes(diff: str) -> str:
    """Return `+3 −1`: the numbers of added and removed lines."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"+{added} −{removed}"


def refusals_of(result: ToolResult | None) -> list[tuple[str, str]] | None:
    """Return the accesses that the call's cage refused, with the rules that would allow them. None if it ran
    without a cage."""
    cage = result.metadata.get("cage") if result is not None else None
    refused = cage.get("refused") if isinstance(cage, dict) else None
    if not isinstance(refused, list):
        return None
    return [(str(one["text"]), str(one["asks"])) for one in refused if isinstance(one, dict)]


def question_card(question: Question, agent: str | None = None, lines: int | None = ASKED_LINES) -> Panel:
    """Return the card of an approval request, with the calling agent if it is another one.

    Each part is shown whole, or with a maximum number of lines and the number of others.
    """
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
    """Return how many lines of an approval request are hidden until the user asks for them."""
    rest = format_json(untold(question))
    result = question.result.text if question.result is not None else ""
    counts = (rows(text.rstrip("\n")) for text in (question.diff, rest, result))
    return sum(max(0, lines - ASKED_LINES) for lines in counts)


def _without_texts(arguments: Arguments) -> Arguments:
    """Return the short arguments, which the diff does not show."""
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
