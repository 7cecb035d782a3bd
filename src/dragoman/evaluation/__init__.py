"""Send stored conversations to other models, prompts and agents, and report what improved and worsened.

found = cases("evals") report = await run(found, models=["ollama/qwen3", "openai/gpt-5.4"], repeats=3)
print(report.markdown())
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.evaluation.case import Case, cases, save_cases
    from dragoman.evaluation.evaluate import Progress, run
    from dragoman.evaluation.expected import Expected, ExpectedCall, Rubric
    from dragoman.evaluation.report import CaseRun, Report
    from dragoman.evaluation.stored_turns import case_of_turn

# Each name is imported on first use: every pytest run loads the plugin that offers cases, but few runs need
# it.
_HOME = {
    "Case": "dragoman.evaluation.case",
    "CaseRun": "dragoman.evaluation.report",
    "Expected": "dragoman.evaluation.expected",
    "ExpectedCall": "dragoman.evaluation.expected",
    "Progress": "dragoman.evaluation.evaluate",
    "Report": "dragoman.evaluation.report",
    "Rubric": "dragoman.evaluation.expected",
    "case_of_turn": "dragoman.evaluation.stored_turns",
    "cases": "dragoman.evaluation.case",
    "run": "dragoman.evaluation.evaluate",
    "save_cases": "dragoman.evaluation.case",
}

__all__ = [
    "Case",
    "CaseRun",
    "Expected",
    "ExpectedCall",
    "Progress",
    "Report",
    "Rubric",
    "case_of_turn",
    "cases",
    "run",
    "save_cases",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman.evaluation' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
