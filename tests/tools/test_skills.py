"""Check skills, folders with instructions: the prompt has an index, and the rest loads on demand (C12)."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from dragoman import Skills, allow_once
from dragoman.messages.message import CallState
from dragoman.tools.skills import parse_skill
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, model_of, only_call, runtime_with


def skill(folder: Path, name: str, front: str = "", body: str = "Do it so.") -> Path:
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    head = front or f"name: {name}\ndescription: How to {name}."
    file.write_text(f"---\n{head}\n---\n\n{body}\n", "utf-8")
    return file


async def test_the_prompt_has_a_line_of_each_and_the_tool_gives_the_rest(tmp_path: Path) -> None:
    """C12"""
    skill(tmp_path / "s", "bake", "name: bake\ndescription: >-\n  How to\n  bake.\nwhen: bread is wanted")
    skill(tmp_path / "s", "manners", "name: manners\ndescription: Be kind.\nalways: true", "Say please.")
    script = [calls("load_skill", name="bake"), says("done")]
    async with runtime_with(tmp_path, script, tools=[Skills([tmp_path / "s"])]) as runtime:
        result = await (await runtime.send("go")).result()
        system = model_of(runtime).requests[0].system
    assert "- bake: How to bake. Use it when: bread is wanted" in system
    assert "Say please." in system
    assert "- manners" not in system
    assert "Do it so." not in system
    call = only_call(result)
    assert call.result is not None
    assert call.result.text == "Do it so."


async def test_a_new_skill_is_there_at_the_next_request(tmp_path: Path) -> None:
    """C12"""
    async with runtime_with(tmp_path, [says("a"), says("b")], tools=[Skills([tmp_path / "s"])]) as runtime:
        await (await runtime.send("go")).result()
        assert "load_skill" not in [spec.name for spec in model_of(runtime).requests[-1].tools]
        skill(tmp_path / "s", "bake")
        await (await runtime.send("go")).result()
        assert "- bake: How to bake." in model_of(runtime).requests[-1].system


@pytest.mark.parametrize("after", ["changed", "removed"])
async def test_a_turn_that_runs_keeps_the_skills_it_began_with(tmp_path: Path, after: str) -> None:
    """The turn keeps the index that it was shown and the text, and the next turn has the current skills (T14,
    C12)."""
    file = skill(tmp_path / "s", "bake")
    script = [calls("add", a=1, b=1), calls("load_skill", name="bake"), says("done"), says("next")]
    tools = [add, Skills([tmp_path / "s"])]
    async with runtime_with(tmp_path, script, tools=tools, allow=["skills"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        if after == "changed":
            skill(tmp_path / "s", "brew")
            file.write_text("---\ndescription: Otherwise.\n---\nNever.\n", "utf-8")
        else:
            file.unlink()
        await turn.answer(turn.question, allow_once())
        result = await turn.result()
        loaded = next(one for message in result.messages for one in message.calls if one.tool == "load_skill")
        assert loaded.result is not None
        assert loaded.result.text == "Do it so."
        first, second, third = model_of(runtime).requests
        assert first.system == second.system == third.system
        await (await runtime.send("go")).result()
        last = model_of(runtime).requests[-1]
        assert ("- bake: Otherwise." in last.system) == ("- brew" in last.system) == (after == "changed")
        assert ("load_skill" in [spec.name for spec in last.tools]) == (after == "changed")


async def test_files_of_a_skill_are_read_and_nothing_beside_them(tmp_path: Path) -> None:
    """C12: no path leads out of its folder."""
    skill(tmp_path / "s", "bake")
    (tmp_path / "s" / "bake" / "oven.txt").write_text("hot", "utf-8")
    (tmp_path / "s" / "secret.txt").write_text("secret", "utf-8")
    script = [
        calls("load_skill", name="bake"),
        calls("load_skill", name="bake", file="oven.txt"),
        calls("load_skill", name="bake", file="../secret.txt"),
        calls("load_skill", name="brew"),
        calls("load_skill", name="bake", file="none.txt"),
        says("done"),
    ]
    async with runtime_with(tmp_path, script, tools=[Skills([tmp_path / "s"])]) as runtime:
        result = await (await runtime.send("go")).result()
    made = [call for message in result.messages for call in message.calls]
    texts = [call.result.text for call in made if call.result is not None]
    assert "oven.txt" in texts[0]
    assert texts[1] == "hot"
    assert [call.state for call in made[2:]] == [CallState.FAILED] * 3
    assert "secret" not in texts[2].replace("secret.txt", "")
    assert "Choose one of bake" in texts[3]
    assert "it cannot be read: " in texts[4]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
async def test_a_pipe_in_the_folder_of_a_skill_is_not_waited_for(tmp_path: Path) -> None:
    """C12: each call held a thread for good."""
    skill(tmp_path / "s", "bake")
    os.mkfifo(tmp_path / "s" / "bake" / "pipe")
    script = [calls("load_skill", name="bake", file="pipe"), says("done")]
    async with runtime_with(tmp_path, script, tools=[Skills([tmp_path / "s"])]) as runtime:
        call = only_call(await (await runtime.send("go")).result())
    assert call.result is not None
    assert "it is not a file" in call.result.text


def test_the_first_folder_wins_and_what_is_broken_is_told(tmp_path: Path) -> None:
    skill(tmp_path / "near", "bake", body="near")
    skill(tmp_path / "far", "bake", body="far")
    skill(tmp_path / "far", "bad", "name: bad")
    skill(tmp_path / "far", "big", body="x" * 200_000)
    skills = Skills([tmp_path / "near", tmp_path / "far", tmp_path / "nowhere"])
    assert skills.skills["bake"].text == "near"
    assert len(skills.warnings) == 2
    assert "needs a description" in skills.warnings[0]
    assert "200 kB" in skills.warnings[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Just text.", "needs front matter at the start"),
        ("text\n---\ndescription: d\n---\n", "needs front matter at the start"),
        ("---\nname: a\n", "no end"),
        ("---\n[1, 2]\n---\n", "not a list of names"),
        ("---\na: [\n---\n", "not valid YAML"),
        ("---\nname: 5\ndescription: x\n---\n", "not a string"),
        ("---\nname: a\ndescription: ''\n---\n", "needs a description"),
        ("---\ndescription: d\nteams: a\n---\n", "must be a list of names"),
        ("---\ndescription: d\nteams: [a, 1]\n---\n", "must be a list of names"),
        ("---\ndescription: \udcff\n---\n", "it cannot be read: .* byte 0xff"),
    ],
)
def test_what_is_wrong_with_a_skill_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_skill(text.encode(errors="surrogateescape"), "mine")


@pytest.mark.parametrize("when", [f"{'[' * 9}{']' * 9}", f"[{'a, ' * 1995}]"], ids=["deep", "long"])
def test_front_matter_may_be_deep_and_long_to_a_degree(when: str) -> None:
    """C12"""
    assert parse_skill(f"---\ndescription: d\nwhen: {when}\n---\n".encode(), "mine").description == "d"


def bomb() -> str:
    """Return nine lines that would expand to a billion words."""
    lines = ["description: d", 'a: &a ["x", "x", "x", "x", "x", "x", "x", "x", "x", "x"]']
    for this, last in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]")
    return "\n".join([*lines, "when: *i"])


@pytest.mark.parametrize(
    ("front", "words"),
    [
        (bomb(), "uses an alias .* in line 2:"),
        ("description: &d d", "uses an alias .* in line 1:"),
        (f"description: d\nwhen: {'[' * 3000}", "nested too deeply: more than 200 brackets"),
        (f"description: d\nwhen: {'[' * 10}{']' * 10}", "nested too deeply: more than 10 levels"),
        (f"description: d\nwhen: {'x' * 20_000}", "too long"),
        (f"description: d\nwhen: [{'a, ' * 3000}]", "too many values"),
        (f"description: d\nwhen: [{'a, ' * 1996}]", "too many values: more than 2000"),
        (f"description: d\nwhen: {'1:' * 5000}1", "too long a number"),
        (f"description: d\nwhen: {'1' * 5000}", "too long a number"),
        ("description: !!str d", "uses a tag"),
        ("description: d\nwhen: 2001-99-99", "not valid YAML"),
    ],
)
def test_front_matter_that_would_grow_is_refused_before_it_does(
    tmp_path: Path, front: str, words: str
) -> None:
    """A few lines of untrusted text cost nothing. The error names the fault, and other skills still load
    (P11, C12)."""
    file = skill(tmp_path / "s", "bomb", front)
    skill(tmp_path / "s", "bake")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=words):
            parse_skill(file.read_bytes(), "bomb")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert list(Skills([tmp_path / "s"]).skills) == ["bake"]
