"""V1: nobody reads, receives, finds, counts or infers what is not theirs, whatever people do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.server.sharing_world import (
    CHATS,
    LISTS,
    ROUTES,
    STEPS_OR_NOTHING,
    STRANGE,
    play_sequence,
    scene_in,
)
from tests.server.test_sharing import OTHERS, RIGHTS, shape

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("DRAGOMAN_SHARING_SEED", "1"))
BLOCK = 100  # sequences on one server
STEPS = 10


def test_every_route_is_tried() -> None:
    """V1: a new one is in a table of rights, or it is said how it is asked here."""
    asked = {f"GET {path}" for path in LISTS} | STEPS_OR_NOTHING
    asked |= {" ".join((one.split()[0], shape(one.split()[1]))) for one in STRANGE}
    assert {
        one
        for one in OTHERS
        if one not in asked and " ".join((one.split()[0], shape(one.split()[1]))) not in asked
    } == set()
    assert {*ROUTES, *CHATS} == {*RIGHTS}


async def test_nobody_sees_what_is_not_theirs(tmp_path: Path) -> None:
    """V1: lists, searches, files, exports, imports, other protocols, links, live streams, and every route."""
    async with scene_in(tmp_path) as scene:
        for seed in range(SEED, SEED + 25):
            await play_sequence(scene, seed, STEPS)


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEED, SEED + 10_000, BLOCK))
async def test_nobody_sees_what_is_not_theirs_in_ten_thousand_sequences(tmp_path: Path, first: int) -> None:
    """V1: the same; a seed that fails is in the message."""
    async with scene_in(tmp_path) as scene:
        for seed in range(first, first + BLOCK):
            await play_sequence(scene, seed, STEPS)
        tried = scene.seen
        for route, right in RIGHTS.items():
            assert tried[f"hidden {route}"], route
            assert not re.search("PUT|POST", route) or tried[f"beyond {route}"] or right.value == 1, route
        assert all(tried[f"strange {route}"] for route in STRANGE)
        assert all(tried[what] for what in ("links read", "replayed", "nothing inferred"))
