"""Quantities with their units in words, and as a number in the unit of a parameter."""

from __future__ import annotations

from training.figures import whole
from training.material import words as W
from training.scene import Scene, Value

_UNITS: dict[str, tuple[tuple[float, tuple[str, str, str], tuple[float, ...]], ...]] = {
    "seconds": (
        (1, ("seconds|sec|s", "Sekunden", "秒"), (5, 10, 15, 20, 30, 45, 90, 120)),
        (60, ("minutes|min", "Minuten", "分钟"), (2, 3, 5, 10, 1.5)),
    ),
    "minutes": (
        (1, ("minutes|min|mins|minutes", "Minuten", "分钟"), (5, 10, 12, 15, 20, 25, 30, 40, 45, 50, 75, 90)),
        (60, ("hours|h", "Stunden", "小时"), (2, 3, 4, 1.5, 2.5, 6)),
    ),
    "hours": (
        (1, ("hours|h|hrs", "Stunden", "小时"), (2, 3, 4, 5, 6, 8, 12, 24, 36, 48, 1.5)),
        (24, ("days", "Tage", "天"), (2, 3, 5, 7)),
    ),
    "meters": (
        (1, ("meters|m|metres", "Meter", "米"), (5, 50, 100, 250, 400, 500, 800, 1200)),
        (1000, ("km|kilometers|kilometres", "km", "公里"), (2, 3, 5, 10, 1.5, 2.5, 0.5, 42)),
    ),
    "grams": (
        (1, ("grams|g", "Gramm", "克"), (50, 80, 100, 120, 250, 300, 400, 750)),
        (1000, ("kg|kilos|kilograms", "kg", "公斤"), (2, 3, 5, 1.5, 0.5, 2.2)),
    ),
    "megabytes": (
        (1, ("MB|megabytes|mb", "MB", "MB"), (5, 10, 50, 100, 256, 512, 700)),
        (1000, ("GB|gigabytes|gb", "GB", "GB"), (2, 4, 5, 10, 1.5)),
    ),
}  # fmt: skip
_SPECIAL = {  # users' words instead of a number and a unit
    "seconds": (("half a minute", 30), ("a minute", 60), ("one minute", 60), ("a minute and a half", 90)),
    "minutes": (
        *(("three quarters of an hour", 45), ("3 and a half hours", 210), ("1 and a half hours", 90)),
        *(("half an hour", 30), ("an hour", 60), ("one hour", 60), ("an hour and a half", 90), ("1h30", 90)),
        *(("a quarter of an hour", 15), ("2 and a half hours", 150)),
    ),
    "hours": (
        *(("half an hour", 0.5), ("an hour and a half", 1.5), ("2 and a half hours", 2.5)),
        *(("8 and a half hours", 8.5), ("a quarter of an hour", 0.25), ("five and a half hours", 5.5)),
        *(("90 minutes", 1.5), ("30 minutes", 0.5)),
        *(("a day", 24), ("one day", 24), ("a week", 168), ("half a day", 12)),
    ),
    "meters": (("a kilometer", 1000), ("one km", 1000), ("half a kilometre", 500)),
    "grams": (("a kilo", 1000), ("half a kilo", 500), ("a pound and a half", 680)),
    "megabytes": (("a gigabyte", 1000), ("half a gig", 500)),
}  # fmt: skip


_SPECIAL_ELSEWHERE = {
    ("de", "minutes"): (
        *(("eine halbe Stunde", 30), ("eine Stunde", 60), ("anderthalb Stunden", 90)),
        *(("eine Viertelstunde", 15), ("eineinhalb Stunden", 90), ("eine Dreiviertelstunde", 45)),
        *(("zweieinhalb Stunden", 150), ("eine Minute", 1)),
    ),
    ("de", "hours"): (("eine halbe Stunde", 0.5), ("anderthalb Stunden", 1.5), ("einen Tag", 24)),
    ("de", "seconds"): (("eine halbe Minute", 30), ("eine Minute", 60), ("anderthalb Minuten", 90)),
    ("de", "grams"): (("ein halbes Kilo", 500), ("ein Kilo", 1000), ("ein Pfund", 500)),
    ("de", "meters"): (("einen Kilometer", 1000), ("einen halben Kilometer", 500)),
    ("zh", "minutes"): (
        *(("半小时", 30), ("半个小时", 30), ("一个小时", 60)),
        *(("一个半小时", 90), ("两个小时", 120), ("一刻钟", 15)),
    ),
    ("zh", "hours"): (("半小时", 0.5), ("一个半小时", 1.5), ("两个小时", 2), ("一天", 24), ("三个小时", 3)),
    ("zh", "seconds"): (("半分钟", 30), ("一分钟", 60), ("两分钟", 120)),
    ("zh", "grams"): (("半公斤", 500), ("一公斤", 1000), ("一斤", 500), ("两公斤", 2000)),
    ("zh", "meters"): (("一公里", 1000), ("半公里", 500), ("两公里", 2000)),
}  # fmt: skip


def quantity(scene: Scene, kind: str) -> Value:
    """45 minutes, 2 hours, half an hour: written as the number of the unit that the parameter is in."""
    if scene.language == "en" and scene.maybe(0.25):
        spoken, number = scene.pick(_SPECIAL[kind])
        return Value(spoken, number)
    elsewhere = _SPECIAL_ELSEWHERE.get((scene.language, kind))
    if elsewhere and scene.maybe(0.35):
        return Value(*scene.pick(elsewhere))
    factor, units, heads = _UNITS[kind][0 if scene.maybe(0.6) else 1]
    head = scene.pick(heads) if factor > 1 or scene.maybe(0.5) else scene.chance.randint(2, 99)
    unit = scene.pick(units[("en", "de", "zh").index(scene.language)].split("|"))
    text = f"{head}".replace(".", ",") if scene.language == "de" else f"{head}"
    if scene.language == "en" and isinstance(head, int) and 1 < head <= 12 and scene.maybe(0.3):
        text = W.EN_NUMBERS[head]
    close = scene.language == "zh" or (
        unit.isascii() and len(unit) <= 3 and scene.maybe(0.4) and text[0].isdigit()
    )
    return Value(f"{text}{'' if close else ' '}{unit}", whole(round(head * factor, 3)))


def share(scene: Scene) -> Value:
    """35 %, written as 0.35."""
    number = scene.chance.choice([5, 10, 20, 25, 30, 50, 75, 80, 90, scene.chance.randint(1, 99)])
    return Value(
        f"{number}{scene.pick(['%', '%', ' percent' if scene.language == 'en' else ' %'])}", number / 100
    )


def hour_of_day(scene: Scene) -> Value:
    """8 in the evening, written as 20."""
    at = scene.chance.randint(6, 23)
    if scene.language == "zh":
        return Value(f"{at}点", at)
    if scene.language == "de":
        return Value(f"{at} Uhr", at)
    twelve = (at - 1) % 12 + 1
    part = (
        "in the morning"
        if at < 12
        else "in the afternoon"
        if at < 18
        else "in the evening"
        if at < 22
        else "at night"
    )
    return Value(
        scene.pick(
            [
                f"{twelve} {part}",
                f"{twelve}{'am' if at < 12 else 'pm'}",
                f"{twelve} {'am' if at < 12 else 'pm'}",
                f"{at}:00",
                f"{at}h",
            ]
        ),
        at,
    )
