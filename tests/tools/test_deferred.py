"""L1, L4: above a budget, the model finds tools of sources on demand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.messages.message import CallState, Message, ToolCall, ToolResult
from dragoman.messages.request import FIND_TOOLS
from dragoman.tools.deferred import ToolBudget, ToolSearch, budget_of, defer, loaded_in, size_of
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Offer, Toolbox


def named(name: str, description: str = "Do it.", *, server: str | None = "hub", **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool(
        name=name,
        description=description,
        parameters=JsonParameters(name, schema),
        run=lambda *_: "done",
        permission=f"mcp.{server}.{name}",
        patterns=lambda _: (),
        threaded=True,
        server=server,
    )


class Hub:
    """A source with so many tools."""

    name = "hub"

    def __init__(self, *tools: Tool, rules: str = "") -> None:
        self._group = Group("hub", tools, rules)

    def group(self) -> Group:
        return self._group

    async def ready(self) -> None: ...

    async def close(self) -> None: ...


MANY = [named(f"tool_{n}", "word " * n) for n in range(50)]
OWN = Group("own", (named("mine", server=None),), "Mine first.")


def offered(*tools: Tool, rules: str = "", **more: Any) -> Offer:
    return Toolbox([OWN], [Hub(*tools, rules=rules)]).offer(**more)


def calling(tool: str, value: Any = None, state: CallState = CallState.COMPLETED) -> Message:
    call = ToolCall(f"call_{tool}", tool, {}, state=state, result=ToolResult("", value=value))
    return Message(f"msg_{tool}", "conv_1", None, "assistant", (call,))


def finding(*names: str) -> Message:
    return calling(FIND_TOOLS, {"tools": [{"name": name} for name in names]})


def test_within_the_budget_everything_is_offered() -> None:
    offer = offered(*MANY[:39])
    assert defer(offer, ToolBudget(), None, (), ()) is offer


@pytest.mark.parametrize("budget", [ToolBudget(40, None), ToolBudget(None, 0.1)])
def test_above_it_a_search_stands_for_them(budget: ToolBudget) -> None:
    """The budget is a number or a share of the context, and the runtime's own tools stay."""
    offer = defer(
        offered(*MANY, rules="The server hub says of its tools: All about hubs."), budget, 8000, (), ()
    )
    assert list(offer.tools) == ["mine", FIND_TOOLS]
    assert offer.rules == "Mine first."
    assert "hub (All about hubs.): tool_0, tool_1" in offer.tools[FIND_TOOLS].description
    assert sum(size_of(tool) for tool in offer.tools.values()) < 0.1 * sum(map(size_of, MANY))
    assert offer.find("tool_7") == ("tool_7", MANY[7])
    assert offer.find("Tool-7") is None  # a spelling of it loads nothing


def test_few_tools_are_all_named() -> None:
    said = "Of the tools: short  and\nplain"
    description = (
        defer(offered(*MANY[:3], rules=said), ToolBudget(1, None), None, (), ()).tools[FIND_TOOLS].description
    )
    assert description.endswith("There are 3 more:\n- hub (short and plain): tool_0, tool_1, tool_2")


def test_what_was_found_follows_in_the_order_it_was_found() -> None:
    """The tools before them stay the same, so a provider's cache stays valid."""
    whole, budget = offered(*MANY), ToolBudget(40, None)
    before = defer(whole, budget, None, (), ())
    path = [finding("tool_9", "tool_3"), calling("tool_20"), finding("tool_1", "tool_9", "gone")]
    after = defer(whole, budget, None, (), path)
    assert list(after.tools) == ["mine", FIND_TOOLS, "tool_9", "tool_3", "tool_20", "tool_1"]
    assert after.specs()[:2] == before.specs()
    assert [spec.found for spec in after.specs()] == [False, False, True, True, True, True]


def test_tools_and_servers_that_are_always_loaded_stay() -> None:
    whole, budget = offered(*MANY), ToolBudget(40, None)
    assert list(defer(whole, budget, None, {"tool_5"}, ()).tools) == ["mine", "tool_5", FIND_TOOLS]
    assert list(defer(whole, budget, None, {"hub"}, ()).tools) == ["mine", *(tool.name for tool in MANY)]


def test_what_is_switched_off_is_neither_found_nor_called() -> None:
    """This also holds for tools that were loaded before (L4)."""
    whole = offered(*MANY, switches={"tool_4": False})
    offer = defer(whole, ToolBudget(40, None), None, (), [finding("tool_4", "tool_5")])
    assert list(offer.tools) == ["mine", FIND_TOOLS, "tool_5"]
    assert offer.find("tool_4") is None


def test_a_failed_search_loads_nothing() -> None:
    assert loaded_in([calling(FIND_TOOLS, {"tools": "all"}), calling(FIND_TOOLS, None)]) == {}


@pytest.mark.parametrize(
    ("setting", "budget"),
    [(40, ToolBudget(40, None)), ("15%", ToolBudget(None, 0.15)), ("off", ToolBudget(None, None))],
)
def test_a_budget_is_a_number_or_a_share_or_off(setting: object, budget: ToolBudget) -> None:
    assert budget_of(setting) == budget


@pytest.mark.parametrize("setting", [True, -1, "40", "many", "200%", 0.1, None])
def test_any_other_budget_is_refused(setting: object) -> None:
    with pytest.raises(ConfigError, match="tool_budget"):
        budget_of(setting)


SEARCHED = {
    tool.name: tool
    for tool in (
        named("github_create_issue", "Open a new issue in a repository.", title={"type": "string"}),
        named(
            "github_list_issues",
            "List issues of a repository.",
            state={"enum": ["open", "archived"], "default": "zebra"},
        ),
        named("weather_forecast", "What the weather will be.", city={"description": "the place"}),
        named("sendEmail", "Write to somebody.", to={"description": "an address"}),
        named(
            "calendar_find_events",
            "Look for meetings.",
            at={"anyOf": [{"type": "null"}, {"type": "string", "description": "a weekday"}]},
        ),
    )
}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "github_create_issue"),
        ("listing all issues", "github_list_issues"),
        ("how is the weather in a place", "weather_forecast"),
        ("send emails", "sendEmail"),
        ("meeting", "calendar_find_events"),
        ("archived", "github_list_issues"),
        ("which weekdays", "calendar_find_events"),
        *((f"please load {name}", name) for name in SEARCHED),
        *((name, name) for name in SEARCHED),
    ],
)
def test_a_tool_is_found_by_what_it_does_and_by_its_name(query: str, first: str) -> None:
    assert ToolSearch(SEARCHED).find(query)[0] == first


@pytest.mark.parametrize("query", ["zebra", "string"])
def test_words_that_no_tool_has_find_nothing(query: str) -> None:
    """Defaults and types are no words of a tool."""
    assert ToolSearch(SEARCHED).find(query) == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("searches", "searching"),
        ("queries", "query"),
        ("settings", "setting"),
        ("ties", "tie"),
        ("listed", "list"),
        ("need", "needs"),
        ("notes", "note"),
        ("genetics", "genetically"),
        ("WeatherForecast", "forecast"),
    ],
)
def test_a_form_of_a_word_finds_another(said: str, asked: str) -> None:
    tools = {tool.name: tool for tool in (named("one", "Do it."), named("two", f"The {said} of it."))}
    assert ToolSearch(tools).find(asked) == ["two"]


@given(st.text(max_size=60))
def test_any_text_can_be_searched_for(query: str) -> None:
    found = ToolSearch(SEARCHED).find(query)
    assert len(found) == len({*found}) <= 5
    assert {*found} <= {*SEARCHED}
