"""Run `dragoman run` and `resume`: one turn, with its answer on standard output."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import redirect_stdout, suppress
from mimetypes import guess_type
from typing import Any, cast

from dragoman.background import in_thread
from dragoman.cli.attachments import attach_file, made_in, save_as
from dragoman.cli.commands.run_flags import (
    choose_run_model,
    model_name,
    read_message,
    read_options,
    read_output_type,
    read_settings,
    temporary_store,
)
from dragoman.cli.flags.chat import RunFlags
from dragoman.cli.flags.turns import ResumeFlags
from dragoman.cli.interrupted import close_interrupted, next_queued, resume_turn
from dragoman.cli.lookup import find_conversation
from dragoman.cli.model_choice import ChosenModel
from dragoman.cli.terminal.approvals import LineInput, QuestionMenu
from dragoman.cli.terminal.cards import describe_file
from dragoman.cli.terminal.follow import ENDING, Interrupts, TurnQuestions
from dragoman.cli.terminal.forms import InputClosed
from dragoman.cli.terminal.images import show_picture
from dragoman.cli.terminal.output import JsonOutput, TextOutput, TurnOutput, ValueOutput, end_without_turn
from dragoman.cli.terminal.tables import open_console
from dragoman.cli.terminal.text import describe_error, exit_status, plain, write_file
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.errors import AlreadyAnswered, BadRequest, ConfigError, DragomanError, TurnBusy, TurnEnded
from dragoman.messages import events as e
from dragoman.messages.asked import question_in
from dragoman.messages.endings import INCOMPLETE, REFUSED, WITHOUT_ANSWER
from dragoman.messages.media import ModelType, type_of
from dragoman.messages.message import Part, Text
from dragoman.messages.questions import Mode, nobody_to_ask
from dragoman.runtime import Runtime
from dragoman.tools.python_files import load_tools
from dragoman.tools.toolbox import Toolbox
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.output import SchemaOutput
from dragoman.turn.send import SendOptions
from dragoman.unattended import CAUTIOUS

CANCELLED, CUT_OFF, NO_ANSWER = 130, 4, 5
_MOMENT = 1.0  # seconds before the user is told what the program waits for
_NO_TEXT = ("image/", "audio/", "video/")
STATUS = {"completed": 0, "error": 1, "cancelled": CANCELLED}
FINISHED = {
    **dict.fromkeys(REFUSED, 3),
    **dict.fromkeys(INCOMPLETE, CUT_OFF),
    **dict.fromkeys(WITHOUT_ANSWER, NO_ANSWER),
    "tool_calls": NO_ANSWER,  # At the end of a turn, these calls were requested but not run.
}


def resume(flags: ResumeFlags) -> int:
    """Resume an interrupted turn: a run without a message."""
    return run(RunFlags(**vars(flags), message=[""]))


def run(flags: RunFlags) -> int:
    """Run one turn to its end. Returns the exit status."""
    output = _make_output(flags)
    with redirect_stdout(sys.stderr):  # Output of tools must not mix with the program's lines.
        try:
            end, status = asyncio.run(_run(flags, read_settings(flags), output))
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Buffered output must not raise the error again.
            return CANCELLED
        except (DragomanError, OSError, sqlite3.Error) as error:
            end, status = end_without_turn(describe_error(error)), exit_status(error)
        except (KeyboardInterrupt, asyncio.CancelledError):
            end, status = end_without_turn("interrupted", "cancelled"), CANCELLED
    output.end(end)
    return status


def _make_output(flags: RunFlags) -> TurnOutput:
    if flags.json:
        return JsonOutput(sys.stdout)
    return ValueOutput(sys.stdout) if flags.output_type is not None else TextOutput(sys.stdout)


async def _run(flags: RunFlags, settings: Settings, output: TurnOutput) -> tuple[e.TurnEnd, int]:
    with Interrupts(signal.SIGINT, *ENDING) as interrupts, temporary_store(flags) as store:
        output_type = read_output_type(flags)
        # Another program can still be writing the message.
        message = await in_thread(lambda: read_message(flags))
        tools = load_tools(flags.tools or ())
        if not message.strip() and not flags.attach and flags.conversation is None:
            raise ConfigError("The message is empty. Write text, or attach a file.")
        resumes = flags.conversation is not None and not message and not flags.attach
        chosen = await choose_run_model(flags, settings)
        chosen.models.uploads.lasting = not flags.forget
        if not resumes:
            chosen.models(None)  # A missing key must raise an error before anything is stored.
        built = build_runtime(
            settings,
            model=chosen.models,
            tools=tools,
            without={"browser"},
            store=store,
            allow=flags.allow or (),
            deny=flags.deny or (),
            adopts=False,  # This command does not resume turns that other programs left.
        )
        for warning in built.warnings:
            print(f"· left out: {plain(warning)}", file=sys.stderr)
        if built.prompt is not None and sys.stderr.isatty():
            print(f"· {built.prompt.file.name} of this folder is part of the prompt", file=sys.stderr)
        async with chosen.models, built.runtime as runtime:
            _check_agent(flags, runtime)
            if flags.mode != "off":
                await _start_servers(runtime.services.toolbox)
            turn: TurnHandle[Any] | None = await _begin(flags, runtime, message, output_type, chosen)
            while turn is not None:
                interrupts.watch(turn)
                ended = await follow(runtime, turn, output, typed=flags.output_type is not None)
                await _write_files(flags, runtime, turn, ended[0])
                over = ended[0].state in ("completed", "error")
                turn = await next_queued(runtime, turn.id) if over else None
            return ended


async def _write_files(flags: RunFlags, runtime: Runtime, turn: TurnHandle[Any], end: e.TurnEnd) -> None:
    """Write the files of the answer, if requested. If there are none, write the text."""
    if end.state != "completed":
        return
    files = made_in((await turn.result()).messages)
    if flags.out is not None and files:
        for path in await save_as(runtime.store, files, flags.out):
            print(f"· written: {path}", file=sys.stderr)
    elif flags.out is not None:
        if (guess_type(flags.out)[0] or "").startswith(_NO_TEXT):
            raise BadRequest(f"--out {flags.out}: the answer is text, so there is no file to write.")
        print(f"· written: {write_file(flags.out, end.text)}", file=sys.stderr)
    for file in files if not flags.json else ():
        shown = show_picture(
            await runtime.store.blob(file.blob or ""), file.media_type, sys.stderr, os.environ
        )
        if not shown and flags.out is None:
            print(f"· {describe_file(file)}: --out FILE writes it", file=sys.stderr)


def _check_agent(flags: RunFlags, runtime: Runtime) -> None:
    if flags.agent is not None and flags.agent not in runtime.services.agents:
        known = ", ".join(runtime.services.agents) or "none"
        raise ConfigError(f"Unknown agent {flags.agent!r}. Choose one of {known}.")


async def _start_servers(toolbox: Toolbox) -> None:
    """Wait for servers that start slowly, because a single message needs all of its tools from the
    beginning."""

    def tell() -> None:
        late = [one.name for one in toolbox.sources if getattr(one, "state", "") == "starting"]
        if late:
            print(f"· waiting for {', '.join(late)} to start", file=sys.stderr, flush=True)

    telling = asyncio.get_running_loop().call_later(_MOMENT, tell)
    try:
        await toolbox.ready()
        await toolbox.started()
    finally:
        telling.cancel()


async def _begin(
    flags: RunFlags, runtime: Runtime, message: str, output_type: SchemaOutput | None, chosen: ChosenModel
) -> TurnHandle:
    """Return the turn that answers the message. Without a message, resume the interrupted one."""
    try:
        files = [await attach_file(runtime.store, str(path)) for path in flags.attach or ()]
    except BadRequest as error:
        raise ConfigError(f"Invalid --attach: {error}") from error
    said: list[Part] = [*([Text(message)] if message else []), *files]
    if flags.conversation is None:
        conversation = await runtime.conversation()
        try:
            await _tell_of_model(flags, runtime, conversation, chosen)
            return await _send(flags, runtime, conversation, said, output_type)
        except BaseException:  # A refused or interrupted command must leave nothing behind.
            await runtime.delete(conversation.id)
            raise
    conversation = await runtime.conversation((await find_conversation(runtime.store, flags.conversation)).id)
    if not said:
        return await _resume(runtime, conversation)
    await _tell_of_model(flags, runtime, conversation, chosen)
    try:
        return await _send(flags, runtime, conversation, said, output_type)
    except TurnBusy as busy:
        closed = await close_interrupted(runtime, busy)
        print(f"· closed turn {closed}, which was interrupted", file=sys.stderr)
        return await _send(flags, runtime, conversation, said, output_type)


async def _tell_of_model(
    flags: RunFlags, runtime: Runtime, conversation: ConversationHandle, chosen: ChosenModel
) -> None:
    """Print the note about the chosen model, if it is the one that answers."""
    own = (await conversation.info()).settings
    agent = flags.agent or own.get("agent")
    if flags.model is None and (
        own.get("model") or runtime.services.agent(str(agent) if agent else None).model
    ):
        return
    if not chosen.named:
        print(f"· No model is set, so Dragoman uses {chosen.name} ({chosen.reason})", file=sys.stderr)
    if chosen.note:
        print(f"· {chosen.note}", file=sys.stderr)


async def _send(
    flags: RunFlags,
    runtime: Runtime,
    conversation: ConversationHandle,
    said: Sequence[Part],
    output_type: SchemaOutput | None,
) -> TurnHandle[Any]:
    # Flags override the settings of a conversation or an agent.
    over: SendOptions = {"agent": flags.agent, "model": model_name(flags), "max_rounds": flags.max_rounds}
    over["mode"] = cast("Mode | None", flags.mode)
    over["options"] = read_options(flags, await _type_of_model(flags, conversation, runtime))
    if output_type is None:
        return await conversation.send(said, **over)
    return await conversation.send(said, output_type=output_type, **over)


async def _type_of_model(flags: RunFlags, conversation: ConversationHandle, runtime: Runtime) -> ModelType:
    named = model_name(flags) or (await conversation.info()).settings.get("model")
    return type_of(runtime.services.model(named if isinstance(named, str) else None))


async def _resume(runtime: Runtime, conversation: ConversationHandle) -> TurnHandle:
    turn = await resume_turn(runtime, conversation.id)
    if turn is None:
        raise BadRequest(f"Conversation {conversation.id} has no interrupted turn. Send a message.")
    print(f"· continuing with turn {turn.id}", file=sys.stderr)
    return turn


async def follow(
    runtime: Runtime, turn: TurnHandle[Any], output: TurnOutput, *, typed: bool
) -> tuple[e.TurnEnd, int]:
    """Follow a turn, and return its end and the exit status. With `typed`, the answer is shown as a value of
    its type."""
    task = asyncio.current_task()
    assert task is not None
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel()

    questions = TurnQuestions(turn, _settler(runtime, leave))
    end: e.TurnEnd | None = None
    cut = False
    try:
        async for event in turn.events():
            if isinstance(output, TextOutput):  # A program gets its events without delay.
                await questions.idle()
            output.show(event)
            if (question := question_in(event)) is not None:
                questions.ask(question)
            elif isinstance(event, e.CallStart) and event.client:
                questions.decline(event)
            elif isinstance(event, e.MessageEnd):
                cut = event.unfinished
            elif isinstance(event, e.TurnEnd):
                end = event
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        where = (await runtime.store.turn(turn.id)).conversation
        waits = f"it waits for your answer: `dragoman resume {where}` asks again, and continues"
        return end_without_turn(waits, "waiting"), STATUS["error"]
    # The output cannot be written: the reader has disconnected, or the disk is full.
    except OSError as error:
        gone = isinstance(error, BrokenPipeError)
        if await turn.cancel("its answer has no reader" if gone else "its answer cannot be written"):
            await turn.reached("cancelled")
        raise
    finally:
        await questions.close()
    if end is None:  # The store could not be written, or another process took the turn over.
        await turn.result()
        return end_without_turn("the turn continued elsewhere"), STATUS["error"]
    status = await _status(turn, end, cut=cut)
    if typed and status == 0:
        output.take_value((await turn.result()).output)
    return end, status


def _settler(runtime: Runtime, leave: Callable[[], object]) -> Callable[[str], Coroutine[Any, Any, None]]:
    """Return a function that settles approval requests at the terminal. Without one, it gives the cautious
    answer."""
    menu = QuestionMenu(runtime, open_console(stderr=True), LineInput())

    async def ask(id: str) -> None:
        try:
            await menu.settle(id)
        except InputClosed:  # The user leaves, and the approval request stays open.
            leave()

    async def refuse(id: str) -> None:
        question = await runtime.store.question(id)
        with suppress(AlreadyAnswered, TurnEnded):  # Another client answered first.
            await runtime.answer(id, CAUTIOUS.get(question.kind, nobody_to_ask()))

    return ask if sys.stdin is not None and sys.stdin.isatty() else refuse


async def _status(turn: TurnHandle[Any], end: e.TurnEnd, *, cut: bool) -> int:
    """Return the exit status by the end of the last reply, if the turn completed or a filter stopped it.
    `cut` means that nothing marked the end of that reply."""
    if end.state != "completed" and end.finish not in REFUSED:
        return STATUS.get(end.state, 1)
    if status := FINISHED.get(end.finish, CUT_OFF if cut else 0):
        return status
    answered = end.text.strip() or any(
        message.files for message in (await turn.result()).messages if message.role == "assistant"
    )
    return 0 if answered else NO_ANSWER
