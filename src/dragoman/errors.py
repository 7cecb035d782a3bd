"""Define every error that Dragoman raises on purpose, and the reader of each.

DragomanError
├── ProviderError           a model's server refused; `.retryable` tells whether a retry can help
│   ├── ContextOverflow     the request was longer than the model accepts
│   └── OutputInvalid       the answer does not match the requested type
├── ToolFailed              a tool failed; the model reads the text and can try again
├── BadRequest              the caller's request is impossible; nothing was stored
│   ├── NotFound            unknown conversation, message, turn, call or approval request
│   ├── Forbidden           a user can see the conversation, but must not do that with it
│   ├── TurnBusy            a turn of this branch is still running
│   ├── KeyReused           a different send has used the idempotency key
│   ├── TurnEnded           the turn has ended: it can be neither steered nor answered
│   ├── AlreadyAnswered     another user was first
│   ├── Unanswered          a user must decide, and the caller passed `strict`
│   └── RevertConflict      files have changed since: a revert would lose that
├── ConfigError             the configuration or the construction of a component is wrong
├── Unreadable              one item of the store is damaged, or of a newer version; the rest is fine
├── StoreUnavailable        the store cannot be used now: locked, full, unreachable
└── EngineError             a bug in Dragoman, or two owners of one turn; do not catch these
    ├── IllegalFact         the machine's table does not allow this fact in this state
    ├── Fenced              another process has taken this turn over
    ├── TurnInterrupted     the program stops; the turn resumes when it is started again
    └── TurnQuarantined     the turn cannot resume here: what it needs is missing or unreadable

Each docstring says when the error is raised and, after a blank line, what to do. A script generates
`docs/reference/errors.md` from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.sentences import sentence

ENDS_THE_PROGRAM = (KeyboardInterrupt, SystemExit)
"""Every other BaseException, such as a failed test or a panic of Rust code, is treated as an Exception."""


class DragomanError(Exception):
    """Only the errors below are raised, never this class.

    `except DragomanError` catches all of them and nothing else.
    """


class ProviderError(DragomanError):
    """A model could not answer: its server refused, did not respond, or disconnected.

    If `retryable` is true, a retry can help, and Dragoman has already tried. Otherwise follow the `hint`.
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
        self.sent: frozenset[str] = frozenset()  # the fields of the refused body

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
    # `removesuffix` of a sentence keeps its code.
    return text.removesuffix(".") if text.endswith(".") else text


class ContextOverflow(ProviderError):
    """The request is longer than the model accepts, and compaction did not make it fit.

    Send less, choose a model with a larger context, or let Dragoman summarize earlier messages
    (`compact_at`).
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

    Raise it in your tool, with words that tell the model what to do instead.
    """


class BadRequest(DragomanError):
    """The request is impossible. Dragoman stored nothing.

    Change the request as the message says.
    """


class NotFound(BadRequest):
    """No conversation, turn, approval request, model or other object (`noun`) has this name.

    Look the name up in a list. The object can be deleted, or belong to another user.
    """

    def __init__(self, noun: str, id: str, hint: str = "") -> None:
        said = sentence("not_found", noun=noun, id=id)
        super().__init__(sentence("not_found.hint", said=said, hint=hint) if hint else said)
        self.noun = noun
        self.id = id


class Forbidden(BadRequest):
    """A user can see the conversation, but must not do that in it.

    Ask its owner for another role, or use a conversation of yours: `dragoman share` shows the roles.
    """


class TurnBusy(BadRequest):
    """A turn of this branch is still running, so a new one cannot begin.

    Wait for it, cancel it, steer it, or send with `queue=True`.
    """

    def __init__(self, turn: str) -> None:
        super().__init__(sentence("turn.busy", turn=turn))
        self.turn = turn


class KeyReused(BadRequest):
    """A different send has used the idempotency key (`key`) within a day.

    Use a new key for each send. Repeat a key only to repeat the same send.
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
    """Another answer came first, or the approval request was withdrawn.

    You need not do anything: `how` names the decision.
    """

    def __init__(self, question: str, how: str) -> None:
        super().__init__(sentence("question.answered", question=question, how=how))
        self.question = question
        self.how = how


class Unanswered(BadRequest):
    """A user would have to decide about a call, and the caller passed `strict`.

    Allow the call by a rule, or answer the approval request that the message names.
    """


class RevertConflict(BadRequest):
    """A revert would lose later changes to the same files. Nothing was changed.

    Look at `conflicts`, the paths with their problems. Repair the files, or force the revert.
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

    Change the setting or argument that the message names. Nothing has begun.
    """


class Unreadable(DragomanError):
    """One item in the store is unreadable: it is damaged, or a newer version wrote it.

    Continue with the next one. Export this one as it is stored, delete it, or open it with the newer version.
    """

    def __init__(self, noun: str, id: str, why: str) -> None:
        super().__init__(sentence("store.unreadable", noun=noun, id=id, why=why))
        self.noun = noun
        self.id = id
        self.why = why


class StoreUnavailable(DragomanError):
    """The store is locked, full or unreachable. Dragoman wrote nothing.

    If `retryable` is true, try again soon. Otherwise follow the `hint` first.
    """

    def __init__(self, what: str, hint: str, *, retryable: bool = False) -> None:
        super().__init__(sentence("store.unavailable", what=what, hint=hint))
        self.hint = hint
        self.retryable = retryable


class EngineError(DragomanError):
    """A bug in Dragoman, or a second owner of a turn.

    Do not catch it. Report it, with the message.
    """


class IllegalFact(EngineError):
    """The table in `turn/machine.py` does not allow this fact in this state.

    Report it, with the message.
    """


class Fenced(EngineError):
    """Another process has taken this turn over, and this one must not write to it any longer.

    Nothing: the turn continues there. Follow it by its ID.
    """

    def __init__(self, turn: str, epoch: int) -> None:
        super().__init__(
            f"turn {turn} was taken over by another process; epoch {epoch} may no longer write to it"
        )
        self.turn = turn
        self.epoch = epoch


class TurnInterrupted(EngineError):
    """The program stopped during the turn.

    Open the store again: the turn resumes.
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
