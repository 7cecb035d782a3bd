"""Names of files that other programs, or this one, execute or obey later: writing them is asked about.

What the settings start is no matter of names: `config/trust/programs.py` computes it from the settings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

# A step of a path with one of these names, and everything below it, anywhere in a workspace: a person may
# start the program that obeys it in any folder. Compared casefolded (`_bare`).
NAMES = frozenset(
    (
        # Dragoman loads these, or reads them as prompts; so do other agents.
        *("dragoman.toml", "tools", "plugins", "skills", ".dragoman", "agents.md", "claude.md", "gemini.md"),
        # Version control: its configuration and hooks name programs. Without a file named HEAD, no folder
        # can become a repository, whose configuration git would obey.
        *(".git", ".hg", ".svn", ".jj", "head", ".gitattributes", ".gitmodules", ".gitconfig", ".hgrc"),
        *(".githooks", ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
        *("lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook-local.yml"),
        *(".gitlab-ci.yml", ".circleci", ".vim"),
        # Editors and shells run tasks, settings or modelines of a folder that is opened or entered.
        *(".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".envrc", ".exrc"),
        *(".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el"),
        # Other agents start servers, hooks and commands from these, or obey them.
        *(".mcp.json", "mcp.json", ".claude", ".claude.json", ".cursor", ".cursorrules", ".windsurf"),
        *(".windsurfrules", ".clinerules", ".roo", ".continue", ".aider.conf.yml", ".gemini", ".codex"),
        *(
            "claude.local.md",
            "agents.override.md",
            "agent.md",
            "qwen.md",
            ".qwen",
            ".crush.json",
            "crush.json",
        ),
        *(".junie", ".goosehints", "mise.toml", ".mise.toml", ".bashrc", ".zshrc", ".zshenv", ".profile"),
        *(".bash_profile", ".ssh"),
        *(".opencode", "opencode.json", "opencode.jsonc", ".kiro", ".amazonq", "copilot-instructions.md"),
    )
)
_ENDS = (".git", ".code-workspace")  # a bare repository; the settings of an editor
_SHORT = re.compile(r"(?:dragom|git|hg|svn|jj)~\d")  # what Windows also calls .dragoman, .git and the like


def changes_program(permission: str, patterns: Sequence[str]) -> bool:
    """Whether a call that touches these paths could change what is executed or obeyed later."""
    return changes_files(permission) and any(is_protected(pattern) for pattern in patterns)


def changes_files(permission: str) -> bool:
    """Of files, everything but reading changes them: a tool of one's own may delete or move some."""
    return permission.startswith("files.") and permission != "files.read"


def is_protected(path: str) -> bool:
    """Whether a step of the path has one of the names, in any spelling that some file system takes for it."""
    steps = (_bare(step) for step in re.split(r"[/\\]", path))
    return any(step in NAMES or step.endswith(_ENDS) or _SHORT.match(step) for step in steps)


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
