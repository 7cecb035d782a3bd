"""Numbers, amounts, days and hours, as they are said in three languages and written in JSON."""

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
    if number >= 1000 and scene.maybe(0.5):
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
    """Where the parameter wants YYYY-MM-DD, it gets that; else it gets what was said."""
    today, chance = scene.today, scene.chance
    ahead = chance.choice([0, 1, 1, 2]) if scene.knows_today and scene.maybe(0.4) else -1
    if ahead >= 0:
        spoken = W.RELATIVE_DAYS[scene.language][ahead]
        meant = today + timedelta(days=ahead)
    elif scene.knows_today and scene.maybe(0.35):
        weekday = chance.randint(0, 6)
        meant = today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
        spoken = W.ON_WEEKDAY[scene.language].format(W.WEEKDAYS[scene.language][weekday])
    else:
        meant = date(
            today.year + chance.choice([0, 0, 0, 1, -1]), chance.randint(1, 12), chance.randint(1, 28)
        )
        spoken = _spoken_date(scene, meant)
    return Value(spoken, meant.isoformat() if "YYYY" in about else spoken)


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
    if scene.maybe(0.3):
        spoken = clock
    return Value(spoken, clock if "HH" in about else spoken)
