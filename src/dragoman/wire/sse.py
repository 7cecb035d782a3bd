"""Splits a server-sent event stream, cut anywhere, into the data of its events.

Event names, ids and comments are dropped: every provider also writes into the data what kind of event it is.
"""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # how OpenAI and its imitators end a stream, and gateways those of others


class Splitter:
    """Feed it what the network gives; it returns the events that are complete. Nothing is decoded here,
    so half a character at a cut does no harm."""

    __slots__ = ("_after_cr", "_began", "_data", "_rest", "pending")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []  # the data lines of an event that has not ended yet
        self._after_cr = False  # the last chunk ended in CR: an LF that comes first belongs to it
        self._began = False
        self.pending = 0  # bytes of a line that has not ended yet

    def feed(self, chunk: bytes) -> list[bytes]:
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk[-1:] == b"\r"
        if not self._rest:
            lines = chunk.splitlines()
        elif b"\n" not in chunk and b"\r" not in chunk:  # a long line: joined once, when it is whole
            self._rest.append(chunk)
            self.pending += len(chunk)
            return []
        else:
            lines = chunk.splitlines()  # there is no end of a line in what came before
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest.clear()
        if lines and chunk[-1:] not in b"\r\n":
            self._rest.append(lines.pop())
        self.pending = len(self._rest[0]) if self._rest else 0
        return self._events(lines)

    def end(self) -> list[bytes]:
        """The last event of a stream that stopped without the blank line that was due."""
        lines = [b"".join(self._rest), b""]
        self._rest.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        if lines and not self._began:
            self._began = True
            lines[0] = lines[0].removeprefix(BOM)
        events = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                if event := (data[0] if len(data) == 1 else b"\n".join(data)).strip():
                    events.append(event)
                data.clear()
        return events
