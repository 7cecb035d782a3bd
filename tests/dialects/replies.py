# ruff: noqa: E501  # a reply is easier to read in one line
"""Tables of replies that models write, or could write, and how each is read. Several tests use them."""

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


AS_IT_IS = "\0"  # all of it is text


@dataclass(frozen=True)
class Reply:
    """A reply and its contents. `errors` are words that the model's error for each call must contain."""

    about: str
    reply: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    text: str = ""
    errors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.text == AS_IT_IS:
            object.__setattr__(self, "text", self.reply)


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
        (),
        AS_IT_IS,
    ),
    Reply(
        "a fence without a language, in one line",
        'Now: ```{"tool_calls": [{"name": "get_time"}]}``` done',
        (),
        AS_IT_IS,
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
        (),
        AS_IT_IS,
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
        (),
        AS_IT_IS,
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
        "an object whose tool_calls is not a list",
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
        (),
        AS_IT_IS,
    ),
    Reply(
        "a stray quote in front of a call",
        'Say {"hello to {"tool_calls": [{"name": "get_time"}]}',
        (),
        AS_IT_IS,
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
        (),
        AS_IT_IS,
    ),
    Reply(
        "a call behind code that is never closed",
        '```python\nprint(1)\n\n{"tool_calls": [{"name": "get_time"}]}',
        (),
        AS_IT_IS,
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
        AS_IT_IS,
    ),
    Reply(
        "cut off behind a complete call",
        '{"tool_calls": [{"name": "get_time", "arguments": {}}, ',
        errors=("reply ends",),
    ),
    Reply("cut off before it is certain", 'Hm {"tool_ca', (), 'Hm {"tool_ca'),
    Reply(
        "no longer JSON",
        '{"tool_calls": [{"name": "read_file", "arguments": {path: "a"}}]}',
        (),
        "",
        ("read_file did not run: it is no longer JSON",),
    ),
    Reply(
        "a raw line break in a string",
        '{"tool_calls": [{"name": "write_file", "arguments": {"content": "a\nb"}}]}',
        errors=("line break",),
    ),
    Reply("an empty list", 'Nothing to do. {"tool_calls": []}', (), AS_IT_IS),
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
    """Return the replies common to all dialects that put a JSON object between two tags."""
    return [
        Reply(
            "one call", f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}{close}', (_read("a"),)
        ),
        Reply(
            "prose around it, and lines",
            f'I look.\n\n{open}\n{{"name": "get_time", "arguments": {{}}}}\n{close}',
            (TIME,),
            "I look.",
        ),
        Reply(
            "several calls with text between them",
            f'A {open}{{"name": "get_time"}}{close} B\n{open} {{"name": "read_file", "arguments": {{"path": "b"}}}} '
            f"{close}\n{open}{{}}{close} C",
            (),
            AS_IT_IS,
        ),
        Reply(
            "two objects, and a list, between two tags",
            f'{open}{{"name": "get_time"}}\n{{"name": "read_file", "arguments": {{"path": "b"}}}}{close}'
            f'{open}[{{"name": "get_time"}}, {{"name": "get_time"}}]{close}',
            (TIME, _read("b"), TIME, TIME),
        ),
        Reply(
            "tags, fences and quotes in a string",
            f'{open}{{"name": "write_file", "arguments": {{"content": "{close}{open} ```\\n\\"}}\\\\"}}}}{close}',
            (("write_file", {"content": f'{close}{open} ```\n"}}\\'}),),
            "",
        ),
        Reply(
            "a fence between the tags",
            f'{open}\n```json\n{{"name": "get_time", "arguments": {{}}}}\n```\n{close}',
            (TIME,),
        ),
        Reply(
            "a fence around the tags",
            f'Here:\n```xml\n{open}{{"name": "get_time"}}{close}\n{open}{{"name": "get_time"}}{close}\n```\nDone.',
            (),
            AS_IT_IS,
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
            f'{open}{{"name": "get_time"}}',
            (TIME,),
            "",
        ),
        Reply("a closing tag left over", f'{open}{{"name": "get_time"}}{close}\n{close}', (TIME,), ""),
        Reply(
            "one brace too many",
            f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}}}{close}',
            (),
            "",
            ("read_file did not run: something else stands behind its JSON",),
        ),
        Reply(
            "JSON that goes on behind its end, never closed",
            f'{open}{{"name": "read_file", "arguments": {{"path": "a"}}}}, "lines": 3}}',
            (),
            "",
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
            (),
            AS_IT_IS,
        ),
        Reply(
            "words in place of JSON",
            f"{open}the time{close}",
            (),
            "",
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
            (),
            AS_IT_IS,
        ),
        Reply(
            "the tag in a code block",
            f'So:\n```\nYou write\n{open}{{"name": "get_time"}}{close}\n```\nReal: {open}{{"name": "get_time"}}{close}',
            (),
            AS_IT_IS,
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
            (),
            AS_IT_IS,
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
    Reply("no outer tag", "Look\n<function=get_time></function>", (TIME,), "Look"),
    Reply("the outer tag only behind it", "<function=get_time>\n</function>\n</tool_call>", (TIME,), ""),
    Reply(
        "everything in one line",
        "<tool_call><function=read_file><parameter=path>a b</parameter></function></tool_call>",
        (_read("a b"),),
    ),
    Reply(
        "several calls",
        _qwen("read_file", path="a") + "\n" + _qwen("get_time") + _qwen("read_file", path="b"),
        (_read("a"), TIME, _read("b")),
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
            f'<function=read_file{before}{{"path": "a"}}{behind}</function>',
            (_read("a"),),
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
        "<tool_call><function=read_file><parameter=path>a<parameter=lines>3</parameter></function></tool_call>",
        (_read("a", lines=3),),
        "",
    ),
    Reply(
        "a parameter that is not closed, in front of one that the tool does not have",
        "<tool_call><function=read_file><parameter=path>a<parameter=x>3</parameter></function></tool_call>",
        (),
        "",
        ("parameter path is not closed",),
    ),
    Reply(
        "the last parameter is not closed",
        "<tool_call><function=read_file><parameter=path>\na\n</function></tool_call>",
        (_read("a"),),
        "",
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
        "a parameter that occurs twice",
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
    Reply("cut off in the name", "Hm <tool_call><function=read", (), AS_IT_IS),
    Reply("cut off behind the tag", "Hm <tool_call>", (), AS_IT_IS),
    Reply(
        "the function not closed, but the outer tag",
        "<tool_call><function=read_file><parameter=path>a</parameter></tool_call>",
        (_read("a"),),
        "",
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
        "<tool_call>read_file <arg_key>path</arg_key> <arg_value>a b</arg_value> </tool_call>",
        (_read("a b"),),
        "",
    ),
    Reply(
        "several calls with text between them",
        _glm("get_time") + "\nthen\n" + _glm("read_file", path="b") + "\n" + _glm("other", x="1"),
        (_read("b"), ("other", {"x": 1})),
        "<tool_call>get_time\n</tool_call>\nthen",
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
        "<tool_call>read_file<arg_key>path</arg_key></tool_call>",
        (),
        "",
        ("path has no",),
    ),
    Reply(
        "a value that is not closed ends in front of the next key",
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>a<arg_key>lines</arg_key><arg_value>3</arg_value></tool_call>",
        (_read("a", lines=3),),
    ),
    Reply(
        "a key that occurs twice",
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
    Reply("cut off behind the tag", "Hm <tool_call>", (), AS_IT_IS),
    Reply("words in place of a call", "<tool_call>please read it</tool_call>", (), "", ("belongs",)),
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
        'So. <tool_calls>[{"name": "read_file", "arguments": {"path": "a"}}]</tool_calls>',
        (_read("a"),),
        "So.",
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
        (),
        AS_IT_IS,
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
        '{"name": "get_time", "parameters": {}}, {"name": "read_file", "parameters": {"path": "a"}}',
        (TIME, _read("a")),
        "",
    ),
    Reply(
        "tools that are listed",
        'So:\n{"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}',
        (),
        'So:\n{"name": "get_time", "description": "The time.", "parameters": {"type": "object", "properties": {}}}',
    ),
    Reply(
        "a call, and a tool that is listed",
        '{"name": "get_time", "parameters": {}}',
        (TIME,),
        "",
    ),
    Reply(
        "several bare ones, with and without semicolons",
        '{"name": "get_time", "parameters": {}};{"name": "get_time", "parameters": {}}\n{"name": "read_file", '
        '"parameters": {"path": "b"}}',
        (TIME, TIME, _read("b")),
        "",
    ),
    Reply(
        "a list of them",
        '[{"name": "get_time", "parameters": {}}, {"name": "read_file", "parameters": {"path": "b"}}]',
        (TIME, _read("b")),
        "",
    ),
    Reply(
        "a list behind the tag, cut off",
        '<|python_tag|>[{"name": "get_time", "parameters": {}}, {"name": "re',
        errors=("the reply ends",),
    ),
    Reply(
        "prose and a fence",
        'I will.\n```json\n{"name": "get_time", "parameters": {}}\n```\nWait.',
        (),
        AS_IT_IS,
    ),
    Reply("nothing but the name of a tool", 'Ok {"name": "get_time"}', (), AS_IT_IS),
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
        (),
        AS_IT_IS,
    ),
    Reply(
        "brackets and tags in strings",
        '{"name": "search", "parameters": {"query": "}{<|python_tag|>\\"```"}}',
        (("search", {"query": '}{<|python_tag|>"```'}),),
        "",
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
    Reply("broken", '{"name": "read_file", "parameters": {path}}', (), "", ("no longer JSON",)),
    Reply("code behind the tag", "<|python_tag|>print(1)<|eom_id|>", errors=("no JSON object",)),
    Reply("an unclosed tag at the end", "Ok.\n<|python_tag|>", (), "Ok.", ("no JSON object",)),
    Reply(
        "inline code and a code block",
        'Use `{"name": "f", "parameters": {}}`.\n```\nx\n{"name": "f", "parameters": {}}\n```\nSee {"name": "get_time"}',
        (),
        AS_IT_IS,
    ),
    Reply(
        "a call behind code that is never closed",
        '```py\nx = [{"name": "Bob"}]\n{"name": "get_time", "parameters": {}}',
        (),
        AS_IT_IS,
    ),
]

LLAMA_PYTHONIC = [
    Reply("one call", '[read_file(path="a", lines=3)]', (_read("a", lines=3),)),
    Reply(
        "several calls with prose around",
        "I look: [get_time(), read_file(path='b')]\nWait [1].",
        (),
        AS_IT_IS,
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
        (),
        AS_IT_IS,
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
    Reply("arguments without names", '[read_file("a")]', (), "", ("must be named",)),
    Reply("arguments that are no values", "[read_file(path=open('a'))]", errors=("not a plain value",)),
    Reply(
        "one call that can be read and one that cannot",
        "[get_time(), read_file(x)]",
        (TIME,),
        errors=("named",),
    ),
    Reply("a name twice", "[read_file(path='a', path='b')]", errors=("path occurs twice",)),
    Reply("cut off in a string", 'So [read_file(path="a', (), AS_IT_IS),
    Reply("cut off, and no tool", "See [note(1, and", (), "See [note(1, and"),
    Reply("a line that ends in a string", "[read_file(path='a\n", (), "", ("not valid Python",)),
    Reply(
        "lines of Windows in a string",
        "<|tool_call_start|>[read_file(path='a\r\nb')]<|tool_call_end|>",
        (_read("a\r\nb"),),
    ),
    Reply("a number that is none", "[read_file(lines=1e999)]", errors=("not a plain value",)),
    Reply("something else behind the tag", "<|python_tag|>print(1)", errors=("no list",)),
    Reply(
        "inline code and a code block",
        "Use `[get_time()]`.\n```py\nx = 1\n[get_time()]\n```\n[get_time()]",
        (),
        AS_IT_IS,
    ),
    Reply("a call behind code that is never closed", "```py\nx = 1\n[get_time()]", (), AS_IT_IS),
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
        '[TOOL_CALLS]get_time[ARGS]{}[TOOL_CALLS]read_file[ARGS]{"path": "b"}',
        (TIME, _read("b")),
        "",
    ),
    Reply("a single object", '[TOOL_CALLS] {"name": "get_time"}', (TIME,)),
    Reply(
        "spread over lines",
        '[TOOL_CALLS] [\n  {\n "name": "get_time",\n "arguments": {}\n}\n]',
        (TIME,),
        "",
    ),
    Reply("an empty list", "Hm. [TOOL_CALLS] []", (), "Hm."),
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
    Reply("cut off in the name", "A.\n[TOOL_CALLS]read", (), "A.", ("no name",)),
    Reply("cut off behind the marker", "A.\n[TOOL_CALLS]", (), "A.", ("no name",)),
    Reply("a brace too many", '[TOOL_CALLS]read_file[ARGS]{"path": "a"}}', errors=("something else",)),
    Reply("arguments that are no object", "[TOOL_CALLS]read_file[ARGS]a", errors=("no JSON object",)),
    Reply(
        "broken, then one that is not",
        "[TOOL_CALLS]a[ARGS]{x}[TOOL_CALLS]get_time[ARGS]{}",
        (TIME,),
        "",
        ("no longer JSON",),
    ),
    Reply("in an open code block", "```py\nx\n[TOOL_CALLS]get_time[ARGS]{}", (), AS_IT_IS),
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
        '{"path": "b"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (TIME, _read("b")),
        "A",
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
        "<｜tool▁call▁end｜>",
        (("write_file", {"content": "```\n<｜tool▁call▁end｜>"}),),
        "",
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
        "Ok.\n<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
        '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
        (_read("a"),),
        "Ok.",
    ),
    Reply(
        "two calls, with lines",
        "<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.get_time:0<|tool_call_argument_begin|>\n{}\n"
        "<|tool_call_end|>\n<|tool_call_begin|>functions.read_file:12<|tool_call_argument_begin|>"
        '{"path": "b"}<|tool_call_end|><|tool_calls_section_end|>',
        (TIME, _read("b")),
        "",
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
        "<|tool_call_begin|>get_time:0 {}<|tool_call_end|>",
        (),
        "",
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
    """The tags of a model that writes `invoke`. `text` and `number` follow the key of a value."""

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
            "two calls after text",
            f"So.\n{before}{tags('read_file', path)}{tags('get_time')}{behind}",
            (_read("a"), TIME),
            "So.",
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
        Reply("a key twice", tags("read_file", path, path), errors=("path occurs twice",)),
        Reply(
            "cut off in a value",
            tags("read_file", path).partition(f"a{tags.argument_end}")[0] + "a",
            errors=("read_file did not run: its argument path is not closed",),
        ),
        Reply(
            "cut off behind a value", f'{tags.call}read_file"{tags.head_end}{path}', errors=("not closed",)
        ),
        Reply("cut off in the name", f"{tags.call}read_f", errors=("reply ends",)),
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
            "two calls after text",
            f"So.\n{call(f'read_file{{{path}}}')}{call('get_time{}')}",
            (_read("a"), TIME),
            "So.",
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
        Reply(
            "cut off in a string", call("read_file{")[: -len(behind)] + path[:-1], errors=("the reply ends",)
        ),
        Reply("cut off behind a value", f"{before}call:read_file{{{path}", errors=("the reply ends",)),
        Reply("a key twice", call(f"read_file{{{path},{path}}}"), errors=("path occurs twice",)),
        Reply("quotes as in JSON", call('read_file{path:"a, b"}'), errors=("must be between two",)),
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
        (),
        AS_IT_IS,
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
            f"So.\n{before}{read}{behind}{before}{time}{behind}",
            (_read("a"), TIME),
            "So.",
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
    Reply("nothing around", "<tool_calls></tool_calls>", (), ""),
    Reply("fenced whole", "```\n<tool_calls><tool_call>get_time</tool_call></tool_calls>\n```", (TIME,)),
    Reply("in backticks", "`<tool_calls>` is a tag", (), "`<tool_calls>` is a tag"),
    Reply("cut off", f"<tool_call>read_file<tool_sep>{_PATH}", errors=("not closed with",)),
    Reply("JSON cut off", f'{_OPEN[0]}{{"path', errors=("read_file did not run",)),
]
K2_HORIZON = [
    Reply(
        "one call",
        "So. <ifm|tool_calls><ifm|tool_call>read_file<ifm|arg_key>path</ifm|arg_key><ifm|arg_value>a"
        "</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
        (_read("a"),),
        "So.",
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
    Reply("a key twice", _m3("read_file", "<path>a</path><path>b</path>"), errors=("occurs twice",)),
    Reply("a tag that is not closed", _m3("read_file", "<path>a"), errors=("path is not closed",)),
    Reply("cut off", f'{_MM}<invoke name="read_file">{_MM}<path>a', errors=("path is not closed",)),
    Reply("nested too deep", _m3("search", "<filter>" + "<n>" * 201 + "</n>" * 201), errors=("too deep",)),
    Reply(
        "a tag that breaks off in front of the next call",
        f'{_MM}<invoke name="read_file">{_MM}<pat{_m3("get_time")}',
        (TIME,),
        errors=("the tag <pat does not belong there",),
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

ANY = [
    Reply("tags", 'So.\n<tool_call>{"name": "get_time"}</tool_call>', (TIME,), "So."),
    Reply("tokens", '<|tool_call|>[{"name": "get_time", "arguments": {}}]', (TIME,)),
    Reply(
        "JSON that is all of the reply", '{"name": "read_file", "parameters": {"path": "a"}}', (_read("a"),)
    ),
    Reply("Python that is all of the reply", '[read_file(path="a")]', (_read("a"),)),
    Reply("JSON after words", 'So: {"name": "get_time", "parameters": {}}', (), AS_IT_IS),
    Reply("a line of a program", "get_time()", (), AS_IT_IS),
    Reply("an element", "<read_file><path>a</path></read_file>", (), AS_IT_IS),
    Reply("minutes", "Minutes\n\nAction: get_time\nOwner: Ann\n", (), AS_IT_IS),
]

_OF_OTHERS = (  # tags and tokens of models that write the same JSON
    *("<tool_call", "<tools>", "<TOOLCALL>", "<function_call>", "<longcat", "functools", "<|tool_call|>"),
    *("<|action_start|>", "<|function_call|>", "function call<|role_sep|>", "-> tool/function_call"),
)

REPLIES: dict[str, list[Reply]] = {
    "json_strict": JSON_STRICT,
    "xml_tag": _between("<tool_code>", "</tool_code>"),
    "hermes": _between("<tool_call>", "</tool_call>"),
    "qwen_coder": QWEN_CODER,
    "llama_json": [one for one in LLAMA_JSON if not any(mark in one.reply for mark in _OF_OTHERS)],
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
    "json_tags": LLAMA_JSON,
    "solar": SOLAR,
    "any": ANY,
}
