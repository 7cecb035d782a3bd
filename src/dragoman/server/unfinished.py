"""A turn that is not over, as a snapshot shows it to who comes late."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman.messages.events import FilePartial
from dragoman.sentences import SaidFields, Spoken


@dataclass(slots=True)
class UnfinishedTurn(Spoken):
    """A turn that is not over. `queued`: it waits for a worker, or for a place under a limit. `interrupted`:
    nobody runs it; it can be continued, or cancelled."""

    id: str
    message: str
    state: str
    live: bool
    started: float
    retrying: str | None = None  # why its model is asked again, while that is waited for
    arriving: FilePartial | None = None  # how far a file has come that is being made
    said: SaidFields = field(default=None, compare=False)
