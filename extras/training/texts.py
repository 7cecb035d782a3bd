"""Texts to copy exactly: unknown names, titles, sentences, lists and code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from training.material import sentences as S
from training.material import words as W
from training.scene import Scene

FOLDER = Path(__file__).with_name("material")
_PART = re.compile(r"\{(\w)\}")


@cache
def vocabulary(name: str) -> tuple[str, ...]:
    """Words or names of the model's own vocabulary."""
    return tuple((FOLDER / f"{name}.list").read_text("utf-8").split())


def name(scene: Scene) -> str:
    """Return a name that is in no list: invented, or a word written like a name."""
    if scene.maybe(0.5):
        return scene.pick(vocabulary("names"))
    begin, middle, end = (scene.pick(S.INVENTED[part]) for part in ("begin", "middle", "end"))
    return (
        begin + (middle if scene.maybe(0.6) else "") + (scene.pick(S.INVENTED["middle"]) + end).rstrip("-9")
    )


def some_words(scene: Scene, least: int, most: int) -> list[str]:
    return [scene.pick(vocabulary("words")) for _ in range(scene.chance.randint(least, most))]


def title(scene: Scene) -> str:
    """A heading: words of any kind, in one of the ways to write headings."""
    if scene.language != "en":
        return sentence(scene)
    words = some_words(scene, 1, 5)
    if scene.maybe(0.25):
        words[scene.chance.randrange(len(words))] = name(scene)
    draw = scene.chance.random()
    if draw < 0.4:
        return " ".join(word[:1].upper() + word[1:] for word in words)
    if draw < 0.75:
        return " ".join(words)[:1].upper() + " ".join(words)[1:]
    if draw < 0.85:
        ending = scene.pick(["2", "v3", "(draft)", "#12", "2027", "Q3", "– part 2", "& more"])
        return f"{' '.join(words).capitalize()} {ending}"
    return " ".join(words)


def sentence(scene: Scene) -> str:
    language = scene.language
    draw = scene.chance.random()
    if draw < 0.25:
        return _written(scene)
    if draw < 0.35 and language == "en":
        return " ".join(some_words(scene, 2, 7))
    pattern = scene.pick(S.PATTERNS[language])

    def fill(match: re.Match[str]) -> str:
        match match[1]:
            case "i":
                return str(scene.chance.randint(2, 60))
            case "N":
                return name(scene) if scene.maybe(0.3) else scene.pick(W.LISTS["first"])
            case part:
                if part == "n" and language == "en" and scene.maybe(0.3):
                    return scene.pick(vocabulary("words"))
                return scene.pick(S.PARTS[language][part].split(","))

    text = _PART.sub(fill, pattern)
    if language != "zh" and scene.maybe(0.25) and text[-1].isalnum():
        text += scene.pick([".", "!", "."])
    if language == "en" and scene.maybe(0.2):
        text = text[:1].lower() + text[1:]
    return text


def _written(scene: Scene) -> str:
    return str(scene.pick(W.SENTENCES[scene.language])).format(
        thing=scene.pick(W.THINGS[scene.language]),
        person=scene.pick(W.LISTS["first"]),
        number=scene.chance.randint(2, 99),
        city=scene.pick(W.LISTS["city"]),
    )


def paragraph(scene: Scene) -> str:
    """Two or three sentences."""
    stop = "。" if scene.language == "zh" else "."
    said = [sentence(scene) for _ in range(scene.chance.choice([2, 2, 3]))]
    ended = [one if one[-1] in ".!?。！？" else one + stop for one in said]
    return ("" if scene.language == "zh" else " ").join(one[:1].upper() + one[1:] for one in ended)


def lines(scene: Scene) -> str:
    """Several lines: a list, or a letter."""
    count = scene.chance.randint(2, 4)
    if scene.maybe(0.35) and scene.language == "en":
        greeting, farewell = (
            scene.pick(["Dear", "Hi", "Hello"]),
            scene.pick(["Best", "Regards", "Thanks", "Love"]),
        )
        first, second = scene.pick(W.LISTS["first"]), scene.pick(W.LISTS["first"])
        return f"{greeting} {first},\n{sentence(scene)}\n{farewell}, {second}"
    mark = scene.pick(["- ", "* ", "", "", "[ ] "])
    each = [
        scene.pick(W.CHORES[scene.language]) if scene.maybe(0.5) else sentence(scene) for _ in range(count)
    ]
    if scene.maybe(0.2):
        return "\n".join(f"{at}. {one}" for at, one in enumerate(each, 1))
    return "\n".join(mark + one for one in each)


def code(scene: Scene) -> str:
    pattern = scene.pick(S.CODE)
    words = some_words(scene, 3, 3)
    return pattern.format(
        w=words[0],
        x=words[1],
        y=words[2],
        i=scene.chance.randint(0, 9999),
        s=sentence(scene).replace('"', ""),
    )
