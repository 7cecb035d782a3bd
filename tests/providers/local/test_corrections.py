"""What a request says beyond doubt corrects a call of the model in the box (D1)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dragoman.messages.request import ToolSpec
from dragoman.providers.local.corrections import Asked, calls_for_now, correct, merge_calls
from dragoman.providers.local.reply import WrittenCall

MONDAY = date(2026, 11, 16)


def tool(required: tuple[str, ...] = (), **members: Any) -> ToolSpec:
    return ToolSpec("x", "", {"type": "object", "properties": members, "required": list(required)})


def corrected(request: str, spec: ToolSpec, **arguments: Any) -> dict[str, Any]:
    return dict(correct(arguments, spec, Asked(request, request, MONDAY), alone=True))


DAY = tool(day={"type": "string", "description": "YYYY-MM-DD"}, text={"type": "string"})
LENGTH = tool(minutes={"type": "integer"}, text={"type": "string"}, radius_m={"type": "number"})
TICKET = tool(
    ("ticket",),
    ticket={"type": "string"},
    priority={"type": "string", "enum": ["low", "normal", "high"], "default": "normal"},
    status={"type": "string", "enum": ["open", "solved"]},
    limit={"type": "integer"},
    note={"type": "string"},
)


@pytest.mark.parametrize(
    ("request_", "written", "right"),
    [
        ("for tomorrow at 6pm", "2026-11-18", "2026-11-17"),
        ("the day after tomorrow", "2026-11-17", "2026-11-18"),
        ("on friday at 7", "2026-11-19", "2026-11-20"),
        ("what was on friday", "2026-11-13", "2026-11-13"),
        ("am 3. Dezember", "2026-12-13", "2026-12-03"),
        ("on December 3rd", "2025-12-03", "2025-12-03"),
        ("2. December 2027", "2026-12-02", "2027-12-02"),
        ("übermorgen", "2026-11-17", "2026-11-18"),
        ("周五", "2026-11-19", "2026-11-20"),
        ("12月3日", "2026-03-12", "2026-12-03"),
        ("in 3 weeks", "2026-11-19", "2026-12-07"),
        ("next friday", "2026-11-27", "2026-11-27"),
        ("every friday", "2026-11-27", "2026-11-27"),
        ("on monday", "2026-11-23", "2026-11-23"),
        ("tomorrow or on friday", "2026-11-25", "2026-11-25"),
        ("on June 31", "2026-06-30", "2026-06-30"),
        ("guten morgen", "2026-11-16", "2026-11-16"),
    ],
)
def test_d1_a_day_is_that_of_the_calendar(request_: str, written: str, right: str) -> None:
    """D1: what depends on who speaks, or may be one of two days, stays as the model wrote it."""
    assert corrected(request_, DAY, day=written) == {"day": right}


def test_d1_a_day_that_was_left_out_is_added_unless_a_text_speaks_of_it() -> None:
    """D1: the day of a message to somebody else is no day for the tool."""
    assert corrected("tides on friday", DAY) == {"day": "2026-11-20"}
    assert corrected("tides today", DAY) == {}
    assert corrected("write: see you tomorrow", DAY, text="see you tomorrow") == {"text": "see you tomorrow"}


@pytest.mark.parametrize(
    ("request_", "written", "right"),
    [
        ("for half an hour", {"minutes": 60}, {"minutes": 30}),
        ("eine halbe Stunde", {"minutes": 60}, {"minutes": 30}),
        ("两个半小时", {"minutes": 2}, {"minutes": 150}),
        ("for two hours", {}, {"minutes": 120}),
        ("2 hours and 15 minutes", {"minutes": 2}, {"minutes": 135}),
        ("within 1.5 km", {"radius_m": 15}, {"radius_m": 1500}),
        ("in two hours", {}, {}),
        ("twice a week", {}, {}),
        ("10 seconds", {"minutes": 10}, {"minutes": 10}),
        ("first 10 minutes, then 20 minutes", {"minutes": 20}, {"minutes": 20}),
        ("say 'wait 5 minutes'", {"text": "wait 5 minutes"}, {"text": "wait 5 minutes"}),
    ],
)
def test_d1_an_amount_is_in_the_unit_of_its_parameter(
    request_: str, written: dict[str, Any], right: dict[str, Any]
) -> None:
    """D1: a number that would not be whole, or one of two amounts, stays as the model wrote it."""
    assert corrected(request_, LENGTH, **written) == right


@pytest.mark.parametrize("name", ["minute", "price_min", "hours_per_day", "min", "max_price"])
def test_d1_a_number_that_is_no_duration_stays(name: str) -> None:
    """D1: a minute of the clock, a minimum, and so many an hour only look like one."""
    members: dict[str, Any] = {name: {"type": "number"}}
    assert corrected("for half an hour", tool(**members), **{name: 7}) == {name: 7}


@pytest.mark.parametrize(
    ("name", "about", "right"),
    [
        ("duration_min", "", 30),
        ("durationSeconds", "", 1800),
        ("length", "Length in minutes", 30),
        ("length", "Hour of day", 7),
        ("hours", "", 0.5),
    ],
)
def test_d1_the_unit_is_in_the_name_or_in_the_description(name: str, about: str, right: float) -> None:
    """D1: of the name first."""
    members: dict[str, Any] = {name: {"type": "number", "description": about}}
    assert corrected("for half an hour", tool(**members), **{name: 7}) == {name: right}


def test_d1_a_choice_that_is_named_and_left_out_is_added() -> None:
    """D1: neither the default, nor the word a request begins with, nor one of two."""
    assert corrected("make SUP-9 high", TICKET, ticket="SUP-9") == {"ticket": "SUP-9", "priority": "high"}
    assert corrected("make SUP-9 normal", TICKET, ticket="SUP-9") == {"ticket": "SUP-9"}
    assert corrected("open SUP-9", TICKET, ticket="SUP-9") == {"ticket": "SUP-9"}
    assert corrected("high or low for SUP-9", TICKET, ticket="SUP-9") == {"ticket": "SUP-9"}
    assert corrected("note solved on SUP-9", TICKET, ticket="SUP-9", note="solved") == {
        "ticket": "SUP-9",
        "note": "solved",
    }
    noted = {"ticket": "SUP-9", "note": "this is high"}
    assert corrected("note this is high on SUP-9", TICKET, **noted) == noted


def test_d1_what_nobody_said_is_left_out() -> None:
    """D1: an optional number without a numeral, and a text that was said once and is written twice."""
    assert corrected("show the tickets", TICKET, ticket="x", limit=20) == {"ticket": "x"}
    assert corrected("show three tickets", TICKET, ticket="x", limit=3) == {"ticket": "x", "limit": 3}
    assert corrected("look at SUP-9", TICKET, ticket="SUP-9", note="SUP-9") == {"ticket": "SUP-9"}


def test_d1_an_optional_day_or_text_that_nobody_spoke_of_is_left_out() -> None:
    """D1: what may be meant by other words, or was worked out, stays."""
    assert corrected("new code HELLO7, 7.5 percent", DAY, day="2026-11-20") == {}
    for said in ("until the end of the month", "next friday", "am 7. Mai", "下周", "by 3/12/2026"):
        assert "day" in corrected(said, DAY, day="2026-11-20")
    assert corrected("show SUP-9", TICKET, ticket="SUP-9", note="customer waiting") == {"ticket": "SUP-9"}
    for said, note in (
        ("printers on SUP-9", "printer"),
        ("SUP-9付款", "paid"),
        ("NYC SUP-9", "America/New_York"),
    ):
        assert corrected(said, TICKET, ticket="SUP-9", note=note)["note"] == note


def test_d1_a_number_that_was_said_once_is_written_once() -> None:
    """D1: the figures of a code are no second time."""
    spec = tool(("percent",), percent={"type": "number"}, uses={"type": "integer"})
    assert corrected("SOMMER10 mit 10 Prozent", spec, percent=10, uses=10) == {"percent": 10}
    assert corrected("10 percent, 10 times", spec, percent=10, uses=10) == {"percent": 10, "uses": 10}


def test_d1_a_currency_that_is_spoken_of_is_a_choice_that_is_named() -> None:
    """D1: by its name or its sign."""
    spec = tool(
        ("amount",), amount={"type": "number"}, currency={"enum": ["EUR", "USD", "GBP"], "default": "EUR"}
    )
    assert corrected("bid 90 pounds", spec, amount=90) == {"amount": 90, "currency": "GBP"}
    assert corrected("bid $90", spec, amount=90) == {"amount": 90, "currency": "USD"}
    assert corrected("bid 90 euros", spec, amount=90) == {"amount": 90}


def test_d1_a_copy_has_no_spaces_around_it_and_a_name_its_letters() -> None:
    """D1: another form of a word is no slip of it."""
    assert corrected("send a/b.pdf", TICKET, ticket=" a/b.pdf") == {"ticket": "a/b.pdf"}
    assert corrected("Hochwasser in Husum", TICKET, ticket="Hussum") == {"ticket": "Husum"}
    assert corrected("Tickets von Müllers", TICKET, ticket="Müller") == {"ticket": "Müller"}
    assert corrected("the printers", TICKET, ticket="printer") == {"ticket": "printer"}


@pytest.mark.parametrize(
    ("request_", "written", "right"),
    [
        ("内容是“你好世界”", "你好世畓", "你好世界"),
        ("记下:下午去图书馆还书", "下午去图书舘还书", "下午去图书馆还书"),
        ("第三章之后的那一章", "第四章", "第四章"),
        ("提醒我给我妈打电话", "给你妈打电话", "给你妈打电话"),
        ("红苹果还是青苹果", "黄苹果", "黄苹果"),
    ],
)
def test_d1_one_chinese_character_that_slipped_is_put_right(request_: str, written: str, right: str) -> None:
    """D1: but for what counts or points, which may be meant; and where it may be a slip of two, it stays."""
    assert corrected(request_, TICKET, ticket=written) == {"ticket": right}


def test_d1_who_looks_for_all_todos_looks_for_todo() -> None:
    """D1: where the parameter is what is looked for; a text stays as it is."""
    pattern = {"type": "string", "description": "a regular expression"}
    assert corrected("find all TODOs", tool(pattern=pattern), pattern="TODOs") == {"pattern": "TODO"}
    assert corrected("find all users", tool(pattern=pattern), pattern="users") == {"pattern": "users"}
    assert corrected("write TODOs", tool(text={"type": "string"}), text="TODOs") == {"text": "TODOs"}


def test_d1_with_several_calls_nothing_is_added() -> None:
    """D1: which of the calls a day or a choice belongs to only the model can know."""
    said = "SUP-9 high, SUP-8 too"
    asked = Asked(said, said, MONDAY)
    assert correct({"ticket": "SUP-9"}, TICKET, asked, alone=False) == {"ticket": "SUP-9"}


def test_d1_a_language_becomes_its_code_and_a_moment_its_time_where_the_parameter_says_so() -> None:
    """D1: what a parameter is written as stands in its description."""
    code = {"type": "string", "description": "ISO 639-1 code of the language"}
    clock = {"type": "string", "description": "Start, HH:MM"}
    assert corrected("to Japanese", tool(to=code), to="Japanese") == {"to": "ja"}
    assert corrected("to Japanese", tool(to={"type": "string"}), to="Japanese") == {"to": "Japanese"}
    assert corrected("at two", tool(at=clock), at="2026-11-21T14:00:00") == {"at": "14:00"}


def test_d1_two_calls_that_say_different_things_of_one_object_are_one() -> None:
    """D1: they agree on all that is required and on nothing else; otherwise they stay two."""

    def call(**arguments: Any) -> WrittenCall:
        return WrittenCall("x", "", arguments)

    high, solved = call(ticket="A", priority="high"), call(ticket="A", status="solved")
    (one,) = merge_calls([high, solved], [TICKET])
    assert one.arguments == {"ticket": "A", "priority": "high", "status": "solved"}
    for other in (call(ticket="B", status="solved"), call(ticket="A", priority="low")):
        assert merge_calls([high, other], [TICKET]) == [high, other]


def test_d1_a_text_that_another_call_has_to_find_waits_for_it() -> None:
    """D1: an empty text is written where nothing else is there to do, or where somebody asks for one."""
    write = ToolSpec("write", "", {"type": "object", "required": ["path", "text"]})
    look, empty, full = (
        WrittenCall("look", "", {}),
        WrittenCall("write", "", {"path": "a", "text": ""}),
        WrittenCall("write", "", {"path": "a", "text": "b"}),
    )
    assert calls_for_now([look, empty], [write], "look and save it in a") == [look]
    assert calls_for_now([look, full], [write], "look and write b to a") == [look, full]
    assert calls_for_now([look, empty], [write], "look and make an empty file a") == [look, empty]
    assert calls_for_now([empty], [write], "make a file a") == [empty]
