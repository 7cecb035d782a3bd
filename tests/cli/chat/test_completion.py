"""Check completions of a message while it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from dragoman.cli.chat.slash_commands import COMMANDS, ChatCompleter


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/mo", ["/model", "/mode"]),
        ("/mode a", ["auto", "ask"]),
        ("/cost x", []),
        ("/attach no", ["tes.txt"]),
        ("look at @no", ["tes.txt"]),
        ("look at @no\n", []),
        ("look at @my", ['"my letters', '"my notes.txt"']),
        ('look at @"my n', ['"my notes.txt"']),
        ('look at @"my letters/', ['"my letters/a.txt"']),
        ('look at @"my notes.txt" and', []),
        ("no", []),
        ("", []),
    ],
)
def test_commands_their_words_and_files_are_offered(
    typed: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("milk")
    (tmp_path / "my notes.txt").write_text("more milk")
    (tmp_path / "my letters").mkdir()
    (tmp_path / "my letters" / "a.txt").write_text("Dear milkman")
    monkeypatch.chdir(tmp_path)
    completer = ChatCompleter(
        {name: command.help for name, command in COMMANDS.items()}, {"mode": lambda: ["auto", "ask", "off"]}
    )
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [one.text for one in found] == offered
