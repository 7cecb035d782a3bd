"""`python -m dragoman`: the terminal program."""

from __future__ import annotations

from dragoman.cli.start import run

if __name__ == "__main__":
    run()
