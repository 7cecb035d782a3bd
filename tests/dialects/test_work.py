"""No reply makes the scanner work out of proportion to its length."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile

import pytest

from dragoman.dialects.dialect import NAMES, Dialect, dialect
from tests.dialects.calls import ShownText
from tests.dialects.replies import TOOLS
from tests.sweeps import WHOLE, some

pytestmark = pytest.mark.slow

SOME = some(NAMES, 4)
some_dialects = pytest.mark.parametrize("language", [dialect(name) for name in SOME], ids=SOME)


def hard_words(language: Dialect) -> list[str]:
    """Words that, again and again, open something and never close it, or close what was never open."""
    openers = [*language.opens[:2], *language.drops[:1]]
    return [
        *openers,
        *(f'{opener}{{"' for opener in openers),
        *(f"`{opener}" for opener in openers),
        *(f" {opener} " for opener in openers),
        *(f"```py\nx{opener}" for opener in openers),
        *(f'{opener}{{"name": "a", "arguments": {{}}}} x ' for opener in openers),
        language.call("f", {"a": "}{"}),
        language.call("f", {"a": 1})[:-3],
        "{",
        '{"',
        '{"a": [',
        '{"tool_calls": [',
        "[a(",
        '"\\"',
        "```\n",
        "\n ` ",
        "<parameter=a>b</parameter>x",
        "<arg_key>a</arg_key><arg_value>b</arg_value>x",
    ]


def work(task: Callable[..., object], *arguments: object) -> int:
    """How many calls of functions it takes."""
    profile = Profile()
    profile.runcall(task, *arguments)
    return sum(function.callcount for function in profile.getstats())


@some_dialects
def test_a_reply_of_twice_the_length_is_twice_the_work(language: Dialect) -> None:
    words = hard_words(language)
    for word in some(words[NAMES.index(language.name) % 3 :], 3):  # over the dialects
        for head in ("", "`a ", language.call("read_file", {"path": ""})[:-6]):
            short, long = (work(language.parse, head + word * times, TOOLS) for times in (20, 40))
            assert long < 2.2 * short + 300, (head, word)


@some_dialects
def test_a_very_long_reply_comes_to_an_end(language: Dialect) -> None:
    size = 1_000_000 if WHOLE else 250_000
    argument = 'x"\\\n}{' * (size // 6)
    call = language.call("read_file", {"path": argument})

    assert language.parse("the quick brown fox < { [ ( ` jumps over it\n" * (size // 44), TOOLS).found == ()
    assert language.parse(call, TOOLS).calls[0].arguments == {"path": argument}

    shown_text = ShownText(language, TOOLS)
    shown = [shown_text.feed(call[at : at + 1000]) for at in range(0, len(call), 1000)]
    assert "".join([*shown, shown_text.end()]) == ""


@some_dialects
def test_a_piece_of_plain_prose_is_passed_on_with_little_work(language: Dialect) -> None:
    shown_text = ShownText(language, TOOLS)
    shown_text.feed("The")
    pieces = [" quick", " brown", " fox "] * 100

    assert work(lambda: [*map(shown_text.feed, pieces)]) < 12 * len(pieces)
