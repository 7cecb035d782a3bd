"""Define routes to list and answer approval requests, and to revoke the rules that answers left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound
from dragoman.messages.questions import Answer, Grant, Question, Rule, Verdict
from dragoman.server import bodies, shapes
from dragoman.server.context import TheContext, api_router
from dragoman.tools.authorize import decide_with_grants
from dragoman.tools.permissions import parse_rule, rules_in_words
from dragoman.turn.api.approvals import CoveredCalls, calls_covered_by

router = api_router("questions")


@router.get("/questions")
async def questions(
    context: TheContext,
    conversation: Annotated[str | None, Query()] = None,
    after: Annotated[str | None, Query(max_length=200, description="the last id of the page before")] = None,
    limit: Annotated[int | None, Query(ge=1, le=200)] = None,
) -> shapes.QuestionList:
    """List the open approval requests of one conversation or of all, oldest first. Without a limit,
    list all."""
    user: str | None = context.person
    if conversation is not None:
        await context.conversation(conversation, Right.READ)
        user = None
    if after is not None and not await context.may_see_question(after):
        # The answer is the same as for an unknown ID, so that it reveals nothing about the order.
        return shapes.QuestionList([])
    found = await context.runtime.store.questions(
        conversation=conversation, user=user, after=after, limit=limit or 2**31, shared=True
    )
    return shapes.QuestionList(found)


@router.get("/questions/{id}")
async def question(context: TheContext, id: str) -> Question:
    return await context.question(id, Right.READ)


@router.post("/questions/{id}/answer")
async def answer(context: TheContext, id: str, body: bodies.Decision) -> Question:
    """Answer an approval request. Only the first answer counts, and a second one gets 409.

    An answer to another user's call lets it run unchanged, under the sender's rules. A rule that the answer
    leaves behind is yours.
    """
    asked = await context.question(id, Right.ANSWER)
    given = Answer(
        body.verdict,
        scope=body.scope,
        arguments=body.arguments,
        rules=tuple(body.rules),
        reason=body.reason,
        value=body.value,
        hash=body.hash,
    )
    settled = await context.runtime.answer(id, given, by=context.person)
    await context.audit_answer(asked, given)
    context.publisher.changed(asked.conversation)
    return settled


@router.post("/questions/{id}/hunks")
async def choose_hunks(context: TheContext, id: str, body: bodies.ChosenHunks) -> shapes.PartialCall:
    """Return the arguments with which the call makes only some of its changes. Use them to answer the
    request."""
    await context.question(id, Right.ANSWER)
    chosen = {one.hunk: one.text for one in body.hunks}
    return shapes.PartialCall(await context.runtime.commands.arguments_for_hunks(id, chosen))


@router.get("/grants")
async def grants(context: TheContext) -> shapes.GrantList:
    """List the rules that your answers or requests added, for an hour or for longer."""
    return shapes.GrantList([_grant_view(one) for one in await context.runtime.grants(user=context.person)])


def _grant_view(one: Grant) -> shapes.GrantView:
    words = rules_in_words((one.rule,))
    folder = one.workspace and (Path(one.workspace).name or one.workspace)
    return shapes.GrantView(one.id, one.rule, words, one.conversation, folder, one.created, one.expires)


@router.post("/grants", status_code=201)
async def new_grant(context: TheContext, body: bodies.NewGrant) -> shapes.GrantView:
    """Add a rule that answers no approval request. It counts like others, and settles waiting requests that
    it covers."""
    rule = Rule(body.permission, body.pattern, body.action)
    verdict: Verdict = "allow" if body.action == "allow" else "reject"
    user = context.user
    given = Answer(verdict, scope=body.scope, by=user)
    made = await context.runtime.commands.grant(rule, given, user=user, owner=context.person)
    await context.audit("rule.added", made.id, rule=str(made.rule), conversation=made.conversation)
    return _grant_view(made)


@router.get("/rules")
async def rules(context: TheContext) -> shapes.RuleList:
    """List the rules of the settings, with file and line, and those of agents. Rules about servers that you
    cannot use are left out."""
    services = await context.services()
    seen = {source.name for source in services.toolbox.sources}
    hidden = tuple(
        f"mcp.{source.name}."
        for source in context.runtime.services.toolbox.sources
        if source.name not in seen
    )
    named = [shapes.RuleView(rule, agent.name) for agent in services.agents.values() for rule in agent.rules]
    given = [shapes.RuleView(rule) for rule in (*services.rules, *services.later_denials(()))]
    return shapes.RuleList([one for one in (*given, *named) if not one.rule.permission.startswith(hidden)])


@router.get("/rules/decision")
async def decision(
    context: TheContext,
    permission: Annotated[str, Query(min_length=1, max_length=200, examples=["shell"])],
    pattern: Annotated[str, Query(max_length=2000, examples=["git push"])] = "",
    conversation: Annotated[str | None, Query(description="its grants count, too")] = None,
) -> shapes.RuleDecision:
    """Return which rule decides about this permission and pattern, and how. Use it to try rules out. The
    folder is that of the conversation, or the server's."""
    services = context.runtime.services
    place = services.workspaces.main
    if conversation is not None:
        name = (await context.conversation(conversation, Right.READ)).settings.get("workspace")
        place = services.workspaces.find(name if isinstance(name, str) else None, conversation)
    now, folders = services.clock(), (None, place.path if place is not None else None)
    granted = [
        one.rule
        for one in await context.runtime.grants(user=context.person)
        if one.conversation in (None, conversation)
        and (one.workspace in folders or one.rule.action == "deny")
        and (one.expires is None or one.expires > now)
    ]
    rules = [*services.rules, *services.later_denials(())]
    decided = decide_with_grants(permission, (pattern,) if pattern else (), rules, granted)
    return shapes.RuleDecision(decided.action, decided.rule)


@router.get("/rules/covered")
async def covered(
    context: TheContext,
    rule: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=2200)]],
        Query(min_length=1, max_length=20, examples=[["shell:git *"]]),
    ],
    question: str | None = None,
) -> CoveredCalls:
    """Return which calls of your recent conversations these rules (PERMISSION:PATTERN) would cover, and which
    waiting ones they would settle. With the ID of an approval request, the rules count as an answer to it."""
    rules = [parse_rule(text, "allow") for text in rule]
    if question is not None:
        await context.question(question, Right.ANSWER)
    return await calls_covered_by(await context.services(), rules, user=context.person, question=question)


@router.delete("/grants/{id}", status_code=204)
async def revoke(context: TheContext, id: str) -> None:
    if id not in {one.id for one in await context.runtime.grants(user=context.person)}:
        raise NotFound("grant", id)
    await context.runtime.revoke(id)
    await context.audit("rule.removed", id)
