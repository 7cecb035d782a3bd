"""Define the plugins that every runtime has, and their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dragoman.conversation.window import Policy
from dragoman.plugins.compaction import Compaction
from dragoman.plugins.continuation import Length, Pause
from dragoman.plugins.limits import Budget, DailyLimit, RoundLimit, Team, TeamLimit
from dragoman.plugins.loop_guard import LoopGuard
from dragoman.plugins.privacy import Privacy
from dragoman.plugins.titles import Titles
from dragoman.plugins.tool_history import ToolHistory
from dragoman.plugins.typed_output import TypedOutput
from dragoman.store.store import Store
from dragoman.turn.plugin import Plugin


def built_in_plugins(
    store: Store,
    clock: Callable[[], float],
    *,
    tool_history: Policy,
    history_parts: Sequence[str] | None,
    compact_at: float | None,
    private: Mapping[str, str] | None,
    max_rounds: int,
    max_tokens: int | None,
    max_cost: float | None,
    max_seconds: float | None,
    max_calls: int | None,
    max_daily_tokens: int | None,
    max_daily_cost: float | None,
    teams: Mapping[str, Team],
    continuations: int | None,
    titles_by_model: bool,
    title_length: int,
) -> list[Plugin]:
    """Return the plugins for these parameters of `Runtime`."""
    daily: list[Plugin] = []
    if max_daily_tokens is not None or max_daily_cost is not None:
        daily.append(DailyLimit(store, max_tokens=max_daily_tokens, max_cost=max_daily_cost, clock=clock))
    if teams:
        daily.append(TeamLimit(store, teams, clock=clock))
    return [
        *(
            [ToolHistory(tool_history, history_parts)]
            if tool_history != "full" or history_parts is not None
            else []
        ),
        Compaction(compact_at, policy=tool_history),
        Privacy(private),
        RoundLimit(max_rounds),
        Budget(max_tokens=max_tokens, max_cost=max_cost, max_seconds=max_seconds, max_calls=max_calls),
        *daily,
        LoopGuard(),
        Length(continuations),
        Pause(),
        TypedOutput(),
        Titles(by_model=titles_by_model, length=title_length),
    ]
