"""Build the documentation site: `make docs`, or `make docs-serve` to read it.

Puts README, `docs/` and a reference generated from the code into one folder, converts it to HTML with
Zensical, and checks every link. With `DOCS_REPOSITORY`, the address of a repository, links to source files
lead there. Without it they are plain text.
"""

from __future__ import annotations

import functools
import html
import http.server
import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import dragoman

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "site" / "docs"
HTML = ROOT / "build" / "site" / "html"
SITE = ROOT / "dist" / "site"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
}


def main() -> None:
    collect()
    zensical = ROOT / ".tools" / "docs" / "bin" / "zensical"
    if subprocess.run(
        [zensical, "build", "--strict"], cwd=ROOT, env=os.environ | {"NO_COLOR": "1"}, check=False
    ).returncode:
        raise SystemExit(1)
    if broken := [*broken_links(HTML)]:
        raise SystemExit("\n".join(["links that lead nowhere:", *broken]))
    sys.stdout.write(f"{publish()} is built: open it, or run `make docs-serve`\n")


def collect() -> None:
    """Return the pages of the site, with adapted links."""
    shutil.rmtree(PAGES.parent, ignore_errors=True)
    sources = {ROOT / name: page for name, page in TOP.items()}
    sources |= {file: file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    for file, page in sources.items():
        write(page, relinked(file.read_text("utf-8"), file, page, sources))
    shutil.copytree(ROOT / "docs" / "images", PAGES / "images")
    write("reference/python.md", python_reference())
    write("reference/commands.md", commands_reference())
    write("reference/http.md", http_reference())


def write(page: str, text: str) -> None:
    file = PAGES / page
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def relinked(text: str, file: Path, page: str, sources: Mapping[Path, str]) -> str:
    """Return a page whose links lead to pages of the site, or to the repository."""

    def change(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        if urlsplit(target).scheme or target.startswith("#"):
            return found.group(0)
        path, _, part = target.partition("#")
        aim = Path(os.path.normpath(file.parent / path))
        if aim in sources:
            there = posixpath.relpath(sources[aim], posixpath.dirname(page) or ".")
            return f"{mark}[{label}]({there}{'#' + part if part else ''})"
        if aim.is_relative_to(ROOT / "docs" / "images"):
            there = posixpath.relpath(
                aim.relative_to(ROOT / "docs").as_posix(), posixpath.dirname(page) or "."
            )
            return f"{mark}[{label}]({there})"
        if repository := os.environ.get("DOCS_REPOSITORY"):
            return f"[{label}]({repository.rstrip('/')}/blob/main/{aim.relative_to(ROOT).as_posix()})"
        return label

    return LINK.sub(change, text).replace('src="docs/images/', 'src="images/')


# ── the reference ─────────────────────────────────────────────────────────────────────────────────


def python_reference() -> str:
    """Return every public name with its signature and its docstring."""
    lines = ["# Python API", "", "Import every name below from `dragoman`.", ""]
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in sorted(dragoman.__all__, key=str.lower):
        thing = getattr(dragoman, name)
        group = (
            "Functions"
            if not inspect.isclass(thing)
            else "Errors"
            if issubclass(thing, BaseException)
            else "Classes"
        )
        groups[group] += [f"### {name}", "", *_described(name, thing)]
        if group == "Classes":
            groups[group] += [line for member in _members(thing) for line in member]
    for title, found in groups.items():
        lines += [f"## {title}", "", *found]
    return "\n".join(lines)


def _described(name: str, thing: object) -> Iterator[str]:
    try:
        signature = str(inspect.signature(thing)) if callable(thing) else ""
    except (TypeError, ValueError):
        signature = ""
    written = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", signature).replace("'", "")
    yield from ("```python", _wrapped(f"{name}{written}"), "```", "")
    if text := inspect.getdoc(thing):
        yield from (_with_code_blocks(text), "")


def _wrapped(signature: str) -> str:
    """A signature with a line for each parameter, if it is long."""
    if len(signature) <= 90 or "(" not in signature:
        return signature
    head, rest = signature.split("(", 1)
    parameters, depth, current = [], 0, ""
    body, _, tail = rest.rpartition(")")
    for sign in body:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parameters.append(current.strip())
            current = ""
        else:
            current += sign
    return "\n".join(
        [f"{head}(", *(f"    {one}," for one in [*parameters, current.strip()] if one), f"){tail}"]
    )


def _with_code_blocks(text: str) -> str:
    """Return a docstring as Markdown: indented lines are code already, a lone backslash is not an escape."""
    return text.replace("<", "&lt;") if "`" not in text else text


def _members(thing: type) -> Iterator[list[str]]:
    for name, member in vars(thing).items():
        called = getattr(member, "__func__", member)
        if name.startswith("_") or not (inspect.isfunction(called) or isinstance(member, property)):
            continue
        if isinstance(member, property):
            if text := inspect.getdoc(member):
                yield [f"#### {thing.__name__}.{name}", "", text, ""]
        elif inspect.getdoc(called):
            yield [f"#### {thing.__name__}.{name}", "", *_described(name, called)]


def commands_reference() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    from typer.main import get_command

    from dragoman.cli.main import app

    lines = ["# Commands", "", "`dragoman COMMAND --help` prints the same.", ""]
    for name, command in _commands("dragoman", get_command(app)):
        lines += [f"## {name}", "", inspect.cleandoc(command.help or ""), ""]
        rows = [
            _option(one) for one in command.params if not getattr(one, "hidden", False) and one.name != "help"
        ]
        if rows:
            lines += ["| parameter | meaning | default |", "|---|---|---|", *rows, ""]
        if command.epilog:
            lines += [command.epilog, ""]
    return "\n".join(lines)


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not (below := getattr(command, "commands", None)):
        yield name, command
        return
    for part in sorted(below):
        yield from _commands(f"{name} {part}", below[part])


def _option(one: Any) -> str:
    names = (
        [*one.opts, *one.secondary_opts]
        if one.param_type_name == "option"
        else [str(one.metavar or one.name).upper()]
    )
    default = (
        one.default
        if isinstance(one.default, (str, int, float)) and not isinstance(one.default, bool)
        else ""
    )
    written = ", ".join(f"`{part}`" for part in names)
    text = " ".join((getattr(one, "help", None) or "").split()).replace("|", "\\|")
    return f"| {written} | {text} | {f'`{default}`' if default != '' else ''} |"


def http_reference() -> str:
    """Every route with its parameters and fields. The whole of it is at `/api/openapi.json` of a server."""
    described = json.loads(
        subprocess.run(
            [sys.executable, ROOT / "scripts" / "api_description.py"], capture_output=True, check=True
        ).stdout
    )
    lines = [
        "# HTTP API",
        "",
        "A server describes its API as OpenAPI at `/api/openapi.json`. This page lists the same routes.",
        "",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            tag = (route.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).extend(
                _route(f"{method.upper()} {path}", route, described["components"]["schemas"])
            )
    for tag, found in by_tag.items():
        lines += [f"## {tag.capitalize()}", "", *found]
    return "\n".join(lines)


def _route(title: str, route: Any, schemas: Any) -> Iterator[str]:
    yield from (
        f"### `{title}`",
        "",
        inspect.cleandoc(route.get("description") or route.get("summary") or ""),
        "",
    )
    rows = [_row(one["name"], one["in"], one.get("schema", {}), one) for one in route.get("parameters", ())]
    for content in (route.get("requestBody") or {}).get("content", {}).values():
        body = schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {})
        required = body.get("required", ())
        rows += [
            _row(name, "body, required" if name in required else "body", field, field)
            for name, field in body.get("properties", {}).items()
        ]
    if rows:
        yield from ("| name | in | type | meaning |", "|---|---|---|---|", *rows, "")


def _row(name: str, place: str, schema: Any, described: Any) -> str:
    return f"| `{name}` | {place} | {_type(schema)} | {_cell(described.get('description', ''))} |"


def _type(schema: Any) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type") or schema.get("const") or "any")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# ── the result ────────────────────────────────────────────────────────────────────────────────────


class _Page(HTMLParser):
    """The links of a page, and the places in it that others can link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        self.links += [str(found[name]) for name in ("href", "src") if found.get(name)]


def broken_links(folder: Path) -> Iterator[str]:
    """Links of built pages to files or headings that are missing."""
    pages = {file: _Page(file.read_text("utf-8")) for file in folder.rglob("*.html")}
    for file, page in pages.items():
        if file.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc:
                continue
            aim = Path(os.path.normpath(file.parent / unquote(parts.path))) if parts.path else file
            aim = aim / "index.html" if aim.is_dir() else aim
            if not aim.exists():
                yield f"{file.relative_to(folder)}: {link}"
            elif parts.fragment and aim in pages and parts.fragment not in pages[aim].places | {"__comments"}:
                yield f"{file.relative_to(folder)}: {link} (no such heading)"


def publish() -> Path:
    """Put the pages next to those of other versions. The start page leads to the newest."""
    name = ".".join(version("dragoman").split(".")[:2])
    shutil.rmtree(SITE / name, ignore_errors=True)
    shutil.copytree(HTML, SITE / name)
    names = sorted((file.name for file in SITE.iterdir() if file.is_dir()), key=_numbers, reverse=True)
    listed = [
        {"version": one, "title": one, "aliases": ["latest"] if one == names[0] else []} for one in names
    ]
    (SITE / "versions.json").write_text(json.dumps(listed), "utf-8")
    start = f'<!doctype html><title>Dragoman</title><meta http-equiv="refresh" content="0; url={names[0]}/">'
    (SITE / "index.html").write_text(start, "utf-8")
    return SITE / "index.html"


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def serve() -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 8730), handler) as server:
        sys.stdout.write("http://127.0.0.1:8730 (Ctrl-C ends it)\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
