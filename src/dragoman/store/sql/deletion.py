"""Deletes conversations: hides them immediately, removes them in small steps, and continues after a crash."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound, StoreUnavailable
from dragoman.messages.message import ProviderFile
from dragoman.messages.usage import Spending
from dragoman.store.blobs.blobs import LARGE_AFAR, LARGE_HERE, Blobs, CachedBlobs, FallbackBlobs, is_key
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.place import NamedBlobs
from dragoman.store.sql.database import Operation, Row, SqlConnection, SqlDatabase
from dragoman.store.sql.people import SqlPeople, past_values
from dragoman.store.sql.rows import listed_conversation
from dragoman.store.store import Mention, UploadedFile
from dragoman.store.turns import KEPT

_STEP = 0.008  # Seconds after which a step lets others write.
_ROWS = 20  # Rows removed between two checks of the clock.
_UNUSED = 3600.0  # Seconds in which a message that references a blob may still arrive.
_UPLOADED = 24 * 3600.0  # The same for a blob without any reference so far.
_ABSENT = 3600.0  # Seconds after which presence in a conversation is dropped.
_EXPIRED = 24 * 3600.0  # Seconds to keep an expired rule, since another server's clock may be behind.
_OUT_OF_REACH = (
    90 * 24 * 3600.0
)  # Seconds after which a provider's file is abandoned that could not be deleted there.
_AT_ONCE = 500  # blobs per query

_log = logging.getLogger("dragoman.store")


class SqlDeletion(SqlPeople):
    async def delete_conversation(self, id: str) -> None:
        await self._delete(id)

    async def _delete(self, id: str, *, only_if: Operation[bool] = lambda db: True) -> list[str]:
        """Delete the conversation and those within it, unless `only_if` fails. Return the deleted ones.

        Their spending is kept.
        """
        within = [row["id"] for row in await self._all("within", id=id)]
        counted = {each: await self._read(partial(self._counted, each)) for each in within}

        def mark(db: SqlConnection) -> list[str]:
            if not only_if(db):
                return []
            inner = [row["id"] for row in db.execute(self._sql["within"], {"id": id}).fetchall()]
            for each in inner:
                key = {"id": each}
                spent = self._spent_until_now(db, each, counted.get(each))
                if not db.execute(self._sql["mark_deleted"], key).rowcount:
                    raise NotFound("conversation", each)
                for name in ("delete_live_turns", "delete_queue", "delete_grants", "delete_questions"):
                    db.execute(self._sql[name], key)
                for spending in spent:
                    db.execute(self._sql["keep_spending"], past_values(spending))
            return inner

        deleted = await self._write(mark)
        for each in deleted:
            given_up = await self._remove(each)
            try:
                await self._sweep_blobs(given_up)
            except StoreUnavailable as error:  # The conversation is gone. Its files are retried later.
                _log.warning("%s", error)
        return deleted

    def _counted(self, conversation: str, db: SqlConnection) -> tuple[int, list[Spending]]:
        """Return the spending in a conversation, and the revision for which it was counted."""
        with self._snapshot(db):
            row = db.execute(self._sql["conversation"], {"id": conversation}).fetchone()
            revision = row["revision"] if row is not None else -1
            return revision, self._present_spending(db, conversation=conversation)

    def _spent_until_now(
        self, db: SqlConnection, conversation: str, counted: tuple[int, list[Spending]] | None
    ) -> list[Spending]:
        """Return the spending counted earlier, in parallel with writes, since counting is slow.

        Count again if the conversation changed since.
        """
        row = db.execute(self._sql["lock_conversation"], {"id": conversation}).fetchone()
        if counted is not None and row is not None and counted[0] == row["revision"]:
            return counted[1]
        return self._present_spending(db, conversation=conversation)

    async def _claim_blobs(self) -> None:
        """Claim the blobs before a sweep, which must not remove blobs referenced by another store."""
        if self._named_blobs is not None:
            await self._named_blobs.claim(await self._write(self._identity))

    async def _finish_deletions(self) -> None:
        """Finish deletions of earlier processes and retry failed removals.

        Nothing is written if there is nothing to do, so that a process that only reads need not wait for
        writers.
        """
        for row in await self._all("deleted_conversations"):
            await self._remove(row["id"])
        await self._drop_expired_files(time.time())
        await self._sweep_blobs(_keys(await self._all("unwanted_blobs")))
        await self._sweep_uploads()
        now = time.time()
        if await self._all("old_send_keys", before=now - KEPT):
            await self._run("forget_send_keys", before=now - KEPT)
        if await self._all("expired_grants", now=now - _EXPIRED):
            await self._run("forget_expired_grants", now=now - _EXPIRED)
        if await self._all("old_shares", now=now):
            await self._run("forget_shares", now=now)
        if await self._all("old_presence", before=now - _ABSENT):
            await self._run("forget_presence", before=now - _ABSENT)
        out_of_reach = {"now": now, "before": now - _OUT_OF_REACH}
        if await self._all("lost_provider_files", **out_of_reach):
            await self._run("drop_provider_files", **out_of_reach)

    async def _drop_expired_files(self, now: float) -> None:
        def write(db: SqlConnection) -> None:
            for name in ("give_up_expired_files", "remove_expired_files"):
                db.execute(self._sql[name], {"now": now})

        if await self._all("expired_files", now=now):
            await self._write(write)

    async def _remove(self, conversation: str) -> list[str]:
        """Remove the conversation and return the blobs that have no reference left."""
        key = {"id": conversation}

        def last(db: SqlConnection) -> list[str]:
            given_up = _keys(db.execute(self._sql["give_up_blobs"], key).fetchall())
            db.execute(self._sql["remove_conversation"], key)
            return given_up

        while await self._write(lambda db: self._remove_some(db, conversation)):
            pass
        return await self._write(last)

    def _remove_some(self, db: SqlConnection, conversation: str) -> bool:
        """Remove some rows and return whether more are left."""
        end = time.perf_counter() + _STEP
        while self._remove_rows(db, {"id": conversation, "limit": _ROWS}):
            if time.perf_counter() > end:
                return True
        return False

    def _remove_rows(self, db: SqlConnection, key: Mapping[str, object]) -> bool:
        """Remove a batch and return whether there was one.

        Turns come first, since they reference messages.
        """
        if db.execute(self._sql["delete_some_turns"], key).rowcount:
            return True
        db.execute(self._sql["take_off_some_messages"], key)
        db.execute(self._sql["delete_turns_at_some_messages"], key)
        return bool(db.execute(self._sql["delete_some_messages"], key).rowcount)

    async def _sweep_blobs(self, blobs: Sequence[str]) -> None:
        """Remove the bytes of unreferenced blobs, except recently stored ones."""
        for start in range(0, len(blobs), _AT_ONCE):
            some = blobs[start : start + _AT_ONCE]
            rows = await self._all("unmentioned_blobs", blobs=json.dumps(some))
            free = {row["blob"] for row in rows}
            done = [
                blob
                for blob in some
                if blob not in free or await self._blobs.delete(blob, unused_for=_UNUSED)
            ]
            if done:
                await self._run("forget_unwanted", blobs=json.dumps(done))

    async def _sweep_uploads(self) -> None:
        """Remove blobs stored more than a day ago that have no reference."""
        before = time.time() - _UPLOADED
        if await self._all("old_uploads", before=before):
            await self._run("forget_uploads", before=before)
        since = await self._read(self._blobs_tracked_since)
        keys = [key async for key in self._blobs.keys(since=since)]
        for start in range(0, len(keys), _AT_ONCE):
            some = json.dumps(keys[start : start + _AT_ONCE])
            for row in await self._all("unmentioned_blobs", blobs=some):
                await self._blobs.delete(row["blob"], unused_for=_UPLOADED)


def _keys(rows: Sequence[Row]) -> list[str]:
    """Return the keys of the rows, without damaged ones."""
    return [row["blob"] for row in rows if is_key(row["blob"])]


# ── retention ─────────────────────────────────────────────────────────────────────────────────────
# Retention finds conversations without recent activity and deletes them like any other.


_PAGE = 100
_CHORE = "retention"


class SqlRetention(SqlDeletion):
    async def untouched(self, before: float) -> AsyncIterator[Conversation]:
        updated: float | None = None
        id: str | None = None
        while rows := await self._all(
            "untouched_conversations", before=before, updated=updated, id=id, limit=_PAGE
        ):
            for row in rows:
                conversation = listed_conversation(row)
                if await self._read(partial(self._is_untouched, conversation.id, before)):
                    yield conversation
            updated, id = rows[-1]["updated"], rows[-1]["id"]

    async def delete_untouched(self, before: float) -> list[str]:
        deleted: list[str] = []
        async with self._chore(_CHORE) as ours:
            if not ours:
                return deleted
            async for conversation in self.untouched(before):
                still = partial(self._is_untouched, conversation.id, before)
                deleted += await self._delete(conversation.id, only_if=still)
        return deleted

    def _is_untouched(self, id: str, before: float, db: SqlConnection) -> bool:
        """Return whether it and all conversations its calls opened are untouched.

        A user may write in those too, or pin one.
        """
        for row in db.execute(self._sql["within"], {"id": id}).fetchall():
            key = {"id": row["id"]}
            locked = db.execute(self._sql["lock_conversation"], key).fetchone()
            if locked is None or locked["pinned"] or locked["updated"] >= before:
                return False
            if db.execute(self._sql["is_at_work"], key).fetchone() is not None:
                return False
        return True


# ── files at providers ────────────────────────────────────────────────────────────────────────────
# Records files stored by providers.


_LATER = 0.001  # seconds


class SqlProviderFiles(SqlDatabase):
    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile:
        row = {"account": file.account, "id": file.id, "blob": file.blob, "expires": file.expires}

        def write(db: SqlConnection) -> ProviderFile:
            # Serialize access to this account.
            db.execute(self._sql["hold_account"], {"account": file.account})
            first = db.execute(self._sql["provider_file"], {**row, "now": now}).fetchone()
            created = now if first is None else max(now, first["created"] + _LATER)
            db.execute(self._sql["add_provider_file"], {**row, "created": created})
            return file if first is None else _file(first)

        return await self._write(write)

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None:
        rows = await self._all("provider_file", account=account, blob=blob, now=now)
        return _file(rows[0]) if rows else None

    async def forget_provider_file(self, file: ProviderFile) -> None:
        await self._run("forget_provider_file", account=file.account, id=file.id)

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]:
        return [_file(row) for row in await self._all("unwanted_provider_files", now=now)]


def _file(row: Row) -> ProviderFile:
    return ProviderFile(row["account"], row["blob"], row["id"], row["expires"])


# Stores attachments. Their bytes are among the blobs. Rows record who uploaded and what references them.


class SqlAttachments(SqlDatabase):
    def _place_blobs(self, own: Blobs, named: NamedBlobs | None) -> None:
        """Use the configured place. Blobs stored earlier are still among the database's own."""
        self._named_blobs = named
        large = LARGE_HERE if isinstance(named or own, FolderBlobs) else LARGE_AFAR
        self._blobs = CachedBlobs(own if named is None else FallbackBlobs(named, own), large=large)

    async def check_blobs(self) -> None:
        """Raise StoreUnavailable if the configured place is unusable."""
        if self._named_blobs is not None:
            await self._named_blobs.check()

    async def list_named_blobs(self) -> set[str]:
        """Return the keys of the blobs at the configured place."""
        if self._named_blobs is None:
            return set()
        keys = self._named_blobs.keys()
        return {key async for key in keys}

    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def put_blob_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._blobs.put_pieces(pieces)

    async def add_upload(self, blob: str, user: str, now: float) -> None:
        await self._run("add_upload", blob=blob, user=user, created=now)

    async def add_uploaded_file(self, file: UploadedFile, user: str, limit: int) -> bool:
        row = {"user": user, "limit": limit, **asdict(file)}

        def write(db: SqlConnection) -> bool:
            # Serialize access to this user's files.
            db.execute(self._sql["hold_account"], {"account": f"files of {user}"})
            return bool(db.execute(self._sql["add_file"], row).rowcount)

        return await self._write(write)

    async def uploaded_file(self, id: str, user: str, now: float) -> UploadedFile:
        for row in await self._all("file", id=id, user=user, now=now):
            return _uploaded(row)
        raise NotFound("file", id)

    async def uploaded_files(self, user: str, now: float) -> list[UploadedFile]:
        return [_uploaded(row) for row in await self._all("files", user=user, now=now)]

    async def remove_uploaded_file(self, id: str, user: str) -> None:
        key = {"id": id, "user": user}

        def write(db: SqlConnection) -> int:
            db.execute(self._sql["give_up_file"], key)
            return db.execute(self._sql["remove_file"], key).rowcount

        if not await self._write(write):
            raise NotFound("file", id)

    async def mentions(self, blob: str, user: str) -> list[Mention]:
        rows = await self._all("mentions", blob=blob, user=user)
        return [Mention(row["noun"], row["owner"]) for row in rows]

    async def blob(self, key: str) -> bytes:
        return await self._blobs.read(key)

    async def blob_size(self, key: str) -> int:
        return await self._blobs.size(key)

    def blob_pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        return self._blobs.pieces(key, start, end)


def _uploaded(row: Row) -> UploadedFile:
    return UploadedFile(**{field.name: row[field.name] for field in fields(UploadedFile)})
