"""Check faults and omissions of editors, MCP servers that they name, and requests answered elsewhere
first."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman import Runtime, ScriptedModel, allow_once
from dragoman.cli.acp.agent import explain
from dragoman.cli.acp.jsonrpc import RpcPeer
from dragoman.cli.acp.sessions import read_prompt
from dragoman.errors import BadRequest
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.cli.acp.editor import ACP, PlayedEditor, connected, settings
from tests.cli.program import clean_environment
from tests.fork_server import python
from tests.later import Later
from tests.loopback import loopback
from tests.patience import PATIENCE, eventually
from tests.tools.mcp.servers import MODERN

if TYPE_CHECKING:
    import acp
    from acp import schema
else:
    acp, schema = Later("acp"), Later("acp.schema")

pytestmark = pytest.mark.slow


async def exchange(folder: Path, *lines: str | bytes, answers: int = 0) -> list[dict[str, Any]]:
    """Return the program's answers to these lines: one line of JSON each, or this number of lines, and no
    more."""
    process = await asyncio.create_subprocess_exec(
        *python(*ACP),
        cwd=folder,
        env=clean_environment(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    written = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(written)
    found = []
    async with asyncio.timeout(PATIENCE):
        for _ in range(answers or len(lines)):
            found.append(json.loads(await process.stdout.readline()))
        process.stdin.close()
        rest, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert rest == b""
    return found


async def test_lines_can_come_from_a_file_and_go_to_one(tmp_path: Path) -> None:
    """F3: and nothing at all is the end of it."""
    asked, answered = tmp_path / "asked.jsonl", tmp_path / "answered.jsonl"
    asked.write_text("{\n")
    for path in (asked, Path(os.devnull)):
        with path.open("rb") as source, answered.open("ab") as target:
            process = await asyncio.create_subprocess_exec(
                *python(*ACP),
                cwd=tmp_path,
                env=clean_environment(tmp_path),
                stdin=source,
                stdout=target,
                stderr=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(PATIENCE):
                _, err = await process.communicate()
        assert (process.returncode, err) == (0, b"")
    assert json.loads(answered.read_text())["error"]["code"] == -32700


async def test_what_is_wrong_is_an_error_in_the_protocols_form(tmp_path: Path) -> None:
    """The next line is read as usual (F3)."""
    new = '{"jsonrpc":"2.0","id":%d,"method":"session/new","params":%s}'
    answers = await exchange(
        tmp_path,
        '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[1]}}',
        "{",
        b"\xff",
        "[1]",
        '{"jsonrpc":"2.0","id":true,"method":"initialize"}',
        '{"jsonrpc":"2.0","id":1,"method":"session/dance","params":{}}',
        new % (2, '{"cwd":"/"}'),
        '{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":[]}',
        answers=7,
    )
    codes = sorted(answer["error"]["code"] for answer in answers)
    assert codes == sorted([-32700, -32700, -32600, -32600, -32601, -32600, -32602])


async def test_a_version_that_is_not_ours_gets_ours(tmp_path: Path) -> None:
    """The editor decides whether it continues (F2)."""
    hello = '{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":%s}}'
    for version in ("0", "1", "99", '"2024-11-05"'):
        (answer,) = await exchange(tmp_path, hello % version)
        assert answer["id"] == "a"
        assert answer["result"]["protocolVersion"] == 1


async def test_a_session_has_its_id_before_anything_is_told_of_it(tmp_path: Path) -> None:
    """F2: an editor drops what is about a session it does not know."""
    commands = tmp_path / "home" / "config" / "dragoman" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("# Review it")
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
        params = json.dumps({"cwd": str(tmp_path), "mcpServers": []})
        new = f'{{"jsonrpc":"2.0","id":2,"method":"session/new","params":{params}}}'
        _, made, update = await exchange(tmp_path, hello, new, answers=3)
    assert made["id"] == 2
    assert update["params"]["sessionId"] == made["result"]["sessionId"]
    assert update["params"]["update"]["availableCommands"][0]["name"] == "review"


async def test_folders_and_blocks_that_are_none_are_refused(tmp_path: Path) -> None:
    """They are refused before anything is stored (F3)."""
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            for folder in ("relative", str(tmp_path / "nowhere"), str(tmp_path / "dragoman.toml")):
                with pytest.raises(acp.RequestError, match="must be an absolute path"):
                    await here.agent.new_session(cwd=folder, mcp_servers=[])
            session = await here.session()
            with pytest.raises(acp.RequestError, match="blank"):
                await here.say(session, "")
            picture = schema.ImageContentBlock(type="image", data="no base64!", mime_type="image/png")
            with pytest.raises(acp.RequestError, match="not valid base64"):
                await here.say(session, picture)
            with pytest.raises(acp.RequestError, match="Unknown conversation"):
                await here.agent.load_session(cwd=str(tmp_path), session_id="conv_x", mcp_servers=[])
    assert model.bodies == []


@pytest.mark.parametrize(
    ("block", "what"),
    [
        ({"type": "text", "text": None}, "text"),
        ({"type": "resource_link", "name": 5, "uri": "file:///a"}, "name"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": ["x"]}}, "text"),
        ({"type": "image", "data": "AAAA", "mimeType": None}, "mimeType"),
    ],
)
async def test_what_is_no_text_in_a_block_is_not_told_to_the_model_as_one(
    tmp_path: Path, block: dict[str, Any], what: str
) -> None:
    """The model used to receive "None" (F3)."""
    with pytest.raises(BadRequest, match=f"'{what}' must be a string"):
        await read_prompt(SqliteStore(tmp_path / "chat.db"), [block], tmp_path, {})


async def test_who_closes_the_editor_stops_nothing(tmp_path: Path) -> None:
    """Waiting turns continue to wait, and a session without messages is removed (T14)."""
    async with loopback(calls("write_file", path="a.txt", text="a"), says("Done.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            await here.session()
            saying = asyncio.create_task(here.say(await here.session(), "write"))
            await editor.asking.wait()
        await asyncio.gather(saying, return_exceptions=True)
    async with Runtime(tmp_path / "home" / "chat.db", model=ScriptedModel([]), adopts=False) as runtime:
        (conversation,) = await runtime.conversations()
        (question,) = await runtime.questions()
        assert question.conversation == conversation.id


class Gone:
    """A stream whose reader has disconnected."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        raise ConnectionResetError


async def test_an_editor_that_dies_leaves_no_error_behind() -> None:
    """An answer that cannot be delivered is not an error of the program (F2)."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))

    async def lines() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc":"2.0","id":1,"method":"session/dance"}'
        while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110 - until it has been worked on
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # and its task is forgotten

    before = len(asyncio.all_tasks())
    await RpcPeer(lines(), Gone(), {}, {}, explain).serve()
    gc.collect()
    assert complaints == []


async def test_a_question_that_another_client_answers_is_taken_back(tmp_path: Path) -> None:
    """P6: the first answer counts, from whichever client it comes."""
    async with loopback(calls("write_file", path="a.txt", text="a"), says("Done.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            saying = asyncio.create_task(here.say(await here.session(), "write"))
            await editor.asking.wait()
            store = tmp_path / "home" / "chat.db"
            async with Runtime(store, model=ScriptedModel([]), adopts=False) as runtime:
                (question,) = await runtime.questions()
                await runtime.answer(question.id, allow_once())
            assert (await saying).stop_reason == "end_turn"
            assert len(editor.taken_back) == 1
    assert (tmp_path / "a.txt").read_text() == "a"


async def test_a_prompt_whose_request_is_taken_back_is_stopped(tmp_path: Path) -> None:
    """Its approval request is closed, and the next prompt does not wait for it (T6)."""
    async with loopback(calls("write_file", path="a.txt", text="a"), says("Here.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            saying = asyncio.create_task(here.say(session, "write"))
            await editor.asking.wait()
            await here.write("$/cancel_request", {"requestId": editor.prompted})
            with pytest.raises(acp.RequestError, match="was cancelled"):
                await saying
            assert len(editor.taken_back) == 1
            assert (await here.say(session, "are you there?")).stop_reason == "end_turn"
    assert not (tmp_path / "a.txt").exists()


async def test_a_session_that_is_deleted_ends_its_prompt_as_cancelled(tmp_path: Path) -> None:
    """This also holds during an approval request (T6)."""
    async with loopback(calls("write_file", path="a.txt", text="a")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            session = await here.session()
            saying = asyncio.create_task(here.say(session, "write"))
            await editor.asking.wait()
            await here.write("session/delete", {"sessionId": session}, id="delete")
            assert (await saying).stop_reason == "cancelled"


@pytest.mark.parametrize(("choice", "offered"), [("once", True), ("reject", False)])
async def test_a_server_the_editor_names_is_not_started_unasked(
    tmp_path: Path, choice: str, offered: bool
) -> None:
    """P11: it runs nothing before the person has said so."""
    begun = tmp_path / "begun"
    line = f"import pathlib, runpy; pathlib.Path({str(begun)!r}).touch(); runpy.run_path({MODERN!r})"
    command, *words = python("-c", line)
    server = schema.McpServerStdio(name="its notes", command=command, args=words, env=[])
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True, choose=lambda options: choice)
        async with connected(tmp_path, editor) as here:
            made = await here.agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
            saying = asyncio.create_task(here.say(made.session_id, "hi"))
            await editor.asking.wait()
            assert not begun.exists()
            assert model.bodies == []
            here.editor.waits = False
            here.editor.release.set()
            await saying
            if offered:
                await eventually(begun.exists)
            ((asked, _),) = editor.asked
    assert asked.title == "Start the MCP server its-notes"
    assert begun.exists() == offered


async def test_stop_does_not_wait_for_who_is_asked_about_a_server(tmp_path: Path) -> None:
    """An editor that leaves the request open is notified of its cancellation (T6)."""
    command, *words = python(MODERN)
    server = schema.McpServerStdio(name="notes", command=command, args=words, env=[])
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        editor = PlayedEditor(waits=True)
        async with connected(tmp_path, editor) as here:
            made = await here.agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
            saying = asyncio.create_task(here.say(made.session_id, "hi"))
            await editor.asking.wait()
            await here.agent.cancel(session_id=made.session_id)
            assert (await saying).stop_reason == "cancelled"
            assert len(editor.taken_back) == 1
    assert model.bodies == []


async def test_a_server_named_like_tools_of_ours_is_called_the_editors(tmp_path: Path) -> None:
    """F3: a session begins whatever an editor calls its servers."""
    command, *words = python(MODERN)
    server = schema.McpServerStdio(name="files", command=command, args=words, env=[])
    async with loopback(says("Hello.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path, PlayedEditor(choose=lambda options: "once")) as here:
            made = await here.agent.new_session(cwd=str(tmp_path), mcp_servers=[server])
            await here.say(made.session_id, "hi")
            ((asked, _),) = here.editor.asked
    assert asked.title == "Start the MCP server editor-files"


async def test_a_picture_is_sent_on_to_the_model(tmp_path: Path) -> None:
    """M3"""
    async with loopback(says("A dot.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path) as here:
            session = await here.session()
            await here.say(session, "what is it?", acp.image_block("iVBORw0KGgo=", "image/png"))
    assert "image_url" in json.dumps(model.messages(0))


@pytest.mark.parametrize("forms", [pytest.param(True, marks=pytest.mark.long), False])
async def test_a_tool_that_asks_is_answered_in_a_form_or_told_that_nobody_can(
    tmp_path: Path, forms: bool
) -> None:
    """F3"""
    async with loopback(calls("ask_person", question="Which name?"), says("Thanks.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path, forms=forms) as here:
            await here.say(await here.session(), "ask")
    assert here.editor.asked == (["Which name?"] if forms else [])
    result = str(model.messages()[-1]["content"])
    assert ("Ada" in result) == forms
    assert ("no way to ask" in result) != forms


async def test_who_is_asked_by_a_tool_may_answer_in_other_words(tmp_path: Path) -> None:
    """This works if the editor supports forms, and a choice opens one (F3)."""
    asks = calls("ask_person", question="Which name?", choices=["Bob", "Eve"])
    async with loopback(asks, says("Thanks.")) as model:
        settings(tmp_path, model)
        async with connected(tmp_path, forms=True) as here:
            here.editor.choose = lambda options: "words" if "words" in options else None
            await here.say(await here.session(), "ask")
    assert "Ada" in str(model.messages()[-1]["content"])
