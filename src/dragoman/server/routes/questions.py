"""Routes to see what waits for a person, to answer it, and to revoke the rules answers left behind."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from dragoman.errors import NotFound
from dragoman.messages.questions import Answer, Question
from dragoman.server import bodies, shapes
from dragoman.server.context import Person, TheContext
from dragoman.tools.permissions import rules_in_words

router = APIRouter(tags=["questions"])


@router.get("/questions")
async def questions(
    context: TheContext, person: Person, conversation: Annotated[str | None, Query()] = None
) -> shapes.QuestionList:
    """The open ones, of one conversation or of all."""
    if conversation is not None:
        await context.conversation(conversation, person)
    return shapes.QuestionList(await context.runtime.store.questions(conversation=conversation, user=person))


@router.get("/questions/{id}")
async def question(context: TheContext, person: Person, id: str) -> Question:
    return await context.question(id, person)


@router.post("/questions/{id}/answer")
async def answer(context: TheContext, person: Person, id: str, body: bodies.Decision) -> Question:
    """The first answer counts; a second one gets 409."""
    asked = await context.question(id, person)
    given = Answer(
        body.verdict,
        scope=body.scope,
        arguments=body.arguments,
        rules=tuple(body.rules),
        reason=body.reason,
        value=body.value,
        hash=body.hash,
        by=context.user(person),
    )
    settled = await context.runtime.answer(id, given)
    context.publisher.changed(asked.conversation)
    return settled


@router.get("/grants")
async def grants(context: TheContext, person: Person) -> shapes.GrantList:
    """What was allowed or denied for longer than once."""
    return shapes.GrantList(
        [
            shapes.GrantView(
                one.id, one.rule, rules_in_words((one.rule,)), one.conversation, one.created, one.expires
            )
            for one in await context.runtime.grants(user=person)
        ]
    )


@router.delete("/grants/{id}", status_code=204)
async def revoke(context: TheContext, person: Person, id: str) -> None:
    if id not in {one.id for one in await context.runtime.grants(user=person)}:
        raise NotFound("grant", id)
    await context.runtime.revoke(id)
