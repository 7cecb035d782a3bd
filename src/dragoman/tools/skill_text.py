"""Writes the text of a `SKILL.md`, and edits one: what is not edited, comments too, keeps every byte."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.sentences import sentence
from dragoman.tools.skills import BIGGEST, Skill, cut_skill, parse_skill, read_front_matter


def write_skill(skill: Skill) -> bytes:
    """The file of a new one. ValueError says why it cannot be."""
    head = "\n".join(_line(key, value) for key, value in _front(skill).items() if value)
    return _checked(f"---\n{_line('name', skill.name)}\n{head}\n---\n\n{_plain(skill.text)}\n", skill)


def edit_skill(before: bytes, skill: Skill) -> bytes:
    """The file with what this skill says; its name stays. ValueError says why it cannot be."""
    opening, head, closing, body = cut_skill(before.decode())
    found, end = parse_skill(before, skill.name), "\r" if opening.endswith("\r\n") else ""
    wanted, known = _front(skill), _front(found)
    edited = _edit(head, {key: value for key, value in wanted.items() if value != known[key]}, end)
    if _plain(skill.text) != _plain(found.text):
        body = f"\n{_plain(skill.text)}\n".replace("\n", f"{end}\n")
    return _checked(f"{opening}{edited}{closing}{body}", skill)


def _front(skill: Skill) -> dict[str, str | bool]:
    """What we know of a front matter, the name aside. Nothing and False are not written."""
    return {
        "description": " ".join(skill.description.split()),
        "when": " ".join(skill.when.split()),
        "always": skill.always,
    }


def _edit(head: str, changes: Mapping[str, str | bool], end: str) -> str:
    """The front matter with other lines for some of its keys; comments that follow a key stay."""
    if not changes:
        return head
    pieces = _pieces(head)
    for key, value in changes.items():
        line = f"{_line(key, value)}{end}" if value else None
        if key not in pieces:
            pieces[key] = f"\n{line}" if line else ""
            continue
        lines, kept = pieces[key].split("\n"), list[str]()
        while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
            kept.insert(0, lines.pop())
        pieces[key] = "\n".join([*([line] if line else []), *kept])
    after = "".join(pieces.values())
    if after.endswith("\n") and not head.endswith("\n"):  # the last key went
        after = after[:-1]
    wanted = {**read_front_matter(f"{head}\n"), **changes}
    wanted = {key: value for key, value in wanted.items() if changes.get(key, True)}
    if read_front_matter(f"{after}\n") != wanted:
        raise ValueError(_BY_HAND)
    return after


_BY_HAND = sentence("skill.handmade")


def _pieces(head: str) -> dict[str | None, str]:
    """The front matter cut before each of its keys; what stands before the first is under None."""
    import yaml

    node = yaml.compose(head, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise ValueError(_BY_HAND)
    starts = {str(key.value): head.rfind("\n", 0, key.start_mark.index) + 1 for key, _ in node.value}
    if len(starts) != len(node.value):
        raise ValueError(_BY_HAND)
    cuts = [*starts.values(), len(head)]
    pieces: dict[str | None, str] = {None: head[: cuts[0]]}
    for (key, start), cut in zip(starts.items(), cuts[1:], strict=True):
        pieces[key] = head[start:cut]
    return pieces


def _line(key: str, value: str | bool) -> str:
    import yaml

    return yaml.safe_dump({key: value}, allow_unicode=True, width=sys.maxsize).strip()


def _plain(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text).strip()


def _checked(text: str, skill: Skill) -> bytes:
    """Whoever writes a text that others will read had better read it first."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(sentence("skill.half_character")) from error
    if len(data) > BIGGEST:
        raise ValueError(sentence("skill.too_big", kilobytes=BIGGEST // 1000))
    found = parse_skill(data, skill.name, Path())
    if (_front(found), _plain(found.text)) != (_front(skill), _plain(skill.text)):
        raise ValueError(_BY_HAND)
    return data
