"""Run the terminal program: `python -m dragoman`."""

from __future__ import annotations

from dragoman.cli.start import run

if __name__ == "__main__":
    run()
