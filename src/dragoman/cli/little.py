"""What is done for a model so small that it has to be led: it is not given too much to choose from."""

from __future__ import annotations

from dragoman.cli.chosen import Chosen
from dragoman.config.settings import Settings
from dragoman.providers.local.box import IN_THE_BOX, PROVIDER

_TOO_MUCH = ("shell", "browser")  # groups it would call for everything


def is_boxed(chosen: Chosen) -> bool:
    return chosen.name == f"{PROVIDER}/{IN_THE_BOX}"


def too_much_for(settings: Settings, chosen: Chosen) -> tuple[str, ...]:
    """Groups that this model is better off without, unless the person asked for tools by name."""
    return _TOO_MUCH if is_boxed(chosen) and "tools" not in settings.values else ()
