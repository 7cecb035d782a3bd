"""Every error Dragoman raises on purpose, and who is meant to read it.

DragomanError
├── ProviderError           a model's server said no; `.retryable` says whether asking again may help
│   ├── ContextOverflow     the request was longer than the model can take
│   └── OutputInvalid       the answer is no value of the type that was asked for
├── ToolFailed              a tool said no; the model reads the text and may try again
├── BadRequest              the caller asked for something that cannot be; nothing was stored
│   ├── NotFound            no such conversation, message, turn, call or question
│   ├── Forbidden           a user may see it, and may not do that with it
│   ├── TurnBusy            a turn of this branch is still running
│   ├── KeyReused           the idempotency key of a send was used for something else
│   ├── TurnEnded           the turn is over: it can be neither steered nor answered
│   ├── AlreadyAnswered     somebody else was first
│   ├── Unanswered          a person has to decide, and the caller passed `strict`
│   └── RevertConflict      files were changed since: going back would lose that
├── ConfigError             the configuration or the construction of a component is wrong
├── Unreadable              one thing in the store is damaged, or of a newer version; the rest is not
├── StoreUnavailable        the store cannot be used now: locked, full, out of reach
└── EngineError             ours: a bug, or two owners of one turn; nobody catches these
    ├── IllegalFact         the machine's table does not allow this fact in this state
    ├── Fenced              another process has taken this turn over
    ├── TurnInterrupted     the program stops; the turn goes on when it is started again
    └── TurnQuarantined     the turn cannot resume here: what it needs is missing, or cannot be read

Each docstring says when it is raised and, after a blank line, what to do. A script makes
`docs/reference/errors.md` of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.sentences import sentence

ENDS_THE_PROGRAM = (KeyboardInterrupt, SystemExit)
"""All else that is no Exception, such as a failed test or a panic of Rust code, counts as one."""


class DragomanError(Exception):
    """Raised as one of the errors below, never itself.

    `except DragomanError` catches all of them and nothing else.
    """


class ProviderError(DragomanError):
    """A model could not answer: its server refused, did not respond, or disconnected.

    Where `retryable` is true, asking again may help, and was tried already; else follow the `hint`.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "provider",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.hint = hint
        self.sent: frozenset[str] = frozenset()  # the fields of the body that was refused

    def __str__(self) -> str:
        if not self.hint:
            return self.without_hint
        return sentence("provider.with_hint", message=_without_stop(self.without_hint), hint=self.hint)

    @property
    def without_hint(self) -> str:
        if not self.status:
            return self.message
        return sentence("provider.with_status", message=_without_stop(self.message), status=self.status)


def _without_stop(text: str) -> str:
    return text.removesuffix(".") if text.endswith(".") else text  # which keeps a code


class ContextOverflow(ProviderError):
    """The request is longer than the model can take, and compaction did not make it fit.

    Send less, choose a model with a larger context, or let earlier messages be summed up (`compact_at`).
    """

    def __init__(self, message: str, *, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, kind="context_overflow", status=status, hint=hint)


class OutputInvalid(ProviderError):
    """The answer does not fit the requested type, and the model could not fix it.

    Ask for a simpler type, raise `retries` of `Output`, or choose a stronger model.
    """

    KIND = "output"

    def __init__(self, message: str) -> None:
        super().__init__(message, kind=self.KIND)


class ToolFailed(DragomanError):
    """A tool failed: the model reads the text, and the turn continues.

    Raise it in a tool of your own, with words that tell the model what to do instead.
    """


class BadRequest(DragomanError):
    """The request is impossible. Dragoman stored nothing.

    Change what is asked for, as the message says.
    """


class NotFound(BadRequest):
    """No conversation, turn, question, model or other thing (`noun`) has this name.

    Look the name up in a list; it may have been deleted, or belong to somebody else.
    """

    def __init__(self, noun: str, id: str, hint: str = "") -> None:
        said = sentence("not_found", noun=noun, id=id)
        super().__init__(sentence("not_found.hint", said=said, hint=hint) if hint else said)
        self.noun = noun
        self.id = id


class Forbidden(BadRequest):
    """A user may see the conversation, and may not do that in it.

    Ask its owner for another role, or do it in a conversation of your own: `dragoman share` shows the roles.
    """


class TurnBusy(BadRequest):
    """A turn of this branch is still running, so a new one cannot begin.

    Wait for it, cancel it, steer it, or send with `queue=True`.
    """

    def __init__(self, turn: str) -> None:
        super().__init__(sentence("turn.busy", turn=turn))
        self.turn = turn


class KeyReused(BadRequest):
    """Another send used the idempotency key (`key`) within a day, with other content.

    Use a new key for each send; repeat a key only to repeat the same send.
    """

    def __init__(self, key: str) -> None:
        super().__init__(sentence("key.reused", name=key))
        self.key = key


class TurnEnded(BadRequest):
    """The turn is over: you can neither steer nor answer it.

    Send a new message.
    """

    def __init__(self, turn: str, state: str) -> None:
        super().__init__(sentence("turn.over", turn=turn, state=state))
        self.turn = turn
        self.state = state


class AlreadyAnswered(BadRequest):
    """Another answer came first, or the question was withdrawn.

    Nothing: `how` says what was decided.
    """

    def __init__(self, question: str, how: str) -> None:
        super().__init__(sentence("question.answered", question=question, how=how))
        self.question = question
        self.how = how


class Unanswered(BadRequest):
    """A user would have to decide about a call, and the caller passed `strict`.

    Allow the call by a rule, or answer the question that the message names.
    """


class RevertConflict(BadRequest):
    """Going back would lose what was done to the same files since, by whomever. Nothing was changed.

    Look at `conflicts`, the paths and what is the matter with each; repair them, or force it.
    """

    def __init__(self, conflicts: Sequence[tuple[str, str]]) -> None:
        shown = "; ".join(f"{path}: {why}" for path, why in conflicts[:5])
        more = f"; and {len(conflicts) - 5} more" if len(conflicts) > 5 else ""
        what = sentence("revert.conflict", files=f"{shown}{more}")
        super().__init__(sentence("revert.refused", what=what))
        self.conflicts = list(conflicts)
        self.what = what


class ConfigError(DragomanError):
    """The configuration, or the way you built a component, is wrong.

    Change the setting or argument that the message names; nothing has begun.
    """


class Unreadable(DragomanError):
    """One thing in the store is unreadable: it is damaged, or a newer version wrote it.

    Go on with the next; export this one as it is stored, delete it, or open it with the newer version.
    """

    def __init__(self, noun: str, id: str, why: str) -> None:
        super().__init__(sentence("store.unreadable", noun=noun, id=id, why=why))
        self.noun = noun
        self.id = id
        self.why = why


class StoreUnavailable(DragomanError):
    """The store is locked, full or out of reach. Dragoman wrote nothing.

    Where `retryable` is true, try again soon; else follow the `hint` first.
    """

    def __init__(self, what: str, hint: str, *, retryable: bool = False) -> None:
        super().__init__(sentence("store.unavailable", what=what, hint=hint))
        self.hint = hint
        self.retryable = retryable


class EngineError(DragomanError):
    """A bug of ours, or a second owner of a turn.

    Do not catch it; report it, with the message.
    """


class IllegalFact(EngineError):
    """The table in `turn/machine.py` does not allow this fact in this state.

    Report it, with the message.
    """


class Fenced(EngineError):
    """Another process has taken this turn over, and this one may no longer write to it.

    Nothing: the turn goes on there. Follow it by its id.
    """

    def __init__(self, turn: str, epoch: int) -> None:
        super().__init__(
            f"turn {turn} was taken over by another process; epoch {epoch} may no longer write to it"
        )
        self.turn = turn
        self.epoch = epoch


class TurnInterrupted(EngineError):
    """The program stopped during the turn.

    Open the store again: the turn goes on.
    """

    def __init__(self, turn: str) -> None:
        super().__init__(sentence("turn.interrupted", turn=turn))
        self.turn = turn


class TurnQuarantined(EngineError):
    """The turn cannot resume here: something that it needs is missing, or unreadable.

    Start the program with what `why` names, or cancel the turn.
    """

    def __init__(self, turn: str, why: str) -> None:
        super().__init__(sentence("turn.cannot_go_on", turn=turn, why=why))
        self.turn = turn
        self.why = why
