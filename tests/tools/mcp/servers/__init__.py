"""Servers that are started as programs of their own."""

from __future__ import annotations

from pathlib import Path

RAW = str(Path(__file__).parent / "raw.py")
MODERN = str(Path(__file__).parent / "modern.py")
