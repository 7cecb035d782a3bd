"""What read-only links show, as JSON that is made once for each change of their conversations."""

from __future__ import annotations

from collections import OrderedDict

from dragoman.background import in_thread
from dragoman.conversation.sharing import SharedState
from dragoman.conversation.tree import Tree
from dragoman.messages.message import canonical
from dragoman.store.store import Store
from dragoman.turn.api.shared_view import shown_to_anyone

_KEPT = 100  # since anyone may ask for them again and again


class SharedViews:
    """The views that were asked for last, and how many streams of them are open."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, tuple[object, str]] = OrderedDict()
        self.streams = 0

    async def of(self, store: Store, state: SharedState) -> str:
        share = state.share
        if share.frozen is not None:
            return share.frozen
        info = await store.conversation(share.conversation)
        private = canonical(info.settings.get("private"))
        now = (state.revision, info.leaf, info.title, private)
        made = self._made.get(share.id)
        if made is None or made[0] != now:
            messages, _ = await store.messages(share.conversation)
            path = Tree(messages).path(info.leaf)
            text = await in_thread(lambda: shown_to_anyone(info, path, share.upto, share.omits))
            made = self._made[share.id] = now, text
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made[1]
