"""`docs/concepts/tour.md` is true: its files exist, its ways are short, its directions are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_import_graph import imports

ROOT = Path(__file__).parents[1]
TOUR = (ROOT / "docs" / "concepts" / "tour.md").read_text("utf-8")
PACKAGE = ROOT / "src" / "dragoman"
WAYS = ["One message", "One approval", "One chunk", "One setting", "One cancel"]
LONGEST = 25  # files of one way
LAYERS = ["api", "drivers", "steps", "live"]


def section(title: str) -> str:
    return TOUR.split(f"\n## {title}\n")[1].split("\n## ")[0]


def files_in(text: str) -> set[str]:
    """Linked, or named in code."""
    linked = re.findall(r"\((?:\.\./)+(src/[^)#]+|web/[^)#]+)\)", text)
    named = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_A-Z0-9.]+\.[a-z]+)`", text)
    return {*linked, *named}


def exists(file: str) -> bool:
    return any((root / file).exists() for root in (ROOT, PACKAGE))


def test_every_file_it_names_is_there() -> None:
    missing = {file for file in files_in(TOUR) if not exists(file)}
    assert not missing


def test_every_folder_it_names_is_there() -> None:
    folders = set(
        re.findall(r"`((?:[a-z_0-9]+/)+)`", section("Packages") + section("Where to change things"))
    )
    words = "flags commands terminal chat acp protocols mcp setup trust local cage"
    inside = {f"{word}/" for word in words.split()}
    inside |= {f"{layer}/" for layer in LAYERS}
    missing = {one for one in folders - inside if not exists(one)}
    assert not missing
    assert all(list(PACKAGE.rglob(f"*/{one}")) for one in inside)


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_short(way: str) -> None:
    found = {file for file in files_in(section(way)) if file.endswith(".py")}
    assert 5 <= len({file.removeprefix("src/dragoman/") for file in found}) <= LONGEST


def test_packages_import_only_from_the_rows_below() -> None:
    rows = [
        re.findall(r"`([a-z_]+)(?:/|\.py)`", line.split("|")[1])
        for line in section("Packages").split("\n")
        if "|" in line
    ]
    level = {name: place for place, names in enumerate(rows) for name in names}
    level.pop("config")  # settings are read below the lookup of providers, and built above it
    assert {"cli", "server", "turn", "messages"} <= level.keys()
    upward = [
        f"{one.module} imports {name}"
        for one in imports()
        for name in one.imported
        if (here := level.get(_package(one.module))) is not None
        and (there := level.get(_package(name))) is not None
        and there < here
    ]
    assert not upward


def test_the_layers_of_a_turn_import_downwards() -> None:
    upward = [
        f"{one.module} imports {name}"
        for one in imports()
        for name in one.imported
        if (here := _layer(one.module)) is not None and (there := _layer(name)) is not None and there < here
    ]
    assert not upward


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _layer(module: str) -> int | None:
    match module.split("."):
        case ["dragoman", "turn", layer, *_] if layer in LAYERS:
            return LAYERS.index(layer)
    return None
