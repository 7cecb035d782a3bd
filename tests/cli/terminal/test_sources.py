"""Check a provider's own steps and the sources of an answer, at the terminal and in an exported file."""

from __future__ import annotations

import io

from rich.console import Console

from dragoman.cli.terminal.screen import print_messages
from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Citation, Message, ProviderItem, Text
from dragoman.store.transfer import markdown

SOURCE = Citation("https://a.example", "A\x1b[31m page")
MESSAGE = Message(
    "msg_1",
    "conv_1",
    None,
    "assistant",
    (
        ProviderItem("web_search_call", "rain in Lyon"),
        Text("It rains.", (SOURCE, SOURCE, Citation(None, "notes.pdf"))),
    ),
    finish="stop",
)


def test_a_search_is_a_line_and_each_source_is_named_once() -> None:
    """W1: and nothing in a title reaches the terminal as a command."""
    output = io.StringIO()
    print_messages(Console(file=output, width=80), [MESSAGE])
    lines = output.getvalue().splitlines()
    assert "web_search_call: rain in Lyon" in lines[0]
    assert [line for line in lines if line.startswith("[")] == [
        "[1] A page · https://a.example",
        "[2] notes.pdf",
    ]


def test_an_exported_conversation_names_its_sources() -> None:
    """S4"""
    text = markdown(Conversation("conv_1", user="ada", created=1.0, updated=1.0), [MESSAGE])
    assert "*web_search_call:* rain in Lyon" in text
    assert text.count("](https://a.example)") == 1
    assert "- notes.pdf" in text
