"""K2: the filters of both architectures: they have the kernel's numbers, and decide as the table does."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from dragoman.tools.cage.seccomp import ARCHITECTURES, PATHS, REFUSED, SYSCALLS, number, refusing, watching

HEADERS = {
    "x86_64": [
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
        "/usr/x86_64-linux-gnu/include/asm/unistd_64.h",
    ],
    "aarch64": ["/usr/include/asm-generic/unistd.h", "/usr/aarch64-linux-gnu/include/asm/unistd_64.h"],
}
ALLOW, EPERM, ENOSYS, NOTIFY, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x7FC00000, 0x80000000
BOTH = pytest.mark.parametrize("machine", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _made_anew() -> None:
    """Each test has the filters made again."""
    refusing.cache_clear()
    watching.cache_clear()


def judge(program: bytes, machine: str, call: int, *given: int) -> int:
    """Return the verdict of the kernel: the few instructions that the filter uses, as the kernel documents
    them."""
    arguments = (*given, *(0,) * (6 - len(given)))
    data = struct.pack("=iIQ6Q", call, ARCHITECTURES[machine], 0, *arguments)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    place = value = 0
    while True:
        code, if_true, if_false, constant = steps[place]
        place += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, constant)
            case 0x06:
                return int(constant)
            case 0x15:
                place += if_true if value == constant else if_false
            case 0x35:
                place += if_true if value >= constant else if_false
            case 0x45:
                place += if_true if value & constant else if_false
            case _:
                raise AssertionError(f"instruction {code:#x}")


@BOTH
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = next((Path(one) for one in HEADERS[machine] if Path(one).is_file()), None)
    if header is None:
        pytest.skip(f"the kernel's headers for {machine} are not installed")
    known = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE))
    for name in SYSCALLS:
        ours = number(name, machine)
        if name in known:
            assert ours == int(known[name]), name
        else:  # older than the call, or the architecture has none
            assert ours is None or ours >= 424, name


@BOTH
def test_what_the_table_refuses_is_refused_and_nothing_else(machine: str) -> None:
    program = refusing(machine)
    refused = {number(name, machine) for name in REFUSED}
    there_not = {number("clone3", machine), number("openat2", machine)}
    for call in range(467):
        expected = EPERM if call in refused else ENOSYS if call in there_not else ALLOW
        if call != number("socket", machine):
            assert judge(program, machine, call) == expected, call
    for call in (467, 600, 0x40000000, 0x40000101, -1):
        assert judge(program, machine, call) == ENOSYS
    (other,) = ARCHITECTURES.keys() - {machine}
    assert judge(program, other, 0) == KILL


@BOTH
def test_namespaces_terminals_sockets_and_owners_rights_are_looked_at(machine: str) -> None:
    def verdict(name: str, *given: int) -> int:
        call = number(name, machine)
        return ALLOW if call is None else judge(refusing(machine), machine, call, *given)

    assert verdict("clone", 0x01200011) == ALLOW  # fork
    assert verdict("clone", 0x003D0F00) == ALLOW  # a thread
    also_a_number = number("socket", machine)
    assert also_a_number is not None
    assert verdict("clone", also_a_number) == ALLOW
    for namespace in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict("clone", namespace | 17) == EPERM
    assert [verdict("ioctl", 0, one) for one in (0x5401, 0x5412, 0x541C, 0xFFFFFFFF_00005412)] == [
        ALLOW,
        EPERM,
        EPERM,
        EPERM,
    ]
    allowed = {family for family in range(50) if verdict("socket", family, 1) == ALLOW}
    assert allowed == {2, 10, 16}
    assert [verdict("socket", 16, 3, protocol) for protocol in (0, 4, 9, 15)] == [ALLOW, EPERM, EPERM, EPERM]
    for name, place in (("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("mkdirat", 2), ("chmod", 1)):
        modes = [verdict(name, *(0,) * place, mode) for mode in (0o755, 0o1777, also_a_number)]
        assert modes == [ALLOW, ALLOW, ALLOW]
        if number(name, machine) is not None:
            assert verdict(name, *(0,) * place, 0o4755) == verdict(name, *(0,) * place, 0o2755) == EPERM
    assert verdict("openat", 0, 0, 0o101, 0o4755) == EPERM
    assert verdict("openat", 0, 0, 0, 0o4755) == ALLOW  # without O_CREAT, the call has no mode
    assert verdict("openat", 0, 0, 0o101, 0o644) == ALLOW


@BOTH
def test_the_watcher_sees_what_writes_and_refuses_nothing(machine: str) -> None:
    program = watching(machine)
    for name in PATHS:
        if (call := number(name, machine)) is not None and name not in ("open", "openat"):
            assert judge(program, machine, call) == NOTIFY
    openat = number("openat", machine)
    assert openat is not None
    assert [judge(program, machine, openat, 0, 0, flags) for flags in (0, 0o2000000, 1, 2, 0o100)] == [
        ALLOW,
        ALLOW,
        NOTIFY,
        NOTIFY,
        NOTIFY,
    ]
