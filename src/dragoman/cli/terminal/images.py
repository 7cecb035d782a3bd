"""Show images in terminals that support it, by kitty's or iTerm2's graphics protocol, or as sixels."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from itertools import groupby
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

Protocol: TypeAlias = Literal["kitty", "iterm2", "sixel"]

_PIECE = 4096  # characters of base64 that kitty accepts in one chunk
_LARGEST = 20_000_000  # maximum bytes of an image in a terminal
_ITERM2 = ("iTerm.app", "WezTerm", "vscode", "mintty")
_KITTY = ("ghostty",)
_SIXEL = ("foot", "mlterm", "contour", "yaft", "xterm-sixel")
_SIXEL_SIZE = (800, 480)  # maximum pixels, which roughly fit a window of eighty columns
_COLOURS = 255
# For other formats such as PostScript, Pillow can start programs.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_PIXELS = 100_000_000  # maximum pixels: an image that claims more is not for a terminal


def picture_protocol(environment: Mapping[str, str]) -> Protocol | None:
    """Return the terminal's image protocol by its environment variables, or None if it has none."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None  # Terminal multiplexers drop sequences that they do not know.
    program = environment.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in environment or "kitty" in environment.get("TERM", "") or program in _KITTY:
        return "kitty"
    if program in _ITERM2 or "ITERM_SESSION_ID" in environment:
        return "iterm2"
    windows_terminal = "WT_SESSION" in environment
    return "sixel" if windows_terminal or environment.get("TERM", "").startswith(_SIXEL) else None


def show_picture(data: bytes, media_type: str, out: IO[str], environment: Mapping[str, str]) -> bool:
    """Show an image if the terminal supports it. Returns whether it was shown. Kitty only accepts PNG."""
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


if TYPE_CHECKING:
    from PIL.Image import Image


def sixels(data: bytes) -> str | None:
    """Return an image as sixels. None if Pillow is missing or cannot read the image."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as picture:
            if picture.width * picture.height > _PIXELS:
                return None
            picture.draft("RGB", _SIXEL_SIZE)
            shown = picture.convert("RGBA")
    except Exception:  # Pillow raises many different errors.
        return None
    shown.thumbnail(_SIXEL_SIZE)
    flat = Image.new("RGB", shown.size, "white")
    flat.paste(shown, mask=shown)
    return _encoded(flat.quantize(_COLOURS))


def _encoded(picture: Image) -> str:
    width, height = picture.size
    palette = picture.getpalette() or []
    used = sorted(index for _, index in picture.getcolors(_COLOURS + 1) or [] if isinstance(index, int))
    parts = [f'\x1bP0;1q"1;1;{width};{height}']
    for index in used:
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * index : 3 * index + 3])
        parts.append(f"#{index};2;{red};{green};{blue}")
    pixels = picture.tobytes()
    rows = [pixels[width * y : width * (y + 1)] for y in range(height)]
    for top in range(0, height, 6):
        parts += [_band(rows[top : top + 6]), "-"]
    return "".join([*parts, "\x1b\\"])


def _band(rows: list[bytes]) -> str:
    """Return a band of sixels, color by color: which of the six pixels in each column have that color."""
    lines = []
    for index in sorted(set().union(*rows)):
        columns = (
            chr(63 + sum(1 << place for place, value in enumerate(column) if value == index))
            for column in zip(*rows, strict=True)
        )
        lines.append(f"#{index}" + "".join(_run(sign, len(list(same))) for sign, same in groupby(columns)))
    return "$".join(lines)


def _run(sign: str, length: int) -> str:
    return f"!{length}{sign}" if length > 3 else sign * length
