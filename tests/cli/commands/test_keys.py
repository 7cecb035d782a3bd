"""Check `dragoman keys`: a key is stored privately, tested with one request, and never shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dragoman.wire.scripted import says
from tests.cli.program import Ended, program
from tests.loopback import loopback

pytestmark = pytest.mark.slow
KEY = "sk-acme-0123456789abcdef"


async def run(folder: Path, *arguments: str, stdin: str = "", status: int = 0) -> Ended:
    nobody = "keyring.backends.null.Keyring"
    ended = await program("keys", *arguments, folder=folder, stdin=stdin, PYTHON_KEYRING_BACKEND=nobody)
    assert ended.status == status, ended.err
    assert KEY not in ended.out + ended.err
    return ended


async def test_s6_a_key_is_stored_tested_listed_and_removed(tmp_path: Path) -> None:
    settings = '[providers.acme]\nbase_url = "{}"\nkeys = "ACME_API_KEY"\n'
    async with loopback(says("unused")) as server:
        (tmp_path / "dragoman.toml").write_text(settings.format(server.url), "utf-8")
        assert "accepts it" in (await run(tmp_path, "set", "acme", stdin=f"{KEY}\n")).out
    file = tmp_path / "home" / "data" / "dragoman" / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads((await run(tmp_path, "list", "--json")).out) == [
        {"provider": "acme", "name": "ACME_API_KEY", "source": "file"}
    ]
    failed = await run(tmp_path, "set", "acme", stdin=f"{KEY}\n")  # the server at that address is gone
    assert "The test failed" in failed.err
    assert "Removed ACME_API_KEY" in (await run(tmp_path, "remove", "acme")).out
    assert "No stored key of acme" in (await run(tmp_path, "remove", "acme", status=2)).err
    assert "No keys yet" in (await run(tmp_path, "list")).err


async def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    assert "has no spaces" in (await run(tmp_path, "set", "openai", stdin="two words\n", status=2)).err
    assert "nknown provider 'opnai'" in (await run(tmp_path, "set", "opnai", status=2)).err
    assert "needs no key" in (await run(tmp_path, "set", "local", status=2)).err
