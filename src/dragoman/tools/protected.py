"""Names of files that become settings, code or prompt at a start, ours or others': writing is asked about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

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


@lru_cache(4096)
def spellings(path: str) -> tuple[str, ...]:
    """The path without what some file system overlooks in names; the same without their streams; and both
    as from the root of a workspace. A rule that denies or asks holds for all files that may be meant."""
    steps = [step for step in re.split(r"[/\\]", path) if step not in ("", ".")]
    root = "/" if path[:1] in ("/", "\\") else ""
    known = ["/".join(filter(None, map(plain, steps))) for plain in (_folded, _bare)]
    return tuple(dict.fromkeys([*(root + text for text in known), *known]))


def _bare(step: str) -> str:
    """Folded, and without the name of a stream."""
    return _folded(step).partition(":")[0].rstrip(" .")


def _folded(step: str) -> str:
    """Without what some file system overlooks: case, other forms of a character, invisible ones, dots and
    spaces at the end."""
    if not step.isascii():
        normal = unicodedata.normalize("NFKC", step)
        step = "".join(one for one in normal if unicodedata.category(one) != "Cf")
    step = step.casefold()
    kept = step.rstrip(" .")
    return step if kept.endswith(("*", "?")) or step == ".." else kept  # `*.` is not every name
