"""Run `dragoman tools`: list the tools for models, their permissions, and the rules that apply to them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from dragoman.cli.flags.setup import ToolsFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.model_choice import ChosenModel, choose_model, unsuitable_groups
from dragoman.cli.terminal.tables import open_console
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.errors import DragomanError
from dragoman.installed import installed
from dragoman.messages.questions import Rule
from dragoman.redaction import redact_text
from dragoman.tools.authorize import review_of
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import decide
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Toolbox
from dragoman.turn.services import Services
from dragoman.wire.scripted import ScriptedModel

WORDS = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_REVIEWED = {"never": "", "on_error": "  failures seen by you first", "always": "  results seen by you first"}
COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


@dataclass(slots=True, frozen=True)
class ToolRules:
    """The general decision of the rules about a tool, and rules that depend on its arguments."""

    action: str
    by: str | None
    exceptions: tuple[str, ...] = ()


async def list_tools(flags: ToolsFlags) -> None:
    settings = settings_for(flags)
    chosen = await _choose(settings)
    without = unsuitable_groups(settings) if chosen is not None and chosen.in_the_box else ()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        built = build_runtime(
            settings, model=ScriptedModel([]), store=Path(folder) / "tools.db", without=without
        )
    services = built.runtime.services
    listed = await _read_groups(services.toolbox, flags.check)
    if flags.json:
        groups: list[JsonValue] = [_report(settings, services, group) for group in listed]
        model = chosen.name if chosen is not None else None
        left_out: list[JsonValue] = [*without]
        warnings: list[JsonValue] = [*map(redact_text, built.warnings)]
        print_json(
            {"model": model, "groups": groups, "not_offered": left_out, "warnings": warnings}, indent=2
        )
        return
    console = open_console()
    if chosen is not None:
        line = f"offered to {one_line(chosen.name)} ({one_line(chosen.reason)})"
        console.print(Text(line, "dim"), soft_wrap=True)
    for group in listed:
        if group.tools or isinstance(_source(services.toolbox, group), McpSource):
            _show(console, settings, services, group)
    if without and chosen is not None:
        names = " and ".join(without)
        text = f"not offered: {names}: too many for {chosen.name}, unless you name them in `tools`"
        console.print(Text(text, "yellow"), soft_wrap=True)
    if any(group.name == "browser" for group in listed):
        console.print(Text("The group `browser` works only in the web UI.", "dim"), soft_wrap=True)
    for warning in built.warnings:
        console.print(Text(f"left out: {one_line(redact_text(warning), 500)}", "red"))


async def _choose(settings: Settings) -> ChosenModel | None:
    """Return the default model, or None if there is none. Tools can be listed without one."""
    try:
        return await choose_model(settings)
    except DragomanError:
        return None


async def _read_groups(toolbox: Toolbox, check: bool) -> Sequence[Group]:
    """Return the groups of tools. With `check`, their servers are started and asked."""
    try:
        if check:
            await toolbox.ready()
        return toolbox.groups
    finally:
        await toolbox.close()


def apply_rules(tool: Tool, rules: Sequence[Rule], settings: Settings) -> ToolRules:
    general = decide(tool.permission, ("*",), rules)
    about = [rule for rule in rules if rule.pattern != "*" and _is_about(rule, tool)]
    exceptions = tuple(
        f"{WORDS[rule.action]} for {rule.pattern!r} ({_origin(rule, settings)})" for rule in about
    )
    by = f"{general.rule}, {_origin(general.rule, settings)}" if general.rule is not None else None
    return ToolRules(general.action, by, exceptions)


def _is_about(rule: Rule, tool: Tool) -> bool:
    return decide(tool.permission, ("*",), [Rule(rule.permission, "*", rule.action)]).rule is not None


def _origin(rule: Rule, settings: Settings) -> str:
    """Return the origin of a rule: a file and line, a variable, or "built in"."""
    written = settings.values.get(rule.action) or []
    texts = (rule.permission, f"{rule.permission}:{rule.pattern}")
    return (
        settings.origins.get(rule.action, "settings")
        if any(text in written for text in texts)
        else "built in"
    )


def _describe_origin(group: Group, toolbox: Toolbox, settings: Settings) -> str:
    source = _source(toolbox, group)
    if isinstance(source, McpSource):
        error = f": {source.error}" if source.error else ""
        return f"MCP server, {source.server.where}{error}"
    if source is not None:
        return "skills"
    if group.name in BUILTIN or group.name in ("output", "agents"):
        return "built in"
    folder = settings.folder / "tools"
    if group.name in installed("tools") or not folder.is_dir():
        return "installed package"
    return f"{folder}"


def _report(settings: Settings, services: Services, group: Group) -> JsonValue:
    listed = [(tool, apply_rules(tool, services.rules, settings)) for tool in group.tools]
    return {
        "name": group.name,
        "from": _describe_origin(group, services.toolbox, settings),
        "tools": [
            {
                "name": tool.name,
                "permission": tool.permission,
                "rules": rule.action,
                "by": rule.by,
                "exceptions": [*rule.exceptions],
                "client": tool.client,
                "review": review_of(tool, services.review),
                "description": tool.description,
            }
            for tool, rule in listed
        ],
    }


def _show(console: Console, settings: Settings, services: Services, group: Group) -> None:
    origin = one_line(_describe_origin(group, services.toolbox, settings), 300)
    console.print(Text.assemble((one_line(group.name), "bold"), (f"  {origin}", "dim")), soft_wrap=True)
    for tool in group.tools:
        found = apply_rules(tool, services.rules, settings)
        line = Text(f"  {one_line(tool.name):<18} {one_line(tool.permission):<22} ")
        line.append(f"{WORDS[found.action]:<8}", COLOURS[found.action])
        line.append(f" {found.by}" if found.by else "", "dim")
        line.append(_REVIEWED[review_of(tool, services.review)], "yellow")
        console.print(line, soft_wrap=True)
        for exception in found.exceptions:
            console.print(Text(f"    {exception}", "dim"), soft_wrap=True)
    if not group.tools and isinstance(_source(services.toolbox, group), McpSource):
        console.print(Text("    --check starts it and lists its tools", "dim"))


def _source(toolbox: Toolbox, group: Group) -> object:
    return next((source for source in toolbox.sources if source.name == group.name), None)
