"""Implements members, invitations and links, stored with the outermost conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.conversation.sharing import OMITTED, ROLES, Member, Present, Right, Role, Share, SharedState
from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest, NotFound, Unreadable
from dragoman.sentences import sentence
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import text_in

_NAMES: dict[Right, Role] = {right: role for role, right in ROLES.items()}


class SqlSharing(SqlDatabase):
    async def right_of(self, conversation: str, user: str) -> Right:
        return await self._read(lambda db: self._right_of(db, conversation, user))

    async def members(self, conversation: str) -> list[Member]:
        return self._readable(_member_of, await self._all("members", id=conversation))

    async def set_member(self, conversation: str, member: Member) -> None:
        await self._write(lambda db: self._set_member(db, self._root(db, conversation), member))

    async def remove_member(self, conversation: str, user: str) -> list[str]:
        def write(db: SqlConnection) -> list[str]:
            key = {"conversation": self._root(db, conversation)["id"], "user": user}
            if not db.execute(self._sql["remove_member"], key).rowcount:
                raise NotFound("member", user)
            return [row["id"] for row in db.execute(self._sql["turns_sent_by"], key).fetchall()]

        return await self._write(write)

    async def sent_by(self, conversation: str, user: str) -> list[str]:
        def read(db: SqlConnection) -> list[str]:
            root = db.execute(self._sql["root_of"], {"id": conversation}).fetchone()
            if root is None:
                raise NotFound("conversation", conversation)
            key = {"conversation": root["id"], "user": user}
            return [row["id"] for row in db.execute(self._sql["turns_sent_by"], key).fetchall()]

        return await self._read(read)

    async def transfer(self, conversation: str, to: str, at: float) -> None:
        def write(db: SqlConnection) -> None:
            root = self._root(db, conversation)
            id, before = root["id"], root["user"] or LOCAL
            if not db.execute(self._sql["remove_member"], {"conversation": id, "user": to}).rowcount:
                raise NotFound("member", to)
            for name in ("name_sender_of_turns", "name_sender_of_queue"):
                db.execute(self._sql[name], {"id": id, "sender": before})
            db.execute(self._sql["remove_shares_of_conversation"], {"id": id})
            db.execute(self._sql["set_owner"], {"id": id, "user": None if to == LOCAL else to})
            row = {"conversation": id, "user": before, "role": int(Right.TAKE_PART)}
            db.execute(self._sql["set_member"], {**row, "added_by": before, "added": at})

        await self._write(write)

    async def add_share(self, share: Share) -> None:
        row = {
            "id": share.id,
            "conversation": share.conversation,
            "hash": share.hash,
            "kind": share.kind,
            "role": int(ROLES[share.role]),
            "created_by": share.created_by,
            "created": share.created,
            "expires": share.expires,
            "upto": share.upto,
            "omits": json.dumps(share.omits),
            "frozen": share.frozen,
        }

        def write(db: SqlConnection) -> None:
            if self._root(db, share.conversation)["id"] != share.conversation:
                raise BadRequest(sentence("share.task"))
            db.execute(self._sql["add_share"], row)

        await self._write(write)

    async def shares(self, conversation: str, now: float) -> list[Share]:
        return self._readable(_share_of, await self._all("shares", id=conversation, now=now))

    async def share(self, hash: str, now: float) -> SharedState | None:
        for row in await self._all("share", hash=hash, now=now):
            return SharedState(_share_of(row), row["revision"], text_in(row["leaf"]), text_in(row["title"]))
        return None

    async def remove_share(self, conversation: str, share: str) -> None:
        await self._change("share", share, "remove_share", conversation=conversation)

    async def use_invitation(self, hash: str, user: str, now: float) -> str | None:
        def write(db: SqlConnection) -> str | None:
            row = db.execute(self._sql["share"], {"hash": hash, "now": now}).fetchone()
            if row is None or row["kind"] != "invitation":
                return None
            share = _share_of(row)
            root = self._root(db, share.conversation)
            if self._right_of(db, share.conversation, user) >= ROLES[share.role]:
                return share.conversation
            if not db.execute(self._sql["use_invitation"], {"id": share.id}).rowcount:
                return None
            self._set_member(db, root, Member(user, share.role, share.created_by, now))
            return share.conversation

        return await self._write(write)

    async def shared_among(self, conversations: Sequence[str]) -> set[str]:
        return {row["id"] for row in await self._all("shared_among", ids=json.dumps(list(conversations)))}

    async def note_presence(
        self, conversation: str, user: str, seen: float, typing: float | None = None
    ) -> None:
        await self._run("note_presence", conversation=conversation, user=user, seen=seen, typing=typing)

    async def presence(self, conversations: Sequence[str], since: float) -> list[Present]:
        rows = await self._all("presence", ids=json.dumps(list(conversations)), since=since)
        return [Present(row["conversation"], row["user"], row["typing"]) for row in rows]

    # ── inside a write ────────────────────────────────────────────────────────────────────────────

    def _right_of(self, db: SqlConnection, conversation: str, user: str) -> Right:
        row = db.execute(self._sql["right_of"], {"id": conversation, "user": user}).fetchone()
        if row is None:
            raise NotFound("conversation", conversation)
        if row["owner"] == user:
            return Right.OWN
        return Right(row["role"]) if row["role"] in (1, 2, 3) else Right.NONE

    def _root(self, db: SqlConnection, conversation: str) -> Row:
        """Return the root's row and lock its members and owner for this transaction."""
        row: Row | None = db.execute(self._sql["lock_root_of"], {"id": conversation}).fetchone()
        if row is None:
            raise NotFound("conversation", conversation)
        return row

    def _set_member(self, db: SqlConnection, root: Row, member: Member) -> None:
        if (root["user"] or LOCAL) == member.user:
            raise BadRequest(sentence("share.owner", user=member.user))
        row = {"conversation": root["id"], "user": member.user, "role": int(ROLES[member.role])}
        row |= {"added_by": member.added_by, "added": member.added}
        db.execute(self._sql["set_member"], row)


def _member_of(row: Row) -> Member:
    return Member(row["user"], _role_in(row, row["user"]), row["added_by"], row["added"])


def _share_of(row: Row) -> Share:
    omits = json.loads(row["omits"])
    return Share(
        id=row["id"],
        conversation=row["conversation"],
        hash=row["hash"],
        kind=row["kind"],
        role=_role_in(row, row["id"]),
        created_by=row["created_by"],
        created=row["created"],
        expires=row["expires"],
        upto=row["upto"],
        omits=tuple(one for one in OMITTED if one in omits),
        frozen=row["frozen"],
    )


def _role_in(row: Row, id: str) -> Role:
    for right, role in _NAMES.items():
        if right == row["role"]:
            return role
    raise Unreadable("member", id, "the role is unknown")
