"""Public data sets become material: values in requests become slots, and ambiguous requests are omitted."""

from __future__ import annotations

import json
import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from training.public import Given, lines_of, phrase_of
from training.public_sets import read_all
from training.scene import Scene
from training.tools import offer, stock, wish_for

PARAMETERS = {"city": Given("city", "str", required=True), "days": Given("days", "int")}


@pytest.mark.parametrize(
    ("request_", "arguments", "phrase"),
    [
        ("Weather in Oslo for 3 days.", {"city": "oslo", "days": 3}, "Weather in {city} for {days} days."),
        ("Weather in Oslo.", {"city": "Oslo"}, "Weather in {city}."),
        ("Weather in the north.", {"city": "Oslo"}, None),
        ("Oslo or Oslo?", {"city": "Oslo"}, None),
        ("For 3 days.", {"days": 3}, None),
        ("Oslo, and the wind", {"city": "Oslo", "wind": "wind"}, None),
        ("Oslo {now}", {"city": "Oslo"}, None),
    ],
)
def test_a_request_keeps_its_words_and_gives_up_its_values(
    request_: str, arguments: dict[str, Any], phrase: str | None
) -> None:
    """A value that is absent or occurs twice, a missing and an unknown argument: no phrase."""
    assert phrase_of(request_, arguments, PARAMETERS) == phrase


def test_what_was_read_is_offered_and_asked_for(tmp_path: Path) -> None:
    """Tools of a set, with two requests that are split, can be called with other values."""
    folder = tmp_path / "Seal-Tools"
    folder.mkdir()
    city = {"type": "str", "description": "The city (e.g., Oslo, Rome)"}
    tool = {
        "api_name": "getHarbourFee",
        "api_description": "Retrieve the harbour fee of a specific city",
        "field": "Shipping/Harbours",
        "parameters": {"city": city, "tonnage": {"type": "int", "description": "Size of the ship"}},
        "required": ["city"],
        "responses": {"fee": {"type": "float", "description": ""}},
    }
    other = {**tool, "api_name": "bookBerth", "api_description": "Book a berth", "parameters": {"city": city}}
    (folder / "tool.jsonl").write_text("\n".join(json.dumps(one) for one in (tool, other)))
    asked = {
        "query": "Tell me the harbour fee in Genoa. Then, book a berth in Split.",
        "calling": [
            {"api": "getHarbourFee", "parameters": {"city": "Genoa"}},
            {"api": "bookBerth", "parameters": {"city": "Split"}},
        ],
    }
    (folder / "dev.jsonl").write_text(json.dumps(asked))
    file = tmp_path / "public.txt"
    file.write_text("\n".join(lines_of(read_all(tmp_path))))
    found = [idea for held in (False, True) for idea in stock(held, str(file)).ideas]
    said = {idea.names[0]: idea.requests["en"] for idea in found}
    assert "Tell me the harbour fee in {city}." in said["get_harbour_fee"]
    assert "Book a berth in {city}." in said["book_berth"]
    assert "Retrieve the harbour fee of {city}" in said["get_harbour_fee"]
    scene = Scene(random.Random(1), "en", date(2026, 11, 16), True)
    fee = next(idea for idea in found if idea.names[0] == "get_harbour_fee")
    offered = offer(scene, fee, set())
    assert offered is not None
    wish = wish_for(scene, offered)
    assert wish is not None
    assert str(wish.arguments[offered.called["city"]]) in wish.request
