"""Prints stored messages as they looked when they were new: for `dragoman show` and a reopened chat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text as Line

from dragoman.cli.terminal.cards import call_card, describe_file
from dragoman.cli.terminal.markdown import TerminalMarkdown
from dragoman.cli.terminal.sources import item_line, source_lines
from dragoman.cli.terminal.text import one_line, plain
from dragoman.messages.endings import ending_of
from dragoman.messages.message import Error, File, Message, ProviderItem, Reasoning, Summary, Text, ToolCall


def print_messages(console: Console, messages: Sequence[Message], *, thoughts: bool = False) -> None:
    for message, following in zip_longest(messages, messages[1:]):
        if message.role == "user":
            who = message.author or "you"
            console.print(Line(f"{one_line(who)}: ", "bold cyan"), end="")
            console.print(Line(plain(message.text).strip()))
            for file in message.files:
                console.print(Line(describe_file(file), "cyan"))
        else:
            _print_answer(console, message, thoughts)
            if (ending := ending_of(message, following)) is not None:
                console.print(Line(f"· {one_line(ending, 1000)}", "dim"))
        console.print()


def _print_answer(console: Console, message: Message, thoughts: bool) -> None:
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip() or part.citations:
                if text.strip():
                    source = plain(text)
                    console.print(TerminalMarkdown(source) if console.is_terminal else Line(source.strip()))
                for line in source_lines(part.citations):
                    console.print(Line(line, "dim"))
            case ProviderItem():
                console.print(Line(item_line(part.kind, part.text), "dim"))
            case Reasoning(text=text) if text.strip():
                seconds = f" for {part.seconds:.1f} s" if part.seconds is not None else ""
                shown = plain(text).strip() if thoughts else one_line(text.strip().partition("\n")[0], 100)
                console.print(Line(f"∴ thought{seconds}: {shown}", "dim"))
            case ToolCall():
                console.print(_card_of(part))
            case File():
                console.print(Line(describe_file(part), "cyan"))
            case Summary(text=text):
                console.print(Line(f"· what came before, summed up: {plain(text)}", "dim"))
            case Error(message=text):
                console.print(Line(f"error: {one_line(text, 2000)}", "red"))
            case _:
                pass


def _card_of(call: ToolCall) -> object:
    lasted = call.ended - call.started if call.started is not None and call.ended is not None else None
    return call_card(
        call.tool, call.arguments, call.state, call.result, seconds=lasted, original=call.original
    )
