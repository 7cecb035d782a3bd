"""`/allow`, `/deny` and `/grants`: rules that a person gives without being asked, and takes back."""

from __future__ import annotations

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.terminal.text import plain
from dragoman.config.rule_checks import near_permissions
from dragoman.errors import BadRequest
from dragoman.messages.ids import new_id
from dragoman.messages.questions import Action, Grant
from dragoman.tools.permissions import parse_rule, rules_in_words

_HOUR = 3600.0
_SCOPES = ("always", "hour")


async def allow(session: Session, argument: str) -> None:
    await _give(session, argument, "allow")


async def deny(session: Session, argument: str) -> None:
    await _give(session, argument, "deny")


async def _give(session: Session, argument: str, action: Action) -> None:
    """In this conversation, unless the last word says for how long it holds everywhere."""
    rest, _, last = argument.rpartition(" ")
    text, scope = (rest, last) if last in _SCOPES and rest else (argument, "")
    if not text.strip():
        raise BadRequest(f"say /{action} PERMISSION or /{action} PERMISSION:PATTERN, such as shell:git *")
    rule = parse_rule(text, action, f"/{action}")
    if (near := near_permissions(session.runtime, rule)) is not None:
        raise BadRequest(f"no tool has the permission {rule.permission!r}: {near}")
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
    for earlier in await session.runtime.grants():  # who says the opposite has thought again
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
        return session.notify(f"taken back: {describe_grant(grant)}")
    if argument:
        raise BadRequest(f"say /grants, or /grants revoke N, with N from 1 to {len(given)}")
    for place, grant in enumerate(given, 1):
        session.console.print(Text(f"  {place}  {describe_grant(grant)}"))
    return session.notify("no rule was given by you") if not given else None


def describe_grant(grant: Grant) -> str:
    where = f"in {grant.conversation}" if grant.conversation else "everywhere"
    until = ", for an hour" if grant.expires is not None else ""
    return f"{plain(rules_in_words([grant.rule]))}, {where}{until}"
