"""How a person goes through a diff hunk by hunk before a write is allowed: make it, leave it out, edit it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from dragoman.cli.terminal.cards import render_diff
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.workspace.hunks import HunkChoices, shown_hunks

_KEYS = "y make it · n leave it out · e edit it · a this and all after it · d none of the rest"


async def pick_hunks(diff: str, console: Console, keyboard: Keyboard) -> HunkChoices:
    """`Interrupted` where the person goes back to the question."""
    hunks = shown_hunks(diff)
    chosen: dict[int, str | None] = {}
    for place, hunk in enumerate(hunks):
        if place == 0 or hunks[place - 1].head != hunk.head:
            console.print(render_diff(hunk.head))
        console.print(render_diff(hunk.text))
        console.print(Text(_KEYS, "yellow"))
        match await _key(f"{place + 1} of {len(hunks)}: ", keyboard):
            case "y":
                chosen[place] = None
            case "e":
                chosen[place] = await keyboard.edit(hunk.new, "change")
            case "a":
                return {**chosen, **dict.fromkeys(range(place, len(hunks)))}
            case "d":
                return chosen
    return chosen


async def _key(prompt: str, keyboard: Keyboard) -> str:
    while (key := (await keyboard.line(prompt)).strip().lower()[:1]) not in ("y", "n", "e", "a", "d"):
        pass
    return key
