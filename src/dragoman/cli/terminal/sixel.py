"""Pictures as sixels, which older terminals understand: six rows at a time, one colour after another."""

from __future__ import annotations

from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_LARGEST = (800, 480)  # pixels: about what a window of eighty columns has
_COLOURS = 255
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")  # for others Pillow may start programs: PostScript is one
_PIXELS = 100_000_000  # that are looked at: what claims to have more is no picture for a terminal


def sixels(data: bytes) -> str | None:
    """None where Pillow is not there, or this is no picture that it can read."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as picture:
            if picture.width * picture.height > _PIXELS:
                return None
            picture.draft("RGB", _LARGEST)
            shown = picture.convert("RGBA")
    except Exception:  # Pillow has as many errors as there are formats
        return None
    shown.thumbnail(_LARGEST)
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
    """Each colour by itself: which of the six pixels of each column have it."""
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
