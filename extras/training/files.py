"""Requests for the tools that read, write and search files, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training import texts
from training.material.more_phrases import MORE
from training.material.phrases import KINDS_OF_FILES, REQUESTS
from training.scene import Scene
from training.tools import Offered, Wish
from training.values import free_text, make_value


@dataclass(slots=True)
class Chain(Wish):
    """A request that takes two calls. The second uses part of the first one's result."""

    tool_after: Offered = field(default_factory=lambda: Offered("", "", {}))
    arguments_after: dict[str, Any] = field(default_factory=dict)
    result_after: str = ""
    reply_after: str = ""


def ask_for(scene: Scene, kind: str) -> str:
    known = REQUESTS.get(kind, {}).get(scene.language, ())
    return str(scene.pick([*known, *MORE.get(kind, {}).get(scene.language, ())]))


def list_files(scene: Scene, tool: Offered) -> Wish:
    names = sorted(
        {make_value(scene, "path").spoken.rpartition("/")[2] for _ in range(scene.chance.randint(2, 6))}
    )
    result = "\n".join(
        [
            *(f"{name}  {scene.chance.randint(3, 9000)}" for name in names),
            f"{scene.pick(['src', 'old', 'img'])}/",
        ]
    )
    if scene.maybe(0.4):
        return Wish(ask_for(scene, "list_here"), tool, {}, {}, result)
    folder = make_value(scene, "folder").spoken
    return Wish(ask_for(scene, "list").format(folder=folder), tool, {"path": folder}, {}, result)


def read(scene: Scene, tool: Offered) -> Wish:
    path = make_value(scene, "longpath" if scene.maybe(0.15) else "path").spoken
    lines = [make_value(scene, "text").spoken for _ in range(scene.chance.randint(1, 6))]
    arguments: dict[str, Any] = {"path": path}
    draw, first, count = scene.chance.random(), scene.chance.randint(2, 400), scene.chance.randint(2, 120)
    if draw < 0.08:
        request, arguments = (
            ask_for(scene, "read_first").format(path=path, count=count),
            {"path": path, "lines": count},
        )
    elif draw < 0.15:
        request = ask_for(scene, "read_range").format(path=path, first=first, last=first + count - 1)
        arguments = {"path": path, "start": first, "lines": count}
    elif draw < 0.2:
        request, arguments = (
            ask_for(scene, "read_from").format(path=path, first=first),
            {"path": path, "start": first},
        )
    else:
        request = ask_for(scene, "read").format(path=path)
    return Wish(request, tool, arguments, {}, _shown(scene, path, lines))


def _shown(scene: Scene, path: str, lines: list[str]) -> str:
    return "\n".join(
        [f"[{path}: lines 1 to {len(lines)} of {len(lines)}, version {_version(scene)}]", *lines]
    )


def _version(scene: Scene) -> str:
    return "".join(scene.chance.choice("0123456789abcdef") for _ in range(10))


def write(scene: Scene, tool: Offered) -> Wish:
    path = make_value(scene, "path").spoken
    draw, open_end = scene.chance.random(), False
    if draw < 0.1:
        parts = make_value(scene, "list food")
        request, text = (
            ask_for(scene, "write_lines").format(path=path, items=parts.spoken),
            "\n".join(parts.written),
        )
    elif draw < 0.14:
        request, text = ask_for(scene, "write_empty").format(path=path), ""
    elif draw < 0.55:
        value = make_value(scene, "quoted" if scene.maybe(0.85) else "text")
        request, text = (
            ask_for(scene, "write").replace("{path}", path).replace("{text}", value.spoken),
            str(value.written),
        )
    else:
        text, open_end = texts.code(scene) if scene.maybe(0.35) else free_text(scene), True
        shown = f"\n{text}" if "\n" in text or scene.maybe(0.15) else text
        if scene.maybe(0.1):
            shown = f"\n```\n{text}\n```"
        request = (
            ask_for(scene, "write_open")
            .replace("{path}", path)
            .replace("{text}", shown)
            .replace(": \n", ":\n")
        )
    result = f"wrote {path}: {len(text)} characters, version {_version(scene)}"
    reply = {"en": f"{path} is written.", "de": f"{path} ist geschrieben.", "zh": f"{path}已写好。"}[
        scene.language
    ]
    return Wish(request, tool, {"path": path, "text": text}, {}, result, reply, open_end)


def edit(scene: Scene, tool: Offered, tools: list[Offered]) -> Chain | None:
    reading = next((one for one in tools if one.name == "read_file"), None)
    if reading is None:
        return None
    path = make_value(scene, "path").spoken
    old, new = (_fragment(scene) for _ in range(2))
    request = ask_for(scene, "edit").format(path=path, old=old, new=new)
    everywhere = scene.maybe(0.2) and scene.language == "en"
    lines = [make_value(scene, "text").spoken, f"- {old}", make_value(scene, "text").spoken]
    result = _shown(scene, path, lines)
    version = result.partition("version ")[2][:10]
    after: dict[str, Any] = {"path": path, "version": version, "old": old, "new": new}
    if everywhere:
        request, after = f"{request.rstrip('.')} everywhere", {**after, "everywhere": True}
    done = f"edited {path}: version {_version(scene)}"
    reply = {
        "en": f"{path} now has {new}.",
        "de": f"In {path} steht jetzt {new}.",
        "zh": f"{path}现在是{new}。",
    }[scene.language]
    return Chain(
        request, reading, {"path": path}, {}, result,
        tool_after=tool, arguments_after=after, result_after=done, reply_after=reply,
    )  # fmt: skip


def _fragment(scene: Scene) -> str:
    """Return a part of a file's text."""
    draw = scene.chance.random()
    if draw < 0.25:
        word, sign = scene.pick(texts.vocabulary("words")), scene.pick([": ", "=", " = "])
        return f"{word}{sign}{scene.chance.randint(0, 9999)}"
    if draw < 0.45:
        return scene.pick(["_", "", "."]).join(texts.some_words(scene, 1, 2))
    return make_value(scene, "title").spoken if draw < 0.75 else str(scene.chance.randint(2, 9999))


def glob(scene: Scene, tool: Offered) -> Wish:
    kind, ending = scene.pick(KINDS_OF_FILES[scene.language])
    paths = [make_value(scene, "path").spoken for _ in range(scene.chance.randint(1, 5))]
    folder, name = make_value(scene, "folder").spoken, make_value(scene, "path").spoken.rpartition("/")[2]
    word = scene.pick(texts.vocabulary("words"))
    pattern = make_value(scene, "glob").spoken
    way, arguments = scene.chance.choice(
        [
            *([("glob", {"pattern": f"**/*.{ending}"})] * 4),
            *([("glob_in", {"pattern": f"**/*.{ending}", "path": folder})] * 2),
            ("glob_pattern", {"pattern": pattern}),
            ("glob_name", {"pattern": f"**/{name}"}),
            ("glob_part", {"pattern": f"**/*{word}*"}),
        ]
    )
    request = ask_for(scene, way).format(
        kind=kind.removeprefix("."), ending=ending, folder=folder, pattern=pattern, name=name, word=word
    )
    return Wish(request, tool, arguments, {}, "\n".join(paths))


def grep(scene: Scene, tool: Offered) -> Wish:
    sources = ["pattern", "word", "id", "first", "service", "title", "text"]
    pattern = make_value(scene, scene.pick(sources)).spoken if scene.maybe(0.6) else _identifier(scene)
    quote = scene.pick(["'", '"']) if " " in pattern or scene.maybe(0.35) else ""
    folder = make_value(scene, "folder").spoken
    kind, ending = scene.pick(KINDS_OF_FILES[scene.language])
    files = f"**/*.{ending}"
    ways: list[tuple[str, dict[str, Any]]] = [
        *([("grep", {})] * 4),
        *([("grep_in", {"path": folder})] * 3),
        *([("grep_kind", {"files": files})] * 2),
        ("grep_both", {"path": folder, "files": files}),
        ("grep_case", {"ignore_case": True}),
    ]
    way, more = scene.chance.choice(ways)
    shown = f"{quote}{pattern}{quote}"
    if scene.language == "en" and quote and scene.maybe(0.3):
        shown = f"{scene.pick(['the word', 'the string', 'the text'])} {shown}"
    request = ask_for(scene, way).format(
        pattern=shown, folder=folder, kind=kind.removeprefix("."), ending=ending
    )
    hits = [
        f"{make_value(scene, 'path').spoken}:{scene.chance.randint(1, 300)}: {pattern} here"
        for _ in range(scene.chance.randint(1, 4))
    ]
    return Wish(request, tool, {"pattern": pattern, **more}, {}, "\n".join(hits))


def _identifier(scene: Scene) -> str:
    """Return a name as used in programs, or a word."""
    words = texts.some_words(scene, 1, 3)
    joined = [word.capitalize() for word in words]
    return str(
        scene.pick(
            [words[0], "_".join(words), "".join([words[0], *joined[1:]]), "".join(joined), "-".join(words)]
        )
    )
