"""Editors that speak the Agent Client Protocol, against the real program: sessions, prompts, questions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from dragoman.store.sqlite.store import SqliteStore
from dragoman.wire.scripted import calls, says, thinks
from tests.cli.acp.editor import PlayedEditor, connected, settings
from tests.fork_server import KILL
from tests.later import Later
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.wire.endings.replies import chat

if TYPE_CHECKING:
    import acp
    from acp import schema
else:
    acp, schema = Later("acp"), Later("acp.schema")

pytestmark = pytest.mark.slow


async def test_an_editor_talks_with_a_model(tmp_path: Path) -> None:
    """Text and reasoning arrive as updates, and the prompt ends with a reason (F2)."""
    async with loopback(thinks("Hm.") + says("Hello, editor.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            assert here.hello.protocol_version == 1
            session = await here.session()
            ended = await here.say(session, "hi")
    assert ended.stop_reason == "end_turn"
    assert here.editor.text() == "Hello, editor."
    assert here.editor.text("agent_thought_chunk") == "Hm."
    assert here.editor.of("session_info_update")[0].title == "hi"
    assert model.messages()[-1]["content"] == "hi"


async def test_a_write_is_asked_about_with_its_diff_and_shown_as_one(tmp_path: Path) -> None:
    """The user sees the planned write, and the content of the call is the diff (F2, B2, P3)."""
    async with loopback(calls("write_file", path="a.txt", text="one\ntwo\n"), says("Written.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            session = await here.session()
            ended = await here.say(session, "write it")
    assert ended.stop_reason == "end_turn"
    ((asked, options),) = here.editor.asked
    diff = asked.content[-1]
    assert (diff.type, diff.path, diff.new_text) == ("diff", str(tmp_path / "a.txt"), "one\ntwo\n")
    kinds = {option.option_id: option.kind for option in options}
    assert kinds["once"] == "allow_once"
    assert kinds["conversation"] == kinds["always"] == "allow_always"
    assert kinds["reject"] == "reject_once"
    assert kinds["reject-always"] == "reject_always"
    (call,) = here.editor.calls().values()
    assert (call["kind"], call["status"]) == ("edit", "completed")
    assert call["locations"] == [{"path": str(tmp_path / "a.txt")}]
    assert call["content"][0]["type"] == "diff"
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


async def test_what_is_rejected_does_not_run_and_always_is_not_asked_again(tmp_path: Path) -> None:
    """P3, P11"""
    play = (
        calls("shell", command="echo one > one.txt"),
        says("No then."),
        calls("shell", command="echo two > two.txt"),
        says("Done."),
        calls("shell", command="echo two > two.txt"),
        says("Again."),
    )
    async with loopback(*play) as model:
        settings(tmp_path, model)
        answers = iter(["reject", "conversation"])
        editor = PlayedEditor(choose=lambda options: next(answers))
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            await here.say(session, "one")
            await here.say(session, "two")
            await here.say(session, "two again")
    assert len(editor.asked) == 2
    assert [call["status"] for call in editor.calls().values()] == ["failed", "completed", "completed"]
    assert not (tmp_path / "one.txt").exists()


async def test_a_cancelled_prompt_ends_as_cancelled(tmp_path: Path) -> None:
    """This also holds during an approval request (T6)."""
    async with loopback(calls("shell", command="rm -rf x"), says("Gone.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            saying = asyncio.create_task(here.say(session, "go"))
            await editor.asking.wait()
            await here.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
            editor.waits = False
            model.script[:] = [says("Still here.")]
            assert (await here.say(session, "and now?")).stop_reason == "end_turn"
    assert here.editor.text().endswith("Still here.")


async def test_a_killed_program_goes_on_where_it_was(tmp_path: Path) -> None:
    """The history is sent again as updates, and so is the approval request (S3, F2)."""
    async with loopback(
        says("Let me. ") + calls("write_file", path="b.txt", text="b"), says("Done.")
    ) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            saying = asyncio.create_task(here.say(session, "write b"))
            await editor.asking.wait()
            here.process.send_signal(KILL)
            await here.process.wait()
            saying.cancel()
        again = PlayedEditor(waits=True)
        async with connected(tmp_path, again) as here:
            listed = await here.agent.list_sessions(cwd=str(tmp_path))
            assert [one.session_id for one in listed.sessions] == [session]
            loaded = await here.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
            assert loaded is not None
            assert again.text("user_message_chunk") == "write b"
            assert again.text() == "Let me. "
            await again.asking.wait()
            again.waits = False
            model.script[:] = [says("It was.")]
        last = PlayedEditor()
        async with connected(tmp_path, last) as here:
            await here.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
            ended = await here.say(session, "was it written?")
    assert ended.stop_reason == "end_turn"
    assert (tmp_path / "b.txt").read_text() == "b"


async def test_stop_ends_what_goes_on_and_what_waits_behind_it(tmp_path: Path) -> None:
    """This covers a turn that resumes after a restart and a prompt that arrived meanwhile (T6, T14)."""
    async with loopback(calls("write_file", path="b.txt", text="b"), says("Done.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            saying = asyncio.create_task(here.say(session, "write b"))
            await editor.asking.wait()
            here.process.send_signal(KILL)
            await here.process.wait()
            saying.cancel()
        again = PlayedEditor(waits=True)
        async with connected(tmp_path, again) as here:
            await here.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
            await again.asking.wait()
            saying = asyncio.create_task(here.say(session, "and c"))
            store = SqliteStore(tmp_path / "home" / "chat.db")
            await store.open()
            try:
                async with asyncio.timeout(PATIENCE):
                    while not await store.queued(conversation=session):  # noqa: ASYNC110 - in a file
                        await asyncio.sleep(0.01)
            finally:
                await store.close()
            await here.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
            model.script[:] = [says("Here.")]
            assert (await here.say(session, "are you there?")).stop_reason == "end_turn"
    assert not (tmp_path / "b.txt").exists()


async def test_modes_and_models_are_chosen_for_a_session(tmp_path: Path) -> None:
    """In `off`, the model is offered no tools. An unknown option is refused (P8)."""
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            made = await here.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            assert made.modes is not None
            assert made.modes.current_mode_id == "auto"
            assert [mode.id for mode in made.modes.available_modes] == ["auto", "ask", "manual", "off"]
            await here.agent.set_session_mode(session_id=made.session_id, mode_id="off")
            await here.say(made.session_id, "hi")
            changed = await here.agent.set_config_option(
                session_id=made.session_id, config_id="mode", value="ask"
            )
            assert changed is not None
            assert {one.id: one.current_value for one in changed.config_options} == {
                "mode": "ask",
                "model": "stage/model",
            }
            with pytest.raises(acp.RequestError, match="cannot be 'plan'"):
                await here.agent.set_session_mode(session_id=made.session_id, mode_id="plan")
            with pytest.raises(acp.RequestError, match="Session 'nowhere' is not open"):
                await here.say("nowhere", "hi")
    assert "tools" not in model.bodies[0]


async def test_the_text_of_an_open_file_counts_and_edits_go_through_the_editor(tmp_path: Path) -> None:
    """The model reads and changes the unsaved text (F2)."""
    file = tmp_path / "notes.txt"
    file.write_text("old\n", "utf-8")

    def edit(body: dict[str, object]) -> object:
        read = str(body["messages"][-1]["content"])  # type: ignore[index]
        version = read.partition("version ")[2][:10]
        return calls("edit_file", path="notes.txt", version=version, old="unsaved", new="edited")

    async with loopback(calls("read_file", path="notes.txt"), edit, says("Edited.")) as model:  # type: ignore[arg-type]
        settings(tmp_path, model)
        editor = PlayedEditor(files={str(file): "unsaved text\n"})
        async with connected(tmp_path, editor, "--allow", "files.read", files=True) as here:
            await here.say(await here.session(), "edit it")
    ((asked, _),) = editor.asked
    assert (asked.content[-1].old_text, asked.content[-1].new_text) == ("unsaved text\n", "edited text\n")
    assert editor.files[str(file)] == file.read_text() == "edited text\n"


async def test_a_task_works_on_the_files_of_the_session_it_was_given_in(tmp_path: Path) -> None:
    """This holds also if another session was opened since, and a preview uses the same folder (F2 × C8)."""
    file = tmp_path / "notes.txt"
    file.write_text("old\n", "utf-8")

    def edit(body: dict[str, object]) -> object:
        read = str(body["messages"][-1]["content"])  # type: ignore[index]
        version = read.partition("version ")[2][:10]
        return calls("edit_file", path="notes.txt", version=version, old="unsaved", new="edited")

    task = calls("task", agent="helper", request="Edit it.")
    script = (task, calls("read_file", path="notes.txt"), edit, says("Edited."), says("All done."))
    async with loopback(*script) as model:  # type: ignore[arg-type]
        settings(tmp_path, model, "[agents.helper]", 'description = "It helps."')
        editor = PlayedEditor(files={str(file): "unsaved text\n"})
        async with connected(
            tmp_path, editor, "--allow", "files.read", "--allow", "agents.*", files=True
        ) as here:
            first = await here.session()
            await here.session()
            await here.say(first, "have it edited")
    assert file.read_text() == "edited text\n"
    assert {*editor.reads} == {first}


async def test_commands_run_in_the_editors_terminal(tmp_path: Path) -> None:
    """F2, P: after the same question."""
    async with loopback(calls("shell", command="echo hi"), says("Ran.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path, terminal=True) as here:
            await here.say(await here.session(), "run it")
    assert len(here.editor.asked) == 1
    assert here.editor.commands == [("/bin/sh", ["-c", "echo hi"])]
    (call,) = here.editor.calls().values()
    assert {"type": "terminal", "terminal_id": "term-1"} in call["content"]
    assert "from the editor" in model.messages()[-1]["content"]


async def test_plans_pictures_and_files_are_understood(tmp_path: Path) -> None:
    """F2: blocks of a prompt become parts of the message, and a list of tasks a plan."""
    items: JsonValue = [{"text": "read", "state": "done"}, {"text": "write"}]
    async with loopback(calls("todo", items=items), says("Planned.")) as model:
        settings(tmp_path, model)
        link = schema.ResourceContentBlock(
            type="resource_link", name="a.py", uri=(tmp_path / "a.py").as_uri()
        )
        inner = schema.TextResourceContents(uri=(tmp_path / "b.py").as_uri(), text="print(2)")
        embedded = schema.EmbeddedResourceContentBlock(type="resource", resource=inner)
        async with connected(tmp_path) as here:
            await here.say(await here.session(), "look at", link, embedded)
    (plan,) = here.editor.of("plan")
    assert [(one.content, one.status) for one in plan.entries] == [
        ("read", "completed"),
        ("write", "pending"),
    ]
    content = str(next(one for one in model.messages(0) if one["role"] == "user")["content"])
    assert "[a.py](a.py)" in content
    assert "b.py" in content
    assert "print(2)" in content


async def test_a_failing_model_is_an_error_of_the_prompt(tmp_path: Path) -> None:
    """The session continues (F3)."""
    from tests.loopback import Answer

    refused = Answer(401, {"error": {"message": "no such key"}})
    async with loopback(refused) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            session = await here.session()
            with pytest.raises(acp.RequestError, match="no such key"):
                await here.say(session, "hi")
            model.script[:] = [says("Back.")]
            assert (await here.say(session, "hi")).stop_reason == "end_turn"


async def test_an_editor_learns_how_a_reply_ended(tmp_path: Path) -> None:
    """The editor receives the protocol's stop reasons. An aborted reply has none, so it is an error (F2)."""
    cut = [chat("and ", "length")] * 4  # it is asked to continue, three times
    async with loopback(chat("Half", "content_filter"), *cut, chat("Half", "error")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            session = await here.session()
            ended = [(await here.say(session, "hi")).stop_reason for _ in range(2)]
            with pytest.raises(acp.RequestError, match="broke off the reply"):
                await here.say(session, "hi")
    assert ended == ["refusal", "max_tokens"]
