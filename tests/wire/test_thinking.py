"""Dragoman detects reasoning in tags, wherever the tags are cut (W4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.events import (
    CallInputStart,
    Event,
    MessageEnd,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message, Part, Reasoning, Text
from dragoman.wire.thinking import TAGS, Thinking
from tests.wire.cuts import every_cut


def text_part(pieces: list[str]) -> list[Event]:
    return [TextStart(), *map(TextDelta, pieces), TextEnd()]


def parts_of(pieces: list[str], *, inside: bool = False) -> tuple[Part, ...]:
    """Return the stored parts of a reply with its text in these chunks."""
    thinking = Thinking(inside=inside)
    draft = Draft(Message("msg_r", "conversation", None, "assistant", ()))
    for event in [*text_part(pieces), MessageEnd("stop")]:
        for split in thinking.feed(event):
            draft.apply(split)
    return draft.message.parts


def thought(text: str) -> Reasoning:
    return Reasoning(text, wire=TAGS)


TAGGED: dict[str, tuple[Part, ...]] = {
    "<think>hm</think>yes": (thought("hm"), Text("yes")),
    "\n<think>\nhm\n</think>\n\nyes": (thought("hm\n"), Text("yes")),
    "<thinking>hm</thinking>\n    indented": (thought("hm"), Text("    indented")),
    "so <think>hm</think> yes": (Text("so "), thought("hm"), Text(" yes")),
    "<think>a</think><think>b</think>c": (thought("a"), thought("b"), Text("c")),
    "<think></think>\n\nyes": (Text("yes"),),
    "<think>1 < 2 <b></b> </thin</think>yes": (thought("1 < 2 <b></b> </thin"), Text("yes")),
    "<think>never closed": (thought("never closed"),),
    "Here is my thought process: hm\n\nHere is my response: yes": (thought("hm\n\n"), Text(" yes")),
    "Here's my thought process:\nhm\nHere's my response:\nyes": (thought("hm\n"), Text("yes")),
    "Here is my thought process: none.": (
        thought("none."),
        Text("Here is my thought process:\n\nnone."),  # nothing ended it: it was the answer
    ),
    "So. Here is my thought process: hm Here is my response: yes": (
        Text("So. Here is my thought process: hm Here is my response: yes"),
    ),
    "<think>hm</think>yes </think> and <thin": (thought("hm"), Text("yes </think> and <thin")),
    "hm, well.\n</think>\n\nyes": (Reasoning("hm, well.\n"), Text("yes")),
    "</think>yes": (Text("yes"),),
    "<think>say `</think>` here</think>yes": (thought("say `</think>` here"), Text("yes")),
    "<think>```\nopen fence</think>yes": (thought("```\nopen fence"), Text("yes")),
    "it`s odd\n<think>hm</think>yes": (Text("it`s odd\n"), thought("hm"), Text("yes")),
    "```a``` <think>hm</think>yes": (Text("```a``` "), thought("hm"), Text("yes")),
    "[THINK]hm[/THINK]yes": (thought("hm"), Text("yes")),
    "<seed:think>hm</think></seed:think>yes": (thought("hm</think>"), Text("yes")),
    "<|channel>thought\nhm<channel|>yes": (thought("hm"), Text("yes")),
    "<|START_THINKING|>hm<|END_THINKING|>yes": (thought("hm"), Text("yes")),
    "hm, well.[/THINK]yes": (Reasoning("hm, well."), Text("yes")),
    "/think\nhm<|im_end|>\n<|im_start|>assistant\nyes<|im_end|><|endofturn|>": (thought("hm"), Text("yes")),
    "/think\nnever closed": (thought("never closed"),),
    "/think\nnever closed<|im_end|>": (thought("never closed"),),
    "<|start_header_id|>assistant<|end_header_id|>\n\nyes": (Text("yes"),),
    "<bos><start_of_turn>model\n<think>hm</think>yes": (thought("hm"), Text("yes")),
    "<|assistant|>\n": (),
    "yes<eos>": (Text("yes"),),
    "<think>hm</think>yes<|im_end|>\n<|endoftext|>\n": (thought("hm"), Text("yes")),
    "<think>hm</think><answer>yes</answer>": (thought("hm"), Text("yes")),
    "<think>hm</think>\n<answer>\nyes\n</answer>\n": (thought("hm"), Text("yes\n")),
    "hm\n</think>\n<response>yes</response><|im_end|>": (Reasoning("hm\n"), Text("yes")),
    "<think>hm</think><answer>a </answer> b</answer>": (thought("hm"), Text("a </answer> b")),
    "<think>hm</think>so <answer>yes</answer>": (thought("hm"), Text("so <answer>yes</answer>")),
    "<answer>yes</answer>": (Text("<answer>yes</answer>"),),
    "```\ncode\n```\n<think>hm</think>yes": (Text("```\ncode\n```\n"), thought("hm"), Text("yes")),
}

LEFT_ALONE = [
    "plain",
    "the token <|assistant|> begins a reply",
    "<|im_start|>user",
    "<|assistant",
    "/think harder",
    "/thin",
    "Write\n/think\nto think.",
    "<s>old</s> new, and </s> `<eos>`",
    "[x] a [THIN] [link](http://x.y)",
    "  indented, 1 < 2, <b>bold</b>, <thi",
    "the tag `<think>` opens, ``</think>`` closes",
    "```\n<think>hm</think>\n```\ndone",
    "~~~ xml\n<think>\n```\n</think>\n~~~\ndone",
    "  ````md\n```\n<think>\n```\n  ````\ndone",
    "```\n<think> in a fence that is never closed",
    "```\n``` <think> and this is no closing fence",
]


@pytest.mark.parametrize("text", TAGGED)
def test_text_and_reasoning_are_told_apart_at_every_cut(text: str) -> None:
    for pieces in every_cut(text):
        assert parts_of(pieces) == TAGGED[text]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_code_and_other_angle_brackets_are_left_alone_at_every_cut(text: str) -> None:
    for pieces in every_cut(text):
        assert parts_of(pieces) == (Text(text),)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "`", "```", "~~~", "\n", " ", "a", "/think>"])))
def test_any_cut_gives_the_same_parts(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert parts_of(pieces) == parts_of([text]) == parts_of(list(text))
    assert parts_of(pieces, inside=True) == parts_of([text], inside=True) == parts_of(list(text), inside=True)


@pytest.mark.parametrize("opening", ["", "\n", "<think>", "\n<think>\n"])
def test_a_reply_that_is_known_to_begin_inside_reasoning_streams_as_reasoning(opening: str) -> None:
    for pieces in every_cut(f"{opening}hm `a <think> </think>yes"):
        assert parts_of(pieces, inside=True) == (thought("hm `a <think> "), Text("yes"))


def test_before_a_lone_end_tag_nothing_is_held_back_and_the_caller_learns_of_it() -> None:
    thinking = Thinking()
    assert list(thinking.feed(TextDelta("hm, "))) == [TextStart(), TextDelta("hm, ")]
    assert list(thinking.feed(TextDelta("well</think>"))) == [
        TextDelta("well"),
        TextEnd(was_reasoning=True),
    ]
    assert list(thinking.feed(TextDelta("yes"))) == [TextStart(), TextDelta("yes")]
    assert thinking.lone_end


def test_a_reply_wrongly_taken_to_begin_inside_reasoning_is_not_lost() -> None:
    for pieces in every_cut("just yes"):
        assert parts_of(pieces, inside=True) == (thought("just yes"), Text("just yes"))
    assert parts_of(["<think>cut off"], inside=True) == (thought("cut off"),)


def test_only_what_may_become_a_tag_is_held_back() -> None:
    thinking = Thinking()
    assert list(thinking.feed(TextDelta("a <th"))) == [TextStart(), TextDelta("a ")]
    assert list(thinking.feed(TextDelta("e"))) == [TextDelta("<the")]
    assert list(thinking.feed(TextDelta(" `<th"))) == [TextDelta(" `<th")]  # in code it cannot become one


def test_reasoning_that_a_provider_tells_apart_passes_through_and_so_does_the_text_after_it() -> None:
    events: list[Event] = [
        ReasoningStart(),
        ReasoningDelta("hm"),
        ReasoningEnd(wire="openai_chat"),
        *text_part(["the tag <think> and </think>"]),
        MessageEnd("stop"),
    ]
    thinking = Thinking()
    assert [split for event in events for split in thinking.feed(event)] == events


def test_a_call_ends_a_thought_that_was_never_closed() -> None:
    thinking = Thinking()
    call = CallInputStart("call_r_0", "look")
    events: list[Event] = [*text_part(["<think>hm"]), call, *text_part(["yes"]), MessageEnd("stop")]
    assert [split for event in events for split in thinking.feed(event)] == [
        ReasoningStart(),
        ReasoningDelta("hm"),
        ReasoningEnd(wire=TAGS),
        call,
        *text_part(["yes"]),
        MessageEnd("stop"),
    ]


def test_a_model_that_has_lost_its_way_costs_no_more_than_what_it_writes() -> None:
    """Repeated end tokens are text, and the parser reads each once, wherever they are cut (W4)."""
    endless = "</s>\n" * 1500
    (text,) = parts_of([endless])
    assert isinstance(text, Text)
    assert len(endless) - len(text.text) <= 500
    for size in (1, 7, 1000):
        assert parts_of([endless[at : at + size] for at in range(0, len(endless), size)]) == (text,)


def test_a_text_keeps_the_phase_of_its_message() -> None:
    """W4 × R5: Responses says of each message whether it is commentary or the answer."""
    thinking = Thinking(inside=False)
    draft = Draft(Message("msg_r", "conversation", None, "assistant", ()))
    said = [("<think>Hm.</think>Wait.", "commentary"), ("Done.", "final_answer"), ("More.", None)]
    for text, phase in said:
        for event in (TextStart(), TextDelta(text), TextEnd(phase=phase)):
            for split in thinking.feed(event):
                draft.apply(split)
    texts = [part for part in draft.message.parts if isinstance(part, Text)]
    assert [(part.text, part.phase) for part in texts] == [
        ("Wait.", "commentary"),
        ("Done.", "final_answer"),
        ("More.", None),
    ]
