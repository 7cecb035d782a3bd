"""Shortens a long output for the model: head and tail, with a note on what is missing."""

from __future__ import annotations


def bounded(text: str, call: str, max_lines: int, max_bytes: int) -> str:
    """The text itself if it is short enough, else its two ends. They never meet."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= max_lines and len(text.encode()) <= max_bytes:
        return text
    head = _fit(lines, max_lines // 2, max_bytes // 2, from_end=False)
    tail = _fit(lines, max_lines - max_lines // 2, max_bytes - max_bytes // 2, from_end=True)
    left_out = len(text) - len(head) - len(tail)
    note = (
        f"\n[… {left_out} of {len(text)} characters ({len(lines)} lines in all) are left out here; "
        f"read_output(call={call!r}, start=LINE) shows them …]\n"
    )
    return head + note + tail


def _fit(lines: list[str], max_lines: int, max_bytes: int, *, from_end: bool) -> str:
    """As many whole lines as fit. Where that leaves more than half the room, a piece of the next one too."""
    chosen: list[str] = []
    room = max_bytes
    for line in reversed(lines) if from_end else lines:
        size = len(line.encode())
        if len(chosen) == max_lines:
            break
        if size > room:
            if room > max_bytes // 2:
                data = line.encode()
                chosen.append((data[-room:] if from_end else data[:room]).decode(errors="ignore"))
            break
        chosen.append(line)
        room -= size
    return "".join(reversed(chosen) if from_end else chosen)
