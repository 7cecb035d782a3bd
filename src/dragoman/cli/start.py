"""Start the terminal program, or print which packages must be installed first."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from dragoman.installed import describe_missing


def run() -> None:
    """Run the program."""
    _repair_streams()
    try:
        from dragoman.cli.main import run as run_program

        run_program()
    except ImportError as error:  # A package that is too old raises this, too.
        if (missing := describe_missing(error.name or "")) is None:
            raise
        print(f"dragoman: {missing}", file=sys.stderr)
        sys.exit(2)


def _repair_streams() -> None:
    """Replace closed streams (`>&-`) by the null device, so that no other file takes their number.

    Characters that the locale lacks are written as question marks instead of ending the program.
    """
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
