"""Forks: the path to a message as a conversation of its own, with a folder of its own if that is wanted."""

from __future__ import annotations

from dragoman.conversation.tree import Conversation, Tree, copied
from dragoman.messages.ids import new_id
from dragoman.turn.handoff import settings_at
from dragoman.turn.services import Services
from dragoman.turn.way_back import WayBack
from dragoman.workspace.workspaces import OWN


async def fork_conversation(
    services: Services, way_back: WayBack, conversation: str, message: str, *, own_folder: bool
) -> str:
    """→ the id of the fork. It begins with the agent that answered there. Where the conversation has a folder
    of its own, the fork gets one, too: deleting one of the two must not take the files of the other."""
    store, now = services.store, services.clock()
    messages, _ = await store.messages(conversation)
    info = await store.conversation(conversation)
    id = new_id("conv")
    path = Tree(messages).path(message)
    copies = copied(path, id)
    settings = await settings_at(services, info.settings, messages, path)
    named = settings.get("workspace")
    name = named if isinstance(named, str) else None
    copied_folder = own_folder or (name is not None and name.endswith(OWN))
    if copied_folder:
        settings["workspace"] = await way_back.copy_for(id, conversation, message, name)
    forked = Conversation(
        id,
        title=info.title,
        leaf=copies[message].id,
        user=info.user,
        settings=settings,
        created=now,
        updated=now,
    )
    try:
        await store.add_conversation(forked, list(copies.values()))
    except BaseException:
        if copied_folder:
            await way_back.forget([id])
        raise
    return id
