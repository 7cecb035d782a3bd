"""Requests for the tools that come with Dragoman, and what comes of them.

Their descriptions are in `material/builtin.json`; after a change of the tools it is written anew:

    python -m training.builtin
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from training import texts
from training.arithmetic import calculation
from training.material.more_phrases import MORE, OBJECTS, VERBS
from training.material.phrases import KINDS_OF_FILES, QUESTIONS, REQUESTS
from training.scene import Scene
from training.tools import Offered, Wish
from training.values import free_text, make_value

FILE = Path(__file__).with_name("material") / "builtin.json"
GROUPS = {
    "basics": ("calculator", "current_time", "todo", "ask_person"),
    "files": ("list_directory", "read_file", "write_file", "edit_file", "apply_patch", "glob", "grep"),
    "web": ("fetch_url",),
    "shell": ("shell",),
}
_CLASHES = {
    "files": (
        *(
            "take_note",
            "append_to_note",
            "search_notes",
            "create_document",
            "search_code",
            "search_logs",
            "scan_document",
        ),
        *(
            "find_note",
            "sync_folder",
            "git_diff",
            "git_blame",
            "run_linter",
            "format_code",
            "describe_table",
            "book_search",
        ),
        *("copy_file", "move_file", "delete_path", "search_documents", "disk_usage", "compress_file"),
    ),
    "basics": (
        *(
            "take_note",
            "statistics",
            "add_to_date",
            "days_between",
            "mortgage_calculator",
            "translate_units",
            "solve_equation",
        ),
        *(
            "timezone_difference",
            "timestamp_convert",
            "medication_reminder",
            "assign_chore",
            "add_to_shopping_list",
        ),
        *(
            "remove_from_shopping_list",
            "show_shopping_list",
            "tax_estimate",
            "prime_check",
            "scale_recipe",
            "average",
        ),
        *(
            "homework_add",
            "convert_money",
            "list_events",
            "log_workout",
            "number_to_words",
            "convert_base",
            "set_cell",
        ),
        *(
            "split_bill",
            "average",
            "create_task",
            "list_tasks",
            "create_reminder",
            "tip_amount",
            "growth_rate",
        ),
        *("discount_price", "sales_tax", "gcd", "rectangle_area", "speed", "convert_units", "delete_task"),
    ),
    "web": (
        "wiki_lookup",
        "web_search",
        "news_headlines",
        "http_request",
        "wikipedia_summary",
        "summarize_text",
    ),
    "shell": (
        *(
            "run_python",
            "install_package",
            "kill_process",
            "list_processes",
            "git_push",
            "git_tag",
            "checkout_branch",
        ),
        *(
            "git_diff",
            "git_blame",
            "run_linter",
            "format_code",
            "copy_file",
            "move_file",
            "delete_path",
            "unzip",
            "sync_folder",
        ),
        "run_tests",
        "git_commit",
        "list_commits",
        "system_info",
        "disk_usage",
        "ping_host",
        "schedule_job",
    ),
}


@dataclass(slots=True)
class Chain(Wish):
    """A wish that takes two calls, the second with something out of the first one's result."""

    tool_after: Offered = field(default_factory=lambda: Offered("", "", {}))
    arguments_after: dict[str, Any] = field(default_factory=dict)
    result_after: str = ""
    reply_after: str = ""


@cache
def _specs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return found


def offered(scene: Scene) -> list[Offered]:
    """The groups as people have them: mostly all but the shell, sometimes a few tools alone."""
    names = [*GROUPS["basics"], *GROUPS["files"], *GROUPS["web"]]
    draw = scene.chance.random()
    if scene.maybe(0.35):
        names = [name for name in names if name not in ("ask_person", "apply_patch")]
    elif draw < 0.25:
        names = scene.chance.sample([*names, "shell"], scene.chance.randint(3, 9))
    elif draw < 0.4:
        names.append("shell")
    elif draw < 0.5:
        names = [*GROUPS[scene.pick(["basics", "files"])]]
    return [Offered(name, _specs()[name]["description"], _specs()[name]["parameters"]) for name in names]


def clashes(idea: str, tools: list[Offered]) -> bool:
    """Whether a tool of ours that is offered might be right for the same wishes."""
    here = {tool.name for tool in tools if tool.idea is None}
    return any(idea in _CLASHES[group] and here & set(names) for group, names in GROUPS.items())


def wish(scene: Scene, tool: Offered, tools: list[Offered]) -> Wish | None:
    if tool.name == "edit_file":
        return _edit(scene, tool, tools)
    maker = _MAKERS.get(tool.name)
    return maker(scene, tool) if maker is not None else None


def _say(scene: Scene, kind: str) -> str:
    known = REQUESTS.get(kind, {}).get(scene.language, ())
    return str(scene.pick([*known, *MORE.get(kind, {}).get(scene.language, ())]))


def _calculate(scene: Scene, tool: Offered) -> Wish:
    request, expression, result = calculation(scene)
    patterns = {
        "en": ("It is {}.", "The result is {}.", "That is {}."),
        "de": ("Das ist {}.", "Das Ergebnis ist {}."),
        "zh": ("结果是{}。", "等于{}。"),
    }
    reply = str(scene.pick(patterns[scene.language])).format(result)
    return Wish(request, tool, {"expression": expression}, {}, result, reply)


def _tell_time(scene: Scene, tool: Offered) -> Wish:
    zone = make_value(scene, "zone") if scene.maybe(0.55) else None
    request = _say(scene, "time_there" if zone else "time").format(place=zone.spoken if zone else "")
    hour, minute = scene.chance.randint(0, 23), scene.chance.randint(0, 59)
    named = zone.written if zone else scene.pick(["UTC", "Europe/Vienna", "America/New_York"])
    day = scene.today
    weekday = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[day.weekday()]
    clock = f"{hour:02}:{minute:02}"
    second, offset = scene.chance.randint(0, 59), scene.chance.randint(0, 9)
    result = f"{weekday}, {day.isoformat()} {clock}:{second:02}+0{offset}:00 ({named})"
    place = zone.spoken if zone else ""
    reply = {
        "en": f"It is {clock} on {weekday}, {day.isoformat()}{f', in {place}' if place else ''}.",
        "de": f"Es ist {clock} Uhr{f' in {place}' if place else ''}, am {day.isoformat()}.",
        "zh": f"{place}现在是{day.isoformat()} {clock}。",
    }[scene.language]
    return Wish(request, tool, {"zone": zone.written} if zone else {}, {}, result, reply)


def _list_todo(scene: Scene, tool: Offered) -> Wish:
    count = scene.chance.choice([1, 1, 2, 2, 3, 4])
    chores: list[str] = []
    while len(chores) < count:
        chore = make_value(scene, "chore").spoken
        if scene.language == "en" and scene.maybe(0.6):
            chore = f"{scene.pick(VERBS)} {scene.pick(OBJECTS)}"
        if chore not in chores:
            chores.append(chore)
    comma, last = (
        ("、", "和") if scene.language == "zh" else (", ", {"en": " and ", "de": " und "}[scene.language])
    )
    spoken = chores[0] if count == 1 else comma.join(chores[:-1]) + last + chores[-1]
    if scene.language == "en" and scene.maybe(0.15):
        spoken = " and ".join([chores[0], *(f"to {chore}" for chore in chores[1:])])
    state = scene.pick(["", "", "", "done", "doing"]) if count == 1 else ""
    request = _say(scene, f"todo_{state}" if state else "todo").format(items=spoken)
    items = [{"text": chore, **({"state": state} if state else {})} for chore in chores]
    box = {"": "[ ]", "done": "[x]", "doing": "[~]"}[state]
    result = "\n".join(f"{box} {chore}" for chore in chores)
    reply = {"en": "The list is up to date.", "de": "Die Liste ist aktuell.", "zh": "清单已更新。"}[
        scene.language
    ]
    return Wish(request, tool, {"items": items}, {}, result, reply)


def _ask(scene: Scene, tool: Offered) -> Wish:
    request, question, choices = scene.pick(QUESTIONS[scene.language])
    arguments: dict[str, Any] = {"question": question} | ({"choices": list(choices)} if choices else {})
    result = choices[0] if choices else make_value(scene, "thing").spoken
    reply = {
        "en": f"You said: {result}.",
        "de": f"Die Antwort ist: {result}.",
        "zh": f"您的回答是：{result}。",
    }[scene.language]
    return Wish(request, tool, arguments, {}, result, reply)


def _list_files(scene: Scene, tool: Offered) -> Wish:
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
        return Wish(_say(scene, "list_here"), tool, {}, {}, result)
    folder = make_value(scene, "folder").spoken
    return Wish(_say(scene, "list").format(folder=folder), tool, {"path": folder}, {}, result)


def _read(scene: Scene, tool: Offered) -> Wish:
    path = make_value(scene, "longpath" if scene.maybe(0.15) else "path").spoken
    lines = [make_value(scene, "text").spoken for _ in range(scene.chance.randint(1, 6))]
    arguments: dict[str, Any] = {"path": path}
    draw, first, count = scene.chance.random(), scene.chance.randint(2, 400), scene.chance.randint(2, 120)
    if draw < 0.08:
        request, arguments = (
            _say(scene, "read_first").format(path=path, count=count),
            {"path": path, "lines": count},
        )
    elif draw < 0.15:
        request = _say(scene, "read_range").format(path=path, first=first, last=first + count - 1)
        arguments = {"path": path, "start": first, "lines": count}
    elif draw < 0.2:
        request, arguments = (
            _say(scene, "read_from").format(path=path, first=first),
            {"path": path, "start": first},
        )
    else:
        request = _say(scene, "read").format(path=path)
    return Wish(request, tool, arguments, {}, _shown(scene, path, lines))


def _shown(scene: Scene, path: str, lines: list[str]) -> str:
    return "\n".join(
        [f"[{path}: lines 1 to {len(lines)} of {len(lines)}, version {_version(scene)}]", *lines]
    )


def _version(scene: Scene) -> str:
    return "".join(scene.chance.choice("0123456789abcdef") for _ in range(10))


def _write(scene: Scene, tool: Offered) -> Wish:
    path = make_value(scene, "path").spoken
    draw, open_end = scene.chance.random(), False
    if draw < 0.1:
        parts = make_value(scene, "list food")
        request, text = (
            _say(scene, "write_lines").format(path=path, items=parts.spoken),
            "\n".join(parts.written),
        )
    elif draw < 0.14:
        request, text = _say(scene, "write_empty").format(path=path), ""
    elif draw < 0.55:
        value = make_value(scene, "quoted" if scene.maybe(0.85) else "text")
        request, text = (
            _say(scene, "write").replace("{path}", path).replace("{text}", value.spoken),
            str(value.written),
        )
    else:
        text, open_end = texts.code(scene) if scene.maybe(0.35) else free_text(scene), True
        shown = f"\n{text}" if "\n" in text or scene.maybe(0.15) else text
        if scene.maybe(0.1):
            shown = f"\n```\n{text}\n```"
        request = (
            _say(scene, "write_open").replace("{path}", path).replace("{text}", shown).replace(": \n", ":\n")
        )
    result = f"wrote {path}: {len(text)} characters, version {_version(scene)}"
    reply = {"en": f"{path} is written.", "de": f"{path} ist geschrieben.", "zh": f"{path}已写好。"}[
        scene.language
    ]
    return Wish(request, tool, {"path": path, "text": text}, {}, result, reply, open_end)


def _edit(scene: Scene, tool: Offered, tools: list[Offered]) -> Chain | None:
    reading = next((one for one in tools if one.name == "read_file"), None)
    if reading is None:
        return None
    path = make_value(scene, "path").spoken
    old, new = (_fragment(scene) for _ in range(2))
    request = _say(scene, "edit").format(path=path, old=old, new=new)
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
    """A piece of a file's text."""
    draw = scene.chance.random()
    if draw < 0.25:
        return f"{scene.pick(texts.vocabulary('words'))}{scene.pick([': ', '=', ' = '])}{scene.chance.randint(0, 9999)}"
    if draw < 0.45:
        return scene.pick(["_", "", "."]).join(texts.some_words(scene, 1, 2))
    return make_value(scene, "title").spoken if draw < 0.75 else str(scene.chance.randint(2, 9999))


def _glob(scene: Scene, tool: Offered) -> Wish:
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
    request = _say(scene, way).format(
        kind=kind.removeprefix("."), ending=ending, folder=folder, pattern=pattern, name=name, word=word
    )
    return Wish(request, tool, arguments, {}, "\n".join(paths))


def _grep(scene: Scene, tool: Offered) -> Wish:
    sources = ["pattern", "word", "id", "first", "service", "title", "text"]
    pattern = make_value(scene, scene.pick(sources)).spoken if scene.maybe(0.6) else _identifier(scene)
    quote = scene.pick(["'", '"']) if " " in pattern or scene.maybe(0.35) else ""
    folder = make_value(scene, "folder").spoken
    kind, ending = scene.pick(KINDS_OF_FILES[scene.language])
    files = f"**/*.{ending}"
    way, more = scene.chance.choice(
        [
            *([("grep", {})] * 4),
            *([("grep_in", {"path": folder})] * 3),
            *([("grep_kind", {"files": files})] * 2),
            ("grep_both", {"path": folder, "files": files}),
            ("grep_case", {"ignore_case": True}),
        ]
    )
    shown = f"{quote}{pattern}{quote}"
    if scene.language == "en" and quote and scene.maybe(0.3):
        shown = f"{scene.pick(['the word', 'the string', 'the text'])} {shown}"
    request = _say(scene, way).format(
        pattern=shown, folder=folder, kind=kind.removeprefix("."), ending=ending
    )
    hits = [
        f"{make_value(scene, 'path').spoken}:{scene.chance.randint(1, 300)}: {pattern} here"
        for _ in range(scene.chance.randint(1, 4))
    ]
    return Wish(request, tool, {"pattern": pattern, **more}, {}, "\n".join(hits))


def _identifier(scene: Scene) -> str:
    """A name as it stands in programs, or a word."""
    words = texts.some_words(scene, 1, 3)
    joined = [word.capitalize() for word in words]
    return str(
        scene.pick(
            [words[0], "_".join(words), "".join([words[0], *joined[1:]]), "".join(joined), "-".join(words)]
        )
    )


def _run(scene: Scene, tool: Offered) -> Wish:
    command = make_value(scene, "command").spoken
    if scene.maybe(0.5):
        command = f"{scene.pick(_PROGRAMS)} {' '.join(texts.some_words(scene, 0, 2))} {make_value(scene, 'path').spoken}"
        command = " ".join(command.split())
    arguments: dict[str, Any] = {"command": command}
    request = _say(scene, "shell").format(command=scene.pick([command, f"`{command}`"]))
    if scene.maybe(0.12) and scene.language == "en":
        seconds = scene.chance.randint(2, 300)
        request, arguments = (
            f"{request} with a timeout of {seconds} seconds",
            {**arguments, "timeout": seconds},
        )
    return Wish(request, tool, arguments, {}, f"exit status 0\n{make_value(scene, 'text').spoken}")


def _fetch(scene: Scene, tool: Offered) -> Wish:
    url = make_value(scene, "url").spoken
    lines = [make_value(scene, "text").spoken for _ in range(scene.chance.randint(1, 5))]
    return Wish(_say(scene, "fetch").format(url=url), tool, {"url": url}, {}, "\n".join(lines))


_PROGRAMS = ("cat", "ls -l", "wc -l", "head -n 5", "python", "node", "git add", "git diff", "grep -n", "rm", "mkdir -p", "chmod +x", "echo", "touch", "tail -f", "sort", "du -h", "sed -n 1,5p")  # fmt: skip


_MAKERS: dict[str, Callable[[Scene, Offered], Wish]] = {
    "calculator": _calculate,
    "current_time": _tell_time,
    "todo": _list_todo,
    "ask_person": _ask,
    "list_directory": _list_files,
    "read_file": _read,
    "write_file": _write,
    "glob": _glob,
    "grep": _grep,
    "shell": _run,
    "fetch_url": _fetch,
}


def main() -> None:
    from dragoman.tools.builtin import BUILTIN

    specs = {
        tool.name: {"description": tool.spec().description, "parameters": tool.spec().parameters}
        for group in GROUPS
        for tool in BUILTIN[group]().tools
    }
    FILE.write_text(json.dumps(specs, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
