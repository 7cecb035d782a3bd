"""Names of files that become settings, code or prompt at a start, ours or others': writing is asked about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# What is loaded, or read as a prompt, at the next start, here or by other programs. Anywhere in a workspace:
# somebody may start the program in any folder of it.
NAMES = frozenset(("dragoman.toml", "tools", "plugins", "skills", ".dragoman", "agents.md", "claude.md"))
_SHORT = re.compile(r"dragom~\d")  # what Windows also calls .dragoman and dragoman.toml


def changes_program(permission: str, patterns: Sequence[str]) -> bool:
    """Whether a call that touches these paths could change what the program itself is made of."""
    if not permission.startswith("files.") or permission == "files.read":
        return False
    return any(is_protected(pattern) for pattern in patterns)


def is_protected(path: str) -> bool:
    """Whether a step of the path has one of the names, in any spelling that some file system takes for it."""
    return any(_bare(step) in NAMES or _SHORT.match(_bare(step)) for step in re.split(r"[/\\]", path))


def _bare(step: str) -> str:
    """Without what some file system overlooks: case, invisible characters, dots at the end, streams."""
    seen = "".join(one for one in unicodedata.normalize("NFKC", step) if unicodedata.category(one) != "Cf")
    return seen.casefold().partition(":")[0].rstrip(" .")
