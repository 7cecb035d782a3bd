"""Says who else on this machine could change a file: what another user can write is never used."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

ROOT = 0  # who can change everything anyway


def find_writer(path: Path) -> str | None:
    """Why somebody else could change what is at this path or put another thing there; None: nobody could."""
    real = Path(os.path.realpath(path))
    for each in (real, *real.parents):
        if (fault := writer_of(each, shared=each != real)) is not None:
            return fault
    return None


def writer_of(path: Path, *, shared: bool = False) -> str | None:
    """The same of this one file or folder alone.

    `shared`: a folder on the way. There others may write if it is sticky, as /tmp is: they can add to it, but
    replace nothing that belongs to us.
    """
    if sys.platform == "win32":
        return None  # there are no such owners and modes
    try:
        found = path.stat()
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror}"
    if found.st_uid not in (os.getuid(), ROOT):
        return f"{path} belongs to another user"
    writable = found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and not _is_private_group(found.st_gid)
    )
    if writable and not (shared and found.st_mode & stat.S_ISVTX):
        return f"other users can write {path}"
    return None


def _is_private_group(group: int) -> bool:
    """Whether nobody but us is in it: many systems give each person a group, and let it write."""
    if sys.platform == "win32":
        return True
    import grp
    import pwd

    if group == ROOT:
        return True
    try:
        me, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return me.pw_gid == group and found.gr_name == me.pw_name and set(found.gr_mem) <= {me.pw_name}
