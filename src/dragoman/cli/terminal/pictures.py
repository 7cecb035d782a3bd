"""Pictures in terminals that can show them: by kitty's graphics protocol, by iTerm2's, or as sixels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import IO, Literal, TypeAlias

from dragoman.cli.terminal.sixel import sixels

Protocol: TypeAlias = Literal["kitty", "iterm2", "sixel"]

_PIECE = 4096  # characters of base64 that kitty takes at once
_LARGEST = 20_000_000  # bytes: a terminal is no place for more
_ITERM2 = ("iTerm.app", "WezTerm", "vscode", "mintty")
_KITTY = ("ghostty",)
_SIXEL = ("foot", "mlterm", "contour", "yaft", "xterm-sixel")


def picture_protocol(environment: Mapping[str, str]) -> Protocol | None:
    """How the terminal is shown pictures, by what it says of itself; None where it cannot be."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None  # what multiplexes a terminal drops what it does not know
    program = environment.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in environment or "kitty" in environment.get("TERM", "") or program in _KITTY:
        return "kitty"
    if program in _ITERM2 or "ITERM_SESSION_ID" in environment:
        return "iterm2"
    windows_terminal = "WT_SESSION" in environment
    return "sixel" if windows_terminal or environment.get("TERM", "").startswith(_SIXEL) else None


def show_picture(data: bytes, media_type: str, out: IO[str], environment: Mapping[str, str]) -> bool:
    """Show it, if the terminal can. Kitty takes nothing but PNG."""
    if not out.isatty() or len(data) > _LARGEST or not media_type.startswith("image/"):
        return False
    protocol = picture_protocol(environment)
    if protocol is None or (protocol == "kitty" and media_type != "image/png"):
        return False
    encode = {"kitty": _kitty, "iterm2": _iterm2, "sixel": sixels}[protocol]
    if (shown := encode(data)) is None:
        return False
    out.write(f"{shown}\n")
    out.flush()
    return True


def _kitty(data: bytes) -> str:
    coded = b64encode(data).decode("ascii")
    pieces = [coded[at : at + _PIECE] for at in range(0, len(coded), _PIECE)]
    shown = []
    for number, piece in enumerate(pieces):
        more = int(number < len(pieces) - 1)
        control = f"a=T,f=100,q=2,m={more}" if number == 0 else f"m={more}"
        shown.append(f"\x1b_G{control};{piece}\x1b\\")
    return "".join(shown)


def _iterm2(data: bytes) -> str:
    coded = b64encode(data).decode("ascii")
    return f"\x1b]1337;File=inline=1;size={len(data)};preserveAspectRatio=1:{coded}\x07"
