"""Starts the terminal program, or says what has to be installed first."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from dragoman.installed import describe_missing


def run() -> None:
    """The entry point."""
    _repair_streams()
    try:
        from dragoman.cli.main import run as run_program

        run_program()
    except ImportError as error:  # also of a package that is too old
        if (missing := describe_missing(error.name or "")) is None:
            raise
        print(f"dragoman: {missing}", file=sys.stderr)
        sys.exit(2)


def _repair_streams() -> None:
    """A stream that is closed (`>&-`) is nowhere, so that no file that is opened next takes its number; a
    letter that the locale has not is a question mark, and not the end of the program."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            if (nowhere := os.open(os.devnull, os.O_RDWR)) != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
        elif number and isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    run()
