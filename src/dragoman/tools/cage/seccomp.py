"""Builds the seccomp filters of the cage: one table of system calls, as BPF for x86-64 and aarch64."""

from __future__ import annotations

import platform
import struct
from functools import cache
from typing import TypeAlias

# Number on x86-64, number on aarch64. None: the architecture has no such call.
SYSCALLS: dict[str, tuple[int | None, int | None]] = {
    # Other processes, and memory shared by two of them.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "userfaultfd": (323, 282),
    # No filter sees what an io_uring does.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # The kernel: its programs, counters, keys, modules and log.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "iopl": (172, None),
    "ioperm": (173, None),
    # Mounts and namespaces.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    # Files by other ways than their paths, and files of all users.
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "nfsservctl": (180, 42),
    # The machine.
    "reboot": (169, 142),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "vhangup": (153, 58),
    # Checked more closely below.
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "socket": (41, 198),
    # Modes of files.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "openat2": (437, 437),
    # Calls that the watcher sees, and modes of new files.
    "openat": (257, 56),
    "mkdirat": (258, 34),
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "open": (2, None),
    "creat": (85, None),
    "mkdir": (83, None),
    "rmdir": (84, None),
    "unlink": (87, None),
    "rename": (82, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "truncate": (76, 45),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "seccomp": (317, 277),
}
_LATER = 467  # the first number assigned after this table: such a call does not exist inside
_CLOSELY = ("clone", "clone3", "ioctl", "socket", "openat2")
# The argument that is the mode. A setuid program would be a way out of the cage later.
_MODES = {
    **{"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mkdir": 1, "mkdirat": 2, "mknod": 1},
    **{"mknodat": 2, "creat": 1, "open": 2, "openat": 3},
}
Place: TypeAlias = tuple[int | None, int | None, str, int | None]
"""For a path that a call changes: the arguments that are the folder's descriptor (None: the working folder),
the path (None: the descriptor itself), and the flags. The third item is the kind of change.
"""
# `make`: a name that must be new. `name`: a name that must exist. `change`: the target of a name; `link`: the
# name itself if it is a link. `into`: a name, new or not. `open`: to write, and created if its flags say so.
PATHS: dict[str, tuple[Place, ...]] = {
    "openat": ((0, 1, "open", 2),),
    "mkdirat": ((0, 1, "make", None),),
    "mknodat": ((0, 1, "make", None),),
    "symlinkat": ((1, 2, "make", None),),
    "linkat": ((2, 3, "make", None),),
    "unlinkat": ((0, 1, "name", None),),
    "renameat": ((0, 1, "name", None), (2, 3, "into", None)),
    "renameat2": ((0, 1, "name", None), (2, 3, "into", None)),
    "fchmod": ((0, None, "change", None),),
    "fchmodat": ((0, 1, "change", None),),
    "fchmodat2": ((0, 1, "change", 3),),
    "fchown": ((0, None, "change", None),),
    "fchownat": ((0, 1, "change", 4),),
    "truncate": ((None, 0, "change", None),),
    "utimensat": ((0, 1, "change", 3),),
    "setxattr": ((None, 0, "change", None),),
    "lsetxattr": ((None, 0, "link", None),),
    "fsetxattr": ((0, None, "change", None),),
    "setxattrat": ((0, 1, "change", 2),),
    "removexattr": ((None, 0, "change", None),),
    "lremovexattr": ((None, 0, "link", None),),
    "fremovexattr": ((0, None, "change", None),),
    "removexattrat": ((0, 1, "change", 2),),
    # Older calls, on x86-64 only.
    "open": ((None, 0, "open", 1),),
    "creat": ((None, 0, "into", None),),
    "mkdir": ((None, 0, "make", None),),
    "mknod": ((None, 0, "make", None),),
    "symlink": ((None, 1, "make", None),),
    "link": ((None, 1, "make", None),),
    "rmdir": ((None, 0, "name", None),),
    "unlink": ((None, 0, "name", None),),
    "rename": ((None, 0, "name", None), (None, 1, "into", None)),
    "chmod": ((None, 0, "change", None),),
    "chown": ((None, 0, "change", None),),
    "lchown": ((None, 0, "link", None),),
    "utime": ((None, 0, "change", None),),
    "utimes": ((None, 0, "change", None),),
    "futimesat": ((0, 1, "change", None),),
}
REFUSED = tuple(name for name in SYSCALLS if name not in {*_CLOSELY, *_MODES, *PATHS, "seccomp"})

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the kernel's audit names them
_ALLOW, _NOT_PERMITTED, _NOT_THERE, _NOTIFY, _KILL = (
    0x7FFF0000,
    0x00050001,
    0x00050026,
    0x7FC00000,
    0x80000000,
)
_NEW_NAMESPACES = 0x7E020000
_TYPE, _TYPE_IN_CONSOLE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_NETLINK = 16
_INTERNET = (2, 10)  # in a separate network
_OWNERS_RIGHTS = 0o6000  # S_ISUID, S_ISGID
_CREATING = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: without them the call has no mode
_WRITING = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC


def number(name: str, machine: str | None = None) -> int | None:
    return SYSCALLS[name][list(ARCHITECTURES).index(machine or platform.machine())]


def is_known(machine: str | None = None) -> bool:
    return (machine or platform.machine()) in ARCHITECTURES


@cache
def refusing(machine: str | None = None) -> bytes:
    """Return the filter of every caged process: calls that it names fail with EPERM."""
    program = _head(machine)
    for name in REFUSED:
        if (known := number(name, machine)) is not None:
            program += _if_equal(known, _NOT_PERMITTED)
    for name in ("clone3", "openat2"):  # Their flags are in memory. Without them, libc uses the older calls.
        program += _if_equal(_of(name, machine), _NOT_THERE)
    for name, place in _MODES.items():
        if (known := number(name, machine)) is not None:
            body = _argument(place) + _jump(0x45, _OWNERS_RIGHTS, 0, 1) + _return(_NOT_PERMITTED)
            if name in ("open", "openat"):
                body = _argument(place - 1) + _jump(0x45, _CREATING, 0, len(body) // 8) + body
            program += _when(known, body)
    program += _when(
        _of("clone", machine), _argument(0) + _jump(0x45, _NEW_NAMESPACES, 0, 1) + _return(_NOT_PERMITTED)
    )
    typing = _if_equal(_TYPE, _NOT_PERMITTED) + _if_equal(_TYPE_IN_CONSOLE, _NOT_PERMITTED)
    program += _when(_of("ioctl", machine), _argument(1) + typing)
    families = _argument(0) + b"".join(_if_equal(one, _ALLOW) for one in _INTERNET)
    # to read the machine's addresses
    routes = _jump(0x15, _NETLINK, 0, 3) + _argument(2) + _if_equal(0, _ALLOW)
    program += _when(_of("socket", machine), families + routes + _return(_NOT_PERMITTED))
    return program + _return(_ALLOW)


@cache
def watching(machine: str | None = None) -> bytes:
    """Return the filter that notifies a supervisor of everything that changes files or names. Refuses
    nothing."""
    program = _head(machine)
    for name in PATHS:
        if (known := number(name, machine)) is None:
            continue
        if name in ("open", "openat"):
            flags = _argument(1 if name == "open" else 2)
            program += _when(known, flags + _jump(0x45, _WRITING, 0, 1) + _return(_NOTIFY))
        else:
            program += _if_equal(known, _NOTIFY)
    return program + _return(_ALLOW)


def _head(machine: str | None) -> bytes:
    """Kill a process of another architecture, whose numbers mean other calls.

    Newer calls, and those of the third ABI of x86-64, whose numbers are higher, do not exist.
    """
    audit = ARCHITECTURES[machine or platform.machine()]
    load = _load(_ARCHITECTURE) + _jump(0x15, audit, 1, 0) + _return(_KILL) + _load(_NUMBER)
    return load + _jump(0x35, _LATER, 0, 1) + _return(_NOT_THERE)


def _of(name: str, machine: str | None) -> int:
    known = number(name, machine)
    assert known is not None
    return known


def _when(call: int, body: bytes) -> bytes:
    """Return the body for this call. If the body decides nothing, the number is loaded again for what
    follows."""
    return _jump(0x15, call, 0, len(body) // 8 + 1) + body + _load(_NUMBER)


def _if_equal(value: int, verdict: int) -> bytes:
    return _jump(0x15, value, 0, 1) + _return(verdict)


def _argument(place: int) -> bytes:
    """Load the lower half of an argument: these arguments use no more (both architectures are
    little-endian)."""
    return _load(16 + 8 * place)


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", 0x20, 0, 0, offset)


def _return(verdict: int) -> bytes:
    return struct.pack("=HBBI", 0x06, 0, 0, verdict)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
