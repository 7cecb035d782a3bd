"""How requests leave this machine: the environment's proxy, addresses as they are signed, certificates."""

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
    """Whether nobody but this machine answers to that name or address, or knocks from it."""
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def environment_proxy(url: str) -> str | None:
    """The proxy that the environment names for an address; None for this machine's own."""
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    if is_loopback(host) or proxy_bypass(host):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def is_link_local(url: str) -> bool:
    """Whether it is the address of a service that clouds have on each machine's own link."""
    host = urlsplit(url).hostname or ""
    return host.startswith(("169.254.", "fd00:ec2:")) or host == "metadata.google.internal"


def exact_url(url: str) -> yarl.URL:
    """An address in which nothing is written in another way: it is signed."""
    from yarl import URL

    return URL(url, encoded=True)


def trust(ca: str | Path | None) -> ssl.SSLContext | bool:
    """Certificates to trust, from a file or folder beside the system's."""
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


# Whether an IP address belongs to the open internet. No network.


# What `is_global` lets pass in some version of Python, and what is public only by its number.
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
OPEN6 = ip_network("2000::/3")  # the only part of IPv6 that is given out
TRANSLATED = ip_network("64:ff9b::/96")  # how networks without IPv4 write an IPv4 address


def is_public(address: str) -> bool:
    """False for private, loopback, link-local, multicast, reserved and metadata addresses, and for none.

    Only the usual spelling is one: what the system would read `0177.1` as is not left to chance.
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
