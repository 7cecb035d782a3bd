# ruff: noqa: E501  # a reply is easier to read in one line
"""Replies that models write, or might: how each is read. The tables that several tests go through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from dragoman.messages.request import ToolSpec


def _tool(name: str, **properties: JsonValue) -> ToolSpec:
    return ToolSpec(name, f"The tool {name}.", {"type": "object", "properties": properties})


TEXT: JsonValue = {"type": "string"}
INTEGER: JsonValue = {"type": "integer"}
FLAG: JsonValue = {"type": "boolean"}

TOOLS = (
    _tool("get_time"),
    _tool("read_file", path=TEXT, lines=INTEGER),
    _tool("write_file", path=TEXT, content=TEXT, overwrite=FLAG),
    _tool(
        "search", query=TEXT, tags={"type": "array"}, filter={"anyOf": [{"type": "object"}, {"type": "null"}]}
    ),
)


@dataclass(frozen=True)
class Reply:
    """A reply, and what it holds. `errors` are words that the error for the model has to contain, for each."""

    about: str
    reply: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    text: str = ""
    errors: tuple[str, ...] = ()


def _read(path: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": path, **more}


TIME: tuple[str, dict[str, Any]] = ("get_time", {})

JSON_STRICT = [
    Reply(
        "a bare object", '{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}', (_read("a"),)
    ),
    Reply(
        "ids and the nested form",
        '{"tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":{"path":"a"}}}]}',
        (_read("a"),),
    ),
    Reply(
        "a fence with a language",
        'Let me see.\n\n```json\n{"tool_calls": [{"name": "get_time", "arguments": {}}]}\n```\n',
        (TIME,),
        "Let me see.",
    ),
    Reply(
        "a fence without a language, in one line",
        'Now: ```{"tool_calls": [{"name": "get_time"}]}``` done',
        (TIME,),
        "Now: done",
    ),
    Reply(
        "two objects in one fence",
        '```json\n{"tool_calls": [{"name": "get_time"}]}\n{"tool_calls": [{"name": "read_file", '
        '"arguments": {"path": "a"}}]}\n```',
        (TIME, _read("a")),
    ),
    Reply(
        "prose before and behind",
        'First this. {"tool_calls": [{"name": "get_time", "arguments": {}}]} Then that.',
        (TIME,),
        "First this. Then that.",
    ),
    Reply(
        "several calls in one object",
        '{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}, {"name": "read_file", '
        '"arguments": {"path": "b"}}]}',
        (_read("a"), _read("b")),
    ),
    Reply(
        "two objects in a row",
        '{"tool_calls":[{"name":"get_time"}]}{"tool_calls":[{"name":"read_file","arguments":{"path":"b"}}]}',
        (TIME, _read("b")),
    ),
    Reply(
        "other keys in front of the calls",
        '{"thought": "I look {first}", "tool_calls": [{"name": "get_time", "arguments": {}}], "done": false}',
        (TIME,),
    ),
    Reply(
        "a string that holds a call, a fence and brackets",
        '{"tool_calls": [{"name": "write_file", "arguments": {"path": "a", "content": '
        '"```json\\n{\\"tool_calls\\": [{}]}\\n``` } ] \\\\"}}]}',
        (("write_file", {"path": "a", "content": '```json\n{"tool_calls": [{}]}\n``` } ] \\'}),),
    ),
    Reply(
        "letters from everywhere",
        'Größe: {"tool_calls": [{"name": "read_file", "arguments": {"path": "Привет/你好\\u00e9😀"}}]} ok',
        (_read("Привет/你好é😀"),),
        "Größe: ok",
    ),
    Reply(
        "spread over lines",
        '{\n  "tool_calls": [\n    {\n      "name": "read_file",\n      "arguments": {\n        "path": "a"\n'
        "      }\n    }\n  ]\n}",
        (_read("a"),),
    ),
    Reply(
        "trailing commas",
        '{"tool_calls": [{"name": "read_file", "arguments": {"path": "a,]",},},],}',
        (_read("a,]"),),
    ),
    Reply(
        "arguments that were encoded twice",
        '{"tool_calls": [{"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}]}',
        (_read("a"),),
    ),
    Reply(
        "arguments that are missing, null or an empty string",
        '{"tool_calls": [{"name": "get_time"}, {"name": "get_time", "arguments": null}, '
        '{"name": "get_time", "arguments": ""}]}',
        (TIME, TIME, TIME),
    ),
    Reply(
        "a tool there is not, and a name in other letters",
        '{"tool_calls": [{"name": "Launch", "arguments": {}}, {"name": "READ-file", "arguments": {}}]}',
        (("Launch", {}), ("READ-file", {})),
    ),
    Reply(
        "an object without calls",
        'So {"path": "a", "lines": 3} it is.',
        (),
        'So {"path": "a", "lines": 3} it is.',
    ),
    Reply(
        "an object whose tool_calls is no list",
        '{"tool_calls": "none"} and {"tool_calls": null}',
        (),
        '{"tool_calls": "none"} and {"tool_calls": null}',
    ),
    Reply(
        "tool_calls inside another object",
        'E.g. {"example": {"tool_calls": [{"name": "get_time"}]}}',
        (),
        'E.g. {"example": {"tool_calls": [{"name": "get_time"}]}}',
    ),
    Reply(
        "code with braces around a call",
        'function f() { return {"a": 1}; }\n{"tool_calls": [{"name": "get_time"}]}\nx = {1: {"b"}}; if (y) {"s"}',
        (TIME,),
        'function f() { return {"a": 1}; }\nx = {1: {"b"}}; if (y) {"s"}',
    ),
    Reply(
        "a stray quote in front of a call",
        'Say {"hello to {"tool_calls": [{"name": "get_time"}]}',
        (TIME,),
        'Say {"hello to',
    ),
    Reply(
        "a call that inline code shows",
        'Write `{"tool_calls": [{"name": "get_time"}]}` to see the time.',
        (),
        'Write `{"tool_calls": [{"name": "get_time"}]}` to see the time.',
    ),
    Reply(
        "a call that a code block shows",
        'Like so:\n```python\nprint(1)\n{"tool_calls": [{"name": "get_time"}]}\n```\nSee?',
        (),
        'Like so:\n```python\nprint(1)\n{"tool_calls": [{"name": "get_time"}]}\n```\nSee?',
    ),
    Reply(
        "code blocks with objects, and then a fenced call",
        '```json\n{"a": {"b": 1}}\n```\nand\n```js\nf({"x": 1})\n```\n```json\n{"tool_calls": [{"name": "get_time"}]}\n```',
        (TIME,),
        '```json\n{"a": {"b": 1}}\n```\nand\n```js\nf({"x": 1})\n```',
    ),
    Reply(
        "a call behind code that is never closed",
        '```python\nprint(1)\n\n{"tool_calls": [{"name": "get_time"}]}',
        (TIME,),
        "```python\nprint(1)",
    ),
    Reply(
        "one call that can be read and one that cannot",
        '{"tool_calls": [{"name": "get_time"}, {"name": "read_file", "arguments": [1]}, {"arguments": {}}, 7]}',
        (TIME,),
        errors=("read_file did not run", "name", "no object"),
    ),
    Reply(
        "arguments and parameters at once",
        '{"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}, "parameters": {"path": "b"}}]}',
        errors=("both",),
    ),
    Reply(
        "cut off in a string",
        'Look: {"tool_calls": [{"name": "read_file", "arguments": {"path": "a',
        (),
        "Look:",
        ("read_file did not run: the reply ends",),
    ),
    Reply(
        "cut off behind a complete call",
        '{"tool_calls": [{"name": "get_time", "arguments": {}}, ',
        errors=("reply ends",),
    ),
    Reply("cut off before it is certain", 'Hm {"tool_ca', (), 'Hm {"tool_ca'),
    Reply(
        "no JSON any more",
        '{"tool_calls": [{"name": "read_file", "arguments": {path: "a"}}]}\n\nSorry.',
        (),
        "Sorry.",
        ("read_file did not run: it is no longer JSON",),
    ),
    Reply(
        "a raw line break in a string",
        '{"tool_calls": [{"name": "write_file", "arguments": {"content": "a\nb"}}]}',
        errors=("line break",),
    ),
    Reply("an empty list", 'Nothing to do. {"tool_calls": []}', (), "Nothing to do."),
    Reply(
        "no calls at all",
        "  Just\n text, `code` and {braces}.\n",
        (),
        "  Just\n text, `code` and {braces}.\n",
    ),
    Reply("nothing", "", (), ""),
    Reply("only white space", " \n ", (), " \n "),
    Reply("garbage", '}}]["\\{"{"{"', (), '}}]["\\{"{"{"'),
]


def _between(open: str, close: str) -> list[Reply]:
    """What all dialects have in common that put a JSON object between two tags."""
    return [
        Reply(
            "one call", f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}{close}', (_read("a"),)
        ),
        Reply(
            "prose around it, and lines",
            f'I look.\n\n{open}\n{{"name": "get_time", "arguments": {{}}}}\n{close}\n\nWait for it.',
            (TIME,),
            "I look.\n\nWait for it.",
        ),
        Reply(
            "several calls with text between them",
            f'A {open}{{"name": "get_time"}}{close} B\n{open} {{"name": "read_file", "arguments": {{"path": "b"}}}} '
            f"{close}\n{open}{{}}{close} C",
            (TIME, _read("b")),
            "A B\nC",
            ("name",),
        ),
        Reply(
            "two objects, and a list, between two tags",
            f'{open}{{"name": "get_time"}}\n{{"name": "read_file", "arguments": {{"path": "b"}}}}{close}'
            f'{open}[{{"name": "get_time"}}, {{"name": "get_time"}}]{close}',
            (TIME, _read("b"), TIME, TIME),
        ),
        Reply(
            "tags, fences and quotes in a string",
            f'{open}{{"name": "write_file", "arguments": {{"content": "{close}{open} ```\\n\\"}}\\\\"}}}}{close} ok',
            (("write_file", {"content": f'{close}{open} ```\n"}}\\'}),),
            "ok",
        ),
        Reply(
            "a fence between the tags",
            f'{open}\n```json\n{{"name": "get_time", "arguments": {{}}}}\n```\n{close}',
            (TIME,),
        ),
        Reply(
            "a fence around the tags",
            f'Here:\n```xml\n{open}{{"name": "get_time"}}{close}\n{open}{{"name": "get_time"}}{close}\n```\nDone.',
            (TIME, TIME),
            "Here:\nDone.",
        ),
        Reply(
            "the nested form, encoded twice, with trailing commas",
            f'{open}{{"type": "function", "function": {{"name": "read_file", "arguments": '
            f'"{{\\"path\\": \\"a\\",}}"}},}}{close}',
            (_read("a"),),
        ),
        Reply("a last tag that is not closed", f'{open}{{"name": "get_time", "arguments": {{}}}}', (TIME,)),
        Reply(
            "a first tag that is not closed",
            f'{open}{{"name": "get_time"}}\n{open}{{"name": "read_file", "arguments": {{"path": "b"}}}}{close}',
            (TIME, _read("b")),
        ),
        Reply(
            "an unclosed tag and prose behind it",
            f'{open}{{"name": "get_time"}}\nI wait.\n\nBye.',
            (TIME,),
            "I wait.\n\nBye.",
        ),
        Reply(
            "a closing tag left over", f'{open}{{"name": "get_time"}}{close}\n{close}\nOk.', (TIME,), "Ok."
        ),
        Reply(
            "one brace too many",
            f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}}}{close} and on',
            (),
            "and on",
            ("read_file did not run: something else stands behind its JSON",),
        ),
        Reply(
            "JSON that goes on behind its end, never closed",
            f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}, "lines": 3}}\n\nBye',
            (),
            "Bye",
            ("something else stands behind its JSON",),
        ),
        Reply(
            "cut off in the arguments",
            f'Well. {open}{{"name": "read_file", "arguments": {{"path": "a',
            (),
            "Well.",
            ("read_file did not run: the reply ends",),
        ),
        Reply("cut off behind the tag", f"Well. {open}\n", (), "Well.", ("reply ends",)),
        Reply("cut off in the tag", f"Well. {open[:-2]}", (), f"Well. {open[:-2]}"),
        Reply(
            "Python in place of JSON, and a call behind it",
            f"{open}{{'name': 'get_time'}}{close} then {open}{{\"name\": \"get_time\"}}{close}",
            (TIME,),
            "then",
            ("no longer JSON",),
        ),
        Reply(
            "words in place of JSON",
            f"{open}the time{close} hm",
            (),
            "hm",
            ("is not what belongs there",),
        ),
        Reply(
            "prose about the tag",
            f"Calls begin with {open} and so on.\n\nAnd they end.",
            (),
            f"Calls begin with {open} and so on.\n\nAnd they end.",
        ),
        Reply(
            "the tag in inline code",
            f'Use `{open}{{"name": "get_time"}}{close}` or ``{open}``; run `ls`{open}{{"name": "get_time"}}{close}',
            (TIME,),
            f'Use `{open}{{"name": "get_time"}}{close}` or ``{open}``; run `ls`',
        ),
        Reply(
            "the tag in a code block",
            f'So:\n```\nYou write\n{open}{{"name": "get_time"}}{close}\n```\nReal: {open}{{"name": "get_time"}}{close}',
            (TIME,),
            f'So:\n```\nYou write\n{open}{{"name": "get_time"}}{close}\n```\nReal:',
        ),
        Reply(
            "a block inside a block, and then a call",
            f'````md\n```xml\n{open}{{"name": "a"}}{close}\n```\n````\n{open}{{"name": "get_time"}}{close}',
            (TIME,),
            f'````md\n```xml\n{open}{{"name": "a"}}{close}\n```\n````',
        ),
        Reply(
            "a call behind code that is never closed",
            f'```py\nx = 1\n{open}{{"name": "get_time"}}{close}\nBye.',
            (TIME,),
            "```py\nx = 1\nBye.",
        ),
        Reply("names that are no text", f'{open}{{"name": 7, "arguments": {{}}}}{close}', errors=("name",)),
        Reply(
            "arguments that are a list",
            f'{open}{{"name": "get_time", "arguments": []}}{close}',
            errors=("object",),
        ),
        Reply(
            "a raw line break",
            f'{open}{{"name": "search", "arguments": {{"query": "a\nb"}}}}{close}',
            errors=("line",),
        ),
        Reply(
            "an unknown escape",
            f'{open}{{"name": "search", "arguments": {{"query": "\\d"}}}}{close}',
            errors=("escape",),
        ),
        Reply(
            "ordinary JSON",
            'It is {"name": "get_time", "arguments": {}}.',
            (),
            'It is {"name": "get_time", "arguments": {}}.',
        ),
    ]


def _qwen(name: str, **values: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


QWEN_CODER = [
    Reply(
        "the tags of Seed-OSS, and a call in its thought",
        "<seed:think><function=get_time></function></seed:think>So.\n<seed:tool_call>\n<function=read_file>"
        "<parameter=path>a</parameter></function>\n</seed:tool_call>",
        (_read("a"),),
        "So.",
    ),
    Reply("one call", "Look:\n" + _qwen("read_file", path="a", lines="3"), (_read("a", lines=3),), "Look:"),
    Reply("no outer tag", "Look\n<function=get_time></function>\nok", (TIME,), "Look\nok"),
    Reply(
        "the outer tag only behind it", "<function=get_time>\n</function>\n</tool_call>\nok", (TIME,), "ok"
    ),
    Reply(
        "everything in one line",
        "<tool_call><function=read_file><parameter=path>a b</parameter></function></tool_call>",
        (_read("a b"),),
    ),
    Reply(
        "several calls",
        _qwen("read_file", path="a") + "\n" + _qwen("get_time") + " and " + _qwen("read_file", path="b"),
        (_read("a"), TIME, _read("b")),
        "and",
    ),
    Reply(
        "two functions in one outer tag",
        "<tool_call><function=get_time></function><function=read_file><parameter=path>b</parameter></function></tool_call>",
        (TIME, _read("b")),
    ),
    Reply(
        "values of all kinds, by the schema",
        _qwen("search", query="5", tags='["a", 1]', filter='{"x": null}')
        + _qwen("search", query="null", filter="null"),
        (
            ("search", {"query": "5", "tags": ["a", 1], "filter": {"x": None}}),
            ("search", {"query": "null", "filter": None}),
        ),
    ),
    Reply(
        "booleans as Python has them",
        _qwen("write_file", content="True", overwrite="True"),
        (("write_file", {"content": "True", "overwrite": True}),),
    ),
    Reply(
        "values of an unknown tool, by their looks",
        _qwen(
            "other",
            a="1",
            b="1.5e3",
            c="true",
            d="null",
            e="[1]",
            f='{"x": 1}',
            g='"s"',
            h="hello",
            i="01",
            j="True",
            k="",
        ),
        (
            (
                "other",
                {
                    "a": 1,
                    "b": 1500.0,
                    "c": True,
                    "d": None,
                    "e": [1],
                    "f": {"x": 1},
                    "g": '"s"',
                    "h": "hello",
                    "i": "01",
                    "j": True,
                    "k": "",
                },
            ),
        ),
    ),
    Reply(
        "a value that fits no schema is left for whoever checks it",
        _qwen("read_file", lines="many") + _qwen("READ_FILE", lines="2.5"),
        (("read_file", {"lines": "many"}), ("READ_FILE", {"lines": 2.5})),
    ),
    Reply(
        "code with tags, fences and empty lines as a value",
        _qwen("write_file", content="\n<b>\n```py\nx = '</parameter>'\n\n</function>\n```\n</tool_call>\n"),
        (
            (
                "write_file",
                {"content": "\n<b>\n```py\nx = '</parameter>'\n\n</function>\n```\n</tool_call>\n"},
            ),
        ),
    ),
    Reply(
        "a fence around it",
        "```xml\n" + _qwen("get_time") + "\n```",
        (TIME,),
    ),
    Reply(
        "JSON between the tags, as other Qwen models write",
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
        (_read("a"),),
    ),
    Reply(
        "JSON between the function's tags",
        '<function=read_file>{"path": "a"}</function>',
        (_read("a"),),
    ),
    *(
        Reply(
            f"what Llama puts around the JSON: {before} {behind}",
            f'<function=read_file{before}{{"path": "a"}}{behind}</function> Ok.',
            (_read("a"),),
            "Ok.",
        )
        for before, behind in (
            (">", ""),
            ("", ""),
            ("", ">"),
            ("=", ">"),
            (", ", ""),
            ("(", ")"),
            ("(", ")>"),
        )
    ),
    Reply(
        "names in quotes",
        '<function="read_file"><parameter="path">a</parameter></function>',
        (_read("a"),),
    ),
    Reply(
        "lines of Windows",
        "<tool_call>\r\n<function=write_file>\r\n<parameter=path>\r\na\r\n</parameter>\r\n<parameter=content>\r\nx\r\ny\r\n</parameter>\r\n</function>\r\n</tool_call>",
        (("write_file", {"path": "a", "content": "x\r\ny"}),),
    ),
    Reply(
        "a parameter that is not closed ends in front of the next one",
        "<tool_call><function=read_file><parameter=path>a<parameter=lines>3</parameter></function></tool_call> ok",
        (_read("a", lines=3),),
        "ok",
    ),
    Reply(
        "a parameter that is not closed, in front of one that the tool does not have",
        "<tool_call><function=read_file><parameter=path>a<parameter=x>3</parameter></function></tool_call> ok",
        (),
        "ok",
        ("parameter path is not closed",),
    ),
    Reply(
        "the last parameter is not closed",
        "<tool_call><function=read_file><parameter=path>\na\n</function></tool_call> ok",
        (_read("a"),),
        "ok",
    ),
    Reply(
        "a line break on one side belongs to the value",
        "<function=read_file><parameter=path>a\n</parameter></function>",
        (_read("a\n"),),
    ),
    Reply(
        "a call without arguments in a sentence is an example",
        "Write <function=get_time></function> here.",
        (),
        "Write <function=get_time></function> here.",
    ),
    Reply(
        "a call without arguments in a line of its own",
        "So:\n<function=get_time></function>\n",
        (("get_time", {}),),
        "So:",
    ),
    Reply(
        "a parameter that is there twice",
        "<function=read_file><parameter=path>a</parameter><parameter=path>b</parameter></function>",
        errors=("twice",),
    ),
    Reply(
        "cut off in a value",
        "<tool_call><function=read_file><parameter=path>a",
        errors=("path is not closed",),
    ),
    Reply(
        "cut off behind a value",
        "<tool_call><function=read_file><parameter=path>a</parameter>\n",
        errors=("not closed",),
    ),
    Reply("cut off in the name", "Hm <tool_call><function=read", (), "Hm", ("reply ends",)),
    Reply("cut off behind the tag", "Hm <tool_call>", (), "Hm", ("reply ends",)),
    Reply(
        "the function not closed, but the outer tag",
        "<tool_call><function=read_file><parameter=path>a</parameter></tool_call> ok",
        (_read("a"),),
        "ok",
    ),
    Reply("the last outer tag not closed", "<tool_call><function=get_time></function>", (TIME,)),
    Reply("no name", "<tool_call><function=></function></tool_call>", errors=("no name",)),
    Reply("words between the function's tags", "<function=f>hello</function>", errors=("belongs",)),
    Reply(
        "prose about the tags", "It is <function=name> here.\n\nOk", (), "It is <function=name> here.\n\nOk"
    ),
    Reply(
        "inline code and a code block",
        "Use `<tool_call><function=f></function>`.\n```\nx\n<function=f></function>\n```\n"
        + _qwen("get_time"),
        (TIME,),
        "Use `<tool_call><function=f></function>`.\n```\nx\n<function=f></function>\n```",
    ),
]


def _glm(name: str, **values: str) -> str:
    pairs = "".join(
        f"\n<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>" for key, value in values.items()
    )
    return f"<tool_call>{name}{pairs}\n</tool_call>"


GLM = [
    Reply("one call", "Look:\n" + _glm("read_file", path="a", lines="3"), (_read("a", lines=3),), "Look:"),
    Reply("no arguments", "<tool_call>get_time</tool_call>", (TIME,)),
    Reply(
        "everything in one line",
        "<tool_call>read_file <arg_key>path</arg_key> <arg_value>a b</arg_value> </tool_call>ok",
        (_read("a b"),),
        "ok",
    ),
    Reply(
        "several calls with text between them",
        _glm("get_time") + "\nthen\n" + _glm("read_file", path="b") + "\n" + _glm("other", x="1"),
        (TIME, _read("b"), ("other", {"x": 1})),
        "then",
    ),
    Reply(
        "values of all kinds, by the schema",
        _glm("search", query="[5]", tags='["a"]', filter="null"),
        (("search", {"query": "[5]", "tags": ["a"], "filter": None}),),
    ),
    Reply(
        "a value with tags, lines and fences",
        _glm("write_file", content="\n</arg_value> <b></tool_call>\n```\n"),
        (("write_file", {"content": "\n</arg_value> <b></tool_call>\n```\n"}),),
    ),
    Reply("JSON between the tags", '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>', (TIME,)),
    Reply(
        "a key without a value",
        "<tool_call>read_file<arg_key>path</arg_key></tool_call> ok",
        (),
        "ok",
        ("path has no",),
    ),
    Reply(
        "a value that is not closed ends in front of the next key",
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>a<arg_key>lines</arg_key><arg_value>3</arg_value></tool_call>",
        (_read("a", lines=3),),
    ),
    Reply(
        "a key that is there twice",
        "<tool_call>read_file<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>",
        errors=("twice",),
    ),
    Reply(
        "cut off in a value", "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a", errors=("path",)
    ),
    Reply(
        "cut off behind a value",
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>a</arg_value>",
        errors=("not closed",),
    ),
    Reply("cut off behind the tag", "Hm <tool_call>", (), "Hm", ("reply ends",)),
    Reply("words in place of a call", "<tool_call>please read it</tool_call> x", (), "x", ("belongs",)),
    Reply("prose about the tag", "The <tool_call> tag.\n\nOk", (), "The <tool_call> tag.\n\nOk"),
    Reply(
        "inline code and a code block",
        "Use `<tool_call>f</tool_call>`.\n```\nx\n<tool_call>f</tool_call>\n```\n" + _glm("get_time"),
        (TIME,),
        "Use `<tool_call>f</tool_call>`.\n```\nx\n<tool_call>f</tool_call>\n```",
    ),
]

LLAMA_JSON = [
    Reply("as Llama 3.1 has it", '<function=read_file>{"path": "a"}</function>', (_read("a"),)),
    Reply("as Phi 4 mini has it", ' functools[{"name": "get_time", "arguments": {}}]', (TIME,)),
    Reply("a word", "functools is a module.", (), "functools is a module."),
    Reply("as Granite 20B has it", '<function_call> {"name": "get_time"}', (TIME,)),
    Reply("as Apriel has it", '<tool_calls>[{"name": "get_time"}]</tool_calls>', (TIME,)),
    Reply("as Nemotron has it", '<TOOLCALL>[{"name": "get_time"}]</TOOLCALL>', (TIME,)),
    Reply("tags with something else in them", "<tools>oops</tools>", (), "", ("did not run",)),
    Reply(
        "the tags of other models around a list",
        'So. <tool_calls>[{"name": "read_file", "arguments": {"path": "a"}}]</tool_calls> Good?',
        (_read("a"),),
        "So. Good?",
    ),
    Reply("one call", '{"name": "read_file", "parameters": {"path": "a"}}', (_read("a"),)),
    Reply(
        "the tag in front",
        '<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}<|eom_id|>',
        (_read("a"),),
    ),
    Reply("arguments for parameters", '{"name": "read_file", "arguments": {"path": "a"}}', (_read("a"),)),
    Reply("a type", '{"type": "function", "name": "get_time", "parameters": {}}', (TIME,)),
    Reply(
        "one that breaks off in a string, in front of a block",
        '{"name": "get```\n{"name": "get_time", "parameters": {}}\n```',
        (TIME,),
        '{"name": "get',
    ),
    Reply(
        "the nested form",
        '{"type": "function", "function": {"name": "get_time", "arguments": "{}"}}',
        (TIME,),
    ),
    Reply(
        "several with semicolons",
        '<|python_tag|>{"name": "get_time", "parameters": {}}; {"name": "read_file", "parameters": {"path": "b"}}',
        (TIME, _read("b")),
    ),
    Reply(
        "several bare ones with commas",
        '{"name": "get_time", "parameters": {}}, {"name": "read_file", "parameters": {"path": "a"}}, and so on',
        (TIME, _read("a")),
        ", and so on",
    ),
    Reply(
        "tools that are listed",
        'So:\n{"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}',
        (),
        'So:\n{"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}',
    ),
    Reply(
        "a call, and a tool that is listed",
        '{"name": "get_time", "parameters": {}}, {"name": "x", "parameters": {"type": "object", "properties": {}}}',
        (TIME,),
        ', {"name": "x", "parameters": {"type": "object", "properties": {}}}',
    ),
    Reply(
        "several bare ones, with and without semicolons",
        '{"name": "get_time", "parameters": {}};{"name": "get_time", "parameters": {}}\n{"name": "read_file", '
        '"parameters": {"path": "b"}} {"a": 1}',
        (TIME, TIME, _read("b")),
        '{"a": 1}',
    ),
    Reply(
        "a list of them",
        '[{"name": "get_time", "parameters": {}}, {"name": "read_file", "parameters": {"path": "b"}}] ["a", {"b": 1}]',
        (TIME, _read("b")),
        '["a", {"b": 1}]',
    ),
    Reply(
        "a list behind the tag, cut off",
        '<|python_tag|>[{"name": "get_time", "parameters": {}}, {"name": "re',
        errors=("the reply ends",),
    ),
    Reply(
        "prose and a fence",
        'I will.\n```json\n{"name": "get_time", "parameters": {}}\n```\nWait.',
        (TIME,),
        "I will.\nWait.",
    ),
    Reply("nothing but the name of a tool", 'Ok {"name": "get_time"}', (TIME,), "Ok"),
    Reply("nothing but the name of no tool", 'Hi {"name": "Bob"}', (), 'Hi {"name": "Bob"}'),
    Reply(
        "a person",
        '{"name": "get_time", "age": 3} [{"name": "Bob"}]',
        (),
        '{"name": "get_time", "age": 3} [{"name": "Bob"}]',
    ),
    Reply(
        "code with braces",
        'if x {"a"} else {y} {"name": "get_time", "parameters": {}} {"name": 1, "parameters": {}}',
        (TIME,),
        'if x {"a"} else {y} {"name": 1, "parameters": {}}',
    ),
    Reply(
        "brackets and tags in strings",
        '{"name": "search", "parameters": {"query": "}{<|python_tag|>\\"```"}} ok',
        (("search", {"query": '}{<|python_tag|>"```'}),),
        "ok",
    ),
    Reply("trailing commas", '{"name": "read_file", "parameters": {"path": "a",},}', (_read("a"),)),
    Reply(
        "parameters that were encoded",
        '{"name": "read_file", "parameters": "{\\"path\\": \\"a\\"}"}',
        (_read("a"),),
    ),
    Reply("null for parameters", '{"name": "get_time", "parameters": null}', (TIME,)),
    Reply(
        "cut off",
        '{"name": "read_file", "parameters": {"path": "a',
        errors=("read_file did not run: the reply ends",),
    ),
    Reply(
        "cut off before it is certain", 'See {"name": "read_file", "par', (), 'See {"name": "read_file", "par'
    ),
    Reply("broken", '{"name": "read_file", "parameters": {path}}\n\nOk.', (), "Ok.", ("no longer JSON",)),
    Reply("code behind the tag", "<|python_tag|>print(1)<|eom_id|>", errors=("no JSON object",)),
    Reply("an unclosed tag at the end", "Ok <|python_tag|>", (), "Ok", ("no JSON object",)),
    Reply(
        "inline code and a code block",
        'Use `{"name": "f", "parameters": {}}`.\n```\nx\n{"name": "f", "parameters": {}}\n```\nSee {"name": "get_time"}',
        (TIME,),
        'Use `{"name": "f", "parameters": {}}`.\n```\nx\n{"name": "f", "parameters": {}}\n```\nSee',
    ),
    Reply(
        "a call behind code that is never closed",
        '```py\nx = [{"name": "Bob"}]\n{"name": "get_time", "parameters": {}}',
        (TIME,),
        '```py\nx = [{"name": "Bob"}]',
    ),
]

LLAMA_PYTHONIC = [
    Reply("one call", '[read_file(path="a", lines=3)]', (_read("a", lines=3),)),
    Reply(
        "several calls with prose around",
        "I look: [get_time(), read_file(path='b')]\nWait [1].",
        (TIME, _read("b")),
        "I look:\nWait [1].",
    ),
    Reply("the tag in front", '<|python_start|>[read_file(path="a")]<|python_end|><|eom|>', (_read("a"),)),
    Reply(
        "values of all kinds",
        "[search(query='it''s', tags=['a', -1, 2.5, True, None, (1, 2)], filter={'x': {'y': []}, 'z': false}, "
        "other=null)]",
        (
            (
                "search",
                {
                    "query": "its",
                    "tags": ["a", -1, 2.5, True, None, [1, 2]],
                    "filter": {"x": {"y": []}, "z": False},
                    "other": None,
                },
            ),
        ),
    ),
    Reply(
        "brackets, quotes and escapes in strings",
        """[write_file(path="a])", content='x\\'] (\\n{"tool_calls": [' "\\\\")] ok""",
        (("write_file", {"path": "a])", "content": 'x\'] (\n{"tool_calls": [\\'}),),
        "ok",
    ),
    Reply(
        "three quotes, lines and empty lines",
        '[write_file(content="""a\n\n"b" \'c\'\n""", path=\'\')]',
        (("write_file", {"content": "a\n\n\"b\" 'c'\n", "path": ""}),),
    ),
    Reply("spread over lines", '[\n  read_file(\n    path="a",\n  ),\n]', (_read("a"),)),
    Reply("an escape that Python dislikes", r'[search(query="\d+")]', (("search", {"query": r"\d+"}),)),
    Reply(
        "a name that Python keeps for itself",
        "[search(query='x', **{'from': 1})]",
        (("search", {"query": "x", "from": 1}),),
    ),
    Reply("an unknown tool, and a dotted name", "[maps.route(to='x')]", (("maps.route", {"to": "x"}),)),
    Reply("a fence around it", "```python\n[get_time()]\n```", (TIME,)),
    Reply("an unknown tool without arguments", "An array [now()] here", (), "An array [now()] here"),
    Reply(
        "code that looks like it",
        "Use [f(x) for x in y], [int(a), b], [g(1)](url) and [link](http://x) or m[i(0)] and [h(a=b)].",
        (),
        "Use [f(x) for x in y], [int(a), b], [g(1)](url) and [link](http://x) or m[i(0)] and [h(a=b)].",
    ),
    Reply("arguments without names", '[read_file("a")] ok', (), "ok", ("have to be named",)),
    Reply("arguments that are no values", "[read_file(path=open('a'))]", errors=("no plain value",)),
    Reply(
        "one call that can be read and one that cannot",
        "[get_time(), read_file(x)]",
        (TIME,),
        errors=("named",),
    ),
    Reply("a name twice", "[read_file(path='a', path='b')]", errors=("path is there twice",)),
    Reply(
        "cut off in a string", 'So [read_file(path="a', (), "So", ("read_file did not run: the reply ends",)
    ),
    Reply("cut off, and no tool", "See [note(1, and", (), "See [note(1, and"),
    Reply("a line that ends in a string", "[read_file(path='a\n\nNext", (), "Next", ("no Python",)),
    Reply(
        "lines of Windows in a string",
        "<|tool_call_start|>[read_file(path='a\r\nb')]<|tool_call_end|>",
        (_read("a\r\nb"),),
    ),
    Reply("a number that is none", "[read_file(lines=1e999)]", errors=("no plain value",)),
    Reply("something else behind the tag", "<|python_tag|>print(1)", errors=("no list",)),
    Reply(
        "inline code and a code block",
        "Use `[get_time()]`.\n```py\nx = 1\n[get_time()]\n```\n[get_time()]",
        (TIME,),
        "Use `[get_time()]`.\n```py\nx = 1\n[get_time()]\n```",
    ),
    Reply("a call behind code that is never closed", "```py\nx = 1\n[get_time()]", (TIME,), "```py\nx = 1"),
]

MISTRAL = [
    Reply("a thought", "[THINK]maybe [TOOL_CALLS]get_time[ARGS]{} no[/THINK]ok", (), "ok"),
    Reply("the end of a thought", "maybe [TOOL_CALLS]get_time[ARGS]{} no[/THINK]ok", (), "ok"),
    Reply("no arguments", "[TOOL_CALLS]get_time", (TIME,)),
    Reply("a list", '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a"}}]', (_read("a"),)),
    Reply(
        "a list of two, with ids",
        '[TOOL_CALLS][{"name": "get_time", "arguments": {}, "id": "abcdefghi"}, {"name": "read_file", "arguments": '
        '{"path": "b"}}]',
        (TIME, _read("b")),
    ),
    Reply("the newer form", 'I look.[TOOL_CALLS]read_file[ARGS]{"path": "a"}', (_read("a"),), "I look."),
    Reply("with an id", '[TOOL_CALLS]read_file[CALL_ID]abcdefghi[ARGS]{"path": "a"}', (_read("a"),)),
    Reply("with nothing between", '[TOOL_CALLS]read_file{"path": "a"}', (_read("a"),)),
    Reply(
        "two in a row",
        '[TOOL_CALLS]get_time[ARGS]{}[TOOL_CALLS]read_file[ARGS]{"path": "b"} done',
        (TIME, _read("b")),
        "done",
    ),
    Reply("a single object", '[TOOL_CALLS] {"name": "get_time"}', (TIME,)),
    Reply(
        "spread over lines",
        '[TOOL_CALLS] [\n  {\n "name": "get_time",\n "arguments": {}\n}\n]\nok',
        (TIME,),
        "ok",
    ),
    Reply("an empty list", "Hm [TOOL_CALLS] []", (), "Hm"),
    Reply(
        "markers and brackets in strings",
        '[TOOL_CALLS]search[ARGS]{"query": "[TOOL_CALLS]x[ARGS]{}]"}',
        (("search", {"query": "[TOOL_CALLS]x[ARGS]{}]"}),),
    ),
    Reply(
        "encoded twice, trailing comma", '[TOOL_CALLS] [{"name": "get_time", "arguments": "{}"},]', (TIME,)
    ),
    Reply(
        "cut off in the list",
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"pa',
        errors=("read_file did not run",),
    ),
    Reply("cut off in the arguments", '[TOOL_CALLS]read_file[ARGS]{"pa', errors=("read_file did not run",)),
    Reply("cut off in the name", "A [TOOL_CALLS]read", (), "A", ("no name",)),
    Reply("cut off behind the marker", "A [TOOL_CALLS]", (), "A", ("no name",)),
    Reply("a brace too many", '[TOOL_CALLS]read_file[ARGS]{"path": "a"}}', errors=("something else",)),
    Reply("arguments that are no object", "[TOOL_CALLS]read_file[ARGS]a", errors=("no JSON object",)),
    Reply(
        "broken, then one that is not",
        "[TOOL_CALLS]a[ARGS]{x}[TOOL_CALLS]get_time[ARGS]{}",
        (TIME,),
        "",
        ("no longer JSON",),
    ),
    Reply("in an open code block", "```py\nx\n[TOOL_CALLS]get_time[ARGS]{}", (TIME,), "```py\nx"),
    Reply("ordinary brackets", "See [1] and [TOOL] {x}.", (), "See [1] and [TOOL] {x}."),
]

DEEPSEEK = [
    Reply(
        "V3 and R1",
        "Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n"
        '{"path": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        (_read("a"),),
        "Ok.",
    ),
    Reply(
        "V3.1",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        (_read("a"),),
    ),
    Reply(
        "two calls and prose",
        "A\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```"
        "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>\n"
        '{"path": "b"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>\nB',
        (TIME, _read("b")),
        "A\nB",
    ),
    Reply(
        "the inner marker missing, as R1 does",
        "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```<｜tool▁call▁end｜>",
        (TIME,),
    ),
    Reply(
        "tokens that were typed",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>read_file<｜tool_sep｜>{"path": "a"}<｜tool_call_end｜><｜tool calls end｜>',
        (_read("a"),),
    ),
    Reply(
        "a tool named function",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
        (("function", {}),),
    ),
    Reply("no arguments", "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜><｜tool▁call▁end｜>", (TIME,)),
    Reply(
        "never closed",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}',
        (_read("a"),),
    ),
    Reply(
        "fences and tokens in a string",
        '<｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file\n```json\n{"content": "```\\n<｜tool▁call▁end｜>"}\n```'
        "<｜tool▁call▁end｜>x",
        (("write_file", {"content": "```\n<｜tool▁call▁end｜>"}),),
        "x",
    ),
    Reply("an empty section", "Hm<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", (), "Hm"),
    Reply(
        "cut off",
        '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"pa',
        errors=("read_file did not run: the reply ends",),
    ),
    Reply("cut off in the name", "x<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_", (), "x", ("no name",)),
    Reply(
        "words in place of arguments, and a call behind",
        "<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>the file<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
        (TIME,),
        "",
        ("no JSON object",),
    ),
    Reply(
        "something behind the arguments",
        "<｜tool▁call▁begin｜>a<｜tool▁sep｜>{}}<｜tool▁call▁end｜>",
        errors=("something else",),
    ),
    Reply("a token that only begins", "a <｜tool▁calls", (), "a <｜tool▁calls"),
]

KIMI = [
    Reply(
        "one call",
        "Ok <|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
        '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
        (_read("a"),),
        "Ok",
    ),
    Reply(
        "two calls, with lines",
        "<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.get_time:0<|tool_call_argument_begin|>\n{}\n"
        "<|tool_call_end|>\n<|tool_call_begin|>functions.read_file:12<|tool_call_argument_begin|>"
        '{"path": "b"}<|tool_call_end|><|tool_calls_section_end|> bye',
        (TIME, _read("b")),
        "bye",
    ),
    Reply(
        "no section, no namespace",
        "<|tool_call_begin|>get_time:3<|tool_call_argument_begin|>{}<|tool_call_end|>",
        (TIME,),
    ),
    Reply(
        "no number",
        "<|tool_call_begin|>functions.a.b<|tool_call_argument_begin|>{}<|tool_call_end|>",
        (("a.b", {}),),
    ),
    Reply(
        "no arguments", "<|tool_call_begin|>get_time:0<|tool_call_argument_begin|><|tool_call_end|>", (TIME,)
    ),
    Reply(
        "never closed",
        '<|tool_call_begin|>read_file:0<|tool_call_argument_begin|>{"path": "a"}',
        (_read("a"),),
    ),
    Reply(
        "encoded arguments",
        '<|tool_call_begin|>read_file:0<|tool_call_argument_begin|>"{\\"path\\": \\"a\\"}"<|tool_call_end|>',
        (_read("a"),),
    ),
    Reply(
        "tokens in a string",
        '<|tool_call_begin|>search:0<|tool_call_argument_begin|>{"query": "<|tool_call_end|>}"}<|tool_call_end|>',
        (("search", {"query": "<|tool_call_end|>}"}),),
    ),
    Reply(
        "cut off",
        'A<|tool_call_begin|>read_file:0<|tool_call_argument_begin|>{"p',
        (),
        "A",
        ("read_file did not run",),
    ),
    Reply("cut off in the name", "A<|tool_call_begin|>functions.rea", (), "A", ("is missing",)),
    Reply(
        "no marker before the arguments",
        "<|tool_call_begin|>get_time:0 {}<|tool_call_end|>B",
        (),
        "B",
        ("is missing",),
    ),
    Reply(
        "no name",
        "<|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        errors=("no name",),
    ),
    Reply("other tokens", "a <|tool|> <|b", (), "a <|tool|> <|b"),
]

_CALL = "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>"

HARMONY = [
    Reply(
        "the recipient first of all",
        ' to=functions.read_file<|channel|>commentary json<|message|>{"path": "a"}<|call|>',
        (_read("a"),),
    ),
    Reply("words that begin like a recipient", "to=me, from=you", (), "to=me, from=you"),
    Reply("one call", _CALL + '{"path": "a"}<|call|>', (_read("a"),)),
    Reply(
        "a thought, a plan, a call and an answer",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>A plan.<|end|>"
        "<|start|>assistant"
        + _CALL
        + '{"path": "a"}<|call|><|start|>assistant<|channel|>final<|message|>Done.<|return|>',
        (_read("a"),),
        "A plan.\n\nDone.",
    ),
    Reply(
        "the recipient in front of the channel",
        '<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{"path": "a"}<|call|>',
        (_read("a"),),
    ),
    Reply(
        "the recipient in the wrong place",
        '<|channel|>commentary to=functions.read_file<|channel|>commentary<|message|>{"path": "a"}<|call|>',
        (_read("a"),),
    ),
    Reply(
        "a call among the thoughts", "<|channel|>analysis to=functions.get_time<|message|>{}<|call|>", (TIME,)
    ),
    Reply(
        "a thought to a function", "<|channel|>analysis to=functions.get_time<|message|>Well, no.<|end|>", ()
    ),
    Reply(
        "an answer to a function",
        "<|channel|>final to=functions.get_time<|message|>{} ok<|end|>",
        (),
        "{} ok",
    ),
    Reply("never closed", _CALL + '{"path": "a"}', (_read("a"),)),
    Reply("two calls", (_CALL + '{"path": "a"}<|call|><|start|>assistant') * 2, (_read("a"), _read("a"))),
    Reply("no arguments", "<|channel|>commentary to=functions.get_time<|message|><|call|>", (TIME,)),
    Reply("tokens in a string", _CALL + '{"path": "<|call|><|end|>}"}<|call|>', (_read("<|call|><|end|>}"),)),
    Reply("no header at all", "Just text.\n", (), "Just text.\n"),
    Reply("code in the answer", "<|channel|>final<|message|>```py\n`x`<|return|>", (), "```py\n`x`"),
    Reply("cut off in the arguments", _CALL + '{"pa', errors=("read_file did not run: the reply ends",)),
    Reply("cut off in the header", "<|channel|>commentary to=functions.get_time", errors=("is missing",)),
    Reply("cut off in a header without recipient", "<|channel|>fin", ()),
    Reply("words for arguments", _CALL + "the file<|call|>", errors=("no JSON object",)),
]


@dataclass(frozen=True)
class _Invoke:
    """The tags of a model that writes `invoke`. `text` and `number` stand beside the key of a value."""

    call: str
    call_end: str
    argument: str
    argument_end: str
    around: tuple[str, str] = ("", "")
    head_end: str = ">"
    text: str = ""
    number: str = ""

    def __call__(self, name: str, *arguments: str) -> str:
        return f'{self.call}{name}"{self.head_end}{"".join(arguments)}{self.call_end}'

    def given(self, key: str, value: str, beside: str = "") -> str:
        return f'{self.argument}{key}"{beside}{self.head_end}{value}{self.argument_end}'


def _invoked(tags: _Invoke) -> list[Reply]:
    before, behind = tags.around
    path = tags.given("path", "a", tags.text)
    return [
        Reply("one call", f"{before}{tags('read_file', path)}{behind}", (_read("a"),)),
        Reply("no argument", f"Now.\n{before}\n{tags('get_time')}\n{behind}", (TIME,), "Now."),
        Reply("nothing around it", tags("read_file", path), (_read("a"),)),
        Reply(
            "two calls and text on both sides",
            f"So: {before}{tags('read_file', path)}{tags('get_time')}{behind} Good?",
            (_read("a"), TIME),
            "So: Good?",
        ),
        Reply(
            "a number by the schema",
            tags("read_file", path, "\n", tags.given("lines", "3", tags.number)),
            (_read("a", lines=3),),
        ),
        Reply(
            "a string that looks like a number",
            tags("read_file", tags.given("path", "7", tags.text)),
            (_read("7"),),
        ),
        Reply(
            "a number with zeros in front",
            tags("read_file", tags.given("lines", "07", tags.number)),
            (("read_file", {"lines": 7}),),
        ),
        Reply(
            "a closing tag in a value",
            tags("read_file", tags.given("path", f"x{tags.argument_end}y{tags.call_end}z", tags.text)),
            (_read(f"x{tags.argument_end}y{tags.call_end}z"),),
        ),
        Reply("JSON inside", tags("read_file", '{"path": "a"}'), (_read("a"),)),
        Reply(
            "all arguments in one",
            tags("read_file", tags.given("arguments", '{"path": "a"}', tags.number)),
            (_read("a"),),
        ),
        Reply("fenced whole", f"```xml\n{before}{tags('read_file', path)}{behind}\n```", (_read("a"),)),
        Reply(
            "shown in code",
            f"```xml\nE.g.\n{tags('get_time')}\n```\nSo.",
            text=f"```xml\nE.g.\n{tags('get_time')}\n```\nSo.",
        ),
        Reply("shown in backticks", f"`{tags('get_time')}`", text=f"`{tags('get_time')}`"),
        Reply("a key twice", tags("read_file", path, path), errors=("path is there twice",)),
        Reply(
            "cut off in a value",
            tags("read_file", path).partition(f"a{tags.argument_end}")[0] + "a",
            errors=("read_file did not run: its argument path is not closed",),
        ),
        Reply(
            "cut off behind a value", f'{tags.call}read_file"{tags.head_end}{path}', errors=("not closed",)
        ),
        Reply("cut off in the name", f"{tags.call}read_f", errors=("the reply ends",)),
        Reply("words in it", tags("read_file", "the file a"), errors=("not what belongs there",)),
        Reply("no name", tags("", path), errors=("it has no name",)),
    ]


def _prefixed(prefix: str, around: str, text: str = "", number: str = "") -> _Invoke:
    return _Invoke(
        f'<{prefix}invoke name="',
        f"</{prefix}invoke>",
        f'<{prefix}parameter name="',
        f"</{prefix}parameter>",
        (f"<{around}>", f"</{around}>"),
        text=text,
        number=number,
    )


_DSML = _prefixed("｜DSML｜", "｜DSML｜function_calls", ' string="true"', ' string="false"')
_MINIMAX = _prefixed("", "minimax:tool_call")
_K3 = _Invoke(
    '<|open|>call tool="',
    "<|close|>call<|sep|>",
    '<|open|>argument key="',
    "<|close|>argument<|sep|>",
    ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    "<|sep|>",
    ' type="string"',
    ' type="number"',
)
_STEP = replace(
    _prefixed("steptml:", ""),
    around=(
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        "<｜tool_call_end｜>",
    ),
)
_MINICPM = _Invoke('<function name="', "</function>", '<param name="', "</param>")

DEEPSEEK_DSML = [
    *_invoked(_DSML),
    Reply(
        "the outer tag of V4",
        f"<｜DSML｜tool_calls>\n{_DSML('get_time')}\n</｜DSML｜tool_calls>",
        (TIME,),
    ),
    Reply(
        "a string that is no string",
        _DSML("read_file", _DSML.given("lines", "3", ' string="true"')),
        (("read_file", {"lines": 3}),),
    ),
    Reply(
        "an undeclared tool, of which only the call knows the types",
        _DSML("f", _DSML.given("a", "1", ' string="true"'), _DSML.given("b", "1", ' string="false"')),
        (("f", {"a": "1", "b": 1}),),
    ),
]
MINIMAX = [
    *_invoked(_MINIMAX),
    Reply(
        "the outer tag of dots",
        f"ok<dots_function_call>{_MINIMAX('get_time')}</dots_function_call>",
        (TIME,),
        "ok",
    ),
]
KIMI_K3 = [
    *_invoked(_K3),
    Reply(
        "an answer in front",
        f"<|open|>response<|sep|>I look.<|close|>response<|sep|><|open|>tools<|sep|>{_K3('get_time')}"
        "<|close|>tools<|sep|><|close|>message<|sep|>",
        (TIME,),
        "I look.",
    ),
    Reply(
        "a call in a thought",
        f"<|open|>think<|sep|>{_K3('get_time')}<|close|>think<|sep|><|open|>response<|sep|>No.",
        text="No.",
    ),
]
MINICPM = [
    *_invoked(_MINICPM),
    Reply(
        "a section in which tags are text",
        _MINICPM("read_file", _MINICPM.given("path", "<![CDATA[a </param></function> ]]>")),
        (_read("a </param></function> "),),
    ),
]


def _gemma(before: str, behind: str, quote: str) -> list[Reply]:
    def call(inside: str) -> str:
        return f"{before}call:{inside}{behind}"

    path = f"path:{quote}a{quote}"
    return [
        Reply("one call", call(f"read_file{{{path}}}"), (_read("a"),)),
        Reply("no argument", f"Now. {call('get_time{}')}", (TIME,), "Now."),
        Reply(
            "two calls and text on both sides",
            f"So: {call(f'read_file{{{path}}}')}{call('get_time{}')} Good?",
            (_read("a"), TIME),
            "So: Good?",
        ),
        Reply("a number", call(f"read_file{{{path},lines:3}}"), (_read("a", lines=3),)),
        Reply("spaces", call(f"read_file{{ {path} , lines : 3 }}"), (_read("a", lines=3),)),
        Reply("a string without tokens", call("read_file{path:a.txt,lines:3}"), (_read("a.txt", lines=3),)),
        Reply("a string that looks like a number", call("read_file{path:7}"), (_read("7"),)),
        Reply(
            "what brackets and tokens a string holds",
            call(f"read_file{{path:{quote}}}, {behind}{before}{quote}}}"),
            (_read(f"}}, {behind}{before}"),),
        ),
        Reply(
            "lists and objects",
            call(f"search{{tags:[{quote}x{quote},[1,null]],filter:{{a:{{}},{quote}b c{quote}:true}}}}"),
            (("search", {"tags": ["x", [1, None]], "filter": {"a": {}, "b c": True}}),),
        ),
        Reply("never closed", f"{before}call:read_file{{{path}}}", (_read("a"),)),
        Reply("fenced whole", f"```\n{call('get_time{}')}\n```", (TIME,)),
        Reply("shown in backticks", f"`{call('get_time{}')}`", text=f"`{call('get_time{}')}`"),
        Reply(
            "shown in code",
            f"```\nE.g.\n{call('get_time{}')}\n```\n",
            text=f"```\nE.g.\n{call('get_time{}')}\n```\n",
        ),
        Reply("cut off in a string", call("read_file{")[: -len(behind)] + path[:-1], errors=("ends",)),
        Reply("cut off behind a value", f"{before}call:read_file{{{path}", errors=("the reply ends",)),
        Reply("a key twice", call(f"read_file{{{path},{path}}}"), errors=("path is there twice",)),
        Reply("quotes as in JSON", call('read_file{path:"a, b"}'), errors=("has to stand between two",)),
        Reply("nested too deep", call(f"search{{tags:{'[' * 99}{']' * 99}}}"), errors=("too deep",)),
        Reply("no name", call("{}"), errors=("no name",)),
        Reply("words in it", f"{before}the time{behind}", errors=("not what belongs there",)),
    ]


GEMMA = [
    *_gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
    Reply(
        "a call in a thought",
        "<|channel>thought\nPerhaps <|tool_call>call:get_time{}<tool_call|>.<channel|>No.",
        text="No.",
    ),
]

OLMO = [
    Reply("one call", "<function_calls>read_file(path='a')</function_calls>", (_read("a"),)),
    Reply(
        "a call in each line, and text on both sides",
        'So: <function_calls>\nget_time()\nread_file(path="a", lines=3)\n</function_calls> Good?',
        (TIME, _read("a", lines=3)),
        "So: Good?",
    ),
    Reply(
        "a string over several lines",
        "<function_calls>read_file(path='a\n\n(b\\n\"')</function_calls>",
        (_read('a\n\n(b\n"'),),
    ),
    Reply("a list", "<function_calls>[get_time(), get_time()]</function_calls>", (TIME, TIME)),
    Reply(
        "the words of JSON",
        "<function_calls>search(query='\\'', filter=null, tags=[true])</function_calls>",
        (("search", {"query": "'", "filter": None, "tags": [True]}),),
    ),
    Reply(
        "tags in a string",
        "<function_calls>read_file(path='</function_calls>')",
        (_read("</function_calls>"),),
    ),
    Reply("fenced whole", "```\n<function_calls>get_time()</function_calls>\n```", (TIME,)),
    Reply(
        "shown in backticks",
        "`<function_calls>get_time()</function_calls>`",
        text="`<function_calls>get_time()</function_calls>`",
    ),
    Reply("cut off", "<function_calls>read_file(path='a", errors=("read_file did not run: the reply ends",)),
    Reply("no name for an argument", "<function_calls>read_file('a')</function_calls>", errors=("be named",)),
    Reply("an expression", "<function_calls>read_file(path=a+1)</function_calls>", errors=("plain value",)),
    Reply("words in it", "<function_calls>the time</function_calls>", errors=("not what belongs there",)),
    Reply("words behind it", "<function_calls>get_time() now</function_calls>", errors=("behind it",)),
]


def _marked(before: str, behind: str, name: str, arguments: str) -> list[Reply]:
    def one(tool: str, given: str) -> str:
        written = f'"{name}": "{tool}", "{arguments}": {given}' if name else f'"{tool}": {given}'
        return f"{{{written}}}"

    read, time = one("read_file", '{"path": "a"}'), one("get_time", "{}")
    return [
        Reply("one call", f"{before}{read}{behind}", (_read("a"),)),
        Reply("a list", f"{before}\n[\n{read}, {time}\n]\n{behind}", (_read("a"), TIME)),
        Reply(
            "two of them",
            f"So: {before}{read}{behind}{before}{time}{behind} Good?",
            (_read("a"), TIME),
            "So: Good?",
        ),
        Reply(
            "tokens in a string",
            f"{before}{one('read_file', f'{{{chr(34)}path{chr(34)}: {chr(34)}{behind}{chr(34)}}}')}{behind}",
            (_read(behind),),
        ),
        Reply("never closed", f"{before}[{time}]", (TIME,)),
        Reply("fenced whole", f"```json\n{before}{time}{behind}\n```", (TIME,)),
        Reply("shown in backticks", f"`{before}{time}{behind}`", text=f"`{before}{time}{behind}`"),
        Reply("cut off", f"{before}{read[:-4]}", errors=("read_file did not run",)),
        Reply(
            "arguments that are none", f"{before}{one('get_time', '3')}{behind}", errors=("are no object",)
        ),
        Reply("words in it", f"{before}the time{behind}", errors=("not what belongs there",)),
    ]


def _thinking(begin: str, call: str, end: str) -> Reply:
    return Reply("a call in a thought", f"{begin}Perhaps {call}{end}No.", text="No.")


COHERE = [
    *_marked("<|START_ACTION|>", "<|END_ACTION|>", "tool_name", "parameters"),
    _thinking(
        "<|START_THINKING|>", '<|START_ACTION|>{"tool_name": "get_time"}<|END_ACTION|>', "<|END_THINKING|>"
    ),
]
APERTUS = [
    *_marked("<|tools_prefix|>", "<|tools_suffix|>", "", ""),
    _thinking("<|inner_prefix|>", '<|tools_prefix|>[{"get_time": {}}]<|tools_suffix|>', "<|inner_suffix|>"),
]
INKLING = [
    *_marked("<|content_invoke_tool_json|>", "<|end_message|>", "name", "args"),
    _thinking("<|content_thinking|>", '<|content_invoke_tool_json|>{"name": "get_time"}', "<|end_message|>"),
]


_PATH = "<arg_key>path</arg_key><arg_value>a</arg_value>"
_OPEN = (
    "<tool_call:opensource>read_file<tool_sep:opensource>",
    "<end_of_tool_call:opensource>",
)

HUNYUAN = [
    Reply(
        "one call",
        f"So.\n<tool_calls>\n<tool_call>read_file<tool_sep>\n{_PATH}\n</tool_call>\n</tool_calls>",
        (_read("a"),),
        "So.",
    ),
    Reply("no argument", "<tool_calls><tool_call>get_time<tool_sep></tool_call></tool_calls>", (TIME,)),
    Reply("no separator, another end", f"<tool_call>read_file{_PATH}<end_of_tool_call>", (_read("a"),)),
    Reply("the tags of the open model", f'{_OPEN[0]}{{"path": "a"}}{_OPEN[1]}', (_read("a"),)),
    Reply(
        "the same with tags for arguments",
        f"{_OPEN[0]}{_PATH.replace('>', ':opensource>')}{_OPEN[1]}",
        (_read("a"),),
    ),
    Reply("nothing around", "<tool_calls></tool_calls>Well.", (), "Well."),
    Reply("fenced whole", "```\n<tool_calls><tool_call>get_time</tool_call></tool_calls>\n```", (TIME,)),
    Reply("in backticks", "`<tool_calls>` is a tag", (), "`<tool_calls>` is a tag"),
    Reply("cut off", f"<tool_call>read_file<tool_sep>{_PATH}", errors=("not closed with",)),
    Reply("JSON cut off", f'{_OPEN[0]}{{"path', errors=("read_file did not run",)),
]
K2_HORIZON = [
    Reply(
        "one call",
        "So. <ifm|tool_calls><ifm|tool_call>read_file<ifm|arg_key>path</ifm|arg_key><ifm|arg_value>a"
        "</ifm|arg_value></ifm|tool_call></ifm|tool_calls> Good?",
        (_read("a"),),
        "So. Good?",
    ),
    Reply(
        "a type beside the value",
        "<ifm|tool_call>read_file<ifm|arg_key>lines</ifm|arg_key><ifm|arg_type>integer</ifm|arg_type>"
        "<ifm|arg_value>3</ifm|arg_value></ifm|tool_call>",
        (("read_file", {"lines": 3}),),
    ),
    Reply("JSON", '<ifm|tool_call>{"name": "get_time", "arguments": {}}</ifm|tool_call>', (TIME,)),
    Reply("a thought", "<ifm|think><ifm|tool_call>get_time</ifm|tool_call></ifm|think>No.", (), "No."),
    Reply("cut off", "<ifm|tool_call>read_file<ifm|arg_key>path", errors=("read_file did not run",)),
]

_MM = "]<]minimax[>["


def _m3(name: str, inside: str = "") -> str:
    """A call, with the token in front of every tag: `<` stands for both."""
    return f'<invoke name="{name}">{inside}</invoke>'.replace("<", f"{_MM}<")


MINIMAX_M3 = [
    Reply(
        "one call",
        f"So.\n{_MM}<tool_call>\n{_m3('read_file', '<path>a</path><lines>3</lines>')}\n{_MM}</tool_call>",
        (_read("a", lines=3),),
        "So.",
    ),
    Reply("no argument", f"{_MM}<tool_call>{_m3('get_time')}{_MM}</tool_call>", (TIME,)),
    Reply("two calls", f"{_m3('get_time')}\n{_m3('read_file', '<path>7</path>')}", (TIME, _read("7"))),
    Reply(
        "a list, an object and JSON",
        _m3(
            "search",
            "<tags><item>x</item><item>2</item></tags><filter><a><b>1</b></a><c>y</c><c>z</c></filter>",
        ),
        (("search", {"tags": ["x", 2], "filter": {"a": {"b": 1}, "c": ["y", "z"]}}),),
    ),
    Reply(
        "a list of one, and one in JSON",
        _m3("search", "<tags><item>x</item></tags>") + _m3("search", '<tags>["x"]</tags>'),
        (("search", {"tags": ["x"]}), ("search", {"tags": ["x"]})),
    ),
    Reply(
        "tags without the token are text",
        f'{_MM}<invoke name="read_file">{_MM}<path>\n a </path> b{_MM}</path>{_MM}</invoke>',
        (_read("\n a </path> b"),),
    ),
    Reply("a thought", f"<mm:think>{_m3('get_time')}</mm:think>No.", (), "No."),
    Reply("fenced whole", f"```\n{_MM}<tool_call>{_m3('get_time')}{_MM}</tool_call>\n```", (TIME,)),
    Reply("in backticks", f"`{_m3('get_time')}`", (), f"`{_m3('get_time')}`"),
    Reply("a key twice", _m3("read_file", "<path>a</path><path>b</path>"), errors=("is there twice",)),
    Reply("a tag that is not closed", _m3("read_file", "<path>a"), errors=("path is not closed",)),
    Reply("cut off", f'{_MM}<invoke name="read_file">{_MM}<path>a', errors=("path is not closed",)),
    Reply("nested too deep", _m3("search", "<filter>" + "<n>" * 201 + "</n>" * 201), errors=("too deep",)),
    Reply(
        "a tag that breaks off in front of the next call",
        f'{_MM}<invoke name="read_file">{_MM}<pat{_m3("get_time")}',
        (TIME,),
        errors=("<pat is no tag",),
    ),
    Reply("words in it", _m3("read_file", "the file"), errors=("is not closed with",)),
    Reply("no name", _m3(""), errors=("it has no name",)),
]

_ATEM = _prefixed("atem:", "atem:function_calls")
MUSE = [
    *_invoked(_ATEM),
    Reply(
        "messages with headers",
        f"to=self<|message|>Perhaps {_ATEM('get_time')}<|eom|><|start|>assistant to=self<|message|>Or "
        f"not.<|eom|><|start|>assistant to=user<|message|>So.<|start|>assistant to=f<|message|>"
        f"{_ATEM('read_file', _ATEM.given('path', 'a'))}<|eot|>",
        (_read("a"),),
        "So.",
    ),
]


def _plamo(name: str, arguments: str) -> str:
    return (
        f"<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
        f"<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{arguments}"
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
    )


PLAMO = [
    Reply("one call", "So. " + _plamo("read_file", '{"path": "a"}') + "<|plamo:tag|>", (_read("a"),), "So."),
    Reply("two calls", _plamo("get_time", "{}") * 2, (TIME, TIME)),
    _thinking("<|plamo:begin_think:plamo|>", _plamo("get_time", "{}"), "<|plamo:end_think:plamo|>"),
    Reply(
        "cut off",
        _plamo("read_file", '{"path').partition("<|plamo:end_tool_arg")[0],
        errors=("read_file did",),
    ),
    Reply("cut off in the name", "<|plamo:begin_tool_name:plamo|>get_ti", errors=("is missing",)),
    Reply("words for arguments", _plamo("read_file", "the file"), errors=("no JSON object",)),
]

FUNCTIONARY = [
    Reply(
        "a recipient", '<|from|>assistant\n<|recipient|>read_file\n<|content|>{"path": "a"}', (_read("a"),)
    ),
    Reply(
        "text for all, and a call",
        '<|recipient|>all\n<|content|>I look.<|from|>assistant\n<|recipient|>read_file\n<|content|>{"path": "a"}<|stop|>',
        (_read("a"),),
        "I look.",
    ),
    Reply("a prompt", 'I look.\n>>>read_file\n{"path": "a"}', (_read("a"),), "I look."),
    Reply("another prompt", "So:\n>>> print(1)\n>>>nothing\n{}", (), "So:\n>>> print(1)\n>>>nothing\n{}"),
    Reply("as Llama 3.1 does", '<function=read_file>{"path": "a"}</function>', (_read("a"),)),
    Reply("arguments that are none", "<|recipient|>read_file\n<|content|>{oops", (), "", ("read_file",)),
]

GROK = [
    Reply(
        "one call",
        'I look.\n<xai:function_call name="read_file">\n<parameter name="path">a</parameter>\n</xai:function_call>',
        (_read("a"),),
        "I look.",
    ),
]

SOLAR = [
    Reply(
        "a thought, and two calls",
        '<|think|>Or <|tool_call:begin|>x<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>c1<|tool_call:name|>read_file<|tool_call:args|>{"path": "a"}<|tool_call:end|>'
        "<|tool_call:begin|>c2<|tool_call:name|>get_time<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        (_read("a"), TIME),
    ),
    Reply("an answer", "<|think|>Hm.<|end|><|begin|>assistant<|content|>It is 3.<|end|>", (), "It is 3."),
    Reply(
        "cut off",
        'So.<|tool_call:begin|>c1<|tool_call:name|>read_file<|tool_call:args|>{"path": "a',
        (),
        "So.",
        ("read_file did not run",),
    ),
]

QWEN_AGENT = [
    Reply(
        "two calls",
        '✿FUNCTION✿: read_file\n✿ARGS✿: {"path": "a"}\n✿FUNCTION✿: get_time\n✿ARGS✿: {}\n✿RESULT✿: ',
        (_read("a"), TIME),
    ),
    Reply("nothing behind it", 'So.\n✿FUNCTION✿: read_file\n✿ARGS✿: {"path": "a"}', (_read("a"),), "So."),
    Reply("no arguments", "✿FUNCTION✿: get_time\n✿ARGS✿:\n✿RESULT✿", (TIME,)),
]

MCP_TAG = [
    Reply(
        "one call",
        'I look.\n\n<use_mcp_tool>\n<server_name>files</server_name>\n<tool_name>read_file</tool_name>\n<arguments>\n{"path": "a"}\n</arguments>\n</use_mcp_tool>',
        (_read("a"),),
        "I look.",
    ),
    Reply(
        "a word about it",
        "Write `<use_mcp_tool>` for that, or <use_mcp_tool>.\n\nSee?",
        (),
        "Write `<use_mcp_tool>` for that, or <use_mcp_tool>.\n\nSee?",
    ),
]

ACTION = [
    Reply("UI-TARS", "Thought: I read it.\nAction: read_file(path='a')", (_read("a"),)),
    Reply("several", "Action: read_file(path='a')\n\nget_time()", (_read("a"), TIME)),
    Reply("several lines", "Action: read_file(path='a')\nAction: get_time()", (_read("a"), TIME)),
    Reply(
        "a place on a screen",
        "Action: click(start_box='<|box_start|>(10,20)<|box_end|>')",
        (("click", {"start_box": "(10,20)"}),),
    ),
    Reply(
        "ReAct",
        'Thought: I read it.\nAction: read_file\nAction Input: {"path": "a"}\nObservation:',
        (_read("a"),),
    ),
    Reply(
        "Command R",
        'Plan: read.\nAction: ```json\n[\n {"tool_name": "read_file", "parameters": {"path": "a"}}\n]\n```',
        (_read("a"),),
        "Plan: read.",
    ),
    Reply(
        "in the middle of a line",
        "The next Action: read_file(path='a') is yours.",
        (),
        "The next Action: read_file(path='a') is yours.",
    ),
    Reply("arguments without names", "Action: read_file('a')", errors=("have to be named",)),
    Reply(
        "input that is no JSON", "Action: read_file\nAction Input: a.txt", errors=("read_file did not run",)
    ),
]

_PARIS = '{"name": "read_file", "arguments": {"path": "a"}}'

LOOSE = [
    *(
        Reply(f"{before} and {behind} around JSON", f"So.{before}{_PARIS}{behind}", (_read("a"),), "So.")
        for before, behind in (
            ("<|FunctionCallBegin|>[", "]<|FunctionCallEnd|>"),  # Doubao
            ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),  # LM Studio
            ("<tool>", "</tool>"),
            ("<function>\n", "\n</function>"),
            ("<action>[", "]</action>"),
            ("<|some_token|>", "<|another_one|>"),
            ("<|tool_call|>", "<|/tool_call|>"),  # Phi 4 mini
            ("<|action_start|> <|plugin|>\n", "\n<|action_end|>"),  # InternLM
            ("<|tool_call_start|>[", "]<|tool_call_end|>"),  # LFM2, now and then
            ("<|message_sep|>\n\nfunction call<|role_sep|>\n", ""),  # GigaChat 3
            ("<longcat_tool_call>", "</longcat_tool_call>"),
        )
    ),
    *(
        Reply(f"keys of another kind: {written[:40]}", written, (_read("a"),))
        for written in (
            '{"tool": "read_file", "args": {"path": "a"}}',
            '{"action": "read_file", "action_input": {"path": "a"}}',
            '{"tool_name": "read_file", "tool_input": {"path": "a"}}',
            '{"thought": "I look.", "function": "read_file", "parameters": {"path": "a"}}',
            '{"function_call": {"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}}',
            '{"tool_calls": [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}}]}',
            '{"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {"path": "a"}}]}',
            '```json\n{"action": "read_file", "action_input": {"path": "a"}}\n```',
        )
    ),
    *(
        Reply(f"in other words: {written[:40]}", written, (_read("a"),))
        for written in (
            '<|python_tag|>read_file(path="a")<|eom_id|>',
            '<|python_tag|>read_file.call(path="a")<|eom_id|>',  # Llama 3.1, for tools it was trained on
            '```tool_code\nread_file(path="a")\n```',  # Gemma 3
            '```tool_code\nprint(default_api.read_file(path="a"))\n```',  # Gemini
            '<tool_code>\nprint(default_api.read_file(path="a"))\n</tool_code>',
            '```typescript\nfunctions.read_file({"path": "a"})\n```',  # MiniMax Text 01
            'functions.read_file({"path": "a"})',
            'read_file(path="a")',
            'read_file\n{"path": "a"}',  # GLM 4
            'read_file{"path": "a"}',  # Mistral, where a server leaves out the tokens
            'read_file[ARGS]{"path": "a"}',
            'functions.read_file:0{"path": "a"}',  # Kimi, likewise
            '[{"read_file": {"path": "a"}}]',  # Apertus, likewise
            '<function=read_file{"path": "a"}</function>',  # Llama, now and then
            '<xai:function_call name="read_file"><parameter name="path">a</parameter></xai:function_call>',
            'read_file\n{"path": "a"}<|observation|>',
            '>>>read_file\n{"path": "a"}',  # Functionary
            "Action: read_file(path='a')",  # UI-TARS
            'Action: read_file\nAction Input: {"path": "a"}\nObservation:',
            '**Action:** read_file\n**Action Input:** {"path": "a"}',
            '**Action**: `read_file`\n**Action Input**: `{"path": "a"}`',
            'action: read_file\naction input: {"path": "a"}',
            'Action: read_file({"path": "a"})',
            'Action: read_file[{"path": "a"}]',
            'TOOL_CALL: read_file {"path": "a"}',
            'TOOL_CALL: {"name": "read_file", "arguments": {"path": "a"}}',
            'Tool call: read_file(path="a")',
            'FUNCTION: read_file ARGS: {"path": "a"}',
            '**Function:** read_file\n**Arguments:**\n```json\n{"path": "a"}\n```',
            'Tool: read_file\nInput: {"path": "a"}',
            '```tool_code\nx = read_file(path="a")\nprint(x)\n```',
            '<code>\nx = read_file(path="a")\nfinal_answer(x)\n</code>',  # smolagents
            '<tool_call>read_file(path="a")</tool_call>',
            '```tool_code\n# I look.\nx = read_file(path="a")  # it is short\nprint(f"It says {x}")\n```',
            '**Tool call:** `read_file(path="a")`',
            '{"tool": {"name": "read_file", "arguments": {"path": "a"}}}',
            '{"toolUse": {"toolUseId": "c", "name": "read_file", "input": {"path": "a"}}}',  # Bedrock
            "{'name': 'read_file', 'arguments': {'path': 'a'}}",
            '{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}}]}',
            '{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {"path": "a"}}]}}',
            '<tool_calls>\n<tool_call>function<tool_sep>read_file\n```json\n{"path": "a"}\n```</tool_call>\n</tool_calls>',
            "<longcat_tool_call>read_file\n<longcat_arg_key>path</longcat_arg_key>\n<longcat_arg_value>a</longcat_arg_value>\n</longcat_tool_call>",
            '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</function_calls>',
            '<function_calls>\nread_file(path="a")\n</function_calls>',
            'function call<|role_sep|>\n{"name": "read_file", "arguments": {"path": "a"}}',
            ' -> tool/function_call\n[{"name": "read_file", "arguments": {"path": "a"}}]<|im_end|><|endofturn|>',
            '<longcat_think>Or <longcat_tool_call>{"name": "get_time"}</longcat_tool_call>?</longcat_think>'
            '<longcat_tool_call>{"name": "read_file", "arguments": {"path": "a"}}</longcat_tool_call>',
            '<think>Hm.</think>\n<answer><tool_calls>[{"name": "read_file", "arguments": {"path": "a"}}]</tool_calls></answer>',
        )
    ),
    *(
        Reply(f"no call: {written[:40]}", written, (), written)
        for written in (
            'It is <b>{"name": "bold", "arguments": {}}</b>.',  # no tool there is
            '[NOTE]{"a": 1}[/NOTE]',
            'We say read_file(path="a") for that.',
            'read_file(path="a") reads a file.',
            "Then:\nAction: sleep well.",
            "read_file\nis a tool.",
            'An example:\n```python\nread_file(path="a")\n```\nSee?',
            'An example:\n\n```json\n{"tool": "read_file", "args": {"path": "a"}}\n```\nSee?',
            'Write `<tool>{"name": "read_file", "arguments": {"path": "a"}}</tool>` for it.',
            '{"tool": "hammer", "args": {"size": 3}}',
            '{"action": "search"}',
            "read_file [1] reads a file.",
            "search {a, b} for it",
            "<answer>It is 3.</answer>",  # behind no thought
            'An example:\nTool: read_file\nInput: {"path": "a"}\nOutput: b',
            'An example:\n```\nTool: read_file\nInput: {"path": "a"}\n```',
            'Write `TOOL_CALL: read_file {"path": "a"}` for it.',
            'Tool: read_file(path="a") reads a file.',
            'Tool: read_file {"path": "a"} reads a file.',
            'Function: read_file\nArguments: {"path": string}',
            "Tool: read_file\nIt reads a file.",
            'Mine:\nTool: read_file\nParameters: {"type": "object", "properties": {"path": {"type": "string"}}}',
            "Function: read_file(path, lines)",
            "These:\nFunction: read_file(path, lines)",
            "Tool: read_file [1]\nIt reads a file.",
            "Tool: read_file",
            'Tool: hammer\nInput: {"size": 3}',
            "**Action:** read_file it.",
            "Notes:\n**Action:** read_file\n**Owner:** Ada",
            "In TypeScript:\n```typescript\nx = read_file('a')\n```\nOr:\n```typescript\nread_file('a');\n```",
            '```yaml\ntool: read_file\nargs: {"path": "a"}\n```',
            "Mine:\n**Action:** read_file\n**Input:** a path\n**Output:** its text",
            "Mine:\nAction: read_file\nParameters: path (string)",
            'A review:\n**Action:** `read_file(path="a")` reads a file.',
            'Action: read_file {"path": "a"} reads a file.',
            'call read_file with {"path": "a"}',
            'x = read_file(path="a")',
            '```python\nx = read_file(path="a")\nprint(x)\n```',
            'So:\n<code>\nread_file(path="a")\n</code>\nSee?',
            'Say <code>read_file(path="a")</code> for it.',
            "<code>\nf(a=1)\n</code>",
            '{"role": "assistant", "content": "Hi.", "tool_calls": []}',
            '```tool_code\nx = f(path="a")\n```',
            '```tool_code\nread_file(path="a")\nprint(1, f"{get_time()}")\n```',  # half of it would be lost
        )
    ),
    Reply(
        "calls behind a word for them that end the reply",
        'I look.\n\nTOOL_CALL: read_file {"path": "a"}\nTOOL_CALL: get_time {}\n<|im_end|>',
        (_read("a"), TIME),
        "I look.",
    ),
    Reply(
        "a name alone in front of a call",
        "I look.\nTool: read_file\nTool: get_time {}",
        (TIME,),
        "I look.\nTool: read_file",
    ),
    Reply(
        "a word for a call in front of one",
        'Tool: read_file\nInput: as below\n<tool_call>{"name": "get_time"}</tool_call>',
        (TIME,),
        "Tool: read_file\nInput: as below",
    ),
    Reply(
        "a call behind a word for it, and one that cannot be read",
        'Tool: get_time {}\nTool: read_file {"path": ',
        (TIME,),
        'Tool: read_file {"path": ',
    ),
    Reply(
        "a program that does something with what a call gave",
        '```tool_code\nx = read_file(path="a")\nprint(len(x))\n```\nDone.',
        (_read("a"),),
        "Done.",
    ),
    Reply("a heading behind a call", "get_time()\n# It\nSo (it) is.", (TIME,), "# It\nSo (it) is."),
    Reply("a heading and a paragraph behind a call", "get_time()\n\n# It\n\nSo.", (TIME,), "# It\n\nSo."),
    Reply(
        "a program that ends the reply",
        'I look.\n<code>\na = read_file("a", 3)\nb = read_file(path="b")\nprint(a)\nprint(b)\n</code>',
        (_read("a", lines=3), _read("b")),
        "I look.",
    ),
    Reply(
        "arguments in the order of the tool",
        "```tool_code\nprint(write_file('a', 'b', overwrite=True))\n```",
        (("write_file", {"path": "a", "content": "b", "overwrite": True}),),
    ),
    Reply(
        "more arguments than the tool has",
        "```tool_code\nread_file('a', 1, 2)\n```",
        (),
        "",
        ("have to be named",),
    ),
    Reply(
        "an argument in its order and by its name", "read_file('a', path='b')", (), "", ("is there twice",)
    ),
    Reply("ReAct, without input", "So:\nAction: get_time\nI wait.", (TIME,), "So:\nI wait."),
    Reply("ReAct, in brackets", "Hm.\nAction: read_file[a, 3]", (), "Hm.", ("have to be named",)),
    Reply("ReAct, in brackets and order", "Action: read_file['a', 3]", (_read("a", lines=3),)),
    Reply("JSON that ends the reply", f"I look.\n\n{_PARIS}\n", (_read("a"),), "I look."),
    Reply("a list that ends the reply", f"I look.\n[{_PARIS}]<|im_end|>", (_read("a"),), "I look."),
    Reply("Python that ends the reply", 'I look.\n[read_file(path="a")]', (_read("a"),), "I look."),
    Reply("JSON with words behind it", f"Like so:\n{_PARIS}\nSee?", (), f"Like so:\n{_PARIS}\nSee?"),
    Reply(
        "JSON that ends the reply in a code block",
        f"Like so:\n```json\n{_PARIS}\n```",
        (),
        f"Like so:\n```json\n{_PARIS}\n```",
    ),
    Reply(
        "Gorilla", '<<function>>read_file(path="a")<<function>>[get_time()]\nOk.', (_read("a"), TIME), "Ok."
    ),
    Reply(
        "DeepSeek, in tokens that were typed",
        '<|DSML|function_calls>\n<|DSML|invoke name="read_file">\n<|DSML|parameter name="path" string="true">1</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|function_calls>',
        (_read("1"),),
    ),
    Reply(
        "the elements of one dialect in another's",
        '<function name="read_file">\n<parameter name="path">a</parameter>\n</function>\nOk.',
        (_read("a"),),
        "Ok.",
    ),
    *(
        Reply(f"tools that are listed: {listed}", listed, (), listed)
        for listed in (
            '{"name": "get_time", "parameters": {"type": "object", "properties": {}}}',
            '{"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}',
            '[{"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}]',
            'These:\n{"name": "get_time", "parameters": {"type": "object", "properties": {}}}',
        )
    ),
    Reply(
        "a link to a tool",
        "[read_file(path)](http://x.y) is one.",
        (),
        "[read_file(path)](http://x.y) is one.",
    ),
    Reply("an action that is code", 'So:\nAction:\n```"a": 1}``` Ok.', (), 'So:\nAction:\n```"a": 1}``` Ok.'),
    Reply("Gorilla, of a tool there is not", "So <<function>>f(a=1)", (), "So <<function>>f(a=1)"),
    Reply(
        "Nemotron in Python",
        'Now. <TOOLCALL>[get_time(), read_file(path="a")]</TOOLCALL> Ok.',
        (TIME, _read("a")),
        "Now. Ok.",
    ),
    Reply(
        "Nemotron, of which is told", "The tag <TOOLCALL>f(x) is text.", (), "The tag <TOOLCALL>f(x) is text."
    ),
    Reply(
        "Nemotron, with words in the list",
        "<TOOLCALL>[get_time(), and so on]</TOOLCALL> Ok.",
        (),
        "Ok.",
        ("did not run",),
    ),
    Reply(
        "Nemotron in neither", '<TOOLCALL>[{"name": read_file}]</TOOLCALL> Ok.', (), "Ok.", ("did not run",)
    ),
    Reply(
        "as Gemini sends it", '{"functionCall": {"name": "read_file", "args": {"path": "a"}}}', (_read("a"),)
    ),
    Reply(
        "as the AI SDK has it",
        '{"toolCallId": "c", "toolName": "read_file", "args": {"path": "a"}}',
        (_read("a"),),
    ),
    Reply(
        "elements in lines of Windows",
        "<write_file>\r\n<path>a</path>\r\n<content>\r\nx\r\ny\r\n</content>\r\n</write_file>",
        (("write_file", {"path": "a", "content": "x\r\ny"}),),
    ),
    Reply("one list behind the other", '[get_time()]\n[read_file(path="a")]', (TIME, _read("a"))),
    Reply("a box", "It is <|begin_of_box|>3<|end_of_box|>.", (), "It is 3."),
    Reply(
        "Apriel",
        "Here are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\nIt is 3.\n[END FINAL RESPONSE]\n<|end|>",
        (),
        "It is 3.",
    ),
    Reply(
        "HyperCLOVA X",
        "/think\nHm.<|im_end|>\n<|im_start|>assistant\nIt is 3.<|im_end|><|endofturn|>",
        (),
        "It is 3.",
    ),
    Reply(
        "HyperCLOVA X with a call, and one it thinks of",
        '/think\n-> tool/function_call\n[{"name": "get_time", "arguments": {}}]<|im_end|>\n'
        '<|im_start|>assistant -> tool/function_call\n[{"name": "read_file", "arguments": {"path": "a"}}]<|im_end|>',
        (_read("a"),),
    ),
    Reply("a header in the midst", "Write\n/think\nfor it.", (), "Write\n/think\nfor it."),
    Reply("an answer that is marked", "<think>Hm.</think>\n<answer>\nIt is 3.\n</answer>\n", (), "It is 3."),
    Reply(
        "a response that is marked", "Hm.\n</think>\n\n<response>\nIt is 3.\n</response>\n", (), "It is 3."
    ),
    Reply(
        "a call that is thought of",
        "<think>\nAction: read_file(path='a')\n</think>\nNo.",
        (),
        "No.",
    ),
]

_HTML = '<html>\n<body>\n<search>\n<form>\n<input name="search">\n</form>\n</search>\n<time></time>\n</body>\n</html>'
_ELEMENT = "<read_file>\n<path>a</path>\n</read_file>"
ELEMENTS = [
    *(
        Reply(f"an element each: {written[:60]}", written, (_read("a"),))
        for written in (
            _ELEMENT,  # Cline
            "<read_file><path>a</path></read_file>",
            "<thinking>Hm.</thinking>\n\n" + _ELEMENT,
            "<think>Hm.</think>\n<answer>\n" + _ELEMENT + "\n</answer>",
            f"```xml\n{_ELEMENT}\n```",
            "<read_file>\n<args>\n<path>a</path>\n</args>\n</read_file>",  # Roo
            "<function_calls>\n<invoke>\n<tool_name>read_file</tool_name>\n<parameters>\n<path>a</path>\n</parameters>\n</invoke>\n</function_calls>",  # Claude 2
            "<invoke>\n<tool_name>read_file</tool_name>\n<parameters>\n<path>a</path>\n</parameters>\n</invoke>",
            "<tool>\n<tool_name>read_file</tool_name>\n<path>a</path>\n</tool>",
            '<tool_use>\n  <name>read_file</name>\n  <arguments>{"path": "a"}</arguments>\n</tool_use>',  # Cherry Studio
            '<tool_call>\n<name>read_file</name>\n<arguments>{"path": "a"}</arguments>\n</tool_call>',
            f"<tool_call>\n{_ELEMENT}\n</tool_call>",
            f"<tool_calls>\n{_ELEMENT}\n</tool_calls>",
            "<tool_call>\n<function>read_file</function>\n<parameter=path>a</parameter>\n</tool_call>",
            '<tool_call>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</tool_call>',
            '<tool_calls>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</tool_calls>',
            '<tool name="read_file">{"path": "a"}</tool>',
            '<tool_call name="read_file"><parameter name="path">a</parameter></tool_call>',
            '<read_file>{"path": "a"}</read_file>',
            '<read_file path="a"/>',
            "<read_file path='a' ></read_file>",
            '<tool name="read_file" path="a"/>',
            '<tool>read_file</tool><tool_input>{"path": "a"}</tool_input>',  # LangChain
            "<action>read_file</action>\n<action_input>\n<path>a</path>\n</action_input>",
            '<tool_calls>\n<read_file path="a" />\n</tool_calls>',
            '<x:function_calls>\n<x:invoke name="read_file">\n<x:parameter name="path">a</x:parameter>\n</x:invoke>\n</x:function_calls>',
        )
    ),
    Reply(
        "elements with words around them",
        f"I look.\n\n{_ELEMENT}\n\nDone.",
        (_read("a"),),
        "I look.\n\nDone.",
    ),
    Reply(
        "attributes with all sorts of values",
        'I write.\n<write_file path="a &amp; b" content="&lt;p&gt;" overwrite="true" />\nDone.',
        (("write_file", {"path": "a & b", "content": "<p>", "overwrite": True}),),
        "I write.\nDone.",
    ),
    Reply(
        "one argument as an attribute, the other within",
        '<tool name="write_file" path="a"><content>b</content></tool>',
        (("write_file", {"path": "a", "content": "b"}),),
    ),
    Reply("two elements", f"{_ELEMENT}\n<get_time></get_time>\n<get_time/>", (_read("a"), TIME, TIME)),
    Reply(
        "values of other types",
        "<search>\n<query>a <b>c</b></query>\n<tags><tag>x</tag><tag>y</tag></tags>\n<filter><year>3</year></filter>\n</search>",
        (("search", {"query": "a <b>c</b>", "tags": ["x", "y"], "filter": {"year": 3}}),),
    ),
    Reply(
        "a list as elements that come again",
        "<search><query>a</query><tags>x</tags><tags>y</tags></search>",
        (("search", {"query": "a", "tags": ["x", "y"]}),),
    ),
    Reply(
        "a value with tags of its own and the closing one among them",
        "<write_file>\n<path>a.html</path>\n<content>\n<p>x</p>\n</content> is no end\n</content>\n</write_file>",
        (("write_file", {"path": "a.html", "content": "<p>x</p>\n</content> is no end"}),),
    ),
    Reply(
        "an element that the reply ends in",
        "I look.\n<read_file>\n<path>a",
        (),
        "I look.",
        ("is not closed with </path>",),
    ),
    Reply(
        "an argument twice",
        "<read_file><path>a</path><path>b</path></read_file>",
        (),
        "",
        ("is there twice",),
    ),
    *(
        Reply(f"no call: {written}", written, (), written)
        for written in (
            f"Like so:\n```xml\n{_ELEMENT}\n```\nSee?",
            f"Like so:\n```xml\n{_ELEMENT}\n```",
            f"```\n# Cline\n{_ELEMENT}\n```",
            f"~~~\nof\n{_ELEMENT}\n~~~",
            "Write `<read_file><path>a</path></read_file>` for it.",
            "Write <read_file><path>a</path></read_file> for it.",
            "Write\n<read_file><path>a</path></read_file> for it.",
            "> <read_file><path>a</path></read_file>",
            f"<config>\n{_ELEMENT}\n</config>",
            _HTML,
            "<search>a search</search>",
            '<search>{"a": 1}</search>',
            '<search role="search">\n<query>a</query>\n</search>',
            "<person><name>search</name></person>",
            "<person><name>Ada</name><arguments>many</arguments></person>",
            '<a name="get_time"></a>',
            "<hammer>\n<size>3</size>\n</hammer>",
            '<read_file path="a" class="b"/>',
            'Write <read_file path="a"/> for it.',
            'Write `<read_file path="a"/>` for it.',
            '<config>\n<read_file path="a"/>\n</config>',
            "<tool>read_file</tool> reads a file.",
            "<tool>hammer</tool><tool_input>{}</tool_input>",
            '<read_file path="a">\n<lines>3</lines>\n</read_file>',
            '<a name="read_file" path="a"/>',
            "<read_file>\n<size>3</size>\n</read_file>",
            "a <b and c> d <i>e</i>\n<read_file\n<search",
            "<tool>\n<tool_name>hammer</tool_name>\n<parameters><path>a</path></parameters>\n</tool>",
        )
    ),
    *(
        Reply(f"a variant: {written[:30]}", f"So:\n{written}", (_read("a"),), "So:")
        for written in (
            "<tool_calls:6124c78e>\n<tool_call:6124c78e>read_file\n<arg_key:6124c78e>path</arg_key:6124c78e>\n<arg_value:6124c78e>a</arg_value:6124c78e>\n</tool_call:6124c78e>\n</tool_calls:6124c78e>",  # Hunyuan 4
            '<｜GCML｜tool_calls>\n<｜GCML｜invoke name="read_file">\n<｜GCML｜parameter name="path" string="true">a</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls></s>',  # GigaChat 3.5
            "<iquestcoder_tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</iquestcoder_tool_call>",
            '[TOOL_REQUEST]{"name": "read_file", "arguments": {"path": "a"}}[END_TOOL_REQUEST]',  # LM Studio
        )
    ),
    Reply("Sarashina", "<|tool_calls|>[{'name': 'read_file', 'arguments': {'path': 'a'}}]", (_read("a"),)),
    Reply(
        "Sarashina, where a server leaves out the token",
        "[{'name': 'read_file', 'arguments': {'path': \"a's\"}}]",
        (_read("a's"),),
    ),
    Reply("Python that is no call", "[{'name': 'x'}, 3]", (), "[{'name': 'x'}, 3]"),
    Reply(
        "functools behind words",
        'I look.\nfunctools[{"name": "read_file", "arguments": {"path": "a"}}]',
        (_read("a"),),
        "I look.",
    ),
    Reply(
        "functools in Python",
        "Use\nfunctools.partial\nor functools[0].",
        (),
        "Use\nfunctools.partial\nor functools[0].",
    ),
    Reply("gpt-oss without its tokens", 'commentary to=functions.read_file json{"path": "a"}', (_read("a"),)),
    Reply(
        "Granite 3.2",
        "Here is my thought process: Hm.\n\nHere is my response: It is 3.",
        (),
        "It is 3.",
    ),
    Reply(
        "Granite 3.2 with a call, and one it thinks of",
        'Here\'s my thought process:\n<|tool_call|>[{"name": "get_time"}]\nHere\'s my response:\n'
        '<|tool_call|>[{"name": "read_file", "arguments": {"path": "a"}}]',
        (_read("a"),),
    ),
]

ANY = [
    *LOOSE,
    *ELEMENTS,
    Reply("as Hermes does", 'So: <tool_call>{"name": "get_time"}</tool_call>', (TIME,), "So:"),
    Reply("as Mistral does", '[TOOL_CALLS]read_file[ARGS]{"path": "a"}', (_read("a"),)),
    Reply(
        "as Qwen does",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        (_read("a"),),
    ),
    Reply(
        "as GLM does",
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        (_read("a"),),
    ),
    Reply(
        "with tags that several have",
        '<tool_calls>\n<tool_call>{"name": "get_time"}</tool_call>\n</tool_calls>',
        (TIME,),
    ),
    Reply(
        "as Nemotron does",
        '<TOOLCALL>[{"name": "read_file", "arguments": {"path": "a"}}]</TOOLCALL>',
        (_read("a"),),
    ),
    Reply("as Gemma does", '<|tool_call>call:read_file{path:<|"|>a<|"|>}<tool_call|><eos>', (_read("a"),)),
    Reply(
        "as DeepSeek does",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (_read("a"),),
    ),
    Reply(
        "as gpt-oss does",
        '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a"}<|call|>',
        (_read("a"),),
    ),
    Reply("as Llama does, in Python", '<|python_tag|>[read_file(path="a")]', (_read("a"),)),
    Reply("nothing but JSON", '\n{"name": "read_file", "parameters": {"path": "a"}}', (_read("a"),)),
    Reply("nothing but Python", '[read_file(path="a"), get_time()]', (_read("a"), TIME)),
    Reply(
        "nothing but JSON of a tool that is not there",
        '{"name": "you", "parameters": {"a": 1}}',
        (),
        '{"name": "you", "parameters": {"a": 1}}',
    ),
    Reply(
        "JSON in a sentence",
        'So {"name": "get_time", "parameters": {}} is it',
        (),
        'So {"name": "get_time", "parameters": {}} is it',
    ),
    Reply(
        "closing tags that mean nothing here",
        "<b>a</b> </function> </invoke>",
        (),
        "<b>a</b> </function> </invoke>",
    ),
    Reply("a call that cannot be read", "<tool_call>{oops</tool_call>", (), "", ("did not run",)),
]

REPLIES: dict[str, list[Reply]] = {
    "json_strict": JSON_STRICT,
    "xml_tag": _between("<tool_code>", "</tool_code>"),
    "hermes": _between("<tool_call>", "</tool_call>"),
    "qwen_coder": QWEN_CODER,
    "llama_json": LLAMA_JSON,
    "llama_pythonic": LLAMA_PYTHONIC,
    "mistral": MISTRAL,
    "deepseek": DEEPSEEK,
    "glm": GLM,
    "hunyuan": HUNYUAN,
    "k2_horizon": K2_HORIZON,
    "kimi": KIMI,
    "harmony": HARMONY,
    "deepseek_dsml": DEEPSEEK_DSML,
    "minimax": MINIMAX,
    "kimi_k3": KIMI_K3,
    "minicpm": MINICPM,
    "step": _invoked(_STEP),
    "muse": MUSE,
    "grok": GROK,
    "minimax_m3": MINIMAX_M3,
    "gemma": GEMMA,
    "functiongemma": _gemma("<start_function_call>", "<end_function_call>", "<escape>"),
    "olmo": OLMO,
    "cohere": COHERE,
    "apertus": APERTUS,
    "inkling": INKLING,
    "plamo": PLAMO,
    "functionary": FUNCTIONARY,
    "solar": SOLAR,
    "qwen_agent": QWEN_AGENT,
    "mcp_tag": MCP_TAG,
    "action": ACTION,
    "any": ANY,
}
