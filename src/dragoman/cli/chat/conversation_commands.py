"""Define `/commands` for the current conversation: settings, rules, cost, files, prompts and title."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue
from rich.text import Text

from dragoman.cli.attachments import attach_file
from dragoman.cli.chat.session import Session
from dragoman.cli.model_choice import note_about
from dragoman.cli.terminal.cards import describe_file, refusals_of
from dragoman.cli.terminal.text import near_home, one_line, plain, write_file
from dragoman.config.rule_checks import near_permissions
from dragoman.errors import BadRequest, ToolFailed
from dragoman.messages.ids import new_id
from dragoman.messages.questions import MODES, Action, Grant
from dragoman.tools.deferred import LETTERS, loaded_in, size_of
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import parse_rule, rules_in_words
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.steps.request_layers import conversation_switches, deferred_offer, model_here

_MAIN = "none"  # selects the folder of the program again
_HOUR = 3600.0
_SCOPES = ("always", "hour")
_OUTSIDE = "outside"


async def model(session: Session, name: str) -> None:
    if not name:
        now = (await session.settings()).get("model") or session.chosen.name
        return session.notify(f"{now} answers; `dragoman models` lists others")
    found = session.runtime.services.model(name)  # raises an error for an unknown model or a missing key
    await session.change(model=name)
    session.notify(f"from now on {found.name} answers here")
    if note := note_about(session.chosen.models.catalog, name):
        session.notify(note, "yellow")
    return None


async def agent(session: Session, name: str) -> None:
    agents = session.runtime.services.agents
    if not name:
        now = (await session.settings()).get("agent")
        for one in agents.values():
            mark = "→" if one.name == now else " "
            session.console.print(Text(f" {mark} {one.name}  {plain(one.description)}"))
        none = "no agents are set up: [agents.NAME] in dragoman.toml"
        return session.notify("/agent none: no agent" if agents else none)
    if name == "none":
        await session.change(agent=None)
        return session.notify("no agent in particular")
    session.runtime.services.agent(name)
    await session.change(agent=name)
    return session.notify(f"{name} answers here")


async def mode(session: Session, word: str) -> None:
    if not word:
        now = (await session.settings()).get("mode") or session.runtime.services.mode
        return session.notify(f"{now}; there are {', '.join(MODES)}")
    await session.change(mode=word)
    return session.notify(f"mode {word}")


async def workspace(session: Session, name: str) -> None:
    workspaces = session.runtime.services.workspaces
    if not name:
        now = await session.workspace()
        others = ", ".join(workspaces.named) or "none: [workspaces.NAME] in dragoman.toml"
        return session.notify(f"{near_home(now.folder) if now else 'no folder'}; others: {others}")
    chosen = None if name == _MAIN else name
    found = workspaces.find(chosen, session.chat.id if session.chat is not None else "")
    await session.change(workspace=chosen)
    return session.notify(f"tools work in {near_home(found.folder) if found else 'no folder'} here")


async def tools(session: Session, switch: str) -> None:
    services, settings = session.runtime.services, await session.settings()
    toolbox, switches = services.toolbox, settings.get("tools")
    known = switches if isinstance(switches, dict) else {}
    if not switch:
        await toolbox.ready()
        chosen = settings.get("agent")
        agent = services.agent(str(chosen) if chosen else None)
        now = conversation_switches(services, settings, agent)
        path = await session.chat.messages() if session.chat is not None else []
        model = model_here(services, settings, agent)
        whole = toolbox.offer(services.rules, now)
        offer = deferred_offer(services, agent, model, whole, path, settings=settings)
        how = loaded_in(path)

        def shown(group: Group, tool: Tool) -> str:
            if now.get(f"{group.name}.{tool.name}") is False:
                return f"{tool.name} (off)"
            if tool.name not in offer.deferred:
                return tool.name
            return f"{tool.name} ({how.get(tool.name, 'on demand')})"

        for group in toolbox.groups:
            off = now.get(group.name) is False
            names = ", ".join(shown(group, tool) for tool in group.tools)
            tokens = sum(map(size_of, group.tools)) // LETTERS
            state = "off" if off else "on "
            line = f"  {state} {one_line(group.name)}: {one_line(names, 400)}, about {tokens} tokens"
            session.console.print(Text(line, "dim" if off else ""))
        return None
    name, _, word = switch.partition(" ")
    if word == "always":
        toolbox.check_name(name)
        pinned = settings.get("always_tools")
        await session.change(always_tools=[*map(str, pinned if isinstance(pinned, list) else ()), name])
        return session.notify(f"{name} is always loaded in this conversation")
    if word not in ("on", "off"):
        raise BadRequest("Type /tools GROUP off, /tools GROUP.TOOL on, or /tools TOOL always.")
    there = {group.name for group in toolbox.groups}
    there |= {f"{group.name}.{tool.name}" for group in toolbox.groups for tool in group.tools}
    if name not in there:
        raise BadRequest(f"Unknown group or tool {name!r}. Type /tools to list them.")
    await session.change(tools={**known, name: word == "on"})
    return session.notify(f"{name} is {word} in this conversation")


async def cost(session: Session, argument: str) -> None:
    used = (await session.here.info()).usage
    money = f"${used.cost:.4f}" if used.cost is not None else "the price is not known"
    session.notify(f"{used.input:,} tokens in ({used.cached:,} cached), {used.output:,} out; {money}")


async def reasoning(session: Session, argument: str) -> None:
    session.reasoning = not session.reasoning
    session.notify(
        "Reasoning is shown whole." if session.reasoning else "Only the first line of reasoning is shown."
    )


async def attach(session: Session, path: str) -> None:
    if not path:
        raise BadRequest("Name the file: /attach FILE.")
    file = await attach_file(session.runtime.store, path)
    session.attachments.append(file)
    session.notify(f"goes with your next message: {describe_file(file)}")


async def export(session: Session, path: str) -> None:
    if not path:
        raise BadRequest("Name the file to write: /export FILE.")
    if path.endswith(".md"):
        text = await session.runtime.export_markdown(session.here.id)
    else:
        text = json.dumps(await session.runtime.export(session.here.id), ensure_ascii=False, indent=1) + "\n"
    session.notify(f"written to {write_file(Path(path), text)}")


async def title(session: Session, text: str) -> None:
    if text:
        await session.here.rename(text)
    session.notify((await session.here.info()).title or "untitled")


async def allow(session: Session, argument: str) -> TurnHandle | None:
    """Add a rule. Without one, run the last call that the cage refused again, and request that access."""
    if argument not in ("", _OUTSIDE):
        await _give(session, argument, "allow")
        return None
    for message in reversed(await session.here.messages()):
        for call in reversed(message.calls):
            if refused := refusals_of(call.result):
                by_rule: list[JsonValue] = [asks for _, asks in refused if not asks.endswith(_OUTSIDE)]
                beyond: list[JsonValue] = by_rule if by_rule and not argument else [_OUTSIDE]
                return await session.here.rerun_call(call.id, arguments={**call.arguments, "beyond": beyond})
    raise BadRequest(
        "The cage refused nothing here. Type /allow PERMISSION:PATTERN, such as /allow shell:git *."
    )


async def deny(session: Session, argument: str) -> None:
    await _give(session, argument, "deny")


async def _give(session: Session, argument: str, action: Action) -> None:
    """Add a rule for this conversation, unless the last word names a scope in which it applies everywhere."""
    rest, _, last = argument.rpartition(" ")
    text, scope = (rest, last) if last in _SCOPES and rest else (argument, "")
    if not text.strip():
        raise BadRequest(
            f"Type /{action} PERMISSION or /{action} PERMISSION:PATTERN, such as /{action} shell:git *."
        )
    rule = parse_rule(text, action, f"/{action}")
    if (near := near_permissions(session.runtime, rule)) is not None:
        raise BadRequest(f"No tool has the permission {rule.permission!r}. {near}")
    services, workspace = session.runtime.services, await session.workspace()
    now = services.clock()
    grant = Grant(
        new_id("grant"),
        rule,
        None if scope else await session.id_for_grants(),
        now,
        workspace=workspace.path if workspace is not None else None,
        expires=now + _HOUR if scope == "hour" else None,
    )
    for earlier in await session.runtime.grants():  # The opposite rule replaces earlier ones.
        same = (earlier.rule.permission, earlier.rule.pattern) == (rule.permission, rule.pattern)
        if same and earlier.rule.action != action and earlier.conversation in (None, grant.conversation):
            await session.runtime.revoke(earlier.id)
    await session.runtime.store.add_grant(grant)
    session.notify(f"{describe_grant(grant)}; /grants lists what holds, and takes it back")


async def grants(session: Session, argument: str) -> None:
    given = await session.runtime.grants()
    word, _, number = argument.partition(" ")
    if word == "revoke" and number.isdecimal() and 1 <= int(number) <= len(given):
        grant = given[int(number) - 1]
        await session.runtime.revoke(grant.id)
        return session.notify(f"undone: {describe_grant(grant)}")
    if argument:
        raise BadRequest(f"Type /grants, or /grants revoke N, with N from 1 to {len(given)}.")
    for place, grant in enumerate(given, 1):
        session.console.print(Text(f"  {place}  {describe_grant(grant)}"))
    return session.notify("You have given no rules.") if not given else None


def describe_grant(grant: Grant) -> str:
    where = f"in {grant.conversation}" if grant.conversation else "everywhere"
    until = ", for an hour" if grant.expires is not None else ""
    return f"{plain(rules_in_words([grant.rule]))}, {where}{until}"


async def prompt(session: Session, argument: str) -> None:
    sources = {
        one.name: one for one in session.runtime.services.toolbox.sources if isinstance(one, McpSource)
    }
    if not sources:
        raise BadRequest("No MCP servers. Add one with `dragoman mcp add`.")
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise BadRequest(f"Type /prompt SERVER NAME [ARGUMENT=VALUE …]: {error}") from error
    if not words:
        return await _list(session, sources.values())
    server, name, *given = [*words, ""] if len(words) == 1 else words
    if server not in sources:
        raise BadRequest(f"Unknown server {server!r}. Choose one of {', '.join(sources)}.")
    if not name:
        return await _list(session, [sources[server]])
    values = dict(word.partition("=")[::2] for word in given)
    try:
        session.draft = await sources[server].prompt(name, values)
    except ToolFailed as error:
        raise BadRequest(str(error)) from error
    return session.notify(f"The prompt of {server} is below. Edit it, and press Enter to send it.")


async def _list(session: Session, sources: Iterable[McpSource]) -> None:
    for source in sources:
        try:
            found = await source.prompts()
        except ToolFailed as error:
            session.notify(str(error))
            continue
        if not found:
            session.notify(f"{source.name} has none")
        for one in found:
            takes = " ".join(
                [*(f"{name}=…" for name in one.required), *(f"[{name}=…]" for name in one.optional)]
            )
            line = one_line(f"{source.name} {one.name} {takes}", 400)
            session.console.print(Text(f"  {line}  {one_line(one.description, 60)}"))
