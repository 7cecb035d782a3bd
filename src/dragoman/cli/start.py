"""Starts the terminal program, or says what has to be installed first."""

from __future__ import annotations

import sys

from dragoman.extras import describe_missing


def run() -> None:
    """The entry point."""
    try:
        from dragoman.cli.main import run as run_program

        run_program()
    except ModuleNotFoundError as error:
        if (missing := describe_missing(error.name or "")) is None:
            raise
        print(f"dragoman: {missing}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run()
