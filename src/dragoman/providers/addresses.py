"""Fills a provider's address with what only the person knows: a region, a project, an account.

`${A|B:-c}` in an address is the value of the first of these environment variables that is set, or else `c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.web_address import web_address
from dragoman.wire.network import is_loopback

_PLACE = re.compile(r"\$\{([A-Za-z_][\w|]*)(?::-([^}]*))?\}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of a host or of one step of a path, and nothing else

# Vertex has no region in front of its global host, and one of another form for a whole continent.
_VERTEX = re.compile(r"//(global|us|eu)-aiplatform\.")


def fill_address(
    address: str, environment: Mapping[str, str], *, of: str, instead: Sequence[str] = ()
) -> str:
    """The address with all values in it. ConfigError says which variables are missing, or cannot be right:
    `instead` are those that hold a whole address."""

    def missing(names: Sequence[str]) -> ConfigError:
        wanted = " or ".join([*instead, *names])
        return ConfigError(sentence("provider.no_address", of=of, wanted=wanted))

    def value(place: re.Match[str]) -> str:
        names = place[1].split("|")
        name = next((name for name in names if environment.get(name)), None)
        if name is None and place[2] is None:
            raise missing(names)
        given = place[2] if name is None else _bare_host(environment[name])
        if not _VALUE.fullmatch(given):
            raise ConfigError(sentence("provider.address_part", name=name, of=of))
        return given

    if not address:
        raise missing(())
    return _VERTEX.sub(_vertex_host, _PLACE.sub(value, address))


def is_here(address: str) -> bool:
    """Whether an address is one of this machine."""
    parts = web_address(address if "//" in address else f"http://{address}", references=True)
    return parts is not None and (is_loopback(parts.hostname) or parts.hostname in ("0.0.0.0", "::"))


def _bare_host(value: str) -> str:
    """People set `https://host/` where only the host is wanted."""
    return re.sub(r"^https?://", "", value.strip()).rstrip("/")


def _vertex_host(found: re.Match[str]) -> str:
    return "//aiplatform." if found[1] == "global" else f"//aiplatform.{found[1]}.rep."
