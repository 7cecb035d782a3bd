"""Files that lie at providers, in rows."""

from __future__ import annotations

from dragoman.messages.provider_files import ProviderFile
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase

_LATER = 0.001  # seconds


class SqlProviderFiles(SqlDatabase):
    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile:
        row = {"account": file.account, "id": file.id, "blob": file.blob, "expires": file.expires}

        def write(db: SqlConnection) -> ProviderFile:
            db.execute(self._sql["hold_account"], {"account": file.account})  # one after the other
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
