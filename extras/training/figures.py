"""Numbers, amounts, days and times, in the words of three languages and in JSON."""

from __future__ import annotations

from datetime import date, timedelta

from training.material import words as W
from training.scene import Scene, Value

# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def integer(scene: Scene, least: int, most: int) -> Value:
    if most >= 100_000 and scene.maybe(0.3):
        return _rounded(scene, most)
    number = scene.chance.randint(least, most)
    if most > 2000 and scene.maybe(0.3):
        number = min(most, max(least, round(number, -3)))
    if scene.language == "zh":
        return Value(W.ZH_NUMBERS[number] if 0 < number <= 10 and scene.maybe(0.3) else str(number), number)
    if 1 < number <= 12 and scene.maybe(0.25):
        return Value((W.EN_NUMBERS if scene.language == "en" else W.DE_NUMBERS)[number], number)
    if number >= 1000 and scene.maybe(0.5) and not (least >= 1000 and most <= 2100):  # years have no marks
        grouped = f"{number:,}"
        return Value(grouped if scene.language == "en" else grouped.replace(",", "."), number)
    return Value(str(number), number)


def _rounded(scene: Scene, most: int) -> Value:
    """2.5 million, 40 thousand, 3,5 Millionen, 2万."""
    factor = 1_000_000 if most >= 2_000_000 and scene.maybe(0.6) else 1000
    head = scene.chance.choice([scene.chance.randint(2, 90), round(scene.chance.uniform(1.1, 9.9), 1)])
    number = round(head * factor)
    if scene.language == "zh":
        return Value(f"{number / 10_000:g}万", number)
    words = {"en": ("thousand", "million"), "de": ("Tausend", "Millionen")}[scene.language]
    text = f"{head}" if scene.language == "en" else f"{head}".replace(".", ",")
    short = {"en": ("k", "M"), "de": ("Tsd.", "Mio.")}[scene.language]
    million = factor > 1000
    if scene.maybe(0.2) and scene.language == "en":
        return Value(f"{text}{short[million]}", number)
    return Value(f"{text} {words[million]}", number)


def number(scene: Scene, least: float, most: float) -> Value:
    draw = scene.chance.random()
    if draw < 0.1 and least <= 0.01:
        digit, power = scene.chance.randint(1, 9), scene.chance.randint(1, 4)
        return Value(f"{digit}e-{power}", round(digit * 10**-power, 6))
    if draw < 0.14 and most >= 10_000:
        head, power = round(scene.chance.uniform(1, 9.9), 1), scene.chance.randint(3, 6)
        return Value(f"{head}e{power}", whole(round(head * 10**power, 3)))
    if draw < 0.4 and most >= 2:
        return integer(scene, max(1, int(least)), int(most))
    number = whole(round(scene.chance.uniform(least, most), scene.chance.choice([1, 1, 2, 3])))
    text = f"{number:,}" if number >= 1000 and scene.maybe(0.4) else f"{number}"
    if scene.language == "de":
        text = text.replace(",", " ").replace(".", ",").replace(" ", ".")
    return Value(text, number)


def whole(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number


def percent(scene: Scene) -> Value:
    number = whole(
        scene.chance.choice([scene.chance.randint(1, 95), round(scene.chance.uniform(0.5, 30), 1)])
    )
    text = str(number).replace(".", ",") if scene.language == "de" else str(number)
    word = {"en": " percent", "de": " Prozent", "zh": "%"}[scene.language]
    return Value(text + (word if scene.maybe(0.4) else "%"), number)


def money(scene: Scene) -> Value:
    number = scene.chance.choice(
        [
            scene.chance.randint(2, 900),
            scene.chance.randint(1000, 250_000),
            round(scene.chance.uniform(1, 500), 2),
        ]
    )
    if scene.language == "zh":
        return Value(f"{number}{scene.pick(['元', '欧元', '美元'])}", number)
    grouped = f"{number:,}" if scene.maybe(0.6) else f"{number}"
    if scene.language == "de":
        grouped = grouped.replace(",", " ").replace(".", ",").replace(" ", ".")
        return Value(f"{grouped} {scene.pick(['Euro', '€', 'Franken'])}", number)
    return Value(
        scene.pick([f"${grouped}", f"{grouped} euros", f"{grouped} dollars", f"€{grouped}", f"£{grouped}"]),
        number,
    )


# ── days and hours ────────────────────────────────────────────────────────────────────────────────


def day(scene: Scene, about: str) -> Value:
    """If the parameter wants YYYY-MM-DD, return that, else the words."""
    spoken, meant = _day(scene)
    return Value(spoken, meant.isoformat() if "YYYY" in about else spoken)


def moment(scene: Scene) -> Value:
    """A day and a time, in ISO 8601."""
    spoken, meant = _day(scene)
    at = hour(scene, "HH")
    joined = {
        "en": f"{spoken} at {at.spoken}",
        "de": f"{spoken} um {at.spoken}",
        "zh": f"{spoken}{at.spoken}",
    }
    turned = (
        f"{at.spoken} {spoken}" if scene.language == "en" and scene.maybe(0.25) else joined[scene.language]
    )
    return Value(turned, f"{meant.isoformat()}T{at.written}:00")


def _day(scene: Scene) -> tuple[str, date]:
    today, chance = scene.today, scene.chance
    draw = chance.random() if scene.knows_today else 1.0
    if draw < 0.03:
        return {"en": "yesterday", "de": "gestern", "zh": "昨天"}[scene.language], today - timedelta(days=1)
    if draw < 0.06 and scene.language == "en":  # the next one with that number
        meant = today + timedelta(days=chance.randint(1, 27))
        return f"the {_ordinal(meant.day)}", meant
    if draw < 0.25:
        ahead = chance.choice([0, 1, 1, 1, 2])
        return W.RELATIVE_DAYS[scene.language][ahead], today + timedelta(days=ahead)
    if draw < 0.45:
        weekday = chance.randint(0, 6)
        named = W.WEEKDAYS[scene.language][weekday]
        before = {"en": ["", "", "next ", "this "], "de": ["", "nächsten "], "zh": ["", "这"]}[scene.language]
        return scene.pick(before) + named, today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
    if draw < 0.53:
        ahead = chance.choice([2, 3, 4, 5, 6, 10, 7, 14, 21])
        return _in_days(scene, ahead), today + timedelta(days=ahead)
    if draw < 0.72:  # the next one of that name
        meant = date(today.year, chance.randint(1, 12), chance.randint(1, 28))
        meant = meant if meant >= today else meant.replace(year=today.year + 1)
        return _without_year(scene, meant), meant
    meant = date(
        today.year + chance.choice([0, 0, 0, 1, 1, -1]), chance.randint(1, 12), chance.randint(1, 28)
    )
    return _spoken_date(scene, meant), meant


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10 if number // 10 != 1 else 0, 'th') }"


def _in_words(scene: Scene, hour: int, minute: int) -> str:
    """Half past seven in the evening, a quarter to 9 am, 7:30 in the evening."""
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    suffix = scene.pick([part, part, "am" if hour < 12 else "pm"])
    twelve, following = (hour - 1) % 12 + 1, hour % 12 + 1
    past = {15: "a quarter past", 30: "half past", 5: "five past", 20: "twenty past"}
    if minute in past and scene.maybe(0.6):
        return f"{past[minute]} {twelve} {suffix}"
    if minute == 45 and scene.maybe(0.6) and hour not in (11, 17):
        return f"{scene.pick(['a quarter to', 'quarter to'])} {following} {suffix}"
    return f"{twelve}:{minute:02} {suffix}" if minute else f"{twelve} {suffix}"


def _in_days(scene: Scene, ahead: int) -> str:
    weeks, rest = divmod(ahead, 7)
    if scene.language == "zh":
        return f"{weeks}周后" if not rest else f"{ahead}天后"
    if scene.language == "de":
        return (f"in {weeks} Wochen" if weeks > 1 else "in einer Woche") if not rest else f"in {ahead} Tagen"
    if not rest:
        return "in a week" if weeks == 1 else f"in {scene.pick([str(weeks), W.EN_NUMBERS[weeks]])} weeks"
    return f"in {scene.pick([str(ahead), W.EN_NUMBERS[ahead]])} days"


def _without_year(scene: Scene, day: date) -> str:
    month = W.MONTHS[scene.language][day.month - 1]
    if scene.language == "zh":
        return f"{day.month}月{day.day}日"
    if scene.language == "de":
        return scene.pick([f"{day.day}. {month}", f"{day.day}.{day.month}."])
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day // 10 != 1 else 0, "th")
    return str(
        scene.pick(
            [
                *(f"{month} {day.day}", f"{day.day} {month}", f"{month} {day.day}{ending}"),
                *(
                    f"the {day.day}{ending} of {month}",
                    f"{month[:3]} {day.day}",
                    f"{day.day}{ending} {month}",
                ),
            ]
        )
    )


def _spoken_date(scene: Scene, day: date) -> str:
    if scene.maybe(0.25):
        return day.isoformat()
    month = W.MONTHS[scene.language][day.month - 1]
    if scene.language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    if scene.language == "de":
        return scene.pick([f"{day.day}. {month} {day.year}", f"{day.day}.{day.month}.{day.year}"])
    return scene.pick(
        [
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"the {day.day} of {month} {day.year}",
        ]
    )


def hour(scene: Scene, about: str) -> Value:
    hour, minute = scene.chance.randint(6, 22), scene.chance.choice([0, 0, 0, 15, 30, 30, 45, 5, 20, 50])
    clock = f"{hour:02}:{minute:02}"
    if scene.language == "de":
        spoken = f"{hour} Uhr {minute}" if minute else f"{hour} Uhr"
    elif scene.language == "zh":
        part = "上午" if hour < 12 else "下午" if hour < 18 else "晚上"
        half = "半" if minute == 30 else f"{minute}分" if minute else ""
        spoken = f"{part}{hour if hour <= 12 else hour - 12}点{half}"
    else:
        twelve, suffix = (hour if hour <= 12 else hour - 12), ("am" if hour < 12 else "pm")
        spoken = f"{twelve}:{minute:02} {suffix}" if minute else f"{twelve} {suffix}"
        if not minute and scene.maybe(0.15):
            spoken = {12: "noon"}.get(hour, spoken)
        elif scene.maybe(0.25):
            spoken = _in_words(scene, hour, minute)
    if scene.maybe(0.3):
        spoken = clock if scene.language != "de" or scene.maybe(0.5) else f"{clock} Uhr"
    return Value(spoken, clock if "HH" in about else spoken)
