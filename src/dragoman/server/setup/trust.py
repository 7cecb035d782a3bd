"""Route to see what the folders around the server bring, whether they are trusted, and what changed since."""

from __future__ import annotations

import asyncio

from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import FolderContents, inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.server.context import TheOwnSettings, api_router
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import FolderTrust, FolderTrustList

router = api_router("setup", "/setup")


@router.get("/trust")
async def trust(own: TheOwnSettings) -> FolderTrustList:
    """The folders that bring settings, tools or programs: trusted or not, and what changed since."""
    return FolderTrustList(await asyncio.to_thread(_folders, own))


def _folders(own: OwnSettings) -> list[FolderTrust]:
    """As the folders are now, which may be other than when the server started."""
    sources = own.settings.sources
    known = {one.contents.folder for one in sources.left_out}
    return [_view(inspect_project(folder)) for folder in sorted({*sources.folders, *known})]


def _view(contents: FolderContents) -> FolderTrust:
    answer = trust_answers().find(contents.folder)
    changes = answer.changes(contents) if answer is not None and answer.trusted else []
    view = FolderTrust(str(contents.folder), "not_trusted", summarise(contents), changes)
    if contents.unsafe is not None:
        view.state, view.reason = "unsafe", contents.unsafe
    elif answer is not None and answer.trusted:
        view.state = "trusted" if answer.covers(contents) else "changed"
    return view
