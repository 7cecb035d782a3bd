"""Check `dragoman usage` and `GET /api/usage?by=…`: the costs, for the user who pays."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dragoman.errors import BadRequest
from dragoman.messages.usage import Spending, Usage, dimensions, group
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import Line, calls, says
from tests.cli.program import Ended, program
from tests.runtimes import add, runtime_with
from tests.server.site import served


def test_sums_are_told_by_what_was_asked_for() -> None:
    """Models without a price are counted, and do not invalidate the sum (O3)."""
    rows = [
        Spending("2026-11-01", "ada", "m", replies=2, input=10, cost=0.5, unpriced=1),
        Spending("2026-11-01", "bob", "m", replies=1, input=5, cost=1.0),
        Spending("2026-11-02", "ada", "n", replies=1, input=1),
        Spending("2026-11-02", "ada", "n", tool="add", calls=3, failed=1),
    ]
    assert group(rows, ("day",)) == [
        Spending("2026-11-01", replies=3, input=15, cost=1.5, unpriced=1),
        Spending("2026-11-02", replies=1, input=1),
    ]
    assert [(one.person, one.input) for one in group(rows, ("person",))] == [("ada", 11), ("bob", 5)]
    assert group(rows, ("tool",)) == [Spending(tool="add", calls=3, failed=1)]
    assert dimensions("day, model,day") == ("day", "model")
    with pytest.raises(BadRequest, match="'week'"):
        dimensions("week")


async def _spend(folder: Path) -> None:
    call = Line(calls=calls("add", a=1, b=2).calls, usage=Usage(100, 10, cost=0.25))
    script = [call, says("3", usage=Usage(50, 5))]
    async with runtime_with(folder, script, tools=[add]) as runtime:
        talk = await runtime.conversation(user="ada")
        await (await talk.send("go")).result()


async def _usage(folder: Path, *words: str) -> Ended:
    return await program("usage", "--store", str(folder / "chat.db"), *words, folder=folder)


@pytest.mark.slow
async def test_the_terminal_prints_a_table_csv_and_json(tmp_path: Path) -> None:
    """O3"""
    await _spend(tmp_path)
    table = (await _usage(tmp_path, "--by", "person,model")).out
    assert "ada" in table
    assert "$0.2500" in table
    assert "The price of 1 reply is unknown" in table
    (row,) = csv.DictReader(io.StringIO((await _usage(tmp_path, "--by", "person", "--csv")).out))
    assert (row["person"], row["input"], row["cost"], row["unpriced"]) == ("ada", "150", "0.25", "1")
    (tool,) = json.loads((await _usage(tmp_path, "--by", "tool", "--json")).out)
    assert tool == {"tool": "add", "calls": 1, "failed": 0}
    assert json.loads((await _usage(tmp_path, "--since", "2999-01-01", "--json")).out) == []
    wrong = await _usage(tmp_path, "--since", "yesterday")
    assert (wrong.status, "2026-11-01" in wrong.err) == (2, True)


@pytest.mark.slow
async def test_where_no_price_is_known_no_number_stands_for_it(tmp_path: Path) -> None:
    """O3: nothing is not unknown, in a table, in a spreadsheet and for programs."""
    async with runtime_with(tmp_path, [says("hi", usage=Usage(50, 5))]) as runtime:
        await (await runtime.send("go")).result()
    assert "unknown" in (await _usage(tmp_path, "--by", "model")).out
    (row,) = csv.DictReader(io.StringIO((await _usage(tmp_path, "--by", "model", "--csv")).out))
    assert (row["cost"], row["unpriced"]) == ("", "1")
    (told,) = json.loads((await _usage(tmp_path, "--by", "model", "--json")).out)
    assert (told["cost"], told["unpriced"]) == (None, 1)


@pytest.mark.slow
async def test_people_see_what_they_spent_and_whoever_runs_the_server_sees_all(tmp_path: Path) -> None:
    """O3, U2"""
    await _spend(tmp_path)
    async with served(tmp_path, [says("hi")]) as site:
        await site.runtime.store.add_person("ada", key_hash("hers"), 0.0, restore=True)
        hers = {"authorization": "Bearer hers"}
        (row,) = (await site.get("/api/usage?by=model", headers=hers))["rows"]
        assert (row["input"], row["cost"], row["unpriced"]) == (150, 0.25, 1)
        assert (await site.get("/api/usage?by=model"))["rows"] == []
        everybody = (await site.get("/api/usage?by=person&everybody=true"))["rows"]
        assert [one["person"] for one in everybody] == ["ada"]
        assert (await site.ask("GET", "/api/usage?by=person&everybody=true", headers=hers)).status == 403
        assert (await site.ask("GET", "/api/usage?by=week")).status == 422
