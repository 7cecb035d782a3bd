"""Settings in, the tools out: what each may touch, what the rules say of it, and where both come from."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from dragoman.cli.plain import one_line
from dragoman.cli.printing import print_json
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.messages.questions import Rule
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import decide
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Toolbox
from dragoman.wire.scripted import ScriptedModel

WORDS = {"allow": "allowed", "ask": "asked", "deny": "denied"}
COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


@dataclass(slots=True, frozen=True)
class Says:
    """What the rules say of a tool as such, and which of them look closer at what it is used on."""

    action: str
    by: str | None
    exceptions: tuple[str, ...] = ()


def tools(settings: Settings, *, check: bool, as_json: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        house = build_runtime(settings, model=ScriptedModel([]), store=Path(folder) / "tools.db")
    services = house.runtime.services
    listed = asyncio.run(_listed(services.toolbox, check))
    if as_json:
        groups: list[JsonValue] = [
            _report(settings, services.toolbox, group, services.rules) for group in listed
        ]
        print_json({"groups": groups, "warnings": [*house.warnings]}, indent=2)
        return
    console = Console(highlight=False)
    for group in listed:
        _show(console, settings, services.toolbox, group, services.rules)
    for trouble in house.warnings:
        console.print(Text(f"left out: {one_line(trouble, 500)}", "red"))


async def _listed(toolbox: Toolbox, check: bool) -> Sequence[Group]:
    """With `check`, the servers are started and asked."""
    try:
        if check:
            await toolbox.ready()
        return toolbox.groups
    finally:
        await toolbox.close()


def says(tool: Tool, rules: Sequence[Rule], settings: Settings) -> Says:
    general = decide(tool.permission, ("*",), rules)
    about = [rule for rule in rules if rule.pattern != "*" and _is_about(rule, tool)]
    exceptions = tuple(
        f"{WORDS[rule.action]} for {rule.pattern!r} ({_origin(rule, settings)})" for rule in about
    )
    by = f"{general.rule}, {_origin(general.rule, settings)}" if general.rule is not None else None
    return Says(general.action, by, exceptions)


def _is_about(rule: Rule, tool: Tool) -> bool:
    return decide(tool.permission, ("*",), [Rule(rule.permission, "*", rule.action)]).rule is not None


def _origin(rule: Rule, settings: Settings) -> str:
    """The place where it was said, or the house's own."""
    said = settings.values.get(rule.action) or []
    texts = (rule.permission, f"{rule.permission}:{rule.pattern}")
    return (
        settings.origins.get(rule.action, "settings") if any(text in said for text in texts) else "built in"
    )


def _comes_from(group: Group, toolbox: Toolbox, settings: Settings) -> str:
    source = next((source for source in toolbox.sources if source.name == group.name), None)
    if isinstance(source, McpSource):
        trouble = f": {source.trouble}" if source.trouble else ""
        return f"MCP server, {source.server.where}{trouble}"
    if source is not None:
        return "skills"
    if group.name in BUILTIN or group.name in ("output", "agents"):
        return "built in"
    return f"{settings.folder / 'tools'}"


def _report(settings: Settings, toolbox: Toolbox, group: Group, rules: Sequence[Rule]) -> JsonValue:
    said = [(tool, says(tool, rules, settings)) for tool in group.tools]
    return {
        "name": group.name,
        "from": _comes_from(group, toolbox, settings),
        "tools": [
            {
                "name": tool.name,
                "permission": tool.permission,
                "rules": rule.action,
                "by": rule.by,
                "exceptions": [*rule.exceptions],
                "client": tool.client,
                "review": tool.review,
                "description": tool.description,
            }
            for tool, rule in said
        ],
    }


def _show(
    console: Console, settings: Settings, toolbox: Toolbox, group: Group, rules: Sequence[Rule]
) -> None:
    origin = one_line(_comes_from(group, toolbox, settings), 300)
    console.print(Text.assemble((one_line(group.name), "bold"), (f"  {origin}", "dim")), soft_wrap=True)
    for tool in group.tools:
        said = says(tool, rules, settings)
        line = Text(f"  {one_line(tool.name):<18} {one_line(tool.permission):<22} ")
        line.append(f"{WORDS[said.action]:<8}", COLOURS[said.action])
        line.append(f" {said.by}" if said.by else "", "dim")
        console.print(line, soft_wrap=True)
        for exception in said.exceptions:
            console.print(Text(f"    {exception}", "dim"), soft_wrap=True)
    if not group.tools and isinstance(_source(toolbox, group), McpSource):
        console.print(Text("    --check starts it and lists its tools", "dim"))


def _source(toolbox: Toolbox, group: Group) -> object:
    return next((source for source in toolbox.sources if source.name == group.name), None)
