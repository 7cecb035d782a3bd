"""Run one program several times, each in an empty folder; print its answer and the CPU time of a run."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path


def main(file: str, url: str, times: int) -> None:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = program
    spec.loader.exec_module(program)
    answer = _once(program.main, url)  # imports at first use are not part of a run's cost
    began = time.process_time()
    for _ in range(times):
        answer = _once(program.main, url)
    print(json.dumps({"answer": answer, "cpu": (time.process_time() - began) / times}))


def _once(program: object, url: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            answer: str = asyncio.run(program(url))  # type: ignore[operator]
        finally:
            os.chdir("/")
    return answer


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
