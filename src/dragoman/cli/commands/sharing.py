"""Run `dragoman share`: members of a conversation, invitations, and links that anyone can read with."""

from __future__ import annotations

import sys
from datetime import datetime

from pydantic import JsonValue

from dragoman.cli.flags.conversations import ShareFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import find_conversation, open_store
from dragoman.cli.terminal.tables import print_table
from dragoman.cli.terminal.text import one_line, plain, print_json
from dragoman.config.tables import parse_duration
from dragoman.conversation.sharing import OMITTED
from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest
from dragoman.runtime import Runtime
from dragoman.server.audit import audit
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.sharing import NewShare


async def share(flags: ShareFlags) -> None:
    """Apply the options in order, then list the shares, unless a token is printed."""
    seconds = _seconds(flags.expires)
    async with open_store(settings_for(flags)) as runtime:
        found = await find_conversation(runtime.store, flags.conversation)
        chat = await runtime.conversation(found.id)

        async def note(action: str, object: str = found.id, **details: JsonValue) -> None:
            await audit(runtime.store, action, person=LOCAL, address="", object=object, **details)

        if flags.user is not None:
            await _check_user(runtime, flags.user)
            await chat.share(flags.user, flags.role.value)
            await note("member.set", user=flags.user, role=flags.role.value)
        if flags.remove is not None:
            await chat.unshare(flags.remove)
            await note("member.removed", user=flags.remove)
        if flags.leave:
            await chat.unshare(LOCAL)
            await note("member.removed", user=LOCAL)
        if flags.transfer is not None:
            await chat.transfer(flags.transfer)
            await note("conversation.transferred", user=flags.transfer)
        if flags.revoke is not None:
            await chat.revoke_share(flags.revoke)
            await note("share.revoked", flags.revoke, conversation=found.id)
        if flags.invite:
            made = await chat.invite(flags.role.value, seconds=seconds)
            await note("share.made", made.share.id, conversation=found.id, kind="invitation")
            _print_token(made, "/#invitation=TOKEN in a browser, or POST /api/invitations/accept")
        if flags.link:
            omits = [one for one in OMITTED if one in (flags.omit or ())]
            made = await chat.link(upto=flags.upto, frozen=flags.frozen, omits=omits, seconds=seconds)
            await note("share.made", made.share.id, conversation=found.id, kind="link")
            _print_token(made, "/shared#TOKEN in a browser, or GET /api/shared/TOKEN")
        name = one_line(plain(found.title or "untitled"), 60)
        # `last` can be a conversation of another user.
        print(f"{found.id} of {found.owner}: {name}", file=sys.stderr)
        if flags.list_all or not (flags.invite or flags.link):
            await _list(chat, as_json=flags.json)


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"Invalid --expires {text!r}: {error}") from error


async def _check_user(runtime: Runtime, user: str) -> None:
    names = [LOCAL, *(one.name for one in await runtime.store.people())]
    if user not in names:
        raise BadRequest(
            f"Unknown user {user!r}. Users: {', '.join(names)}. Add one: `dragoman people add NAME`."
        )


def _print_token(made: NewShare, use: str) -> None:
    """Print the token alone on standard output, so that a script can read it."""
    print(made.token)
    until = datetime.fromtimestamp(made.share.expires or 0)
    words = (
        f"{made.share.id}: valid until {until:%Y-%m-%d %H:%M}. Use it with {use}. It cannot be shown again."
    )
    print(words, file=sys.stderr)


async def _list(chat: ConversationHandle, *, as_json: bool) -> None:
    owner, members, shares = (await chat.info()).owner, await chat.members(), await chat.shares()
    if as_json:
        print_json(
            {
                "owner": owner,
                "members": [{"user": one.user, "role": one.role, "added": one.added} for one in members],
                "shares": [
                    {"id": one.id, "kind": one.kind, "role": one.role, "expires": one.expires}
                    for one in shares
                ],
            },
            indent=2,
        )
        return
    rows = [(owner, "owns", ""), *((one.user, one.role, "") for one in members)]
    for one in shares:
        until = f"until {datetime.fromtimestamp(one.expires):%Y-%m-%d %H:%M}" if one.expires else ""
        rows.append((one.id, f"{one.kind}, {one.role}", until))
    print_table(("who", "role", "valid"), rows, folds=(), spare=(0,))
