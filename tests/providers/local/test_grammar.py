"""What the grammar of a tool's arguments lets a small model write: nothing that the request does not hold."""

from __future__ import annotations

from dragoman.providers.local.examples import Nearness, ToolExample, chats, examples_of
from dragoman.providers.local.grammar import arguments_grammar
from dragoman.tools.builtin import basics_group, files_group

TOOLS = {tool.name: tool.spec() for group in (basics_group(), files_group()) for tool in group.tools}


def grammar(tool: str, request: str) -> str:
    return arguments_grammar(TOOLS[tool].parameters, examples_of(TOOLS[tool]), request)


def root(tool: str, request: str) -> str:
    return grammar(tool, request).partition("\n")[0]


def test_a_path_is_a_word_of_the_request_that_looks_like_one() -> None:
    assert r'"\"notes.txt\""' in root("read_file", "Please read notes.txt now!")
    assert "now" not in root("read_file", "Please read notes.txt now!")


def test_where_no_word_looks_like_one_every_word_may_be_meant() -> None:
    assert r'("\"Read\"" | "\"Makefile\"")' in root("read_file", "Read Makefile.")


def test_what_examples_say_beside_their_request_may_be_said() -> None:
    assert r'"\".\""' in root("list_directory", "What do we have?")


def test_an_optional_argument_that_the_request_does_not_hold_is_left_out() -> None:
    assert "zone" not in root("current_time", "How late is it?")
    assert "Europe/Rome" in root("current_time", "Time in Europe/Rome?")


def test_what_examples_do_not_copy_is_free() -> None:
    assert root("calculator", "What is 2 plus 2?") == r'root ::= " " "{" "\"expression\": " string "}"'


def test_a_text_of_several_words_is_a_run_of_words_without_the_marks_around_it() -> None:
    rules = grammar("write_file", "Write 'so it is' to a.txt")
    assert r'"so"' in rules
    assert '"is"' in rules
    assert '"\'so"' not in rules  # with its mark, it begins with the mark alone


def test_quotes_and_backslashes_of_a_request_stay_inside_their_literals() -> None:
    rules = grammar("write_file", 'Write a\\b "c" to a.txt')
    assert r'"a\\\\b"' in rules


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]}
    schema = {"$defs": {"N": node}, **node}
    assert "value" in arguments_grammar(schema, [], "go")  # type: ignore[arg-type]  # a dict of JSON


def test_a_tool_without_examples_is_shown_by_what_is_said_of_it() -> None:
    assert examples_of(TOOLS["edit_file"]) == [
        ToolExample("Replace a piece of text in a file of the workspace", "edit_file")
    ]


def test_the_nearest_example_is_read_last() -> None:
    known = [*chats(), *examples_of(TOOLS["calculator"]), *examples_of(TOOLS["read_file"])]
    assert Nearness(known).nearest("How much is 3 plus 4?", 2)[-1].tool == "calculator"
    assert Nearness(known).nearest("Read b/c.txt", 1)[0].tool == "read_file"
