"""What goes with a server that is taken out of the settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.stored_keys import forget_key
from dragoman.tools.mcp.references import secret_name


def forget_server(name: str, table: Mapping[str, Any], addresses: Collection[str | None]) -> None:
    """The secrets that were stored for it alone, and its login, unless a server that is left is at the same
    address. `table` is how its settings were written."""
    for kind in ("env", "headers"):
        for key, value in table.get(kind, {}).items():
            if value == f"${{{secret_name(name, key)}}}":
                forget_key(secret_name(name, key))
    url = table.get("url")
    if url and table.get("auth") and url not in addresses:
        from dragoman.tools.mcp.tokens import TokenStore  # with the SDK: slow

        TokenStore(url).forget()
