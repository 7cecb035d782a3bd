"""Run as the first program in a watched cage: pass out what only the inside can make, then exec the command.

An isolated interpreter receives it as text, so it imports nothing of ours and little else: each import costs
every command some milliseconds.
"""

import _socket
import os
import sys

PORT = 3128  # of the proxy, in the cage's network


def hand_out(control: int, call: int, program: bytes) -> None:
    """Pass out a listening socket and, with a filter, its notification descriptor. Both are served from
    outside."""
    given = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    given.bind(("127.0.0.1", PORT))
    given.listen(64)
    files = [given.fileno()]
    if program:
        files.append(_install(call, program))
    outside = _socket.socket(fileno=control)
    rights = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
    outside.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    os.closerange(3, 1024)


def _install(call: int, program: bytes) -> int:
    """Install a filter that notifies. Return the descriptor from which its notifications are read."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    kept = ctypes.create_string_buffer(program, len(program))
    whole = Program(len(program) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(call, 1, 8, ctypes.byref(whole))  # SET_MODE_FILTER, FLAG_NEW_LISTENER
    if made < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(made)


if __name__ == "__main__":
    _, _control, _call, _program, *_words = sys.argv
    hand_out(int(_control), int(_call), bytes.fromhex(_program))
    os.execvp(_words[0], _words)
