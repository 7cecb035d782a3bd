"""Define routes to share a conversation: members, invitations, and public read-only links."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path as InPath
from starlette.exceptions import HTTPException

from dragoman.conversation.sharing import Right
from dragoman.errors import BadRequest, NotFound
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.auth import TooManyTries
from dragoman.server.context import Context, TheContext, api_router
from dragoman.server.snapshots import summaries

router = api_router("sharing")
UserName = Annotated[str, InPath(min_length=1, max_length=200)]


@router.get("/conversations/{id}/members")
async def members(context: TheContext, id: str) -> shapes.MemberList:
    """List the owner and the members of a conversation."""
    await context.check(id, Right.READ)
    owner = await context.runtime.store.owner_of(id)
    found = [
        shapes.MemberView(one.user, one.role, one.added_by, one.added)
        for one in await context.runtime.store.members(id)
    ]
    return shapes.MemberList([shapes.MemberView(owner, Right.OWN.role), *found])


@router.put("/conversations/{id}/members/{user}")
async def set_member(
    context: TheContext, id: str, user: UserName, body: bodies.MemberRole
) -> shapes.MemberView:
    """Share it with a user, or give a member another role."""
    await context.check(id, Right.OWN)
    if not await context.knows(user):
        raise BadRequest(sentence("share.nobody", user=user))
    made = await context.runtime.sharing.add(id, user, body.role, by=context.person)
    await context.audit("member.set", id, user=user, role=body.role)
    await context.publisher.shared(id, user)
    return shapes.MemberView(made.user, made.role, made.added_by, made.added)


@router.delete("/conversations/{id}/members/{user}", status_code=204)
async def remove_member(context: TheContext, id: str, user: UserName) -> None:
    """Remove a member, or leave. It takes effect immediately: live streams end, and the user's turns are
    cancelled."""
    await context.check(id, Right.READ if user == context.person else Right.OWN)
    try:
        await context.runtime.sharing.remove(id, user, by=context.person)
        await context.audit("member.removed", id, user=user)
    finally:
        await context.publisher.removed(id, user)


@router.get("/conversations/{id}/presence")
async def presence(context: TheContext, id: str) -> shapes.PresenceView:
    """List the users who have the conversation open. Changes come as `presence` in its stream."""
    await context.check(id, Right.READ)
    return shapes.PresenceView(id, (await context.publisher.presence.of([id]))[id])


@router.post("/conversations/{id}/typing", status_code=204)
async def typing(context: TheContext, id: str, body: bodies.Typing) -> None:
    """Report that you are typing, or have stopped. Repeat it every few seconds: it lapses after six."""
    await context.check(id, Right.TAKE_PART)
    await context.publisher.presence.typing(id, context.person, on=body.on)


@router.post("/conversations/{id}/transfer")
async def transfer(context: TheContext, id: str, body: bodies.NewOwner) -> shapes.ConversationSummary:
    """Make a member the owner. You become a member who takes part."""
    await context.check(id, Right.OWN)
    await context.runtime.sharing.transfer(id, body.user)
    await context.audit("conversation.transferred", id, user=body.user)
    await context.publisher.shared(id, body.user)
    await context.publisher.shared(id, context.person)
    return await _line(context, id)


@router.get("/conversations/{id}/shares")
async def shares(context: TheContext, id: str) -> shapes.ShareList:
    """List unused invitations and links. Their tokens are not stored."""
    await context.check(id, Right.OWN)
    return shapes.ShareList([shapes.ShareView.of(one) for one in await context.runtime.sharing.shares(id)])


@router.post("/conversations/{id}/invitations", status_code=201)
async def invite(context: TheContext, id: str, body: bodies.NewInvitation) -> shapes.NewShareView:
    """Create a token that makes the first user who accepts it a member."""
    await context.check(id, Right.OWN)
    made = await context.runtime.sharing.invite(id, body.role, by=context.person, seconds=body.seconds)
    await context.audit("share.made", made.share.id, conversation=id, kind="invitation", role=body.role)
    return shapes.NewShareView(shapes.ShareView.of(made.share), made.token)


@router.post("/conversations/{id}/links", status_code=201)
async def link(context: TheContext, id: str, body: bodies.NewLink) -> shapes.NewShareView:
    """Create a token with which anyone can read the shown branch, at `/api/shared/TOKEN`."""
    await context.check(id, Right.OWN)
    made = await context.runtime.sharing.link(
        id, by=context.person, seconds=body.seconds, upto=body.upto, frozen=body.frozen, omits=body.omits
    )
    await context.audit("share.made", made.share.id, conversation=id, kind="link")
    return shapes.NewShareView(shapes.ShareView.of(made.share), made.token)


@router.delete("/conversations/{id}/shares/{share}", status_code=204)
async def revoke_share(context: TheContext, id: str, share: str) -> None:
    """Revoke an invitation or a link."""
    await context.check(id, Right.OWN)
    await context.runtime.sharing.revoke(id, share)
    await context.audit("share.revoked", share, conversation=id)


@router.post("/invitations/accept")
async def accept(context: TheContext, body: bodies.Token) -> shapes.ConversationSummary:
    """Become a member by an invitation, which is used up. Returns 404 if it is invalid."""
    try:
        attempt = context.guesses.begin("", known=context.person)
    except TooManyTries as error:
        wait = {"retry-after": str(int(error.seconds) + 1)}
        raise HTTPException(429, sentence("share.too_often"), headers=wait) from error
    id = await context.runtime.sharing.accept(body.token, context.person)
    if id is None:
        raise NotFound("invitation", "…", sentence("share.invitation_over"))
    attempt.was_right()
    await context.audit("invitation.accepted", id)
    await context.publisher.shared(id, context.person)
    return await _line(context, id)


async def _line(context: Context, id: str) -> shapes.ConversationSummary:
    found = await context.runtime.store.conversation(id)
    for line in await summaries(context.runtime, [found], context.person):
        return line
    raise NotFound("conversation", id)
