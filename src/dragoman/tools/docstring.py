"""Reads what a tool and each of its parameters is for out of a docstring."""

from __future__ import annotations

import re
import textwrap


def summary(docstring: str) -> str:
    """The docstring less its parameter list: what a model reads the tool is for."""
    section = r"^(?:Args|Arguments|Parameters|Returns|Yields|Raises):[ \t]*$"
    line = r"^[ \t]*:(?:param|type|returns?|rtype|raises)\b"
    return re.split(f"{section}|{line}", docstring, flags=re.MULTILINE)[0].strip()


def descriptions(docstring: str) -> dict[str, str]:
    """The description of each parameter: in an `Args:` section, or in `:param name:` lines."""
    found = {**_in_section(docstring), **_in_lines(docstring)}
    return {name: " ".join(text.split()) for name, text in found.items()}


def _in_section(docstring: str) -> dict[str, str]:
    heading = r"^(?:Args|Arguments|Parameters):[ \t]*\n"
    section = re.search(heading + r"((?:[ \t]+\S.*\n?|[ \t]*\n)+)", docstring, re.MULTILINE)
    return _named(r"^(\w+)[ \t]*(?:\([^)\n]*\))?:", textwrap.dedent(section[1])) if section else {}


def _in_lines(docstring: str) -> dict[str, str]:
    found = _named(r"^[ \t]*:param[ \t]+(?:[^:\n]*[ \t])?(\w+):", docstring)
    return {name: re.split(r"\n[ \t]*(?::|\n)", text)[0] for name, text in found.items()}


def _named(name: str, text: str) -> dict[str, str]:
    """Each text between two names, under the name before it."""
    pieces = re.split(name, text, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))
