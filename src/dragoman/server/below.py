"""The path below which a reverse proxy shows this server, put into the scope as ASGI says it."""

from __future__ import annotations

import re

from starlette.types import Scope

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def parse_path(text: str) -> str | None:
    """As it stands before our own paths, without a slash at its end. None for what is no such path."""
    path = text.strip().rstrip("/")
    # It is written into the page: nothing but plain signs.
    return path if _PATH.fullmatch(path) and not {".", ".."} & set(path.split("/")) else None


def put_below(scope: Scope, root: str) -> None:
    """Some proxies take the path off before they pass a request on, others do not."""
    path = str(scope["path"])
    if path == root:
        scope["path"] = f"{root}/"
    elif not path.startswith(f"{root}/"):
        scope["path"] = root + path
        if "raw_path" in scope:
            scope["raw_path"] = root.encode() + scope["raw_path"]
    scope["root_path"] = root
