"""Build the report of a run: passes, changes, divergences and cost."""

from __future__ import annotations

import math
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from pydantic import ValidationError

from dragoman.errors import ConfigError, NotFound
from dragoman.evaluation.case import Case
from dragoman.evaluation.expected import Answered, Divergence, Met, diverges
from dragoman.evaluation.stored_turns import with_texts
from dragoman.messages.codec import Codec
from dragoman.plugins.privacy import Mask

_Z = 1.96  # for a 95 % interval
_LONGEST = 2000  # maximum characters of a result in a report


@dataclass(slots=True, frozen=True, order=True)
class Variant:
    """A model with the names of a prompt and an agent."""

    model: str
    prompt: str = ""
    agent: str = ""

    def __str__(self) -> str:
        return " · ".join(one for one in (self.model, self.prompt, self.agent) if one)


@dataclass(slots=True, frozen=True)
class CaseRun:
    """One answer to one case. `skipped` says why there is no answer."""

    case: str
    variant: Variant
    repeat: int
    answered: Answered
    met: tuple[Met, ...] = ()
    cached: bool = False
    skipped: str = ""

    @property
    def passed(self) -> bool | None:
        """None if the case expects nothing or was skipped."""
        return all(one.passed for one in self.met) if self.met and not self.skipped else None

    @property
    def reasons(self) -> list[str]:
        return [f"{one.name}: {one.reason}" if one.reason else one.name for one in self.met if not one.passed]


@dataclass(slots=True, frozen=True)
class ReportCase:
    """The content of a case in a report."""

    id: str
    question: str
    labels: tuple[str, ...] = ()
    turn: str = ""


@dataclass(slots=True, frozen=True)
class PassRate:
    """How many answers passed, with a 95 % interval, and the share of cases that passed every time."""

    passed: int
    total: int
    low: float
    high: float
    every_time: float  # pass^k, where k is the number of repeats

    @property
    def rate(self) -> float:
        return self.passed / self.total if self.total else 0.0


@dataclass(slots=True, frozen=True)
class Changed:
    """A case whose result changed between passed and failed."""

    case: str
    variant: Variant
    better: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The answers of a run, and the same expectations applied to the recorded answers."""

    name: str
    created: float
    cases: tuple[ReportCase, ...]
    runs: tuple[CaseRun, ...]
    recorded: dict[str, CaseRun] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        created: float,
        cases: Iterable[Case],
        runs: Iterable[CaseRun],
        recorded: Iterable[CaseRun],
    ) -> Report:
        shown = tuple(
            ReportCase(
                one.id, one.messages[-1].text, one.labels, one.origin.turn if one.origin is not None else ""
            )
            for one in cases
        )
        return cls(
            name,
            created,
            shown,
            tuple(_shortened(one) for one in runs),
            {one.case: _shortened(one) for one in recorded},
        )

    @classmethod
    def load(cls, file: str | Path) -> Report:
        """Return a saved report. Raises ConfigError if the file is invalid."""
        try:
            return _REPORT.load(Path(file).read_bytes())
        except (OSError, ValidationError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise ConfigError(f"Cannot read the report '{file}': {why}. Run the cases again.") from error

    def save(self, folder: str | Path) -> Path:
        """Save the report atomically as `NAME.json`, and return the file."""
        file = Path(folder) / f"{self.name}.json"
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_text(self.json(), "utf-8", errors="replace")
        fresh.replace(file)
        return file

    def json(self) -> str:
        return _REPORT.dump(self)

    def masked(self, mask: Mask) -> Report:
        """Return the report with masks instead of private values, because reports are shared with other
        people."""
        return _REPORT.from_json(with_texts(_REPORT.to_json(self), mask.hide))

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def variants(self) -> list[Variant]:
        """The variants in the order of their requests."""
        return list(dict.fromkeys(one.variant for one in self.runs))

    @property
    def skipped(self) -> str:
        """A sentence about answers that were skipped, or an empty string."""
        skipped = sum(bool(one.skipped) for one in self.runs)
        return f"Not asked: {skipped} of {len(self.runs)}. The cost limit was reached." if skipped else ""

    @cached_property
    def _by_case(self) -> dict[tuple[str, Variant], list[CaseRun]]:
        found: dict[tuple[str, Variant], list[CaseRun]] = defaultdict(list)
        for one in self.runs:
            found[one.case, one.variant].append(one)
        return dict(found)

    def runs_of(self, case: str, variant: Variant) -> list[CaseRun]:
        return self._by_case.get((case, variant), [])

    def passes(self, case: str, variant: Variant) -> bool | None:
        """Return whether most answers passed. None if nothing was expected."""
        return _majority(self.runs_of(case, variant))

    def pass_rate(self, variant: Variant) -> PassRate:
        """Return the pass rate. The interval accounts for the similarity of answers to one case."""
        by_case = []
        for case in self.cases:
            passed = [one.passed for one in self.runs_of(case.id, variant) if one.passed is not None]
            if passed:
                by_case.append((sum(passed), len(passed)))
        right, total = (sum(column) for column in zip(*by_case, strict=True)) if by_case else (0, 0)
        low, high = _wilson(right / total, _independent(by_case)) if total else (0.0, 1.0)
        every = sum(passed == count for passed, count in by_case) / len(by_case) if by_case else 0.0
        return PassRate(right, total, low, high, every)

    def changes(self, earlier: Report | None = None) -> list[Changed]:
        """Return what changed compared with the recording, or with an earlier run."""
        found = []
        for case in self.cases:
            for variant in self.variants:
                now, runs = self.passes(case.id, variant), self.runs_of(case.id, variant)
                if earlier is None:
                    before = self.recorded[case.id].passed if case.id in self.recorded else None
                else:
                    before = _majority(earlier.runs_of(case.id, earlier.like(variant)))
                if now is not None and before is not None and now is not before:
                    reasons = [why for one in runs if one.passed is False for why in one.reasons]
                    found.append(Changed(case.id, variant, now, tuple(dict.fromkeys(reasons))))
        return found

    def like(self, variant: Variant) -> Variant:
        """Return the same variant. If there is only one, return that: its prompt can have changed in the
        settings."""
        return self.variants[0] if len(self.variants) == 1 else variant

    def divergence(self, run: CaseRun) -> Divergence | None:
        """Return the first call in which an answer differs from the recorded one, or None."""
        base = self.recorded.get(run.case)
        return diverges(base.answered, run.answered) if base is not None else None

    def failures(self) -> Iterator[tuple[CaseRun, str, list[str]]]:
        """Yield each case and variant with failed answers: the first failure, how many failed, and all
        reasons."""
        for runs in self._by_case.values():
            failed = [one for one in runs if one.passed is False]
            if failed:
                reasons = dict.fromkeys(reason for one in failed for reason in one.reasons)
                parts = self.divergence(failed[0])
                parted = [f"diverges at {parts}"] if parts is not None else []
                yield failed[0], f"{len(failed)} of {len(runs)}", [*reasons, *parted]

    def meets(self, threshold: float) -> bool:
        """Return whether every variant reaches this pass rate and nothing was skipped."""
        return not self.skipped and all(self.pass_rate(one).rate >= threshold for one in self.variants)

    def cost(self, variant: Variant) -> float | None:
        """Return the cost of a variant, or None if the price of a reply is unknown."""
        costs = [one.answered.cost for one in self.runs if one.variant == variant and not one.skipped]
        return None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs)

    def tokens(self, variant: Variant) -> int:
        return sum(one.answered.usage.total for one in self.runs if one.variant == variant)

    def seconds(self, variant: Variant) -> float:
        """Return the median seconds of a variant's answers."""
        found = [one.answered.seconds for one in self.runs if one.variant == variant and not one.skipped]
        return statistics.median(found) if found else 0.0

    def rows(self, earlier: Report | None = None) -> Iterator[tuple[str, ...]]:
        """Yield a line for each variant, with the columns of `HEADS`."""
        changes = self.changes(earlier)
        for variant in self.variants:
            rate, cost = self.pass_rate(variant), self.cost(variant)
            yield (
                str(variant),
                f"{rate.passed}/{rate.total}",
                f"{rate.rate:.0%} ({rate.low:.0%}–{rate.high:.0%})" if rate.total else "–",
                f"{rate.every_time:.0%}" if rate.total else "–",
                str(sum(one.better for one in changes if one.variant == variant)),
                str(sum(not one.better for one in changes if one.variant == variant)),
                f"{self.tokens(variant):,}",
                "unknown" if cost is None else f"${cost:.4f}",
                f"{self.seconds(variant):.1f} s",
            )

    # ── for other programs ────────────────────────────────────────────────────────────────────────

    def markdown(self, earlier: Report | None = None) -> str:
        """Return the report as Markdown for a pull request."""
        lines = [
            "### Evaluation",
            "",
            f"| {' | '.join(HEADS)} |",
            f"|{'---|' * len(HEADS)}",
            *(f"| {' | '.join(map(_cell, row))} |" for row in self.rows(earlier)),
        ]
        if self.skipped:
            lines += ["", self.skipped]
        changes = self.changes(earlier)
        than = "the recording" if earlier is None else f"`{earlier.name}`"
        for title, better in (("Worse", False), ("Better", True)):
            if chosen := [one for one in changes if one.better is better]:
                lines += ["", f"**{title} than {than}**", ""]
                lines += [f"- `{one.case}`, {one.variant}{_why(one.reasons)}" for one in chosen]
        failures = [*self.failures()]
        if failures:
            failed = sum(one.passed is False for one in self.runs)
            lines += ["", f"<details><summary>{failed} failed answers</summary>", ""]
            for one, often, reasons in failures:
                lines.append(f"- `{one.case}`, {one.variant}, {often}{_why(reasons)}.")
            lines += ["", "</details>"]
        return "\n".join(lines) + "\n"

    def junit(self) -> str:
        """Return the report as JUnit XML, with a suite for each variant and a test for each answer."""
        root = ElementTree.Element("testsuites", name=_xml(self.name))
        for variant in self.variants:
            runs = [one for one in self.runs if one.variant == variant]
            suite = ElementTree.SubElement(
                root,
                "testsuite",
                name=_xml(str(variant)),
                tests=str(len(runs)),
                failures=str(sum(one.passed is False for one in runs)),
                skipped=str(sum(one.passed is None for one in runs)),
                time=f"{sum(one.answered.seconds for one in runs):.3f}",
            )
            for one in runs:
                name = one.case if not one.repeat else f"{one.case} #{one.repeat + 1}"
                test = ElementTree.SubElement(
                    suite,
                    "testcase",
                    name=_xml(name),
                    classname=_xml(str(variant)),
                    time=f"{one.answered.seconds:.3f}",
                )
                if one.passed is False:
                    text = _xml("\n".join(one.reasons))
                    ElementTree.SubElement(test, "failure", message=text).text = _xml(one.answered.text)
                elif one.passed is None:
                    why = one.skipped or "nothing is expected"
                    ElementTree.SubElement(test, "skipped", message=why)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, "unicode")}\n'


HEADS = ("variant", "passed", "rate (95 %)", "every time", "better", "worse", "tokens", "cost", "median")
_REPORT: Codec[Report] = Codec(Report)


def reports_in(folder: str | Path) -> list[Path]:
    """Return the saved reports, oldest first."""
    found = [one for one in Path(folder).glob("*.json") if not one.name.startswith(".")]
    return sorted(found, key=lambda one: (one.stat().st_mtime, one.name))


def find_report(folder: str | Path, name: str) -> Path:
    """Return the report of this name, or the `last` one. Raises NotFound with the names of existing
    reports."""
    files = reports_in(folder)
    if name == "last" and files:
        return files[-1]
    named = [file for file in files if name == file.stem]
    if not named:
        known = ", ".join(file.stem for file in files[-5:]) or "none"
        raise NotFound("report", name, f"Reports in '{folder}': {known}.")
    return named[0]


def _majority(runs: Sequence[CaseRun]) -> bool | None:
    passed = [one.passed for one in runs if one.passed is not None]
    return 2 * sum(passed) > len(passed) if passed else None


def _independent(by_case: Sequence[tuple[int, int]]) -> float:
    """Return how many independent answers the runs are equivalent to: from one for each case up to all of
    them."""
    total = sum(count for _, count in by_case)
    rate = sum(passed for passed, _ in by_case) / total
    if len(by_case) < 2 or not 0 < rate < 1:
        return total if len(by_case) < 2 else len(by_case)
    spread = statistics.variance(passed / count for passed, count in by_case) / len(by_case)
    worth = rate * (1 - rate) / spread if spread else total
    return min(total, max(len(by_case), worth))


def _wilson(rate: float, count: float) -> tuple[float, float]:
    centre = (rate + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(rate * (1 - rate) / count + _Z**2 / (4 * count**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _shortened(run: CaseRun) -> CaseRun:
    """Shorten long results, because people read the report."""
    calls = tuple(
        replace(call, result=f"{call.result[:_LONGEST]}…")
        if isinstance(call.result, str) and len(call.result) > _LONGEST
        else call
        for call in run.answered.calls
    )
    return replace(run, answered=replace(run.answered, calls=calls))


def _why(reasons: Sequence[str]) -> str:
    return f": {_plain('; '.join(reasons))}" if reasons else ""


def _plain(text: str) -> str:
    """Return the text on one line and escaped, so that an answer cannot add markup to a pull request."""
    short = " ".join(text.split())[:400]
    return "".join(f"\\{one}" if one in "\\`*_[]<>#|!@" else one for one in short)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _xml(text: str) -> str:
    """Replace characters that XML cannot represent."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
