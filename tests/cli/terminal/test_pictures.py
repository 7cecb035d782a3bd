"""Pictures in a terminal: by the protocol it has, and with the pixels the picture has."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import EpsImagePlugin, Image

from dragoman.cli.terminal.images import picture_protocol, show_picture, sixels
from tests.sweeps import examples


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def drawn(text: str) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return what a terminal would draw: colors in percent, by column and row."""
    found = re.fullmatch(r'\x1bP0;1q"1;1;\d+;\d+(.*)\x1b\\', text, re.DOTALL)
    assert found
    colours: dict[str, tuple[int, int, int]] = {}
    pixels: dict[tuple[int, int], tuple[int, int, int]] = {}
    column, top, colour = 0, 0, ""
    for token in re.findall(r"#\d+(?:;2;\d+;\d+;\d+)?|!\d+.|[$-]|[?-~]", found[1]):
        if token.startswith("#"):
            colour, *rest = token[1:].split(";")
            if rest:
                colours[colour] = (int(rest[1]), int(rest[2]), int(rest[3]))
        elif token in "$-":
            column, top = 0, top + 6 * (token == "-")
        else:
            times, sign = (int(token[1:-1]), token[-1]) if token[0] == "!" else (1, token)
            for x in range(column, column + times):
                for place in range(6):
                    if ord(sign) - 63 >> place & 1:
                        assert (x, top + place) not in pixels
                        pixels[x, top + place] = colours[colour]
            column += times
    return pixels


@given(st.integers(1, 9), st.integers(1, 14), st.data())
@settings(max_examples=examples(10, 40), deadline=None)
def test_sixels_draw_each_pixel_once_in_its_colour(width: int, height: int, data: st.DataObject) -> None:
    """M5"""
    colours = st.sampled_from([(255, 0, 0), (0, 255, 0), (0, 0, 0), (255, 255, 255)])
    picture = Image.new("RGB", (width, height))
    wanted = {}
    for place in ((x, y) for x in range(width) for y in range(height)):
        colour = data.draw(colours)
        picture.putpixel(place, colour)
        wanted[place] = tuple(round(value * 100 / 255) for value in colour)
    text = sixels(png(picture))
    assert text is not None
    assert drawn(text) == wanted


def test_large_and_odd_pictures_are_made_small_and_told_from_none() -> None:
    """M5"""
    text = sixels(png(Image.new("RGBA", (1500, 450), (0, 0, 255, 0))))
    assert text is not None
    assert '"1;1;800;240' in text
    assert set(drawn(text).values()) == {(100, 100, 100)}  # transparent pixels are white
    assert sixels(b"\x89PNG no picture") is None


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "foot-extra"}, "sixel"),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, "sixel"),
        ({"TERM": "foot", "TMUX": "/tmp/x"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_each_terminal_is_shown_what_it_understands(
    environment: dict[str, str], protocol: str | None
) -> None:
    """M5"""
    assert picture_protocol(environment) == protocol
    screen = Screen()
    shown = show_picture(png(Image.new("RGB", (2, 2))), "image/png", screen, environment)
    assert shown == (protocol is not None) == bool(screen.getvalue())


def test_a_picture_that_is_a_program_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow passes PostScript to Ghostscript, and a file that a model or a page calls an image can be
    PostScript."""
    ran = tmp_path / "ran"
    ghostscript = tmp_path / "gs"
    ghostscript.write_text(f"#!/bin/sh\ntouch {ran}\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # Pillow searches for it once per process
    drawing = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    assert sixels(drawing) is None
    assert not ran.exists()
