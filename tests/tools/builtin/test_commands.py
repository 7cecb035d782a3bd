"""P1: each command of a shell line is judged by its own pattern, and an unreadable line is judged whole."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.messages.questions import Action, Rule
from dragoman.tools.builtin.shell import line_patterns, simple_commands
from dragoman.tools.permissions import decide
from tests.sweeps import examples

RULES = [
    Rule("shell", "git *", "allow"),
    Rule("shell", "ls *", "allow"),
    Rule("shell", "wc *", "allow"),
    Rule("shell", "git push *", "ask"),
    Rule("shell", "rm *", "deny"),
]


def action(line: str) -> Action:
    return decide("shell", line_patterns({"command": line}), RULES).action


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", ["git status"]),
        ("  git   status  ", ["git status"]),
        ("git status && rm -rf x", ["git status", "rm -rf x"]),
        ("a || b | c ; d\ne", ["a", "b", "c", "d", "e"]),
        ("a&&b;c|d", ["a", "b", "c", "d"]),
        ("ls;", ["ls"]),
        ("a &&\n\n b", ["a", "b"]),
        ("\"rm\" 'x y'", ["rm 'x y'"]),
        ("r''m x", ["rm x"]),
        ("git commit -m 'a && b; $(c) `d` > e'", ["git commit -m 'a && b; $(c) `d` > e'"]),
        ('git commit -m "a && b; c > e # f"', ["git commit -m 'a && b; c > e # f'"]),
        ("make 2>&1 | wc -l", ["make", "wc -l"]),
        ("make >/dev/null 2>&1", ["make"]),
        ("make 2> /dev/null; ls", ["make", "ls"]),
        ("cat ~/a é.txt", ["cat ~/a é.txt"]),
        ("echo ''", ["echo ''"]),
    ],
)
def test_plain_lines_are_taken_apart(line: str, commands: list[str]) -> None:
    """P1"""
    assert simple_commands(line) == commands


OPAQUE = [
    "git status $(rm -rf x)",
    "git status `rm -rf x`",
    'git status "$(rm -rf x)"',
    'git status "`rm -rf x`"',
    "git status & rm -rf x",
    "git status &",
    "git status |& tee x",
    "(git status)",
    "git status; (rm x)",
    "{ git status; }",
    "git status > x",
    "git status >> x",
    "git status >x",
    "git status 2>x",
    "git status >/dev/nullx",
    "git status >/dev/null/../x",
    "git status &> x",
    "git status >| x",
    "git apply < x",
    "git apply <<E\nx\nE",
    "git apply <<<x",
    "git diff <(ls)",
    "git $X",
    "git ${X}",
    'git "$X"',
    "git $'\\x41'",
    "git sta\\tus",
    "git status \\\n rm x",
    "git pus?",
    "git p*",
    "git [p]ush",
    "git {push,origin}",
    "git status # rm",
    "git status;; rm x",
    "git status; ; rm x",
    "git status &&",
    "git status |",
    "&& git status",
    "! git status",
    "git status 'open",
    'git status "open',
    "git status\r\nrm x",
    "git status\x0brm x",
    "git status\0rm x",
    "if git status; then rm x; fi",
    "git status; while ls; do rm x; done",
    "for x in a; do rm x; done",
    "time rm x",
    "~/git status",
    "git() rm",
    "git () { rm x; }",
    "git status 3>&1",
    "git status 1>&3",
    "git status>&2x",
    "",
    " \n ",
    ";",
]


@pytest.mark.parametrize("line", OPAQUE)
def test_what_is_not_plain_is_one_pattern_that_no_ordinary_rule_allows(line: str) -> None:
    """P1"""
    assert simple_commands(line) is None
    assert line_patterns({"command": line}) == [f"<{line}>"]
    assert action(line) == "ask"
    everything = decide("shell", line_patterns({"command": line}), [Rule("shell", "*", "allow")])
    assert everything.action == "allow"
    made_for_it = [Rule("shell", "*", "allow"), Rule("shell", "<*>", "ask")]
    assert decide("shell", line_patterns({"command": line}), made_for_it).action == "ask"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git status", "allow"),
        ("git", "allow"),
        ("git log | wc -l", "allow"),
        ("git status && rm -rf x", "deny"),
        ("git status\nrm -rf x", "deny"),
        ("git status && r'm' -rf x", "deny"),
        ("git status && curl x", "ask"),
        ("git status && git push origin", "ask"),
        ("git 'push' origin", "ask"),
        ("gitx status", "ask"),
        ("'git status' x", "ask"),
        ("PATH=. git status", "ask"),
        ("PATH=. ; git status", "ask"),
        ("cd / && git status", "ask"),
        ("alias git=curl\ngit status", "ask"),
    ],
)
def test_every_command_must_be_allowed(line: str, expected: Action) -> None:
    """`git *` does not allow `git status && rm -rf x` (P1)."""
    assert action(line) == expected


PIECES = [
    *("git", "rm", "x y", "'", '"', "''", "'a b'", '"c;d"', "$", "$(", ")", "`", "\\", "&", "&&", "|", "||"),
    *(";", "\n", " ", " ", " ", "<", ">", "2>&1", ">/dev/null", "*", "#", "{", "}", "!", "~", "=", "\t"),
    *("\r", "time", "if", "PATH=x"),
]
LINES = st.lists(st.sampled_from(PIECES), max_size=10).map("".join) | st.text(max_size=20)


@settings(max_examples=examples(100))
@given(LINES)
def test_what_is_taken_apart_is_what_the_standard_library_reads(line: str) -> None:
    """P1"""
    commands = simple_commands(line)
    if commands is None:
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words = [word for command in commands for word in shlex.split(command)]
    # separators between words (a quoted separator is a word)
    left_out = re.compile(r"[;&|\n]+|[12]|>&?|/dev/null")
    assert [token for token in lexer if not left_out.fullmatch(token)] == [
        word for word in words if not left_out.fullmatch(word)
    ]


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_no_shell_runs_a_command_that_the_rules_did_not_see(line: str) -> None:
    """The shell itself reports what it runs, in an environment where no command can run (P1)."""
    commands = simple_commands(line)
    if commands is None:
        return
    seen = {shlex.split(command)[0] for command in commands}
    with TemporaryDirectory() as empty:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env={"PATH": "/nowhere", "LANG": "C", "HOME": "/nowhere"},
            cwd=empty,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        assert not list(Path(empty).iterdir())
    assert "yntax" not in done.stderr
    for name in re.findall(r"(?:sh|\d+): (?:line \d+: )?(\S+): (?:command )?not found", done.stderr):
        assert name in seen
