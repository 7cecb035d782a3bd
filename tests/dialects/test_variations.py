"""Check which calls run, and which text is visible, with calls of every dialect in every place (D1, D2, D3).

Calls have many kinds of arguments. Around them are prose, reasoning, code that shows the format, tokens that
end a reply, and a last call that breaks off.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman.dialects.dialect import NAMES, TextCall, dialect
from dragoman.messages.message import Arguments
from dragoman.wire.thinking import BEGIN_TOKENS, END_TOKENS, THOUGHTS
from tests.dialects.calls import in_pieces, is_whole_reply, tools_of
from tests.sweeps import some

every_dialect = pytest.mark.parametrize("name", NAMES)

VALUES: list[JsonValue] = [
    *("plain", "", "two words", " padded ", "Größe 你好 😀 \u2028", 'it\'s "quoted"', "back\\slash"),
    *("line\nbreak", "ends\n", "\n\nblank lines\n\n", "tab\tand\r\n", "```py\nprint('hi')\n```", "`code`"),
    *("<b>bold</b> & a < b", "</think>", "<think>not a thought</think>", "{x} [y] (z)", "a, b: c = d; e"),
    *('{"name": "other", "arguments": {}}', "</s>", "<eos>", "true", "null", "3", "-0.5", "[1]", '{"a": 1}'),
    *(0, -7, 12345678901234567, 0.5, -1.5e-7, True, False, None),
    [],
    [1, "two", None],
    {},
    {"a": {"b": [1, {"c": "d\n"}]}},
    [{"k": "ü"}],
    {"": 1, "x y": [True]},
]
PROSE = [
    "I look.",
    "1 < 2, so <b>yes</b>.",
    "- a list\n- of `items`",
    "See [this](http://x.y) {now}.",
    "It's 5 > 3.",
]


def thoughts(name: str) -> list[tuple[str, str]]:
    """How they begin and end: for each dialect some of them, for all dialects together each of them often."""
    return some([*THOUGHTS.items()], 3, NAMES.index(name))


def calls_of(arguments: Arguments, count: int = 1) -> list[TextCall]:
    return [TextCall(f"tool_{place}", arguments) for place in range(count)]


def check(name: str, reply: str, calls: list[TextCall], text: str) -> None:
    """The reply has these calls and shows this text, in one piece, in many, and character by character."""
    tools = tools_of([*calls, TextCall("get_time", {})])
    parsed = dialect(name).parse(reply, tools)
    assert [(call.name, call.arguments) for call in parsed.calls] == [
        (call.name, call.arguments) for call in calls
    ], reply
    assert parsed.text == text, reply
    assert in_pieces(name, list(reply), tools) == parsed, reply


@every_dialect
def test_d1_any_argument_comes_back_as_it_was(name: str) -> None:
    for value in VALUES:
        calls = calls_of({"value": value, "more": "x"})
        check(name, dialect(name).calls(calls), calls, "")


@every_dialect
def test_d1_several_calls_with_and_without_arguments(name: str) -> None:
    several: list[Arguments] = [{}, {"a": 1}, {"a": "x\ny", "b": [1, 2], "c": None}]
    for arguments in several:
        calls = calls_of(arguments, 3)
        check(name, dialect(name).calls(calls), calls, "")


@every_dialect
def test_d2_prose_around_calls_is_all_that_is_seen(name: str) -> None:
    calls = calls_of({"path": "a b", "lines": 3})
    written = dialect(name).calls(calls)
    for prose in PROSE:
        around = f"{prose}\n{written}\n\n{prose}"
        assert not dialect(name).parse(around, tools_of(calls)).found
        if is_whole_reply(name):
            check(name, f"{prose}\n\n{written}", [], f"{prose}\n\n{written}")
        else:
            check(name, f"{prose}\n\n{written}", calls, prose)
        check(name, f"\n{written}\n", calls, "")
        check(name, prose, [], prose)


@every_dialect
def test_w4_a_call_in_a_thought_never_runs(name: str) -> None:
    draft = dialect(name).calls([TextCall("get_time", {"a": 1})])
    calls = calls_of({"path": "a"})
    for opening, closing in thoughts(name):
        written = dialect(name).calls(calls)
        for thought in (f"Maybe {draft} or not.", f"\n{draft}\n", "```\nopen fence\n" + draft):
            check(name, f"{opening}{thought}{closing}\n\nNo need.", [], "No need.")
            check(name, f"{opening}{thought}{closing}\n\n{written}", calls, "")
            check(name, f"{opening}{thought}{closing}", [], "")


@every_dialect
def test_w4_all_before_the_end_of_a_thought_that_the_prompt_began_was_thought(name: str) -> None:
    draft = dialect(name).calls([TextCall("get_time", {"a": 1})])
    calls = calls_of({"path": "a"})
    for place, (_, closing) in enumerate(thoughts(name)):
        written = dialect(name).calls(calls)
        check(name, f"Well.\n{draft}\nNo.\n{closing}\n\nNo need.", [], "No need.")
        check(name, f"Well.\n{draft}\n{closing}\n{written}", calls, "")
        check(name, f"{draft}\n{closing}", [], "")
        for cut in some(range(1, len(draft)), 6 * len(THOUGHTS), 18 * place):  # over all closings, one in 18
            check(name, f"Well.\n{draft}\n{draft[:cut]}\n{closing}\n\nNo need.", [], "No need.")


@every_dialect
def test_w4_the_end_of_a_thought_is_seen_where_a_value_of_a_draft_was_due(name: str) -> None:
    draft = dialect(name).calls([TextCall("get_time", {"a": 1})])
    begun = draft[: draft.find(":") + 1]
    check(name, f"Well.\n{draft}\n{begun}\n[/THINK]\n\nNo need.", [], "No need.")


@every_dialect
def test_d3_code_that_shows_the_format_is_text(name: str) -> None:
    draft = dialect(name).calls([TextCall("get_time", {"a": 1})])
    shown = [
        f"For example:\n{fence}\nYou write\n{draft}\n{fence}\nIs that clear?"
        for fence in ("```", "````", "~~~")
    ]
    if "`" not in draft and "\n" not in draft:
        shown += [f"You write `{draft}` then.", f"You write `so: {draft}` then."]
    for text in shown:
        check(name, text, [], text)


@pytest.mark.parametrize("name", ["harmony", "any"])
def test_w4_a_call_in_any_format_in_the_thoughts_of_gpt_oss_never_runs(name: str) -> None:
    drafts = [dialect(one).calls([TextCall("get_time", {"a": 1})]) for one in NAMES if one != "harmony"]
    for draft in drafts:
        thought = f"<|channel|>analysis<|message|>Maybe\n{draft}\nor not.<|end|>"
        check(name, f"{thought}<|start|>assistant<|channel|>final<|message|>No need.", [], "No need.")


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("harmony", "<|channel|>analysis<|message|>Hm.{end}"),
        ("any", "<|channel|>analysis<|message|>Hm.{end}"),
    ],
)
def test_d2_what_ends_a_reply_is_left_out_behind_a_thought(name: str, reply: str) -> None:
    for end in END_TOKENS:
        assert dialect(name).parse(reply.format(end=end)).reasoning.strip() == "Hm.", end


@every_dialect
def test_d2_what_a_prompt_ends_with_is_left_out_where_a_reply_begins_with_it(name: str) -> None:
    calls = calls_of({"path": "a"})
    for token in BEGIN_TOKENS:
        check(name, f"{token}\n\nI look.", [], "I look.")
        check(name, f"{token}{dialect(name).calls(calls)}", calls, "")
        check(name, f"{token}{token}<think>\nHm.\n</think>\nNo need.", [], "No need.")


@every_dialect
def test_d3_a_sentence_about_a_tag_is_text_also_where_the_reply_ends_with_it(name: str) -> None:
    for tag in [one for one in dialect(name).opens if re.fullmatch(r"<\w+>", one)]:
        check(name, f"Calls begin with {tag} and JSON.", [], f"Calls begin with {tag} and JSON.")
        check(name, f"In front of it stands {tag}.", [], f"In front of it stands {tag}.")
        check(name, f"调用以{tag}开头，然后是JSON。", [], f"调用以{tag}开头，然后是JSON。")
        check(name, f"标签是{tag}。", [], f"标签是{tag}。")


@every_dialect
def test_d2_no_tag_of_a_call_is_seen_that_breaks_off_within_the_next_one(name: str) -> None:
    written = dialect(name).call("get_time", {"a": 1})
    for tag in [one for one in dialect(name).opens if written.startswith(one)]:
        for cut in range(len(tag), len(written)):
            parsed = dialect(name).parse(f"I look.\n{written[:cut]}", tools_of([TextCall("get_time", {})]))
            assert tag not in parsed.text, written[:cut]


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("qwen_coder", "<function=get_time></function>"),
        ("qwen_coder", "<tool_call> and <function=get_time></function>"),
        ("any", "<function=get_time></function>"),
        ("llama_json", "<function=get_time></function>"),
        ("minicpm", '<function name="get_time"></function>'),
        ("minimax", '<invoke name="get_time"></invoke>'),
        ("glm", "<tool_call>get_time</tool_call>"),
        ("hermes", "<tool_call>get_time</tool_call>"),
    ],
)
def test_d3_a_call_without_arguments_in_the_middle_of_a_sentence_is_an_example(
    name: str, example: str
) -> None:
    text = f"The docs say: write {example} here."
    check(name, text, [], text)


@every_dialect
def test_w4_tags_that_are_shown_as_code_begin_no_thought(name: str) -> None:
    for opening, closing in THOUGHTS.items():
        for text in (
            f"Between `{opening}` and `{closing}`.",
            f"So:\n```xml\nx\n{opening}\n{closing}\n```\nDone.",
        ):
            check(name, text, [], text)


@every_dialect
def test_d3_prose_with_code_and_markup_is_shown_as_it_is(name: str) -> None:
    text = (Path(__file__).parents[2] / "benchmarks" / "prose.md").read_text()
    check(name, text, [], text)
    check(name, f"<think>{text}</think>{text}", [], text)


@every_dialect
def test_d2_a_token_that_ends_a_reply_is_not_seen(name: str) -> None:
    calls = calls_of({"path": "a"})
    for token in END_TOKENS:
        check(name, f"Hello.{token}", [], "Hello.")
        check(name, f"Hello.\n{token}\n", [], "Hello.")
        check(name, f"{dialect(name).calls(calls)}{token}", calls, "")


@every_dialect
def test_c4_a_last_call_that_breaks_off_does_not_run(name: str) -> None:
    first, last = (
        [TextCall("tool_0", {"path": "a"})],
        [TextCall("tool_1", {"path": "some value", "b": [1, 2]})],
    )
    whole = dialect(name).calls(first)
    half = dialect(name).calls(last)
    end = half.index("some value") + 4
    for cut in some(range(1, end), 12):
        parsed = dialect(name).parse(f"{whole}\n{half[:cut]}", tools_of([*first, *last]))
        kept = [call.name for call in parsed.calls]
        unmarked = is_whole_reply(name) or bool(
            dialect(name).bare
        )  # the broken call is then text, and so is the rest
        assert kept == ["tool_0"] or (unmarked and not kept), half[:cut]


@every_dialect
def test_w4_a_thought_in_which_another_began_ends_with_the_last_of_their_ends(name: str) -> None:
    calls = calls_of({"value": "x"})
    written = dialect(name).calls(calls)

    check(name, f"<think>a <think>b</think> maybe {written} no</think>Ready.", [], "Ready.")
    check(name, f"<think>what is <think> for?</think>\n\n{written}", calls, "")


@every_dialect
def test_d3_code_that_begins_with_a_call_may_have_lines(name: str) -> None:
    written = dialect(name).calls(calls_of({"value": "x", "more": "y"}))

    for ticks in ("`", "``"):
        shown = f"Write {ticks}{written}{ticks} to call it."
        check(name, shown, [], shown)


@pytest.mark.parametrize("name", ["json_strict", "xml_tag", "hermes", "mistral", "cohere", "any"])
def test_c4_arguments_under_another_key_are_read_or_refused_and_never_lost(name: str) -> None:
    calls = calls_of({"value": "x"})
    written = dialect(name).calls(calls)
    key = '"parameters"' if name == "cohere" else '"arguments"'

    for other in ("args", "input", "params", "tool_input"):
        check(name, written.replace(key, f'"{other}"'), calls, "")
    beside = dialect(name).parse(written.replace(f'{key}: {{"value": "x"}}', '"value": "x"'), tools_of(calls))
    assert not beside.calls
    assert "tool_0" in beside.errors[0]
    assert '"value" is next to its name' in beside.errors[0]


@every_dialect
def test_c4_a_number_that_no_float_holds_is_no_number(name: str) -> None:
    """The value would run as infinity and be stored as null."""
    written = dialect(name).calls(calls_of({"value": 12345678})).replace("12345678", "1e999")
    parsed = dialect(name).parse(written, tools_of(calls_of({"value": 1})))

    assert not parsed.calls or parsed.calls[0].arguments == {"value": "1e999"}


@every_dialect
def test_d2_a_paragraph_about_the_format_ends_wherever_the_stream_is_cut(name: str) -> None:
    calls = calls_of({"path": "a"})
    written = dialect(name).calls(calls)
    if is_whole_reply(name) or dialect(name).bare:
        return
    reply = f"I answer with a {dialect(name).opens[0]} block.\n\n{written}"
    tools = tools_of(calls)
    assert in_pieces(name, list(reply), tools) == dialect(name).parse(reply, tools)
    assert in_pieces(name, reply.partition("\n"), tools) == dialect(name).parse(reply, tools)
