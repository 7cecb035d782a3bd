"""Run the tests with third-party clients, and write a table: `make clients`.

The table is in docs/reference/protocols.md. A client's scenarios are the tests in which its published version
takes part.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "protocols.md"
HEAD = "| client | version | scenarios passed |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")
NPM = {  # client: folder of its lock file, package, tests
    "AI SDK 5": ("protocols/clients", "ai5", r"test_ai_sdk::.*\[(?:.*-)?5(?:-.*)?\]"),
    "AI SDK 6": ("protocols/clients", "ai6", r"test_ai_sdk::.*\[(?:.*-)?6(?:-.*)?\]"),
    "AI SDK 7": ("protocols/clients", "ai7", r"test_ai_sdk::.*\[(?:.*-)?7(?:-.*)?\]"),
    "AG-UI client": ("protocols/clients", "@ag-ui/client", r"test_ag_ui::"),
    "assistant-ui, AI SDK": (
        "protocols/frontends",
        "@assistant-ui/react-ai-sdk",
        r"test_assistant_ui::(?!.*ag-ui)",
    ),
    "assistant-ui, AG-UI": (
        "protocols/frontends",
        "@assistant-ui/react-ag-ui",
        r"test_assistant_ui::.*ag-ui",
    ),
    "CopilotKit": ("protocols/frontends", "@copilotkit/core", r"test_copilotkit::"),
    "OpenAI SDK for Node": ("protocols/openai_node", "openai", r"openai\.test_node::"),
    "ACP SDK for npm": ("acp_client", "@agentclientprotocol/sdk", r"acp\.test_npm_client::"),
    "acpx": ("acp_client", "acpx", r"acp\.test_acpx::"),
    "MCP inspector": ("mcp_inspector", "@modelcontextprotocol/inspector", r"mcp\.test_inspector::"),
}
PYTHON = {  # client: package, tests
    "OpenAI SDK for Python": ("openai", r"openai\.test_(?!node)\w+::"),
    "MCP SDK for Python": ("mcp", r"server\.mcp\.test_(?:serving|tasks)::"),
    "ACP SDK for Python": ("agent-client-protocol", r"cli\.acp\.test_(?!npm|acpx|emacs)\w+::"),
}
RECORDED = {  # client: version, tests with its recorded messages
    "Emacs, acp.el (recorded)": ("0.14.2", r"acp\.test_emacs::"),
}
TESTS = ("tests/protocols", "tests/server/mcp", "tests/cli/acp")


def main() -> None:
    results = run_tests()
    rows = [f"| {name} | {number} | {passed(results, tests)} |\n" for name, number, tests in clients()]
    PAGE.write_text(TABLE.sub(lambda _: HEAD + "".join(rows), PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write("".join(rows))
    if any(outcome == "failed" for _, outcome in results):
        sys.exit("some scenarios failed")


def run_tests() -> list[tuple[str, str]]:
    """Return each test with its outcome over all its cases."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        program = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal")
        every_case = {**os.environ, "SWEEP": "1"}
        subprocess.run([*program, f"--junitxml={report}", *TESTS], cwd=ROOT, env=every_case, check=False)
        cases = ElementTree.parse(report).iter("testcase")
        return [(f"{case.get('classname')}::{case.get('name')}", outcome(case)) for case in cases]


def outcome(case: ElementTree.Element) -> str:
    kinds = {child.tag for child in case}
    return "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"


def clients() -> list[tuple[str, str, str]]:
    found = [(name, locked(folder, package), tests) for name, (folder, package, tests) in NPM.items()]
    found += [(name, number, tests) for name, (number, tests) in RECORDED.items()]
    return found + [(name, version(package), tests) for name, (package, tests) in PYTHON.items()]


def locked(folder: str, package: str) -> str:
    lock = json.loads((ROOT / "tests" / folder / "package-lock.json").read_text("utf-8"))
    return str(lock["packages"][f"node_modules/{package}"]["version"])


def passed(results: list[tuple[str, str]], tests: str) -> str:
    counts = Counter(outcome for name, outcome in results if re.search(tests, name) and outcome != "skipped")
    return f"{counts['passed']} of {counts.total()}"


if __name__ == "__main__":
    main()
