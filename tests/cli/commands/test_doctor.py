"""`dragoman doctor`: what is missing, and the command that mends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow


def test_the_doctor_names_what_is_missing_and_what_mends_it(stage: Path, cli: Cli) -> None:
    assert "✓ model      stage/model" in cli("doctor").out
    config = stage / "dragoman.toml"
    config.write_text(
        config.read_text().replace("127.0.0.1:", "127.0.0.1:1") + '\n[mcp.x]\ncommand = "no-such-program"\n'
    )
    ill = cli("doctor", "--json", status=1)
    findings = {one["name"]: one for one in json.loads(ill.out)["findings"]}
    assert findings["model"]["state"] == "missing"
    assert "does not answer" in findings["model"]["said"]
    assert findings["mcp x"]["mend"] == "install no-such-program, or: dragoman mcp remove x"
    config.write_text("model = 5\n")
    assert "✗ settings" in cli("doctor", status=1).out
