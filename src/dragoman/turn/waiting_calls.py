"""Calls that wait for a person: which tool each one is for, and the same call with a part of its changes."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import AlreadyAnswered, BadRequest
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Question
from dragoman.sentences import sentence
from dragoman.tools.preview import choose_hunks
from dragoman.tools.thread import in_thread
from dragoman.tools.tool import Tool
from dragoman.tools.workspace import previewing
from dragoman.turn.agent import Agent
from dragoman.turn.client_tools import client_tools_of
from dragoman.turn.facts import options_in
from dragoman.turn.handoff import NAME as HAND_OFF
from dragoman.turn.handoff import handoff_tool
from dragoman.turn.services import Services


async def waiting_tool(services: Services, asked: Question) -> Tool | None:
    """None where it is not known here."""
    if asked.tool == HAND_OFF:
        return handoff_tool(services, Agent(handoffs=tuple(services.agents)))
    brought = client_tools_of(options_in(await services.store.facts(asked.turn)))
    if asked.tool in brought:
        return brought[asked.tool]
    found = services.toolbox.offer().find(asked.tool)
    return found[1] if found else None


async def arguments_for_hunks(
    services: Services, question: str, chosen: Mapping[int, str | None]
) -> Arguments:
    """With which the call makes these changes alone, of those that the question shows: for an answer that
    allows it with other arguments."""
    asked = await services.store.question(question)
    if not asked.open:
        raise AlreadyAnswered(question, asked.answer.verdict if asked.answer else "withdrawn")
    tool = await waiting_tool(services, asked) if asked.kind in ("approve", "run") else None
    if tool is None:
        raise BadRequest(sentence("question.no_changes", question=question))
    workspace = services.workspace_of(options_in(await services.store.facts(asked.turn)))
    folder = workspace.folder if workspace is not None else None
    with previewing(asked.conversation):
        return await in_thread(lambda: choose_hunks(tool, asked.arguments, folder, asked.diff, chosen))
