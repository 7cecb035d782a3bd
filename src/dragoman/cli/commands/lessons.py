"""`dragoman models --learned`: what servers were found to refuse; `--forget` has them asked again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import print_json
from dragoman.providers.lessons import FILE, Lesson, Lessons
from dragoman.stored_keys import data_folder
from dragoman.wire.learned import in_words


def show_lessons(providers: Sequence[str], *, as_json: bool) -> None:
    found = [one for one in _lessons().all() if not providers or one.model.partition("/")[0] in providers]
    if as_json:
        print_json({"lessons": [_report(one) for one in found]}, indent=2)
        return
    console = open_console()
    for one in found:
        console.print(
            f"[bold]{as_markup(one.model)}[/] at {as_markup(one.host)} {as_markup(in_words(one.word))}"
        )
        console.print(f"  [dim]{_describe_age(one)}[/]")
    if not found:
        console.print("No server was found to refuse anything.")


def forget_lessons(providers: Sequence[str], *, as_json: bool) -> None:
    count = _lessons().forget(providers)
    if as_json:
        print_json({"forgotten": count})
    else:
        open_console().print(f"{count} forgotten: what they were about is sent again.")


def _lessons() -> Lessons:
    return Lessons(data_folder() / FILE)


def _describe_age(lesson: Lesson) -> str:
    heard = f"refused {lesson.times} times, last on {_day(lesson.last)}"
    if not lesson.is_sure:
        return f"refused once, on {_day(lesson.last)}: counts from the second time on"
    if lesson.until < time.time():
        return f"{heard}: sent again now"
    return f"{heard}: sent again from {_day(lesson.until)} on"


def _report(lesson: Lesson) -> dict[str, JsonValue]:
    return {
        "model": lesson.model,
        "host": lesson.host,
        "lesson": lesson.word,
        "text": in_words(lesson.word),
        "times": lesson.times,
        "last": _day(lesson.last),
        "counts": lesson.is_sure and lesson.until > time.time(),
        "until": _day(lesson.until) if lesson.is_sure else None,
    }


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
