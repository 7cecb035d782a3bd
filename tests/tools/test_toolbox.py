"""C11: groups of tools, which of them are on, and the names they are offered by."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dragoman import ConfigError, Group, Rule, tool
from dragoman.tools.builtin import grouped
from dragoman.tools.program import programs_group
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer, Toolbox
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of, only_call, runtime_with


def named(name: str, says: str = "") -> Tool:
    return tool(name=name, description=f"Is {name}.")(lambda: says or name)


FILES = Group("files", (named("read"), named("write")), rules="Paths are relative.")
WEB = Group("web", (named("read"), named("search")), rules="  Cite what you found.\n")


def test_tools_are_offered_in_the_order_of_their_groups() -> None:
    """C11, R2: and in the same order every time."""
    offer = Toolbox([FILES, WEB]).offer()
    assert list(offer.tools) == ["read", "write", "web_read", "search"]
    assert [spec.name for spec in offer.specs()] == list(offer.tools)
    assert list(Toolbox([WEB, FILES]).offer().tools) == ["read", "search", "files_read", "write"]


def test_a_shared_name_is_kept_by_the_first_group_that_is_on() -> None:
    """C11"""
    toolbox = Toolbox([FILES, WEB])
    assert toolbox.offer().tools["read"] is FILES.tools[0]
    assert toolbox.offer().tools["web_read"] is WEB.tools[0]
    assert toolbox.offer(switches={"files": False}).tools["read"] is WEB.tools[0]
    assert toolbox.offer(switches={"files.read": False}).tools["read"] is WEB.tools[0]


def test_groups_and_tools_are_switched_off_by_name() -> None:
    """C11"""
    toolbox = Toolbox([FILES, WEB])
    assert list(toolbox.offer(switches={"web": False}).tools) == ["read", "write"]
    assert list(toolbox.offer(switches={"web": True, "files.write": False}).tools) == [
        "read",
        "web_read",
        "search",
    ]
    assert list(toolbox.offer(switches={"write": False, "search": False}).tools) == ["read", "web_read"]
    assert toolbox.offer(switches={"files": False, "web": False}) == Offer({})


def test_the_rules_of_a_group_are_told_while_any_of_its_tools_is_on() -> None:
    """C11"""
    toolbox = Toolbox([FILES, WEB])
    assert toolbox.offer().rules == "Paths are relative.\n\nCite what you found."
    assert toolbox.offer(switches={"files": False}).rules == "Cite what you found."
    assert toolbox.offer([Rule("read", "*", "deny"), Rule("write", "*", "deny")]).rules == (
        "Cite what you found."
    )


def test_a_name_twice_in_one_group_is_refused() -> None:
    """C11"""
    with pytest.raises(ConfigError, match="Group 'files' has two tools named 'read'"):
        Group("files", (named("read"), named("read")))
    with pytest.raises(ConfigError, match="Two tool groups have the name 'files'"):
        Toolbox([FILES, FILES])


def test_names_that_cannot_be_told_apart_are_refused_before_any_turn() -> None:
    """C11"""
    with pytest.raises(ConfigError, match=r"Two tools have the name 'web_read'\. Rename one"):
        Toolbox([Group("files", (named("read"), named("web_read"))), WEB])


def test_a_group_of_any_name_makes_names_that_providers_take() -> None:
    """C11"""
    long = "x" * 60
    groups = [
        Group("one", (named("read"), named(long))),
        Group("my files (2)", (named("read"),)),
        Group("y" * 80, (named(long),)),
    ]
    names = list(Toolbox(groups).offer().tools)
    assert names == ["read", long, "my_files__2__read", f"yyy_{long}"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


def test_a_tool_is_found_by_a_spelling_of_the_name_it_is_offered_by() -> None:
    """C5, C11"""
    offer = Toolbox([FILES, WEB]).offer()
    assert offer.find("web.read") == ("web_read", WEB.tools[0])
    assert offer.find("functions.READ") == ("read", FILES.tools[0])
    assert offer.find("reed") is None


def test_what_is_passed_as_tools_is_grouped() -> None:
    """C11: loose tools first, and a group by its name."""

    def plain() -> None: ...

    groups, sources = grouped([FILES, plain, named("one"), "shell"])
    assert [[one.name for one in group.tools] for group in groups[:3]] == [
        ["plain", "one"],
        ["read", "write"],
        ["shell"],
    ]
    assert sources == []
    with pytest.raises(ConfigError, match=r"Unknown group 'shel'\. Built-in groups: basics, files, shell"):
        grouped(["shel"])


def test_a_source_with_the_name_of_a_group_is_not_added() -> None:
    """C11"""

    class Other:
        name = "files"

        def group(self) -> Group:
            return Group("files", ())

        async def ready(self) -> None: ...

        async def close(self) -> None: ...

    toolbox = Toolbox([FILES])
    with pytest.raises(ConfigError, match="files"):
        toolbox.add(Other())
    assert toolbox.sources == ()
    assert list(toolbox.offer().tools) == ["read", "write"]


def test_programs_without_their_extra_are_a_group_without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """G1"""
    assert [one.name for one in programs_group(named=True).tools] == ["run_program"]
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    assert (programs_group().name, programs_group().tools) == ("programs", ())


async def test_a_conversation_has_switches_of_its_own(tmp_path: Path) -> None:
    """C11: in a whole turn, with the rules in the system prompt."""
    web = Group("web", (named("read", "from the web"), named("search")), rules="Cite.")
    script = [calls("web_read"), says("ok"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[FILES, web]) as runtime:
        chat = await runtime.conversation(tools={"files.write": False})
        call = only_call(await (await chat.send("go")).result())
        plain = await runtime.conversation(tools={"files": False, "web": False, "output": False})
        await (await plain.send("go")).result()
        with_tools, _, without = model_of(runtime).requests
    assert [spec.name for spec in with_tools.tools] == ["read", "web_read", "search", "read_output"]
    assert with_tools.system.endswith("Paths are relative.\n\nCite.")
    assert call.result is not None
    assert call.result.text == "from the web"
    assert (without.tools, without.tool_choice) == ((), None)
    assert "Paths" not in without.system
