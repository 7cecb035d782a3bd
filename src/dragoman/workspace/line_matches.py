"""Which lines of two texts are the same ones: near-linear, however often lines recur.

Lines that are on both sides equally often are paired first, and the longest run of pairs that do not cross
is kept. What lies between two of them is a smaller text of the same kind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]  # a line of the one text, and the same one in the other

_SMALL = 10_000  # lines times lines that difflib compares: its time grows with the cube of them


def matching_lines(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Pairs of equal lines, in order on both sides."""
    found: list[Pair] = []
    left = [(0, len(old), 0, len(new))]
    while left:
        i1, i2, j1, j2 = left.pop()
        while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
            found.append((i1, j1))
            i1, j1 = i1 + 1, j1 + 1
        while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
            i2, j2 = i2 - 1, j2 - 1
            found.append((i2, j2))
        a, b = old[i1:i2], new[j1:j2]
        if len(a) * len(b) <= _SMALL:
            found += [(i + i1, j + j1) for i, j in _compared(a, b)]
        elif anchors := _anchors(a, b):
            before = (i1 - 1, j1 - 1)
            for i, j in [*((i + i1, j + j1) for i, j in anchors), (i2, j2)]:
                left.append((before[0] + 1, i, before[1] + 1, j))
                before = (i, j)
            found += [(i + i1, j + j1) for i, j in anchors]
    return sorted(found)


def _compared(a: Sequence[str], b: Sequence[str]) -> Iterator[Pair]:
    for i, j, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        yield from ((i + place, j + place) for place in range(size))


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Lines that are there once on both sides; where there are none, those that are there equally often."""
    counts, others = Counter(a), Counter(b)
    once = [line for line, count in counts.items() if count == others[line] == 1]
    paired = set(once or (line for line, count in counts.items() if count == others[line]))
    places = _numbered(b, paired)
    return _longest_rising([(i, places[key]) for key, i in _numbered(a, paired).items()])


def _numbered(lines: Sequence[str], wanted: set[str]) -> dict[tuple[str, int], int]:
    """Where the first, the second … of each of these lines stands."""
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int], int] = {}
    for place, line in enumerate(lines):
        if line in wanted:
            found[line, seen[line]] = place
            seen[line] += 1
    return found


def _longest_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """As many as can be kept, in the order of the first side, so that the second side rises too."""
    ends: list[int] = []  # the least second side that a run of this length ends with
    last: list[int] = []  # the pair it ends with
    before: list[int] = []
    for place, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            last.append(place)
        else:
            ends[length], last[length] = j, place
    kept: list[Pair] = []
    place = last[-1] if last else -1
    while place >= 0:
        kept.append(pairs[place])
        place = before[place]
    return kept[::-1]
