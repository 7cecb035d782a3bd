"""Check that the library works without extras, and that errors name the missing extra."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXTRAS = {
    "cli": ("typer", "rich", "prompt_toolkit"),
    "server": ("fastapi", "starlette", "uvicorn", "httptools"),
    "mcp": ("mcp", "mcp_types", "httpx2", "anyio"),
    "others": ("cryptography", "keyring", "genai_prices", "xllamacpp", "asyncpg", "psycopg", "procrastinate"),
    "rest": ("obstore", "opentelemetry", "greenlet", "pydantic_monty"),
    "media": ("PIL",),
}
PROGRAM = """
from dragoman import ScriptedModel, SyncRuntime, run_sync, tool
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import calls, says

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

script = ScriptedModel([calls("add", a=17, b=23), says("It is 40.")])
print(run_sync("What is 17 + 23?", model=script, tools=[add], allow=["add"]).text)
groups = [make() for make in BUILTIN.values()]
with SyncRuntime("other.db", model="ollama/qwen3", tools=groups) as runtime:
    print(runtime.conversation().id[:5])
"""

PICTURE = """
import asyncio
from dataclasses import replace
from dragoman.errors import ProviderError
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import OpenAIChat
from dragoman.wire.files.pictures import FileLimits, fit_picture
from dragoman.messages.request import Request
from tests.loopback import Answer, loopback

limits = FileLimits(picture_edge=10)
print(fit_picture(b"picture", limits))

async def main():
    refusal = Answer(400, {"error": {"message": "image exceeds 5 MB maximum"}})
    async with loopback(refusal) as server, HttpClient() as client:
        endpoint = replace(ENDPOINTS["openai_chat"], base_url=server.url)
        model = HttpModel(client, OpenAIChat(), endpoint, model="m", limits=limits)
        try:
            async for _ in model.stream(Request("m", ()), "msg_1"):
                pass
        except ProviderError as error:
            print(error.hint)

asyncio.run(main())
"""


def _without(extras: tuple[str, ...], program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as if the packages of these extras were not installed."""
    blocked = [package for extra in extras for package in EXTRAS[extra]]
    head = f"import sys\nsys.modules.update(dict.fromkeys({blocked!r}))\n"
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", head + program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_library_needs_no_extra(tmp_path: Path) -> None:
    """M3: a picture goes as it is where nothing can make it smaller, and a refusal for its size says what to
    install."""
    done = _without(tuple(EXTRAS), f"{PROGRAM}\nsys.path.append({str(ROOT)!r})\n{PICTURE}", tmp_path)
    hint = "making a picture smaller for its model needs more: pip install 'dragoman[media]'"
    assert (done.stdout, done.stderr) == (f"It is 40.\nconv_\nb'picture'\n{hint}\n", "")


LACKING = """
from dragoman.cli.start import run
for arguments in {tried!r}:
    sys.argv[1:] = arguments
    try:
        run()
    except SystemExit as leaving:
        print(leaving.code)
"""


@pytest.mark.parametrize(
    "tried",
    [
        {"cli": ["--help"]},
        {
            "server": ["serve", "--model", "scripted/demo", "--port", "0"],
            "mcp": ["mcp", "test", "files"],
        },
    ],
    ids=" ".join,
)
def test_a_program_says_which_extra_it_lacks(tmp_path: Path, tried: dict[str, list[str]]) -> None:
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "dragoman" / "dragoman.toml").write_text('[mcp.files]\ncommand = "cat"\n')
    done = _without((*tried,), LACKING.format(tried=[*tried.values()]), tmp_path)
    assert done.stdout.split() == ["2"] * len(tried), done.stderr
    assert re.findall(r"pip install 'dragoman\[(\w+)\]'", done.stderr) == [*tried]
    assert "Traceback" not in done.stderr


TOO_OLD = """
import asyncio
from dragoman import ToolFailed
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource

async def main():
    source = McpSource("files", McpServer(command="cat"))
    try:
        await source.prompts()
    except ToolFailed as failed:
        print(failed, file=sys.stderr)
    await source.close()

asyncio.run(main())
sys.modules["mcp_types"] = None
"""


def test_a_package_that_is_too_old_is_told_as_one_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "mcp" / "server").mkdir(parents=True)
    (tmp_path / "mcp" / "__init__.py").write_text('__version__ = "1.9"\n')
    (tmp_path / "mcp" / "server" / "lowlevel.py").write_text("class Server: ...\n")
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "dragoman" / "dragoman.toml").write_text('[mcp.files]\ncommand = "cat"\n')
    tried = [["mcp", "test", "files"], ["mcp", "serve"]]
    done = _without((), TOO_OLD + LACKING.format(tried=tried), tmp_path)
    assert done.stdout.split() == ["1", "2"], done.stderr
    assert done.stderr.count("pip install 'dragoman[mcp]'") == 3
    assert "(cannot import name" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_of_ones_own_is_told_of_the_extra(tmp_path: Path) -> None:
    program = """
from dragoman import DragomanError
try:
    from dragoman.server.app import api
except DragomanError as error:
    print(error)
"""
    assert "dragoman[server]" in _without(("server",), program, tmp_path).stdout


def test_the_library_alone_is_small() -> None:
    """Twenty-five packages at most, all told: those named here bring fourteen more."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {line.partition(">")[0] for line in project["dependencies"]}
    assert names == {"pydantic", "typing-extensions", "aiohttp", "jsonschema", "pyyaml", "pathspec"}
