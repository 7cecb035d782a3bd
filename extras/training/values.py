"""Values for arguments: in users' words of three languages, and in JSON."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from functools import partial
from typing import Any

from training import texts
from training.choices import choice, coded
from training.figures import (
    day,
    hour,
    integer,
    moment,
    money,
    number,
    percent,
)
from training.material import words as W
from training.material.synonyms import COUNTRY_CODES, CURRENCY_CODES, LANGUAGE_CODES
from training.quantities import hour_of_day, quantity, share
from training.scene import Scene, Value


def make_value(scene: Scene, kind: str, about: str = "") -> Value:
    """Return a value of a kind such as `city`, `int 1 20`, `list person`, `a|b|c`, or `any a|b|c` for free
    text.

    `like a|b|c` is free text too: one of these or something else, so that the model reads the request.
    """
    name, *limits = kind.split(" ")
    if name == "list":
        return _several(scene, " ".join(limits), about)
    if name == "any":
        return _same(scene.pick(" ".join(limits).split("|")))
    if name == "like":
        return _like(scene, " ".join(limits).split("|"))
    if "|" in kind:
        return choice(scene, kind.split("|"))
    if name == "int":
        return integer(scene, int(limits[0]), int(limits[1]))
    if name == "float":
        return number(scene, float(limits[0]), float(limits[1]))
    if name in ("date", "time"):
        return (day if name == "date" else hour)(scene, about)
    if name in _MAKERS:
        return _MAKERS[name](scene)
    if name in QUANTITIES:
        return quantity(scene, name)
    if name in _TITLES and scene.maybe(0.45):
        return _same(texts.title(scene))
    if name in _NAMES and scene.maybe(0.35):
        return _same(texts.name(scene) if scene.maybe(0.7) else f"{texts.name(scene)} {texts.name(scene)}")
    return _same(scene.pick(W.LISTS[name]))


QUANTITIES = ("seconds", "minutes", "hours", "meters", "grams", "megabytes")
_TITLES = frozenset(
    ("title", "subject", "song", "film", "book", "dish", "product", "label", "category", "word")
)
_NAMES = frozenset(("company", "artist", "restaurant", "team", "plant", "device", "table", "department"))


def schema_of(kind: str) -> dict[str, Any]:
    name, _, rest = kind.partition(" ")
    if name == "list":
        return {"type": "array", "items": schema_of(rest)}
    if name in ("any", "like"):
        return {"type": "string"}
    if "|" in kind:
        return {"type": "string", "enum": kind.split("|")}
    if name == "lines":
        return {"type": "array", "items": _object_schema(_LINE)}
    if name in _OBJECTS:
        return _object_schema(_OBJECTS[name])
    types = {
        **dict.fromkeys(("int", "hour24"), "integer"),
        **dict.fromkeys(("float", "percent", "money", "share", *QUANTITIES), "number"),
        "bool": "boolean",
    }
    return {"type": types.get(name, "string")}


def _same(text: str) -> Value:
    return Value(text, text)


def _like(scene: Scene, seen: list[str]) -> Value:
    draw = scene.chance.random()
    if draw < 0.12:
        return _same(texts.name(scene))
    if draw < 0.3 and scene.language == "en":
        return _same(" ".join(texts.some_words(scene, 1, 3)))
    return _same(scene.pick(seen))


def _several(scene: Scene, kind: str, about: str) -> Value:
    count = scene.chance.choice([2, 2, 2, 3, 3, 4])
    values: list[Value] = []
    while len(values) < count:
        one = make_value(scene, kind, about)
        if one.written not in [other.written for other in values]:
            values.append(one)
    spoken = [value.spoken for value in values]
    last = {"en": " and ", "de": " und ", "zh": "和"}[scene.language]
    comma = "、" if scene.language == "zh" else ", "
    joined = (
        comma.join(spoken)
        if kind.startswith(("int", "float"))
        else comma.join(spoken[:-1]) + last + spoken[-1]
    )
    return Value(joined, [value.written for value in values])


# ── names of things ───────────────────────────────────────────────────────────────────────────────


def _person(scene: Scene) -> Value:
    first = scene.pick(W.LISTS["first"] if scene.language != "zh" or scene.maybe(0.3) else W.ZH_PEOPLE)
    if scene.maybe(0.25) and first.isascii():
        first = texts.name(scene)
    if scene.maybe(0.06) and scene.language == "en":
        return _same(f"{scene.pick(['Mr.', 'Mrs.', 'Dr.', 'Ms', 'Prof.'])} {texts.name(scene)}")
    if scene.maybe(0.05) and scene.language == "en":
        return _same(scene.pick(["mom", "my boss", "my sister", "the landlord", "dad", "the team"]))
    return _same(f"{first} {scene.pick(W.LISTS['last'])}" if scene.maybe(0.4) and first.isascii() else first)


def _city(scene: Scene) -> Value:
    if scene.maybe(0.2):
        return _same(texts.name(scene))
    local = {"de": W.DE_CITIES, "zh": W.ZH_CITIES}.get(scene.language)
    return _same(scene.pick(local if local and scene.maybe(0.7) else W.LISTS["city"]))


def _zone(scene: Scene) -> Value:
    """Return the name of a city, and its zone in the IANA table."""
    english, german, chinese, zone = scene.pick(W.ZONES)
    if scene.maybe(0.08):
        return _same(zone)
    return Value({"en": english, "de": german, "zh": chinese}[scene.language], zone)


def _filename(scene: Scene, endings: tuple[str, ...] = W.ENDINGS) -> str:
    stem = scene.pick(W.STEMS) if scene.maybe(0.5) else _stem(scene)
    if scene.maybe(0.35):
        stem += scene.pick(["-", "_", ""]) + scene.pick([*W.STEMS, "2", "v2", "final", "2026", "old", "01"])
    if scene.maybe(0.1):
        return str(scene.pick(W.BARE_FILES))
    return f"{stem}.{scene.pick(endings)}"


def _stem(scene: Scene) -> str:
    """Return a word for names of files, folders and sites."""
    return texts.name(scene) if scene.maybe(0.15) else scene.pick(texts.vocabulary("words"))


def _folder(scene: Scene) -> Value:
    parts = [
        scene.pick(W.FOLDERS) if scene.maybe(0.6) else _stem(scene)
        for _ in range(scene.chance.choice([1, 1, 1, 2, 2, 3]))
    ]
    return _same("/".join(parts))


def _path(scene: Scene) -> Value:
    name = _filename(scene)
    return _same(name if scene.maybe(0.45) else f"{_folder(scene).spoken}/{name}")


def _long_path(scene: Scene) -> Value:
    parts = [scene.pick(W.FOLDERS) for _ in range(scene.chance.randint(2, 4))]
    return _same(scene.pick(["/", "~/", "", "./"]) + "/".join(parts) + "/" + _filename(scene))


def _url(scene: Scene) -> Value:
    path = "/".join(scene.pick(W.FOLDERS) for _ in range(scene.chance.choice([0, 1, 1, 2])))
    tail = scene.chance.choice(
        ["", "", f"{path}", f"{path}/{_filename(scene)}", f"{path}?id={scene.chance.randint(1, 9999)}"]
    )
    return _same(
        f"{scene.pick(['https://', 'https://', 'http://'])}{_domain(scene).spoken}/{tail.lstrip('/')}".rstrip(
            "/"
        )
    )


def _domain(scene: Scene) -> Value:
    sub = scene.pick(["", "", "www.", "docs.", "api."])
    return _same(
        f"{sub}{_stem(scene).lower()}{scene.pick(['', '-' + scene.pick(W.STEMS)])}.{scene.pick(W.TOPS)}"
    )


def _email(scene: Scene) -> Value:
    first, last = scene.pick(W.LISTS["first"]).lower(), scene.pick(W.LISTS["last"]).lower()
    if scene.maybe(0.4):
        first, last = texts.name(scene).lower(), texts.name(scene).lower()
    name = scene.pick([first, f"{first}.{last}", f"{first}{scene.chance.randint(1, 99)}"])
    return _same(f"{name}@{_stem(scene).lower()}.{scene.pick(W.TOPS)}")


def _phone(scene: Scene) -> Value:
    digits = "".join(scene.chance.choice(string.digits) for _ in range(scene.chance.randint(7, 10)))
    return _same(
        scene.pick(
            [
                f"+{scene.chance.randint(1, 99)} {digits[:3]} {digits[3:]}",
                f"0{digits}",
                f"{digits[:3]}-{digits[3:]}",
            ]
        )
    )


def _id(scene: Scene) -> Value:
    chance = scene.chance
    letters = "".join(chance.choice(string.ascii_uppercase) for _ in range(chance.randint(1, 4)))
    return _same(
        chance.choice(
            [
                f"{letters}-{chance.randint(1, 99999)}",
                f"{letters}{chance.randint(100, 9999)}",
                f"{chance.randint(100, 999999)}",
                f"{letters.lower()}_{_hex(chance, 6)}",
            ]
        )
    )


def _key(scene: Scene) -> Value:
    """Return long strings that must be copied exactly."""
    chance = scene.chance
    uuid = f"{_hex(chance, 8)}-{_hex(chance, 4)}-{_hex(chance, 4)}-{_hex(chance, 4)}-{_hex(chance, 12)}"
    mixed = "".join(
        chance.choice(string.ascii_letters + string.digits) for _ in range(chance.randint(12, 28))
    )
    return _same(chance.choice([uuid, _hex(chance, 40), mixed, f"sk_{mixed}", f"{mixed[:6]}.{mixed[6:]}"]))


def _hex(chance: random.Random, length: int) -> str:
    return "".join(chance.choice("0123456789abcdef") for _ in range(length))


def _text(scene: Scene) -> Value:
    """Return a sentence that a user wants written, sent or processed."""
    return _same(texts.sentence(scene))


def _quoted(scene: Scene) -> Value:
    draw = scene.chance.random()
    text = (
        texts.title(scene) if draw < 0.2 else texts.paragraph(scene) if draw < 0.32 else texts.sentence(scene)
    )
    marks = {
        "en": [("'", "'"), ('"', '"'), ("“", "”")],
        "de": [("„", "“"), ('"', '"'), ("'", "'")],
        "zh": [("“", "”"), ("「", "」")],
    }
    left, right = scene.pick(marks[scene.language])
    if left in text or right in text:
        left, right = '"', '"'
    return Value(f"{left}{text}{right}", text)


def free_text(scene: Scene) -> str:
    """Return a text for the end of a request without quotation marks: all of it is the value."""
    draw = scene.chance.random()
    if draw < 0.55:
        return texts.sentence(scene)
    return (
        texts.title(scene) if draw < 0.65 else texts.lines(scene) if draw < 0.75 else texts.paragraph(scene)
    )


def _code(scene: Scene) -> Value:
    code = texts.code(scene)
    if "\n" in code or scene.maybe(0.3):
        return Value(f"```\n{code}\n```" if scene.maybe(0.5) else code, code)
    return Value(scene.pick([code, f"`{code}`"]), code)


def _thing(scene: Scene) -> Value:
    return _same(scene.pick(W.THINGS[scene.language]))


def _topic(scene: Scene) -> Value:
    return _same(scene.pick(W.TOPICS[scene.language]))


def _chore(scene: Scene) -> Value:
    return _same(scene.pick(W.CHORES[scene.language]))


def _bool(scene: Scene) -> Value:
    on = scene.maybe(0.5)
    return Value("yes" if on else "no", on)


# ── objects ───────────────────────────────────────────────────────────────────────────────────────


def _order_lines(scene: Scene) -> Value:
    """Return several things, each with its count."""
    kind = scene.pick(["product", "dish"])
    lines = [
        (make_value(scene, kind).spoken, scene.chance.randint(1, 12))
        for _ in range(scene.chance.choice([1, 2, 2, 3]))
    ]
    last = {"en": " and ", "de": " und ", "zh": "和"}[scene.language]
    return Value(
        last.join(f"{count} {name}" for name, count in lines),
        [{"name": name, "quantity": count} for name, count in lines],
    )


def _address(scene: Scene) -> Value:
    street = f"{scene.pick(W.STREETS)} {scene.chance.randint(1, 120)}"
    city, postcode = make_value(scene, "city").spoken, str(scene.chance.randint(1000, 99999))
    spoken = scene.pick(
        [f"{street}, {postcode} {city}", f"{street}, {city} {postcode}", f"{street} in {postcode} {city}"]
    )
    return Value(spoken, {"street": street, "city": city, "postcode": postcode})


def _street(scene: Scene) -> Value:
    street = (
        scene.pick(W.STREETS)
        if scene.maybe(0.6)
        else f"{texts.name(scene)} {scene.pick(['Street', 'Square', 'Lane', 'Avenue'])}"
    )
    return _same(f"{street} {scene.chance.randint(1, 120)}" if scene.maybe(0.5) else street)


def _point(scene: Scene) -> Value:
    latitude, longitude = (round(scene.chance.uniform(-limit, limit), 4) for limit in (80, 170))
    spoken = scene.pick([f"{latitude}, {longitude}", f"latitude {latitude} and longitude {longitude}"])
    return Value(spoken, {"latitude": latitude, "longitude": longitude})


def _range(scene: Scene) -> Value:
    low = scene.chance.randint(1, 400)
    high = low + scene.chance.randint(5, 900)
    words = {"en": ("{} to {}", "between {} and {}"), "de": ("{} bis {}",), "zh": ("{}到{}",)}[scene.language]
    return Value(scene.pick(words).format(low, high), {"min": low, "max": high})


_LINE = {"name": "string", "quantity": "integer"}
_OBJECTS = {
    "address": {"street": "string", "city": "string", "postcode": "string"},
    "point": {"latitude": "number", "longitude": "number"},
    "range": {"min": "number", "max": "number"},
}


def _object_schema(members: dict[str, str]) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in members.items()}
    return {"type": "object", "properties": properties, "required": list(members)}


_MAKERS: dict[str, Callable[[Scene], Value]] = {
    "lines": _order_lines,
    "address": _address,
    "street": _street,
    "point": _point,
    "range": _range,
    "percent": percent,
    "share": share,
    "hour24": hour_of_day,
    "moment": moment,
    "code": _code,
    "money": money,
    "person": _person,
    "city": _city,
    "zone": _zone,
    "langcode": partial(coded, table=LANGUAGE_CODES),
    "moneycode": partial(coded, table=CURRENCY_CODES),
    "countrycode": partial(coded, table=COUNTRY_CODES),
    "folder": _folder,
    "path": _path,
    "longpath": _long_path,
    "url": _url,
    "domain": _domain,
    "email": _email,
    "phone": _phone,
    "id": _id,
    "key": _key,
    "text": _text,
    "quoted": _quoted,
    "thing": _thing,
    "topic": _topic,
    "chore": _chore,
    "bool": _bool,
}
