"""`dragoman serve` and `link`: the real program prints its link, answers there, and ends when interrupted."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp
import pytest

from tests.cli.person import CTRL_C, Person
from tests.cli.program import clean_environment, program, started
from tests.fork_server import KILL
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.slow


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def read(file: Path) -> str:
    return file.read_text("utf-8")


def list_files(folder: Path, name: str) -> list[Path]:
    return [*folder.rglob(name)]


async def test_the_link_lets_one_in_and_an_interrupt_ends_the_server(stage: Path) -> None:
    """U1: with a live stream open, which must not hold up the end."""
    process = await started("serve", "--port", "0", folder=stage)
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found is not None, line
        url, token = found.groups()
        headers = {"authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(url, headers=headers) as client:
            async with client.post("/api/conversations", json={}) as response:
                assert response.status == 201
                conversation = (await response.json())["id"]
            async with client.get(f"/api/conversations/{conversation}/events") as stream:
                assert stream.status == 200
                process.send_signal(signal.SIGINT)
                await asyncio.wait_for(stream.read(), PATIENCE)
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, err) == (0, b"")


@pytest.mark.long
async def test_the_browser_is_opened_without_the_token_in_a_command_line(stage: Path) -> None:
    """Every user of a machine can read the command line of the browser (U1)."""
    browser = stage / "browser.sh"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {stage}/called.new\nmv {stage}/called.new {stage}/called\n', "utf-8"
    )
    browser.chmod(0o700)
    process = await started("serve", "--port", "0", "--open", folder=stage, BROWSER=f"{browser} %s")
    try:
        await eventually((stage / "called").exists)
        url = (stage / "called").read_text("utf-8").strip()
        assert "token" not in url
        page = Path(unquote(urlsplit(url).path))
        assert (mode(page), mode(page.parent)) == (0o600, 0o700)
        found = re.search(r'href="([^"]+token=[^"]+)"', read(page))
        assert found is not None
        async with aiohttp.ClientSession() as client:
            async with client.get(found[1], allow_redirects=False) as response:
                assert response.status == 303
            client.cookie_jar.clear()
            async with client.get(found[1], allow_redirects=False) as response:
                assert response.status == 403
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), PATIENCE)
    with pytest.raises(FileNotFoundError):
        read(page)


async def test_another_link_is_printed_for_whoever_runs_the_server_and_nobody_else(stage: Path) -> None:
    """U1: through a file that only they can read."""
    process = await started("serve", "--port", "0", folder=stage)
    assert process.stdout is not None
    try:
        await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        link = (await program("link", folder=stage)).out.strip()
        key = (await program("link", "--key", folder=stage)).out.strip()
        url = link.partition("/?token=")[0]
        async with aiohttp.ClientSession() as client:
            async with client.get(link, allow_redirects=False) as response:
                assert response.status == 303
            client.cookie_jar.clear()
            headers = {"authorization": f"Bearer {key}"}
            async with client.get(f"{url}/api/me", headers=headers) as response:
                assert (await response.json())["user"] == "local"
        (file,) = list_files(stage, "server-*.json")
        assert mode(file) == 0o600
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), PATIENCE)
    assert not file.exists()
    file.write_text('{"url": "http://127.0.0.1:1", "key": "x"}', "utf-8")  # as a killed server leaves it
    ended = await program("link", folder=stage)
    assert (ended.status, ended.out) == (1, "")
    assert "No server is running" in ended.err


@pytest.mark.long
async def test_of_several_servers_on_one_store_one_is_asked_for_by_its_port(stage: Path) -> None:
    """The file of a killed server is removed (U1)."""
    first, second = [await started("serve", "--port", "0", folder=stage) for _ in range(2)]
    try:
        lines = []
        for process in (first, second):
            assert process.stdout is not None
            lines.append((await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode())
        ports = [re.findall(r":(\d+)/", line)[0] for line in lines]
        for port in ports:
            assert f":{port}/" in (await program("link", "--port", port, folder=stage)).out
        newest = await program("link", folder=stage)
        assert "--port" in newest.err
        assert len(newest.out.splitlines()) == 1
        refused = await program("link", "--port", "1", folder=stage)
        assert (refused.status, "port 1" in refused.err) == (1, True)
        first.send_signal(KILL)
        await first.wait()
        alone = await program("link", folder=stage)
        assert (alone.err, f":{ports[1]}/" in alone.out) == ("", True)
        assert len(list_files(stage, "server-*.json")) == 1
    finally:
        for process in (first, second):
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                await asyncio.wait_for(process.communicate(), PATIENCE)


def test_enter_at_the_servers_terminal_prints_another_link(stage: Path) -> None:
    """U1"""
    person = Person("serve", "--port", "0", "--no-open", folder=stage)
    person.sees("?token=")
    person.sees("Ctrl-C stops it")
    person.types("")
    person.sees("?token=")
    person.types("", CTRL_C)
    assert person.ended() == 0


@pytest.mark.long
async def test_a_server_whose_terminal_has_gone_goes_on_and_reads_it_no_more(stage: Path) -> None:
    """Each read used to fail, was logged, and was repeated immediately (U1)."""
    import fcntl
    import pty
    import termios

    def take_terminal() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    person, terminal = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman.cli.main", "serve", "--port", "0"),
        cwd=stage,
        env=clean_environment(stage),
        stdin=terminal,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    assert process.stdout is not None
    os.close(terminal)
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        url = line[line.index("http://") :].partition("/?token=")[0]
        os.write(person, b"\n")
        async with asyncio.timeout(PATIENCE):
            while b"token=" not in await process.stdout.readline():  # skip the greeting
                pass
        os.close(person)
        async with aiohttp.ClientSession(url) as client:
            for _ in range(20):  # in each of which it would have looked at the terminal
                async with client.get("/api/openapi.json") as response:
                    assert response.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert err == b""
