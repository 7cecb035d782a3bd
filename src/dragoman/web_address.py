"""Addresses on the web, as people and other programs write them: taken apart, or said to be none."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from dragoman.sentences import sentence

_REFERENCE = re.compile(r"\$\{[^}]*\}")  # what is filled in later
_NO_HOST = re.compile(r"[\s\x00-\x1f\x7f\"<>\\^`{|}]")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")

WANTED = sentence("address.form")


def web_address(text: str, *, references: bool = False) -> SplitResult | None:
    """Its parts. None where no server can be there: another scheme, no host, a port or brackets that are
    none. With `references` it is one of the settings, where `${PORT}` stands for any word or number."""
    try:
        parts = urlsplit(_REFERENCE.sub("1", text) if references else text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return None
    return None if _NO_HOST.search(parts.netloc) else parts


def parse_path(text: str) -> str | None:
    """A path below which something is shown, as it stands before other paths: without a slash at its end.
    None for what is no such path. It is written into pages: nothing but plain signs."""
    path = text.strip().rstrip("/")
    return path if _PATH.fullmatch(path) and not {".", ".."} & set(path.split("/")) else None


def split_uri(uri: str) -> SplitResult:
    """The parts of a URI of any scheme, empty ones where it cannot be taken apart."""
    try:
        return urlsplit(uri)
    except ValueError:
        return urlsplit("")
