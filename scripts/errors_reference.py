"""Generate the reference of every error in `docs/reference/errors.md` from the code, between the two marks.

python scripts/errors_reference.py docs/reference/errors.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from dragoman import errors
from dragoman.cli.terminal.text import exit_status
from dragoman.errors import DragomanError, ProviderError, ToolFailed
from dragoman.server import problems
from dragoman.wire.provider_errors import KINDS, ErrorKind

BEGIN = "<!-- made by `python scripts/errors_reference.py`: change the code, not this -->"
END = "<!-- the reference ends -->"
# raised while a turn runs, so they are never the response to a request
_IN_THE_TURN = (ProviderError, ToolFailed)
_SCOPE = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}


def reference() -> str:
    kinds = [_row("kind", "provider's HTTP status", "asked again", "hint"), "|---|---|---|---|"]
    return "\n".join(
        [
            *(line for error in _in_order(DragomanError) for line in _section(error)),
            "## Kinds of provider errors",
            "",
            "A `ProviderError` has a `kind`. The table has those of a provider. The others:",
            "",
            "- a failed connection: `connection`, `timeout`, `redirect`, `no_stream`, `unfinished`, "
            "`garbled`, `too_large`",
            "- another refusal of the provider: `invalid_request`",
            "- a daily limit of yours: `limit`",
            "- a script or recording that ran out: `provider`, `recording`",
            "",
            *kinds,
            *(_kind(kind) for kind in KINDS),
        ]
    )


def _in_order(error: type[DragomanError]) -> Iterator[type[DragomanError]]:
    """Return the errors in the order of the tree at the top of `errors.py`."""
    yield error
    for inner in error.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from _in_order(inner)


def _section(error: type[DragomanError]) -> Iterator[str]:
    when, advice = _words(error)
    sample = _sample(error)
    family = [one.__name__ for one in error.__mro__[1:] if issubclass(one, DragomanError)]
    rows = {
        "is a": ", ".join(f"`{name}`" for name in family),
        "raised when": when,
        "what to do": advice,
        "fields": ", ".join(f"`{name}`" for name in vars(sample)),
        "over HTTP": _over_http(sample),
        "exit status": str(exit_status(sample)),
    }
    if error is DragomanError:
        del rows["over HTTP"], rows["exit status"]
    yield from [f"## `{error.__name__}`", "", "| | |", "|---|---|"]
    yield from (_row(name, words) for name, words in rows.items() if words)
    yield ""


def _words(error: type[DragomanError]) -> tuple[str, str]:
    """The two paragraphs of its docstring."""
    paragraphs = inspect.cleandoc(error.__doc__ or "").split("\n\n")
    if len(paragraphs) != 2:
        raise SystemExit(f"{error.__name__}: the docstring says when it is raised and, apart, what to do")
    when, advice = (" ".join(one.split()) for one in paragraphs)
    return when, advice


def _sample(error: type[DragomanError]) -> DragomanError:
    """Return an error with made-up arguments, to read its attributes and its HTTP response from it."""
    if "__init__" not in vars(error):
        own = next(one for one in error.__mro__ if "__init__" in vars(one))
        if own is Exception:
            return error("…")
    hints = get_type_hints(error.__init__)
    needed = [
        one for one in inspect.signature(error).parameters.values() if one.default is inspect.Parameter.empty
    ]
    return error(*(_value(hints[one.name]) for one in needed))


def _value(kind: Any) -> Any:
    if get_origin(kind) is not None and issubclass(get_origin(kind), Sequence):
        return [("a.txt", "changed")] if get_args(kind) else []
    return kind(1) if kind is int else kind("…")


def _over_http(sample: DragomanError) -> str:
    """Return the responses of the server's own handlers."""
    if isinstance(sample, _IN_THE_TURN):
        return "no answer of its own: the event `error`, or the result of the call"
    app = FastAPI()
    problems.install(app)
    handler: Any = next(
        app.exception_handlers[one] for one in type(sample).__mro__ if one in app.exception_handlers
    )
    if handler is app.exception_handlers[Exception]:
        return "500; the reason is in the server's log alone"
    problems.log.disabled = True  # not an error
    response: Response = handler(Request(_SCOPE), sample)
    problems.log.disabled = False
    after = response.headers.get("retry-after")
    return f"{response.status_code}" + (", with `retry-after`" if after else "")


def _kind(kind: ErrorKind) -> str:
    return _row(
        f"`{kind.name}`", _ranges(sorted(kind.statuses)), "yes" if kind.retryable else "no", kind.hint or ""
    )


def _ranges(numbers: list[int]) -> str:
    """409, 500–599"""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(
        f"{first}" if first == last else f"{first}–{last}" for first, last in zip(starts, ends, strict=True)
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rewrite(text: str) -> str:
    """The page with the reference as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def main(pages: Iterator[str]) -> None:
    for page in map(Path, pages):
        page.write_text(rewrite(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(iter(sys.argv[1:]))
