"""Control how requests leave this machine: the environment's proxy, signed URLs, certificates."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.errors import ConfigError
from dragoman.sentences import sentence

if TYPE_CHECKING:
    import ssl

    import yarl


def is_loopback(host: str | None) -> bool:
    """Return whether only this machine answers at that name or address, or connects from it."""
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment sets for a URL. None for this machine."""
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    if is_loopback(host) or proxy_bypass(host):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def is_link_local(url: str) -> bool:
    """Return whether a URL is a cloud's service on the machine's own link, such as the metadata server."""
    host = urlsplit(url).hostname or ""
    return host.startswith(("169.254.", "fd00:ec2:")) or host == "metadata.google.internal"


def exact_url(url: str) -> yarl.URL:
    """Return a URL whose encoding stays unchanged, because it is signed."""
    from yarl import URL

    return URL(url, encoded=True)


def trust(ca: str | Path | None) -> ssl.SSLContext | bool:
    """Return certificates to trust, from a file or folder in addition to the system's."""
    if ca is None:
        return True
    import ssl

    context = ssl.create_default_context()
    try:
        if Path(ca).is_dir():
            context.load_verify_locations(capath=ca)
        else:
            context.load_verify_locations(cafile=ca)
    except OSError as error:
        raise ConfigError(sentence("certificates.unusable", ca=ca, error=error)) from error
    return context


# Decide whether an IP address belongs to the public internet. Uses no network.


# Addresses that `is_global` accepts in some versions of Python, and addresses that are public only by number.
CLOSED = tuple(
    ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments; a cloud's metadata at .192
        "192.88.99.0/24",  # relays to IPv6
        "168.63.129.16/32",  # a cloud's metadata
        "64:ff9b:1::/48",  # translation inside a network
        "2001::/23",  # protocol assignments, tunnels
        "2002::/16",  # tunnels: an IPv4 address inside
    )
)
OPEN6 = ip_network("2000::/3")  # the only assigned part of IPv6
TRANSLATED = ip_network("64:ff9b::/96")  # how networks without IPv4 write an IPv4 address


def is_public(address: str) -> bool:
    """Return whether an address is public: not private, loopback, link-local, multicast, reserved or
    metadata.

    Only the usual spelling counts as an address, because systems read forms such as `0177.1` differently.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found in TRANSLATED:
            found = IPv4Address(int(found) & 0xFFFFFFFF)
        elif found not in OPEN6:
            return False
    closed = any(found in network for network in CLOSED)
    return found.is_global and not found.is_multicast and not closed
