"""Shows what the folders around the server bring, whether they are trusted, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import FolderContents, inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.shapes import FolderTrust


def list_trust(own: OwnSettings) -> list[FolderTrust]:
    """As the folders are now, which may be other than when the server started."""
    return [_view(contents) for contents in _folders(own)]


def _folders(own: OwnSettings) -> Iterator[FolderContents]:
    sources = own.settings.sources
    known = {one.contents.folder for one in sources.left_out}
    for folder in sorted({*sources.folders, *known}):
        yield inspect_project(folder)


def _view(contents: FolderContents) -> FolderTrust:
    answer = trust_answers().find(contents.folder)
    changes = answer.changes(contents) if answer is not None and answer.trusted else []
    view = FolderTrust(str(contents.folder), "not_trusted", summarise(contents), changes)
    if contents.unsafe is not None:
        view.state, view.reason = "unsafe", contents.unsafe
    elif answer is not None and answer.trusted:
        view.state = "trusted" if answer.covers(contents) else "changed"
    return view
