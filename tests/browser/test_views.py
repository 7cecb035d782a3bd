"""Check every view at phone and desktop widths, light and dark: axe-core finds nothing, nothing is
cut off."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser

from tests.browser.stage import MARKS, Person, at_the_page, staged
from tests.browser.test_setup import violations
from tests.browser.views import evaluate, views
from tests.sweeps import some

pytestmark = MARKS
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOOKS = list(product((390, 1280, 1920), COLOURS))

# A fading element would be measured halfway.
RESTED = """async () => { for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
  for (const one of document.getAnimations())
    if (one.effect.getTiming().iterations !== Infinity) one.finish() }"""
WIDE = "document.documentElement.scrollWidth - innerWidth"


async def test_axe_finds_nothing_in_any_view(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run checks each view in one appearance, and a sweep checks each view in all (U3)."""
    for name in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    (tmp_path / "stage").mkdir()
    await evaluate(tmp_path / "stage" / "evals" / "runs")
    found: dict[tuple[str, int, str], Any] = {}
    async with staged(tmp_path / "stage") as server, at_the_page(browser, server) as person:
        place = 0
        async for view, part in views(person):
            for width, colours in some(LOOKS, len(LOOKS), place):
                await look(person, width, colours)
                faults = await violations(person, part)
                if wide := await person.page.evaluate(WIDE):
                    faults.append(f"{wide} pixels too wide")
                found[view, width, colours] = faults
            await look(person, 1280, "light")
            place += 1
    assert {look: faults for look, faults in found.items() if faults} == {}


async def look(person: Person, width: int, colours: Literal["light", "dark"]) -> None:
    await person.page.set_viewport_size({"width": width, "height": 844})
    await person.page.emulate_media(color_scheme=colours)
    await person.page.evaluate(RESTED)
