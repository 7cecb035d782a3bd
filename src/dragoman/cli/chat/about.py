"""`/commands` that show how this conversation is set up, or change it."""

from __future__ import annotations

import json
from pathlib import Path

from rich.text import Text

from dragoman.cli.chat.cards import attachment
from dragoman.cli.chat.session import Session
from dragoman.cli.chosen import note_on
from dragoman.cli.files import attached
from dragoman.cli.plain import one_line, plain
from dragoman.cli.printing import write_down
from dragoman.errors import BadRequest
from dragoman.messages.questions import MODES, Grant
from dragoman.tools.permissions import rules_in_words


async def model(session: Session, said: str) -> None:
    if not said:
        now = (await session.settings()).get("model") or session.chosen.name
        return session.tell(f"{now} answers; `dragoman models` lists others")
    found = session.runtime.services.model(said)  # raises where there is no such model, or no key for it
    await session.change(model=said)
    session.tell(f"from now on {found.name} answers here")
    if note := note_on(session.chosen.models.catalog, said):
        session.tell(note, "yellow")
    return None


async def agent(session: Session, said: str) -> None:
    agents = session.runtime.services.agents
    if not said:
        now = (await session.settings()).get("agent")
        for one in agents.values():
            mark = "→" if one.name == now else " "
            session.console.print(Text(f" {mark} {one.name}  {plain(one.description)}"))
        none = "no agents are set up: [agents.NAME] in dragoman.toml"
        return session.tell("/agent none: nobody in particular" if agents else none)
    if said == "none":
        await session.change(agent=None)
        return session.tell("no agent in particular")
    session.runtime.services.agent(said)
    await session.change(agent=said)
    return session.tell(f"{said} answers here")


async def mode(session: Session, said: str) -> None:
    if not said:
        now = (await session.settings()).get("mode") or session.runtime.services.mode
        return session.tell(f"{now}; there are {', '.join(MODES)}")
    await session.change(mode=said)
    return session.tell(f"mode {said}")


async def tools(session: Session, said: str) -> None:
    toolbox = session.runtime.services.toolbox
    switches = (await session.settings()).get("tools")
    known = switches if isinstance(switches, dict) else {}
    if not said:
        await toolbox.ready()
        for group in toolbox.groups:
            off = known.get(group.name) is False
            names = ", ".join(
                f"{tool.name} (off)" if known.get(f"{group.name}.{tool.name}") is False else tool.name
                for tool in group.tools
            )
            state = "off" if off else "on "
            line = f"  {state} {one_line(group.name)}: {one_line(names, 400)}"
            session.console.print(Text(line, "dim" if off else ""))
        return None
    name, _, word = said.partition(" ")
    if word not in ("on", "off"):
        raise BadRequest("say /tools GROUP off, or /tools GROUP.TOOL on")
    there = {group.name for group in toolbox.groups}
    there |= {f"{group.name}.{tool.name}" for group in toolbox.groups for tool in group.tools}
    if name not in there:
        raise BadRequest(f"there is no group or tool {name!r}: /tools lists them")
    await session.change(tools={**known, name: word == "on"})
    return session.tell(f"{name} is {word} in this conversation")


async def grants(session: Session, said: str) -> None:
    given = await session.runtime.grants()
    word, _, number = said.partition(" ")
    if word == "revoke" and number.isdecimal() and 1 <= int(number) <= len(given):
        grant = given[int(number) - 1]
        await session.runtime.revoke(grant.id)
        return session.tell(f"taken back: {in_words(grant)}")
    if said:
        raise BadRequest(f"say /grants, or /grants revoke N, with N from 1 to {len(given)}")
    for place, grant in enumerate(given, 1):
        session.console.print(Text(f"  {place}  {in_words(grant)}"))
    return session.tell("nothing is allowed for good") if not given else None


def in_words(grant: Grant) -> str:
    where = f"in {grant.conversation}" if grant.conversation else "everywhere"
    return f"{plain(rules_in_words([grant.rule]))}, {where}"


async def cost(session: Session, said: str) -> None:
    used = (await session.here.info()).usage
    money = f"${used.cost:.4f}" if used.cost is not None else "the price is not known"
    session.tell(f"{used.input:,} tokens in ({used.cached:,} cached), {used.output:,} out; {money}")


async def thoughts(session: Session, said: str) -> None:
    session.thoughts = not session.thoughts
    session.tell("thoughts are shown whole" if session.thoughts else "of thoughts, the first line is shown")


async def attach(session: Session, said: str) -> None:
    if not said:
        raise BadRequest("which file? /attach FILE")
    file = await attached(session.runtime.store, said)
    session.attachments.append(file)
    session.tell(f"goes with your next message: {attachment(file)}")


async def export(session: Session, said: str) -> None:
    if not said:
        raise BadRequest("where to? /export FILE")
    if said.endswith(".md"):
        text = await session.runtime.export_markdown(session.here.id)
    else:
        text = json.dumps(await session.runtime.export(session.here.id), ensure_ascii=False, indent=1) + "\n"
    session.tell(f"written to {write_down(Path(said), text)}")


async def title(session: Session, said: str) -> None:
    if said:
        await session.here.rename(said)
    session.tell((await session.here.info()).title or "untitled")
