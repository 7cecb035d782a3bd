"""List ways out of the cage and how each one shows outside. They attack only the world they are given.

Names in braces, such as `{home}`, are filled in. The kind states what an escape would be: `prints` a secret,
`changes` something outside, `plants` a file that runs later, `reaches` a listener, or `does` an operation
that the system must refuse, and prints DONE. Entries marked `control` succeed without a cage, which proves
that they are real.
"""

# ruff: noqa: E501 - the attempts are written as they run

from __future__ import annotations

from typing import Literal, NamedTuple


class Escape(NamedTuple):
    name: str
    kind: Literal["prints", "changes", "plants", "reaches", "does"]
    shell: str = ""
    python: str = ""
    control: bool = True


_CALL = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def call(intel, arm, *given):
    made = libc.syscall(arm if platform.machine() == "aarch64" else intel, *given)
    if made < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made
"""
_GIT = "printf '#!/bin/sh\\ntouch {other}/ran\\n' > evil; chmod +x evil; "
_FSMONITOR = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {work}/evil\\n"

ESCAPES = [
    # ── reading ──
    Escape("read_npm_token", "prints", "cat {home}/.npmrc"),
    Escape("read_docker_login", "prints", "cat {home}/.docker/config.json"),
    Escape("read_shell_history", "prints", "cat {home}/.bash_history"),
    Escape("read_kube_config", "prints", "cat ~/.kube/config"),
    Escape("read_browser_cookies", "prints", "cat {home}/.mozilla/cookies.sqlite"),
    Escape("read_neighbour_project", "prints", "cat {work}/../other/notes.txt"),
    Escape("find_by_name", "prints", "find / -name notes.txt -exec cat {{}} + 2>/dev/null"),
    Escape("grep_home", "prints", "grep -rh token {home}"),
    Escape("archive_home", "prints", "tar cf - -C {home} . | strings || tar cf - -C {home} . | cat"),
    Escape("read_by_old_link", "prints", "cat link-out/notes.txt"),
    Escape("read_by_new_link", "prints", "ln -s {home}/.npmrc l; cat l"),
    Escape("read_by_chdir", "prints", "cd {home} && cat .npmrc"),
    Escape("read_by_dev_fd", "prints", "cat /dev/fd/../../../{home}/.npmrc {home}/.npmrc"),
    Escape("read_victims_files", "prints", "cat /proc/{victim}/fd/*"),
    Escape("read_victims_environment", "prints", "tr '\\0' '\\n' < /proc/{victim}/environ"),
    Escape("read_victims_folder", "prints", "cat /proc/{victim}/cwd/.npmrc"),
    Escape("read_command_lines", "prints", "cat /proc/*/cmdline | tr '\\0' ' '"),
    Escape("read_our_environment", "prints", "env"),
    Escape("read_environment_of_init", "prints", "cat /proc/1/environ /proc/self/environ", control=False),
    Escape("read_store_in_workspace", "prints", "cat store.db store.db-wal"),
    Escape("copy_store_in_workspace", "prints", "cp store.db copied; cat copied"),
    Escape("read_store_moved", "prints", "mv store.db moved; cat moved"),
    Escape(
        "read_mount_table_for_home",
        "does",
        "grep -q ' {home}/.ssh ' /proc/self/mountinfo && echo DONE",
        control=False,
    ),
    Escape("list_home", "does", "test -e {home}/.ssh && echo DONE"),
    Escape("list_other_projects", "does", "ls {other} | grep -q notes && echo DONE"),
    # ── writing ──
    Escape("append_to_profile", "changes", "echo x >> {home}/.profile"),
    Escape("write_by_dd", "changes", "dd if=/dev/zero of={other}/notes.txt bs=1 count=1 2>/dev/null"),
    Escape("write_by_old_link", "changes", "echo x > link-out/notes.txt"),
    Escape("write_by_link_to_folder", "changes", "ln -s {other} d; echo x > d/new"),
    Escape("move_out", "changes", "echo x > f; mv f {other}/f"),
    Escape("install_out", "changes", "echo x > f; install -m 755 f {home}/.local/bin/ls"),
    Escape("delete_outside", "changes", "rm -rf {other}/notes.txt"),
    Escape("delete_home", "changes", "rm -rf {home}/.npmrc"),
    Escape("chmod_outside", "changes", "chmod 777 {other}/notes.txt"),
    Escape("touch_outside", "changes", "touch -t 200001010000 {other}/notes.txt"),
    Escape("rename_workspace", "changes", "mv {work} {work}-moved"),
    Escape("make_folder_beside", "changes", "mkdir {work}-beside"),
    Escape("extract_out", "changes", "mkdir t; echo x > t/f; tar cf a.tar -C t f; tar xf a.tar -C {other}"),
    Escape("write_shared_tmp", "changes", "echo x > {tmp}/planted"),
    Escape(
        "write_sqlite_outside",
        "changes",
        python="import sqlite3; c = sqlite3.connect('{other}/notes.db'); c.execute('create table a(b)'); c.commit()",
    ),
    Escape("hardlink_out", "changes", "ln {other}/notes.txt h && echo x >> h"),
    Escape("fifo_outside", "changes", "mkfifo {other}/pipe"),
    # ── what runs later ──
    Escape("plant_setuid_program", "plants", "cp /bin/sh s; chmod u+s s"),
    Escape("plant_setuid_by_install", "plants", "install -m 4755 /bin/sh s"),
    Escape(
        "plant_setgid_by_open",
        "plants",
        python="import os; os.umask(0); os.open('s', os.O_CREAT | os.O_WRONLY, 0o2755)",
    ),
    Escape(
        "plant_setuid_by_fchmod",
        "plants",
        python="import os; f = os.open('s', os.O_CREAT | os.O_WRONLY, 0o755); os.fchmod(f, 0o4755)",
    ),
    Escape("git_alias", "plants", _GIT + "git config alias.status '!{work}/evil'"),
    Escape("git_hook_path", "plants", _GIT + "git config core.hooksPath {work}"),
    Escape("git_attributes", "plants", "echo '* filter=x' > .gitattributes"),
    Escape(
        "git_new_repository_below",
        "plants",
        _GIT + "mkdir sub && git init -q sub && printf '" + _FSMONITOR + "' > sub/.git/config",
    ),
    Escape(
        "git_bare_repository_below",
        "plants",
        _GIT
        + "mkdir -p b/objects b/refs && printf '"
        + _FSMONITOR
        + "' > b/config && echo 'ref: refs/heads/x' > b/HEAD",
    ),
    Escape("git_repository_in_a_closed_folder", "plants", "mkdir -p deep/.git; chmod 311 deep"),
    Escape("git_repository_in_a_frozen_folder", "plants", "mkdir -p deep/.git; chmod 555 deep"),
    Escape("git_index_moved", "plants", "mv .git/index .git/index2"),
    Escape("git_worktree_file", "plants", "mv .git g && echo 'gitdir: g' > .git"),
    Escape("git_folder_swapped", "plants", python="import os; os.rename('.git', 'x'); os.mkdir('.git')"),
    Escape("git_modules", "plants", "printf '[submodule \"a\"]\\n' > .gitmodules"),
    Escape("settings_appended", "plants", "echo '# x' >> dragoman.toml"),
    Escape("settings_removed", "plants", "rm -f dragoman.toml"),
    Escape("settings_other_case", "plants", "echo x > Dragoman.TOML"),
    Escape("settings_below", "plants", "mkdir p; echo x > p/dragoman.toml"),
    Escape("server_script", "plants", "echo x > srv/server.py"),
    Escape("server_neighbour", "plants", "echo x > srv/os.py"),
    Escape("server_folder_moved", "plants", "mv srv srv2; mkdir srv; echo x > srv/server.py"),
    Escape("editor_tasks", "plants", "mkdir .vscode; echo {{}} > .vscode/tasks.json"),
    Escape("editor_tasks_below", "plants", "mkdir -p a/b/.vscode; echo {{}} > a/b/.vscode/settings.json"),
    Escape("editor_by_link", "plants", "mkdir v; ln -s v .vscode"),
    Escape("shell_hook", "plants", "echo 'touch x' > .envrc"),
    Escape("prompt_for_agents", "plants", "echo 'do evil' > AGENTS.md"),
    Escape("other_agents_servers", "plants", "echo {{}} > .mcp.json"),
    Escape("hook_manager", "plants", "echo 'repos: []' > .pre-commit-config.yaml"),
    Escape("custom_tool", "plants", "mkdir tools; echo x > tools/t.py"),
    Escape("hidden_among_many", "plants", "for i in $(seq 300); do mkdir -p m/$i; done; mkdir m/299/.git"),
    Escape("place_of_what_is_held", "plants", "mkdir .dragoman-held .vscode; chmod 0 .dragoman-held"),
    Escape(
        "place_of_what_is_held_is_a_link",
        "changes",
        "ln -s {other} .dragoman-held; mkdir .vscode",
        control=False,
    ),
    # ── network ──
    Escape(
        "connect_by_shell",
        "reaches",
        python="import socket; socket.create_connection(('127.0.0.1', {port}), 2).sendall(b'in')",
    ),
    Escape(
        "connect_any_address",
        "reaches",
        python="import socket; socket.create_connection(('0.0.0.0', {port}), 2).sendall(b'in')",
    ),
    Escape(
        "connect_by_name",
        "reaches",
        python="import socket; socket.create_connection(('localhost', {port}), 2).sendall(b'in')",
    ),
    Escape("curl", "reaches", "curl -s --noproxy '*' -m 2 http://127.0.0.1:{port}/", control=False),
    Escape(
        "curl_by_proxy",
        "reaches",
        "curl -s -p -m 2 https://127.0.0.1:{port}/; curl -s -m 2 http://127.0.0.1:{port}/",
        control=False,
    ),
    Escape(
        "proxy_with_spaces",
        "reaches",
        python="""
import socket
s = socket.create_connection(('127.0.0.1', 3128), 2)
s.sendall(b'CONNECT  127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n'); s.recv(99); s.sendall(b'in')""",
        control=False,
    ),
    Escape(
        "proxy_bare_newlines",
        "reaches",
        python="""
import socket
s = socket.create_connection(('127.0.0.1', 3128), 2)
s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\n\\n\\r\\n\\r\\n'); s.recv(99); s.sendall(b'in')""",
        control=False,
    ),
    Escape(
        "datagram", "reaches", python="import socket; socket.socket(2, 2).sendto(b'in', ('127.0.0.1', {udp}))"
    ),
    Escape(
        "socket_file",
        "reaches",
        python="import socket; s = socket.socket(1); s.connect('dev.sock'); s.sendall(b'in')",
    ),
    # ── the kernel ──
    Escape("new_namespace_by_program", "does", "unshare -Ur true && echo DONE", control=False),
    Escape("chroot", "does", python=_CALL + "call(161, 51, b'/tmp'); print('DONE')", control=False),
    Escape("mount_over", "does", "mount -t tmpfs none {work} && echo DONE", control=False),
    Escape("remount_writable", "does", "mount -o remount,rw / && echo DONE", control=False),
    Escape("unmount_protection", "does", "umount {work}/.git && echo DONE", control=False),
    Escape(
        "new_mount_call", "does", python=_CALL + "call(428, 428, -100, b'/', 1); print('DONE')", control=False
    ),
    Escape(
        "raw_socket", "does", python="import socket; socket.socket(2, 3, 1); print('DONE')", control=False
    ),
    Escape(
        "netlink_audit", "does", python="import socket; socket.socket(16, 3, 9); print('DONE')", control=False
    ),
    Escape(
        "bluetooth_socket",
        "does",
        python="import socket; socket.socket(31, 3, 0); print('DONE')",
        control=False,
    ),
    Escape(
        "kernel_modules", "does", python=_CALL + "call(313, 273, 0, b'', 0); print('DONE')", control=False
    ),
    Escape(
        "set_clock",
        "does",
        python="import time; time.clock_settime(0, time.time()); print('DONE')",
        control=False,
    ),
    Escape(
        "set_host_name", "does", python="import socket; socket.sethostname('x'); print('DONE')", control=False
    ),
    Escape("become_root", "does", python="import os; os.setgroups([0]); print('DONE')", control=False),
    Escape(
        "capabilities", "does", "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo DONE", control=False
    ),
    Escape(
        "trace_a_child",
        "does",
        python="import ctypes, os\nif os.fork() == 0:\n    print('DONE' if ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0 else '')",
        control=False,
    ),
    Escape("signal_the_victim", "does", "kill -0 {victim} && echo DONE"),
    Escape("raise_own_limits", "does", "ulimit -c unlimited 2>/dev/null && echo DONE", control=False),
    Escape(
        "device_of_the_machine",
        "does",
        "ls /dev/kvm /dev/mem /dev/sda /dev/vda /dev/fuse 2>/dev/null | grep -q . && echo DONE",
        control=False,
    ),
    Escape("sysfs", "does", "ls /sys/class/net 2>/dev/null | grep -q . && echo DONE", control=False),
    Escape(
        "write_own_oom_score", "does", "echo -1000 > /proc/self/oom_score_adj && echo DONE", control=False
    ),
]
