"""MCP servers that are started as separate programs."""

from __future__ import annotations

from pathlib import Path

RAW = str(Path(__file__).parent / "raw.py")
MODERN = str(Path(__file__).parent / "modern.py")
