"""Values from a fixed list: choices in users' words, and names that have a code."""

from __future__ import annotations

from collections.abc import Sequence

from training.material import words as W
from training.material.synonyms import SYNONYMS
from training.scene import Scene, Value


def choice(scene: Scene, choices: list[str]) -> Value:
    chosen = scene.pick(choices)
    others = [
        word
        for word in SYNONYMS[scene.language].get(chosen, "").split("|")
        if word and word not in choices  # "open" may be another choice
    ]
    if others and scene.maybe(0.35 if scene.language == "en" else 0.6):
        return Value(scene.pick(others), chosen)
    spoken = W.CHOICES.get(scene.language, {}).get(chosen, chosen.replace("_", " "))
    return Value(spoken, chosen)


def coded(scene: Scene, table: Sequence[tuple[str, str, str, str]]) -> Value:
    """Return a name in users' words and its code; a few users know the code."""
    english, german, chinese, code = scene.pick(table)
    if scene.maybe(0.15):
        return Value(code, code)
    spoken = {"en": english, "de": german, "zh": chinese}[scene.language]
    return Value(spoken.lower() if scene.language == "en" and scene.maybe(0.2) else spoken, code)
