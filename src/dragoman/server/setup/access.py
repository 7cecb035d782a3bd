"""Who may set the server up: whoever runs it, and nobody else."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends
from starlette.exceptions import HTTPException

from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.server.context import Person, TheContext
from dragoman.server.setup.own_settings import OwnSettings


async def own_settings_of(context: TheContext, person: Person) -> OwnSettings:
    if person != LOCAL:
        raise HTTPException(403, sentence("setup.not_yours"))
    if context.own_settings is None:
        raise ConfigError(sentence("setup.embedded"))
    return context.own_settings


TheOwnSettings: TypeAlias = Annotated[OwnSettings, Depends(own_settings_of)]
