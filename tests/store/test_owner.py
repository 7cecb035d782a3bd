"""S3: an owner is alive as long as its process is, and not a moment longer."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.store.sqlite.owner import Owner


def test_an_owner_is_alive_until_it_is_closed(tmp_path: Path) -> None:
    """S3"""
    one, other = Owner(tmp_path / "owners"), Owner(tmp_path / "owners")
    assert one.name != other.name
    assert one.alive(one.name)
    assert one.alive(other.name)
    assert other.alive(one.name)
    one.close()
    assert not other.alive(one.name)
    other.close()
    assert list((tmp_path / "owners").iterdir()) == []


def test_an_owner_nobody_knows_is_not_alive(tmp_path: Path) -> None:
    """S3"""
    owner = Owner(tmp_path)
    assert not owner.alive("run_0123456789abcdef_1")
    owner.close()


def test_looking_does_not_kill(tmp_path: Path) -> None:
    """S3"""
    one, other = Owner(tmp_path), Owner(tmp_path)
    assert all(other.alive(one.name) for _ in range(3))
    third = Owner(tmp_path)
    assert third.alive(one.name)
    for owner in (one, other, third):
        owner.close()


def test_what_the_dead_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """S3"""
    (tmp_path / "run_dead_1.lock").touch()
    living = Owner(tmp_path)
    assert not (tmp_path / "run_dead_1.lock").exists()
    other = Owner(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.lock")} == {living.name, other.name}
    living.close()
    other.close()


CHILD = """
import sys
from pathlib import Path
from dragoman.store.sqlite.owner import Owner
owner = Owner(Path(sys.argv[1]))
print(owner.name, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_killed_process_is_dead_at_once(tmp_path: Path) -> None:
    """S3: `kill -9` leaves no time to say goodbye."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        owner = Owner(tmp_path)
        assert owner.alive(name)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert (tmp_path / f"{name}.lock").exists()
        assert not owner.alive(name)
        owner.close()
