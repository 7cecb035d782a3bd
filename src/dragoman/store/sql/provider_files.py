"""Files that lie at providers, in rows."""

from __future__ import annotations

from dragoman.messages.provider_files import ProviderFile
from dragoman.store.sql.database import Row, SqlDatabase


class SqlProviderFiles(SqlDatabase):
    async def add_provider_file(self, file: ProviderFile, now: float) -> None:
        await self._run(
            "add_provider_file",
            account=file.account,
            blob=file.blob,
            id=file.id,
            expires=file.expires,
            created=now,
        )

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None:
        rows = await self._all("provider_file", account=account, blob=blob, now=now)
        return _file(rows[0]) if rows else None

    async def forget_provider_file(self, file: ProviderFile) -> None:
        await self._run("forget_provider_file", account=file.account, id=file.id)

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]:
        return [_file(row) for row in await self._all("unwanted_provider_files", now=now)]


def _file(row: Row) -> ProviderFile:
    return ProviderFile(row["account"], row["blob"], row["id"], row["expires"])
