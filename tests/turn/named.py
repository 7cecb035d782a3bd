"""Plugins with a name that write down what happens to them, in a diary they share."""

from __future__ import annotations

from dragoman import Plugin, TurnView
from dragoman.turn.plugin import Cleanup


class Named(Plugin):
    """A plugin that writes down what happens to it."""

    def __init__(self, name: str, diary: list[str]) -> None:
        self._name = name
        self.diary = diary

    @property
    def name(self) -> str:
        return self._name

    def note(self, what: str) -> None:
        self.diary.append(f"{self.name} {what}")


class Starts(Named):
    """Registers a cleanup that can fail, or fails itself."""

    def __init__(
        self, name: str, diary: list[str], *, fails: bool = False, cleanup_fails: bool = False
    ) -> None:
        super().__init__(name, diary)
        self.fails = fails
        self.cleanup_fails = cleanup_fails

    async def on_turn_start(self, turn: TurnView) -> Cleanup | None:
        self.note("starts")
        if self.fails:
            raise RuntimeError(f"{self.name} fails")

        async def cleanup() -> None:
            self.note("cleans up")
            if self.cleanup_fails:
                raise ValueError(f"{self.name} cleanup fails")

        return cleanup

    async def on_turn_end(self, turn: TurnView) -> None:
        self.note("ends")
