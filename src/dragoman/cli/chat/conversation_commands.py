"""`/commands` about the conversation one is in: its model, agent, mode, tools, cost, files, title."""

from __future__ import annotations

import json
from pathlib import Path

from rich.text import Text

from dragoman.cli.attachments import attach_file
from dragoman.cli.chat.session import Session
from dragoman.cli.model_choice import note_about
from dragoman.cli.terminal.cards import describe_file
from dragoman.cli.terminal.text import near_home, one_line, plain, write_file
from dragoman.errors import BadRequest
from dragoman.messages.questions import MODES
from dragoman.turn.steps.request_layers import conversation_switches

_MAIN = "none"  # back to the folder of the program


async def model(session: Session, name: str) -> None:
    if not name:
        now = (await session.settings()).get("model") or session.chosen.name
        return session.notify(f"{now} answers; `dragoman models` lists others")
    found = session.runtime.services.model(name)  # raises where there is no such model, or no key for it
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
        return session.notify("/agent none: nobody in particular" if agents else none)
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
        now = conversation_switches(services, settings, services.agent(str(chosen) if chosen else None))
        for group in toolbox.groups:
            off = now.get(group.name) is False
            names = ", ".join(
                f"{tool.name} (off)" if now.get(f"{group.name}.{tool.name}") is False else tool.name
                for tool in group.tools
            )
            state = "off" if off else "on "
            line = f"  {state} {one_line(group.name)}: {one_line(names, 400)}"
            session.console.print(Text(line, "dim" if off else ""))
        return None
    name, _, word = switch.partition(" ")
    if word not in ("on", "off"):
        raise BadRequest("say /tools GROUP off, or /tools GROUP.TOOL on")
    there = {group.name for group in toolbox.groups}
    there |= {f"{group.name}.{tool.name}" for group in toolbox.groups for tool in group.tools}
    if name not in there:
        raise BadRequest(f"there is no group or tool {name!r}: /tools lists them")
    await session.change(tools={**known, name: word == "on"})
    return session.notify(f"{name} is {word} in this conversation")


async def cost(session: Session, argument: str) -> None:
    used = (await session.here.info()).usage
    money = f"${used.cost:.4f}" if used.cost is not None else "the price is not known"
    session.notify(f"{used.input:,} tokens in ({used.cached:,} cached), {used.output:,} out; {money}")


async def thoughts(session: Session, argument: str) -> None:
    session.thoughts = not session.thoughts
    session.notify("thoughts are shown whole" if session.thoughts else "of thoughts, the first line is shown")


async def attach(session: Session, path: str) -> None:
    if not path:
        raise BadRequest("which file? /attach FILE")
    file = await attach_file(session.runtime.store, path)
    session.attachments.append(file)
    session.notify(f"goes with your next message: {describe_file(file)}")


async def export(session: Session, path: str) -> None:
    if not path:
        raise BadRequest("where to? /export FILE")
    if path.endswith(".md"):
        text = await session.runtime.export_markdown(session.here.id)
    else:
        text = json.dumps(await session.runtime.export(session.here.id), ensure_ascii=False, indent=1) + "\n"
    session.notify(f"written to {write_file(Path(path), text)}")


async def title(session: Session, text: str) -> None:
    if text:
        await session.here.rename(text)
    session.notify((await session.here.info()).title or "untitled")
