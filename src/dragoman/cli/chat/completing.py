"""What is typed so far in, how it may go on out: commands, their words, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

Words = Callable[[], Iterable[str]]

_PATHS = ("attach", "export")


class Completing(Completer):
    """`commands` are the words after a slash, `words` what may follow one of them."""

    def __init__(self, commands: Mapping[str, str], words: Mapping[str, Words]) -> None:
        self._commands = commands
        self._words = words
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/"):
            command, space, rest = text[1:].partition(" ")
            if not space:
                for name, told in self._commands.items():
                    if name.startswith(command):
                        yield Completion(f"/{name}", -len(text), display_meta=told)
            elif command in _PATHS:
                yield from self._files.get_completions(Document(rest), complete_event)
            elif command in self._words:
                for word in self._words[command]():
                    if word.startswith(rest):
                        yield Completion(word, -len(rest))
            return
        last = text.split()[-1] if text and not text[-1].isspace() else ""
        if last.startswith("@"):
            yield from self._files.get_completions(Document(last[1:]), complete_event)
