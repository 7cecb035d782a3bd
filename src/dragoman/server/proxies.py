"""Determine the address and path of a request, from the connection or from a trusted proxy's headers."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import Scope

from dragoman.errors import ConfigError
from dragoman.web_address import parse_path


def put_below(scope: Scope, root: str) -> None:
    """Set the path prefix of a request. Some proxies remove it before they forward the request, others do
    not."""
    path = str(scope["path"])
    if path == root:
        scope["path"] = f"{root}/"
    elif not path.startswith(f"{root}/"):
        scope["path"] = root + path
        if "raw_path" in scope:
            scope["raw_path"] = root.encode() + scope["raw_path"]
    scope["root_path"] = root


log = logging.getLogger("dragoman.server")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The trusted proxies. By default, none is trusted."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._networks = tuple(_network(name) for name in names)
        self._warned = False

    def __contains__(self, address: str) -> bool:
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def resolve(self, scope: Scope) -> None:
        """Update the scope with a trusted proxy's headers: the client's address, the scheme and the path
        prefix."""
        peer = scope.get("client")
        headers = Headers(scope=scope)
        if peer is None or peer[0] not in self:
            if not self._warned and "x-forwarded-for" in headers:
                self._warned = True
                where = peer[0] if peer else "nowhere"
                log.warning(
                    "the proxy at %s is not in [server] proxies, so the server ignores its headers", where
                )
            return
        scope["client"] = (self._client(peer[0], headers.getlist("x-forwarded-for")), 0)
        scheme = ",".join(headers.getlist("x-forwarded-proto")).rpartition(",")[2].strip().lower()
        if scheme in ("http", "https"):
            scope["scheme"] = scheme
        below = parse_path(",".join(headers.getlist("x-forwarded-prefix")).rpartition(",")[2])
        if below is not None and not scope.get("root_path"):
            put_below(scope, below)

    def _client(self, peer: str, forwarded: list[str]) -> str:
        """Return the last address that is not a trusted proxy. Any client can have written those
        before it."""
        client = peer
        for text in reversed(",".join(forwarded).split(",")):
            address = parse_address(text.strip())
            if address is None:
                break
            client = str(address)
            if client not in self:
                break
        return client


def parse_address(text: str) -> Address | None:
    """Return an address as proxies write it: with a port, in brackets, or IPv4 inside IPv6. None if it is
    invalid."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def counted_address(text: str) -> str:
    """Return the key by which an address is counted. For IPv6, this is the network of a household."""
    address = parse_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address) if address is not None else text


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError as error:
        raise ConfigError(
            f'server.proxies: {name!r} is not an address. Write "10.0.0.7", or '
            'a network such as "10.0.0.0/8".'
        ) from error
