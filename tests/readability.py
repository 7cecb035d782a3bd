"""Measure how readable texts for users are, and list the sentences that miss the style.

    python -m tests.readability [FILE …]       a table, page by page, against the targets
    python -m tests.readability --show FILE    each sentence that counts, with its reason
    python -m tests.readability --write        store today's counts: they can only fall

`tests/test_readability.py` compares the counts with `tests/readability.json`. A new page starts at zero.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "tests" / "readability.json"
TARGETS = {"you": 12.0, "passive": 9.0, "semicolon": 1.0, "stand-in": 0.5, "house word": 0.0, "long": 5.0}
LONGEST = 35  # words of a sentence
WORDS_PER_BLOCK = 150

# Generated from data.
_LEFT_OUT = {"docs/reference/rules.md"}
_IRREGULAR = (
    "begun|bound|broken|brought|built|cut|done|drawn|driven|found|forgotten|given|gone|held|hidden|kept|known|"
    "laid|left|lost|made|meant|paid|put|read|run|said|seen|sent|set|shown|spoken|split|stored|struck|taken|"
    "thrown|told|understood|withheld|written"
)
_PASSIVE = re.compile(
    rf"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:not\s+|never\s+|also\s+|\w+ly\s+)?(?:\w{{2,}}ed|{_IRREGULAR})\b",
    re.IGNORECASE,
)
_STAND_IN = re.compile(
    r"(?:^|[.:;,(]\s+|\b(?:and|or|but|that|if|than)\s+)(?:who|whoever|what|whatever)\s+(?!if\b|you\b|to\b|we\b|does\b|do\b|is\b\s*\?)\w+"
    r"|^Of\s+(?:a|an|the|those|what|these|several|one)\b",
    re.IGNORECASE,
)
HOUSE_WORDS = {
    r"\bsomebody(?: else)?(?:'s)?\b": "name the role: another user, a process",
    r"\bnobody(?:'s)?\b": "name the role, or say it is not running",
    r"\bwhoever\b": "name the role",
    r"\b(?:is|are|was|were) told\b": "receives, sees, is notified",
    r"\bhears? of\b": "receives, sees",
    r"\b(?:goes|go|went|going) on\b": "resumes, continues",
    r"\btak(?:es|e|en|ing) up\b": "resumes, continues",
    r"\banew\b": "again, regenerate",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\b(?:tak(?:e|es|en|ing)|took) back\b": "undo, revert",
    r"\bthe way back\b": "undo",
    r"\bat once\b": "immediately, at the same time",
    r"\ball the same\b": "anyway",
    r"\bany more\b": "no longer",
    r"\bis no [a-zA-Z]+\b": "is not valid, is invalid",
    r"\bthere is no\b": "unknown, not found",
    r"\bstands? in\b": "is in",
    r"\bbeside\b": "next to, in addition to",
    r"\bof (?:its|one's|his|her|their|your|our) own\b": "separate, custom, your",
    r"\bsums? up\b|\bsummed up\b": "summarize, compact",
    r"\bthoughts?\b": "reasoning",
    r"\bstrangers?\b": "unauthenticated client",
    r"\bset aside\b": "quarantined",
    r"\bhung up\b|\bhangs up\b": "disconnected",
    r"\bmany nodes\b": "multiple servers",
    r"\bworth trying again\b": "retryable",
    r"\bthe model in the box\b": "the bundled model",
}
_HOUSE = {re.compile(pattern, re.IGNORECASE): hint for pattern, hint in HOUSE_WORDS.items()}


@dataclass(slots=True, frozen=True)
class Finding:
    kind: str
    sentence: str
    hint: str = ""


@dataclass(slots=True)
class Page:
    """The prose of one file: sentences without code, tables, links and quotations of other texts."""

    name: str
    sentences: list[str]
    blocks: int = 0

    @property
    def words(self) -> int:
        return sum(len(sentence.split()) for sentence in self.sentences)

    def findings(self) -> Iterator[Finding]:
        for sentence in self.sentences:
            if len(sentence.split()) > LONGEST:
                yield Finding("long", sentence, f"{len(sentence.split())} words")
            for kind, found in (("passive", _PASSIVE), ("stand-in", _STAND_IN)):
                yield from (
                    Finding(kind, sentence, match.group(0).strip()) for match in found.finditer(sentence)
                )
            yield from (Finding("semicolon", sentence) for _ in range(sentence.count(";")))
            for pattern, hint in _HOUSE.items():
                yield from (
                    Finding("house word", sentence, f"{found.group(0)} → {hint}")
                    for found in pattern.finditer(sentence)
                )

    def counts(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.findings())

    @property
    def you(self) -> int:
        return sum(
            len(re.findall(r"\byou(?:r|rs|'re|'ve|'ll)?\b", one, re.IGNORECASE)) for one in self.sentences
        )


def markdown(name: str, text: str) -> Page:
    blocks = len(re.findall(r"^```\w+", text, re.MULTILINE))
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.DOTALL)
    sentences = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text):
        lines = [
            line for line in paragraph.splitlines() if not line.lstrip().startswith(("|", "#", "<", "!["))
        ]
        sentences += _sentences(" ".join(line.strip() for line in lines))
    return Page(name, sentences, blocks)


def _sentences(text: str) -> list[str]:
    text = re.sub(r"^(?:[-*]|\d+\.)\s+", "", text.strip())
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}", "", text)
    return [one.strip() for one in re.split(r"(?<=[.!?:])\s+(?=[A-Z\"'(])", text) if len(one.split()) > 2]


def texts(name: str, found: list[str]) -> Page:
    """Texts that a program shows, each a sentence or more."""
    return Page(name, [sentence for text in found for sentence in _sentences(text)])


def pages() -> Iterator[Page]:
    names = subprocess.run(
        [
            "git",
            "ls-files",
            "-co",
            "--exclude-standard",
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "docs/*.md",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in sorted(names):
        if name not in _LEFT_OUT and not name.startswith("docs/decisions/") and (ROOT / name).exists():
            yield markdown(name, (ROOT / name).read_text("utf-8"))
    yield texts("errors and notices", _english())
    yield texts(
        "web UI", re.findall(r'"((?:[^"\\]|\\.)*)"', (ROOT / "web/src/i18n/en.ts").read_text("utf-8"))
    )
    yield texts("help", _help())
    packages = [one for one in sorted((ROOT / "src/dragoman").iterdir()) if (one / "__init__.py").exists()]
    for package in packages:
        yield texts(f"comments in {package.name}", _comments(package.rglob("*.py")))
    yield texts("comments in dragoman", _comments((ROOT / "src/dragoman").glob("*.py")))


def _english() -> list[str]:
    from dragoman.english import ENGLISH

    return [text for text in ENGLISH.values() if " " in text]


def _help() -> list[str]:
    """Help of each command and option."""
    found: list[str] = []
    for file in sorted((ROOT / "src/dragoman/cli/flags").glob("*.py")):
        found += re.findall(r'help="((?:[^"\\]|\\.)*)"', file.read_text("utf-8"))
        found += re.findall(r'^class .*?\n    """(.*?)"""', file.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [" ".join(text.split()) for text in found]


def _comments(files: Iterable[Path]) -> list[str]:
    """Docstrings, and comments that are sentences: a comment after code may be a phrase."""
    found: list[str] = []
    for file in sorted(files):
        text = file.read_text("utf-8")
        found += [
            inspect.cleandoc(one) for one in re.findall(r'^ *r?"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
        ]
        found += [
            re.sub(r"\n *# ?", " ", one) for one in re.findall(r"^ *# (.+(?:\n *# .+)*)", text, re.MULTILINE)
        ]
        found += re.findall(r"\S  # ((?!noqa|type:|pragma|mypy:|ruff:).+)$", text, re.MULTILINE)
    return [" ".join(text.split()) for text in found]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("files", nargs="*")
    words.add_argument("--show", action="store_true", help="each sentence that counts")
    words.add_argument("--write", action="store_true", help="store today's counts")
    options = words.parse_args()
    found = [page for page in pages() if not options.files or page.name in options.files]
    if options.show:
        for page in found:
            for finding in page.findings():
                sys.stdout.write(f"{page.name}: {finding.kind}: {finding.hint}\n    {finding.sentence}\n")
        return
    if options.write:
        stored = {page.name: dict(sorted(page.counts().items())) for page in found}
        BASELINE.write_text(json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    sys.stdout.write(table(found))


def table(found: list[Page]) -> str:
    """Per 1,000 words, and words for each block of code."""
    kinds = list(TARGETS)
    head = f"{'page':34}{'words':>7}" + "".join(f"{kind:>11}" for kind in kinds) + f"{'per block':>11}\n"
    docs = [page for page in found if page.name.endswith(".md")]
    total = Page(
        "docs, all", [one for page in docs for one in page.sentences], sum(page.blocks for page in docs)
    )
    lines = [head]
    for page in [*found, total]:
        counts, size = {**page.counts(), "you": page.you}, max(page.words, 1)
        rates = "".join(f"{1000 * counts.get(kind, 0) / size:>11.1f}" for kind in kinds)
        lines.append(
            f"{page.name:34}{page.words:>7}{rates}{page.words / page.blocks if page.blocks else 0:>11.0f}\n"
        )
    goals = "".join(f"{goal:>11.1f}" for goal in TARGETS.values())
    return "".join(lines) + f"{'target':34}{'':>7}{goals}{WORDS_PER_BLOCK:>11}\n"


if __name__ == "__main__":
    main()
