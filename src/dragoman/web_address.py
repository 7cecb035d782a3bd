"""Parse web addresses that users and other programs write, and detect invalid ones."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from dragoman.sentences import sentence

_REFERENCE = re.compile(r"\$\{[^}]*\}")  # replaced later by a value
_NO_HOST = re.compile(r"[\s\x00-\x1f\x7f\"<>\\^`{|}]")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")

WANTED = sentence("address.form")


def web_address(text: str, *, references: bool = False) -> SplitResult | None:
    """Return the parts of an address. None if no server can be there: an unsupported scheme, no host, or an
    invalid port or brackets. With `references`, `${PORT}` in settings stands for any word or number."""
    try:
        parts = urlsplit(_REFERENCE.sub("1", text) if references else text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return None
    return None if _NO_HOST.search(parts.netloc) else parts


def parse_path(text: str) -> str | None:
    """Return a path prefix without a slash at its end, or None if it is invalid. It is written into HTML, so
    only safe characters are allowed."""
    path = text.strip().rstrip("/")
    return path if _PATH.fullmatch(path) and not {".", ".."} & set(path.split("/")) else None


def split_uri(uri: str) -> SplitResult:
    """Return the parts of a URI of any scheme. They are empty if it is invalid."""
    try:
        return urlsplit(uri)
    except ValueError:
        return urlsplit("")
