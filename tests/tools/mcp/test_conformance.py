"""Run all scenarios of the official conformance suite for clients. Each expected failure has its reason."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.tools.mcp.conforming import play
from tests.tools.mcp.npm import NODE, script

pytestmark = pytest.mark.slow

PASS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
)
DO_NOT = {
    "auth/2025-03-26-oauth-metadata-backcompat": (
        "its metadata names another issuer than the one that was asked, which the SDK refuses (RFC 8414)"
    ),
    "auth/client-credentials-jwt": "an extension for programs without a person; not offered",
    "auth/client-credentials-basic": "an extension for programs without a person; not offered",
    "auth/cross-app-access-complete-flow": "an extension for companies' identity providers; not offered",
}


@pytest.mark.long
async def test_every_scenario_ends_as_listed(tmp_path: Path) -> None:
    """M1: one test, since the suite runs as a whole. One that passes now moves to those that do."""
    verdicts = await _suite(tmp_path)
    assert verdicts == {**dict.fromkeys(PASS, True), **dict.fromkeys(DO_NOT, False)}


@pytest.mark.long
def test_the_documentation_names_those_that_do_not_pass() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "mcp.md").read_text("utf-8")
    assert re.findall(r"^\| `(auth/[^`]+)` \|", page, re.MULTILINE) == [*DO_NOT]
    assert f"{len(PASS)} of its {len(PASS) + len(DO_NOT)} scenarios pass" in page


async def _suite(folder: Path) -> dict[str, bool]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await play(**json.loads(await reader.readline()))).encode())
        writer.close()

    dial = Path(__file__).parent / "servers" / "dial.py"
    async with await asyncio.start_unix_server(serve, folder / "line"):
        client = f"{sys.executable} -S -E {dial} {folder / 'line'}"
        told = await _run(folder, client, "--suite", "all")
        lines = told.partition("=== SUITE SUMMARY ===")[2].splitlines()
        found = (re.match(r"(✓|✗) (\S+): \d+ passed", line) for line in lines)
        passed = {match[2]: match[1] == "✓" for match in found if match is not None}
        for scenario in PASS:  # they depend on the clock, and time runs short among two dozen other scenarios
            if not passed.get(scenario):
                passed[scenario] = "OVERALL: PASSED" in await _run(folder, client, "--scenario", scenario)
        return passed


async def _run(folder: Path, client: str, *what: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(NODE, script("conformance", "dist/index.js"), "client", *what, "--command", client),
        *("--timeout", str(int(PATIENCE * 1000)), "--output-dir", str(folder / "results")),
        stdout=PIPE,
        stderr=STDOUT,
        cwd=folder,
    )
    async with asyncio.timeout(2 * PATIENCE):
        told, _ = await process.communicate()
    return told.decode()
