"""What Tab offers while a message is typed in a chat: commands, their arguments, and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

Arguments = Callable[[], Iterable[str]]

_BEGUN = re.compile(r'(?<!\S)@(?:"([^"\n]*)|(\S*))\Z')  # a file that is being named, as in `attachments.py`
_TAKE_FILES = ("attach", "export")


class ChatCompleter(Completer):
    """`commands` are the words after a slash with their help, `arguments` what may follow one of them."""

    def __init__(self, commands: Mapping[str, str], arguments: Mapping[str, Arguments]) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/"):
            command, space, rest = text[1:].partition(" ")
            if not space:
                for name, help in self._commands.items():
                    if name.startswith(command):
                        yield Completion(f"/{name}", -len(text), display_meta=help)
            elif command in _TAKE_FILES:
                yield from self._files.get_completions(Document(rest), complete_event)
            elif command in self._arguments:
                for argument in self._arguments[command]():
                    if argument.startswith(rest):
                        yield Completion(argument, -len(rest))
            return
        if (mention := _BEGUN.search(text)) is not None:
            quoted, bare = mention.groups()
            begun = bare if quoted is None else quoted
            for found in self._files.get_completions(Document(begun), complete_event):
                path = begun + found.text
                if quoted is None and not any(sign.isspace() for sign in path):
                    yield found
                else:  # without quotes the name would end at its first space
                    end = "" if found.display_text.endswith("/") else '"'
                    yield Completion(f'"{path}{end}', 1 - len(mention[0]), display=found.display)
