"""The path below which a reverse proxy shows this server, put into the scope as ASGI says it."""

from __future__ import annotations

from starlette.types import Scope


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
