"""Requests for the tools that come with Dragoman, and their results.

The tools' descriptions are in `material/builtin.json`. After a change of the tools, generate it again:

    python -m training.builtin
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from training import files, texts
from training.arithmetic import calculation
from training.material.clashes import CLASHES
from training.material.more_phrases import OBJECTS, VERBS
from training.material.phrases import QUESTIONS
from training.scene import Scene
from training.tools import Offered, Wish
from training.values import make_value

FILE = Path(__file__).with_name("material") / "builtin.json"
GROUPS = {
    "basics": ("calculator", "current_time", "todo", "ask_person"),
    "files": ("list_directory", "read_file", "write_file", "edit_file", "apply_patch", "glob", "grep"),
    "web": ("fetch_url",),
    "shell": ("shell",),
}


@cache
def _specs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return found


def offered(scene: Scene) -> list[Offered]:
    """Return groups as users configure them: mostly all but the shell, sometimes a few tools alone."""
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
    """Return whether an offered built-in tool can be right for the same requests."""
    here = {tool.name for tool in tools if tool.idea is None}
    return any(idea in CLASHES[group] and here & set(names) for group, names in GROUPS.items())


def wish(scene: Scene, tool: Offered, tools: list[Offered]) -> Wish | None:
    if tool.name == "edit_file":
        return files.edit(scene, tool, tools)
    maker = _MAKERS.get(tool.name)
    return maker(scene, tool) if maker is not None else None


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
    request = files.ask_for(scene, "time_there" if zone else "time").format(place=zone.spoken if zone else "")
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


_LISTED = {"en": "The list is up to date.", "de": "Die Liste ist aktuell.", "zh": "清单已更新。"}
_STATES = {  # the state of a task, in users' words
    "done": {
        "en": ("{} is done", "finished {}", "{} done", "tick off {}"),
        "de": ("{} ist erledigt", "{} fertig"),
        "zh": ("{}完成了", "已完成{}"),
    },
    "doing": {
        "en": ("working on {}", "{} in progress", "I'm at {} now", "{} is started"),
        "de": ("{} läuft gerade", "ich bin bei {}"),
        "zh": ("正在{}", "{}进行中"),
    },
    "open": {
        "en": ("{} is still open", "still open: {}", "{} still to do", "{} not yet"),
        "de": ("{} ist noch offen", "offen: {}"),
        "zh": ("{}还没做", "待办：{}"),
    },
}


def _mixed_todo(scene: Scene, tool: Offered) -> Wish | None:
    """Return several tasks, each in a separate state: one list."""
    chores: list[str] = []
    for _ in range(scene.chance.choice([2, 2, 3])):
        chore = make_value(scene, "chore").spoken
        if chore not in chores:
            chores.append(chore)
    states = [scene.pick(["done", "doing", "open"]) for _ in chores]
    if len(set(states)) < 2:
        return None
    said = [
        scene.pick(_STATES[state][scene.language]).format(chore)
        for state, chore in zip(states, chores, strict=True)
    ]
    request = ("，" if scene.language == "zh" else scene.pick([", ", "; ", ", "])).join(said)
    items = [{"text": chore, "state": state} for state, chore in zip(states, chores, strict=True)]
    box = {"open": "[ ]", "done": "[x]", "doing": "[~]"}
    lines = [f"{box[state]} {chore}" for state, chore in zip(states, chores, strict=True)]
    return Wish(request, tool, {"items": items}, {}, "\n".join(lines), _LISTED[scene.language])


def _list_todo(scene: Scene, tool: Offered) -> Wish:
    mixed = _mixed_todo(scene, tool) if scene.maybe(0.25) else None
    if mixed is not None:
        return mixed
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
    request = files.ask_for(scene, f"todo_{state}" if state else "todo").format(items=spoken)
    items = [{"text": chore, **({"state": state} if state else {})} for chore in chores]
    box = {"": "[ ]", "done": "[x]", "doing": "[~]"}[state]
    result = "\n".join(f"{box} {chore}" for chore in chores)
    return Wish(request, tool, {"items": items}, {}, result, _LISTED[scene.language])


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


def _run(scene: Scene, tool: Offered) -> Wish:
    command = make_value(scene, "command").spoken
    if scene.maybe(0.5):
        words = texts.some_words(scene, 0, 2)
        command = " ".join([scene.pick(_PROGRAMS), *words, make_value(scene, "path").spoken])
    arguments: dict[str, Any] = {"command": command}
    request = files.ask_for(scene, "shell").format(command=scene.pick([command, f"`{command}`"]))
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
    return Wish(files.ask_for(scene, "fetch").format(url=url), tool, {"url": url}, {}, "\n".join(lines))


_PROGRAMS = (
    *("cat", "ls -l", "wc -l", "head -n 5", "python", "node", "git add", "git diff", "grep -n", "rm"),
    *("mkdir -p", "chmod +x", "echo", "touch", "tail -f", "sort", "du -h", "sed -n 1,5p"),
)


_MAKERS: dict[str, Callable[[Scene, Offered], Wish]] = {
    "calculator": _calculate,
    "current_time": _tell_time,
    "todo": _list_todo,
    "ask_person": _ask,
    "list_directory": files.list_files,
    "read_file": files.read,
    "write_file": files.write,
    "glob": files.glob,
    "grep": files.grep,
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
