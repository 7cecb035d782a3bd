"""Pose as the client of the conformance suite and forward its orders to the test, which is the client.

Starting a fully loaded client for each scenario would take longer than the scenarios.
"""

from __future__ import annotations

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    line.sendall(json.dumps({"url": sys.argv[-1], "scenario": scenario, "given": given}).encode() + b"\n")
    answer = b"".join(iter(lambda: line.recv(65536), b"")).decode()
sys.stderr.write(answer)
sys.exit(1 if answer else 0)
