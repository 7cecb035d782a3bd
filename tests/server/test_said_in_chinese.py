"""What the server says to a person at the page is said in Chinese on the Chinese page (U3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/dragoman"
TABLE = ROOT / "web/src/i18n/zh/server.ts"

# From here a sentence gets to the page; the terminal and other clients' protocols have readers of their own.
REACHED = (
    "server/routes",
    "server/setup",
    "turn",
    "conversation",
    "workspace",
    "store/transfer.py",
    "tools/preview.py",
    "providers/media.py",
    "providers/served.py",
    "providers/local",
    "wire",
)
# Only a program that uses the library hears these.
LIBRARY = re.compile(r"output_type|allow_once\(\)|Text and File parts|snapshot_folder|there is no state")


def sentences() -> Iterator[str]:
    """As the code has them, with an x where something is filled in."""
    for place in REACHED:
        files = [CODE / place] if place.endswith(".py") else (CODE / place).rglob("*.py")
        for file in files:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                match node:
                    case ast.Call(func=ast.Name(id="BadRequest" | "Notice"), args=[said, *_]) if _written(
                        said
                    ):
                        yield _written(said)


def _written(value: ast.expr) -> str:
    """Nothing where it is made elsewhere."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
            return text if re.search(r"[a-z]{2} [a-z]", text) else ""
    return ""


def patterns() -> list[re.Pattern[str]]:
    written = re.findall(r"^  \[/(.*)/(s?), ", TABLE.read_text("utf-8"), re.MULTILINE)
    return [re.compile(pattern, re.DOTALL if flags else 0) for pattern, flags in written]


def test_what_the_server_says_has_a_chinese_sentence() -> None:
    """Add it to `web/src/i18n/zh/server.ts` where it is missing."""
    said = {one for one in sentences() if one and not LIBRARY.search(one)}
    assert len(said) > 50
    known = patterns()
    assert [one for one in sorted(said) if not any(pattern.search(one) for pattern in known)] == []
