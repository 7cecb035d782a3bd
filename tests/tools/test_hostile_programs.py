"""G5: whatever a program tries, it reaches only tools, and harms only itself.

A program that gets something forbidden prints REACHED. A program without output is stopped or refused.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import tool
from dragoman.messages.message import CallState
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import runtime_with

SECRET = "hunter2-of-the-host"
HOSTILE = {
    # files
    "open": "print('REACHED', open('SECRET_FILE').read())",
    "open for writing": "open('MADE', 'w').write('x')\nprint('REACHED')",
    "pathlib": "from pathlib import Path\nprint('REACHED', Path('SECRET_FILE').read_text())",
    "pathlib write": "from pathlib import Path\nPath('MADE').write_text('x')\nprint('REACHED')",
    "pathlib exists": "from pathlib import Path\nprint('REACHED' if Path('SECRET_FILE').exists() else 'no')",
    "pathlib list": "from pathlib import Path\nprint('REACHED', list(Path('/').iterdir()))",
    "pathlib unlink": "from pathlib import Path\nPath('SECRET_FILE').unlink()\nprint('REACHED')",
    "pathlib mkdir": "from pathlib import Path\nPath('MADE').mkdir()\nprint('REACHED')",
    "pathlib link": "from pathlib import Path\nPath('MADE').symlink_to('/')\nprint('REACHED')",
    "io": "import io\nprint('REACHED', io.open('SECRET_FILE').read())",
    "os.listdir": "import os\nprint('REACHED', os.listdir('/'))",
    "os.open": "import os\nprint('REACHED', os.open('SECRET_FILE', 0))",
    "proc": "from pathlib import Path\nprint('REACHED', Path('/proc/self/environ').read_text())",
    "relative": "from pathlib import Path\nprint('REACHED', Path('../../../../etc/passwd').read_text())",
    "stat": "from pathlib import Path\nprint('REACHED', Path('/etc').stat())",
    # the machine
    "environ": "import os\nprint('REACHED', os.environ['HOME'])",
    "getenv": "import os\nvalue = os.getenv('DRAGOMAN_TEST_SECRET')\nprint('REACHED' if value else 'no')",
    "os.system": "import os\nos.system('touch MADE')\nprint('REACHED')",
    "os.fork": "import os\nprint('REACHED', os.fork())",
    "os.kill": "import os\nos.kill(os.getppid(), 9)\nprint('REACHED')",
    "os.getpid": "import os\nprint('REACHED', os.getpid())",
    "subprocess": "import subprocess\nprint('REACHED', subprocess.run(['id']))",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', PORT))\nprint('REACHED')",
    "urllib": "import urllib.request\nprint('REACHED', urllib.request.urlopen('http://127.0.0.1:PORT'))",
    "http": "import http.client\nprint('REACHED')",
    "ctypes": "import ctypes\nprint('REACHED', ctypes.CDLL(None))",
    "threading": "import threading\nprint('REACHED', threading.Thread)",
    "multiprocessing": "import multiprocessing\nprint('REACHED')",
    "signal": "import signal\nprint('REACHED')",
    "importlib": "import importlib\nprint('REACHED', importlib.import_module('subprocess'))",
    "pickle": "import pickle\nprint('REACHED', pickle.loads)",
    "dragoman": "import dragoman\nprint('REACHED')",
    "sys.modules": "import sys\nprint('REACHED', sys.modules['os'])",
    "sys.path": "import sys\nsys.path.append('/')\nimport subprocess\nprint('REACHED')",
    "sys.exit": "import sys\nsys.exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "input": "print('REACHED', input())",
    "breakpoint": "breakpoint()\nprint('REACHED')",
    # the interpreter
    "eval": "name = 'SECRET_FILE'\nprint('REACHED', eval('open(name).read()'))",
    "eval a tool": "print('REACHED', await eval('hidden(n=1)'))",
    "exec": "exec('import subprocess')\nprint('REACHED')",
    "compile": "print('REACHED', compile('1', 'a', 'eval'))",
    "__import__": "print('REACHED', __import__('os').listdir('/'))",
    "builtins": "import builtins\nprint('REACHED', builtins.open)",
    "__builtins__": "print('REACHED', __builtins__)",
    "globals": "print('REACHED', globals()['__builtins__'])",
    "subclasses": "print('REACHED', ().__class__.__base__.__subclasses__())",
    "mro": "print('REACHED', (1).__class__.__mro__[1].__subclasses__())",
    "function globals": "async def f(): ...\nprint('REACHED', f.__globals__)",
    "tool globals": "print('REACHED', note.__globals__)",
    "tool code": "print('REACHED', note.__code__)",
    "tool closure": "print('REACHED', note.__closure__)",
    "frames": "try:\n    1 / 0\nexcept Exception as error:\n    print('REACHED', error.__traceback__)",
    "generator frame": "print('REACHED', (x for x in ()).gi_frame.f_back)",
    "format string": "print('REACHED', '{0.__class__.__mro__}'.format(1))",
    "getattr": "print('REACHED', getattr(1, '__cla' + 'ss__').__base__)",
    "gc": "import gc\nprint('REACHED', gc.get_objects())",
    "inspect": "import inspect\nprint('REACHED', inspect.currentframe())",
    # tools it has not got
    "another tool": "print('REACHED', await hidden(n=1))",
    "another tool as a value": "f = hidden\nprint('REACHED', await f(n=1))",
    "itself": "print('REACHED', await run_program(code='1'))",
    "positional": "print('REACHED', await note(1))",
    "a denied tool": "print('REACHED', await forbidden(n=1))",
    "rename a tool": "forbidden = note\nforbidden.__name__ = 'forbidden'\nprint('REACHED')",
    # too much of something
    "time": "while True: pass",
    "sleep": "import time\ntime.sleep(10_000)",
    "async sleep": "import asyncio\nawait asyncio.sleep(10_000)",
    "memory": "x = 'x'\nwhile True: x += x",
    "list": "x = [0]\nwhile True: x += x",
    "big number": "x = 10\nwhile True: x = x * x",
    "power": "print(10 ** 10 ** 10)",
    "repeat": "print(len('x' * 10 ** 12))",
    "range": "print(len(list(range(10 ** 12))))",
    "recursion": "def f(n: int) -> int:\n    return f(n + 1)\nf(0)",
    "deep value": "x: list = []\nfor _ in range(100_000): x = [x]\nx",
    "deep argument": "x: list = []\nfor _ in range(100_000): x = [x]\nawait same(value=x)",
    "cyclic value": "x: list = []\nx.append(x)\nx",
    "cyclic argument": "x: list = []\nx.append(x)\nawait same(value=x)",
    "printing": "while True: print('x' * 1000)",
    "regex": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "json": "import json\njson.loads('[' * 200_000)",
    "nested source": "x = " + "(" * 5_000 + "1" + ")" * 5_000,
    "huge argument": "await same(value='x' * 5_000_000)",
    "caught": "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
}


@pytest.mark.slow
async def test_g5_hostile_programs_reach_nothing_but_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them in one runtime, at the same time: none hurts another, and the workers recover."""
    monkeypatch.setenv("DRAGOMAN_TEST_SECRET", SECRET)
    secret, made = tmp_path / "secret", tmp_path / "made"
    secret.write_text(SECRET)
    reached: list[Any] = []
    connected: list[Any] = []
    server = await asyncio.start_server(lambda reader, writer: connected.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    @tool
    async def note(n: int) -> int:
        """Note a number."""
        return n

    @tool
    async def same(value: Any) -> Any:
        """Give it back."""
        return value

    @tool
    async def forbidden(n: int) -> int:
        """Never run."""
        reached.append(n)
        return n

    def script(request: Any) -> Any:
        said = request.messages[0].parts[0].text
        if len(request.messages) > 1:
            return says("end")
        code = HOSTILE[said].replace("SECRET_FILE", str(secret)).replace("MADE", str(made))
        return calls("run_program", code=code.replace("PORT", str(port)))

    tools = [note, same, forbidden, "programs"]
    options: dict[str, Any] = {"tools": tools, "allow": ["note", "same"], "deny": ["forbidden"]}
    async with runtime_with(tmp_path, script, **options) as runtime, asyncio.timeout(PATIENCE):
        gate = asyncio.Semaphore(8)

        async def attack(name: str) -> tuple[str, CallState, str]:
            async with gate:
                turn = await runtime.send(name)
                await turn.result()
            reply = next(one for one in (await turn.snapshot()).messages if one.calls)
            result = reply.calls[0].result
            assert result is not None
            return name, reply.calls[0].state, result.text

        outcomes = await asyncio.gather(*map(attack, HOSTILE))
        name, state, text = await attack("async sleep")  # a worker is there for the next
        assert state is CallState.COMPLETED, (name, text)
    server.close()
    said = {name: text for name, _, text in outcomes if "\nREACHED" in f"\n{text}"}
    assert not said
    assert not [name for name, _, text in outcomes if SECRET in text]
    assert (reached, connected, made.exists()) == ([], [], False)
    assert secret.read_text() == SECRET
