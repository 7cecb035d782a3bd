"""S3, N2: an owner is alive as long as its process is, and renews its lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.store.sqlite.owner import Owner
from tests.workspace.folders import open_files

LEASE = 3600.0  # no lease is renewed automatically during a test


def test_an_owner_is_alive_until_it_is_closed(tmp_path: Path) -> None:
    """S3"""
    one, other = Owner(tmp_path / "owners", lease=LEASE), Owner(tmp_path / "owners", lease=LEASE)
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
    owner = Owner(tmp_path, lease=LEASE)
    assert not owner.alive("run_0123456789abcdef_1")
    owner.close()


def test_looking_does_not_kill(tmp_path: Path) -> None:
    """S3"""
    one, other = Owner(tmp_path, lease=LEASE), Owner(tmp_path, lease=LEASE)
    assert all(other.alive(one.name) for _ in range(3))
    third = Owner(tmp_path, lease=LEASE)
    assert third.alive(one.name)
    for owner in (one, other, third):
        owner.close()


def test_what_the_dead_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """S3"""
    (tmp_path / "run_dead_1.lock").touch()
    living = Owner(tmp_path, lease=LEASE)
    assert not (tmp_path / "run_dead_1.lock").exists()
    other = Owner(tmp_path, lease=LEASE)
    assert {path.stem for path in tmp_path.glob("*.lock")} == {living.name, other.name}
    assert (tmp_path / f"{living.name}.lock").stat().st_mode & 0o077 == 0
    living.close()
    other.close()


def test_what_those_that_died_while_they_were_born_left_is_swept(tmp_path: Path) -> None:
    """S3: earlier versions made a file under this name first."""
    (tmp_path / "run_dead_1.new").touch()
    owner = Owner(tmp_path, lease=LEASE)
    assert [path.name for path in tmp_path.iterdir()] == [f"{owner.name}.lock"]
    (tmp_path / "odd.lock").mkdir()
    assert owner.alive("odd")  # what cannot be opened is given up by nobody
    owner.close()


def test_owners_that_are_born_together_do_not_sweep_each_other(tmp_path: Path) -> None:
    """S3: each sweeps when it begins, while others have made their file and not locked it yet."""
    with ThreadPoolExecutor(8) as threads:
        owners = list(threads.map(lambda _: Owner(tmp_path, lease=LEASE), range(200)))
    assert {path.stem for path in tmp_path.iterdir()} == {owner.name for owner in owners}
    assert all(owners[0].alive(owner.name) for owner in owners)
    for owner in owners:
        owner.close()
    assert open_files(tmp_path) == []


def test_an_owner_that_renews_no_lease_is_not_alive_until_it_does(tmp_path: Path) -> None:
    """N2: it holds its lock, but does nothing."""
    paused, living = Owner(tmp_path, lease=LEASE), Owner(tmp_path, lease=LEASE)
    for _ in range(20):
        paused.renew()
        living.renew()
        assert living.alive(paused.name)
    os.utime(tmp_path / f"{paused.name}.lock", (9, 9))  # its last renewal
    for _ in range(4):
        living.renew()
        assert living.alive(paused.name)
    living.renew()
    assert not living.alive(paused.name)
    assert (tmp_path / f"{paused.name}.lock").exists()
    paused.renew()
    assert living.alive(paused.name)
    living.renew()
    assert living.alive(paused.name)
    paused.close()
    living.close()


def test_nobody_is_given_up_by_one_that_was_away_itself(tmp_path: Path) -> None:
    """After a machine slept, or its clock changed, the lease looks a year old (N2)."""
    asleep, awake = Owner(tmp_path, lease=LEASE), Owner(tmp_path, lease=LEASE)
    awake.renew()
    os.utime(tmp_path / f"{asleep.name}.lock", (0, 0))
    awake.renew()
    assert awake.alive(asleep.name)
    newcomer = Owner(tmp_path, lease=LEASE)
    assert newcomer.alive(asleep.name)
    for owner in (asleep, awake, newcomer):
        owner.close()


CHILD = """
import sys
from pathlib import Path
from dragoman.store.sqlite.owner import Owner
owner = Owner(Path(sys.argv[1]), lease=20)
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
        owner = Owner(tmp_path, lease=LEASE)
        assert owner.alive(name)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert (tmp_path / f"{name}.lock").exists()
        assert not owner.alive(name)
        owner.close()


FORKS = """
import os, sys, time
from pathlib import Path
from dragoman.store.sqlite.owner import Owner
owner = Owner(Path(sys.argv[1]), lease=20)
if os.fork() == 0:
    owner.close()  # a copy: nothing to the parent
    print(owner.name, os.getpid(), flush=True)
    time.sleep(600)
    os._exit(0)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_neither_gives_the_lock_up_nor_keeps_it(tmp_path: Path) -> None:
    """S3: the lock is the parent's, and dies with it, however long the child lives."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        name, child = parent.stdout.readline().split()
        owner = Owner(tmp_path, lease=LEASE)
        try:
            assert owner.alive(name)
            parent.kill()
            parent.wait()
            assert not owner.alive(name)
            os.kill(int(child), 0)  # it is still there
        finally:
            os.kill(int(child), signal.SIGKILL)
            owner.close()
