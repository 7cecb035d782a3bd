"""Finds the place of an edit in a text: exactly, or although white space at the ends of lines differs."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.errors import ToolFailed
from dragoman.sentences import sentence
from dragoman.workspace.diff import opcodes_of


@dataclass(slots=True, frozen=True)
class Replaced:
    """The new text, how many places were changed, and whether the place was found only by its words."""

    text: str
    count: int
    loosely: bool = False


def replace_piece(path: str, text: str, old: str, new: str, *, everywhere: bool = False) -> Replaced:
    """ToolFailed where it is not clear what is meant."""
    if old == new:
        raise ToolFailed(sentence("edits.same"))
    count = _occurrences(text, old)
    if count > 1 and not everywhere:
        raise ToolFailed(sentence("edits.old_repeated", count=count, path=path))
    if count:
        return Replaced(text.replace(old, new), text.count(old))
    return _replace_loosely(path, text, old, new, everywhere)


def edits_between(old: str, new: str) -> list[tuple[str, str]]:
    """Pieces of the old text with what comes in their place, one after another: each is there once when its
    turn comes."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in opcodes_of(before, after):
        if tag == "equal":
            continue
        done, left = after[:j1], before[i2:]  # the text is done + before[i1:i2] + left by now
        text, around = "".join([*done, *before[i1:]]), 0
        while True:
            above, below = "".join(done[max(0, j1 - around) :]), "".join(left[:around])
            piece = above + "".join(before[i1:i2]) + below
            if piece and (_occurrences(text, piece) == 1 or piece == text):
                break
            around = 2 * around + 1
        found.append((piece, above + "".join(after[j1:j2]) + below))
    return found


def find_lines(lines: list[str], wanted: list[str], start: int = 0) -> tuple[list[int], bool]:
    """Where these lines stand, exactly, else by their words alone: without the white space around them."""
    exact = _places(lines, wanted, start)
    if exact or not any(line.strip() for line in wanted):
        return exact, False
    bare = _places([line.strip() for line in lines], [line.strip() for line in wanted], start)
    return bare, bool(bare)


def indented_like(found: list[str], wanted: list[str], new: list[str]) -> list[str]:
    """New lines with the indentation of the place where they go, in place of the one that was given."""
    meant: dict[str, str] = {}
    for there, asked in zip(found, wanted, strict=True):
        if there.strip():
            meant.setdefault(_indent(asked), _indent(there))
    longest_first = sorted(meant, key=len, reverse=True)
    moved = []
    for line in new:
        own = _indent(line)
        known = next((one for one in longest_first if own.startswith(one)), None)
        moved.append(line if known is None or not line.strip() else meant[known] + line[len(known) :])
    return moved


def _replace_loosely(path: str, text: str, old: str, new: str, everywhere: bool) -> Replaced:
    lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
    places, _ = find_lines(lines, wanted)
    if not places:
        raise ToolFailed(sentence("edits.old_missing", path=path))
    if len(places) > 1 and not everywhere:
        raise ToolFailed(sentence("edits.old_unclear", path=path, count=len(places)))
    apart = [places[0]]  # of those that overlap the first, as where it stands exactly
    for place in places:
        if place - apart[-1] >= len(wanted):
            apart.append(place)
    ends = old.endswith("\n")
    fresh = (new.removesuffix("\n") if ends else new).split("\n") if new else []
    if not ends and not new:
        fresh = [""]
    for place in reversed(apart):
        there = lines[place : place + len(wanted)]
        lines[place : place + len(wanted)] = indented_like(there, wanted, fresh)
    return Replaced("\n".join(lines), len(apart), loosely=True)


def _places(lines: list[str], wanted: list[str], start: int) -> list[int]:
    """Also those that overlap. No line is looked at twice: `falls` says how much of what fitted still does
    where the next line does not (Knuth, Morris and Pratt)."""
    if not wanted:
        return list(range(start, len(lines) + 1))
    falls, found, fits = _falls(wanted), list[int](), 0
    for at in range(start, len(lines)):
        while fits and lines[at] != wanted[fits]:
            fits = falls[fits - 1]
        fits += lines[at] == wanted[fits]
        if fits == len(wanted):
            found.append(at + 1 - fits)
            fits = falls[-1]
    return found


def _falls(wanted: list[str]) -> list[int]:
    """For each beginning of the lines, the longest shorter one that it also ends with."""
    falls = [0]
    for line in wanted[1:]:
        fits = falls[-1]
        while fits and line != wanted[fits]:
            fits = falls[fits - 1]
        falls.append(fits + (line == wanted[fits]))
    return falls


def _occurrences(text: str, piece: str) -> int:
    """At least two where they overlap: `aa` is twice in `aaa`, and it is not clear which one is meant."""
    first = text.find(piece)
    if first < 0:
        return 0
    return max(text.count(piece), 1 if text.find(piece, first + 1) < 0 else 2)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
