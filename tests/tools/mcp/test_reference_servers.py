"""Check the unchanged reference servers memory, git and fetch. Other tests cover files and everything."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman.tools.mcp.servers import McpServer
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.rig import call, source

pytestmark = pytest.mark.slow


async def test_memory_keeps_what_it_was_given_over_a_restart(tmp_path: Path) -> None:
    """C6: deep arguments and structured results."""
    file = script("server-memory", "dist/index.js")
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    server = McpServer(command=NODE, args=(file,), env=env)
    entity: JsonValue = {"name": "Ada", "entityType": "person", "observations": ["Likes tea."]}
    async with source(server) as memory:
        made = await call(memory, "create_entities", entities=[entity])
        assert made.state == "completed"
    async with source(server) as memory:
        assert "Likes tea." in (await call(memory, "search_nodes", query="tea")).result.text
        assert "Ada" not in (await call(memory, "search_nodes", query="coffee")).result.text


async def test_git_reads_and_changes_a_repository(tmp_path: Path) -> None:
    """C6, C7: a folder outside the repository is a failed call."""
    _git(tmp_path, "init", "--quiet", "--initial-branch=main")
    _git(tmp_path, "config", "user.name", "Ada")
    _git(tmp_path, "config", "user.email", "ada@example.org")
    (tmp_path / "a.txt").write_text("one\n")
    here = str(tmp_path)
    server = McpServer(command=sys.executable, args=("-m", "mcp_server_git", "--repository", here))
    async with source(server) as git:
        assert "a.txt" in (await call(git, "git_status", repo_path=here)).result.text
        assert (await call(git, "git_add", repo_path=here, files=["a.txt"])).state == "completed"
        assert (await call(git, "git_commit", repo_path=here, message="Begin")).state == "completed"
        assert "Begin" in (await call(git, "git_log", repo_path=here)).result.text
        (tmp_path / "a.txt").write_text("two\n")
        assert "+two" in (await call(git, "git_diff_unstaged", repo_path=here)).result.text
        assert (await call(git, "git_status", repo_path=str(tmp_path.parent))).state == "failed"
    assert _git(tmp_path, "log", "--format=%s") == "Begin\n"


async def test_fetch_reads_a_page_in_chunks() -> None:
    """C6, C7: a missing page is a failed call."""
    server = McpServer(command=sys.executable, args=("-m", "mcp_server_fetch", "--allow-private-ips"))
    with _pages({"/": "<h1>Tea</h1><p>" + "word " * 400 + "end</p>"}) as url:
        async with source(server) as fetch:
            first = await call(fetch, "fetch", url=url, max_length=100)
            assert "Tea" in first.result.text
            assert "end" not in first.result.text
            rest = await call(fetch, "fetch", url=url, start_index=1900)
            assert "end" in rest.result.text
            assert (await call(fetch, "fetch", url=f"{url}missing")).state == "failed"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, *words], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@contextmanager
def _pages(pages: dict[str, str]) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write((page or "").encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
