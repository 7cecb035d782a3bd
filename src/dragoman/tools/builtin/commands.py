"""Splits a shell line into the simple commands it is made of, where that is certain.

Permission rules look at each command by itself. So only what every shell reads in the same way is taken
apart: plain words, quoted texts in which nothing is replaced, and `&&`, `||`, `|`, `;` and line ends
between commands. Everything else (`$`, backticks, `\\`, redirects to files, `( )`, `{ }`, `&`, `#`, `!`, and
`*`, `?`, `[`, which could become any word) is left alone.
"""

from __future__ import annotations

import re
import shlex

from dragoman.messages.message import Arguments
from dragoman.tools.permissions import literal

_PLAIN = r"[\w@%+=:,./~-]"
_WORD = re.compile(rf"""(?:{_PLAIN}|'[^'\0]*'|"[^"$`\\!\0]*")+(?=[ \t\n;|&]|$)""")
_HARMLESS = re.compile(r"[12]?>(?:&[12]|[ \t]*/dev/null)(?=[ \t\n;|&]|$)")  # redirects that touch no file
_BETWEEN = re.compile(r"[ \t]*(&&|\|\||[|;\n])[ \t\n]*")
_BLANK = re.compile(r"[ \t]*")
_ASSIGNMENT = re.compile(r"\w+\+?=")  # `X=1 rm y` runs rm
_KEYWORDS = frozenset(
    {"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select"}
    | {"then", "time", "until", "while"}
)


def line_patterns(arguments: Arguments) -> list[str]:
    """What rules see of a shell call: each command; or the whole line in `< >`, which only a pattern that
    is made for it, or for everything, matches."""
    line = str(arguments.get("command", ""))
    return simple_commands(line) or [f"<{line}>"]


def wider_lines(arguments: Arguments) -> list[str]:
    """`git status *` and `git *` for `git status --short`. Nothing where several commands are called."""
    commands = simple_commands(str(arguments.get("command", ""))) or []
    if len(commands) != 1:
        return []
    words = [literal(word) for word in commands[0].split(" ")]
    return [f"{' '.join(words[:count])} *" for count in (2, 1) if count <= len(words)]


def simple_commands(line: str) -> list[str] | None:
    """Each command in its one spelling: `"rm"  'x y'` is `rm 'x y'`."""
    line = line.strip(" \t\n")
    commands: list[str] = []
    at = 0
    while at < len(line):
        words, at = _words(line, at)
        if not words or words[0] in _KEYWORDS or words[0].startswith("~") or _ASSIGNMENT.match(words[0]):
            return None  # a name that becomes another one, or none at all, is no name for a rule
        commands.append(" ".join(map(_quoted, words)))
        between = _BETWEEN.match(line, at)
        if between is None:
            return commands if at == len(line) else None
        at = between.end()
        if at == len(line) and between[1] != ";":
            return None
    return commands or None


def _words(line: str, at: int) -> tuple[list[str], int]:
    """The words from here on, and where the first thing stands that is none."""
    words: list[str] = []
    while True:
        at = _BLANK.match(line, at).end()  # type: ignore[union-attr]  # it matches the empty text, too
        if redirect := _HARMLESS.match(line, at):
            at = redirect.end()
        elif word := _WORD.match(line, at):
            words.append(_unquoted(word[0]))
            at = word.end()
        else:
            return words, at


def _unquoted(word: str) -> str:
    return re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda quoted: quoted[1] or quoted[2] or "", word)


def _quoted(word: str) -> str:
    return word if re.fullmatch(rf"{_PLAIN}+", word) else shlex.quote(word)
