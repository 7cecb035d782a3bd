"""Match lines against a regular expression for `grep`, in a separate process. Run as a program.

A regular expression can run forever, and Python's blocks every thread of its process meanwhile. So `grep`
matches in a process that can be killed. That process uses only the standard library and opens no file.
"""

from __future__ import annotations

import json
import re
import sys
from typing import BinaryIO

WIDTH = 300


def serve(texts: BinaryIO, answers: BinaryIO) -> None:
    """Read the pattern from the first line, then the length and the bytes of each text. Write one line per
    text."""
    asked = json.loads(texts.readline())
    pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    while length := texts.readline():
        hits = matches(pattern, texts.read(int(length)).decode(), asked["most"])
        answers.write(json.dumps(hits).encode() + b"\n")
        answers.flush()


def matches(pattern: re.Pattern[str], text: str, most: int) -> list[tuple[int, str]]:
    hits: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if len(hits) < most and (hit := pattern.search(line.removesuffix("\r"))):
            hits.append((number, _shown(line.removesuffix("\r"), hit.start())))
    return hits


def _shown(line: str, at: int) -> str:
    start = max(0, min(at - WIDTH // 3, len(line) - WIDTH))
    end = start + WIDTH
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
