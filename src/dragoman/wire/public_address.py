"""Whether an IP address belongs to the open internet. No network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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
