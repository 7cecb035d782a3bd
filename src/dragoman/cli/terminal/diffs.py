"""A unified diff in the colours of a terminal, with the words that differ made to stand out."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from dragoman.cli.terminal.text import count
from dragoman.visible_text import visible
from dragoman.workspace.diff import words

_LONGEST = 2_000  # characters of a line that is compared word by word
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


def render_diff(diff: str, lines: int | None = None) -> Text:
    """All of it, or its first lines and how many more there are."""
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
    """Removed lines and the added ones that stand right after them."""
    end = place
    while end < len(lines) and lines[end].startswith("-"):
        end += 1
    last = end
    while last < len(lines) and lines[last].startswith("+"):
        last += 1
    return lines[place:end], lines[end:last]


def _changed(removed: list[str], added: list[str]) -> Iterator[Text]:
    """Word by word where as many lines came as went: then each is a new version of the other."""
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
