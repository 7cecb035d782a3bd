"""Replies of open models in their training formats are read as public parsers read them (D1, D2).

They are not in the repository: `text-formats.json` is in the folder that `DRAGOMAN_RECORDINGS` names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects.dialect import dialect
from dragoman.dialects.scanner import Tools
from dragoman.messages.request import ToolSpec
from dragoman.wire.thinking import CLOSING, THOUGHTS
from tests.dialects.calls import in_pieces
from tests.sweeps import WHOLE, some

DIALECTS = {
    "deepseek_dsml": "deepseek_dsml",
    "minimax_m2": "minimax",
    "dots": "minimax",
    "kimi_k3": "kimi_k3",
    "minicpm5": "minicpm",
    "step3": "step",
    "muse_glimmer": "muse",
    "gemma4": "gemma",
    "functiongemma": "functiongemma",
    "olmo3": "olmo",
    "cohere": "cohere",
    "apertus": "apertus",
    "inkling": "inkling",
    "lfm2": "llama_pythonic",
    "plamo3": "plamo",
    "hy_v3": "hunyuan",
    "k2_horizon": "k2_horizon",
    "minimax_m3": "minimax_m3",
    "seed_oss": "qwen_coder",
    "reka": "qwen_coder",
    "granite_thinking": "qwen_coder",
    "granite3": "json_tags",
    "xlam": "json_tags",
    "internlm2": "json_tags",
    "jamba": "json_tags",
    "hunyuan_a13b": "json_tags",
    "longcat": "json_tags",
    "gigachat3": "json_tags",
    "poolside": "glm",
    "ling3": "glm",
    "spark": "glm",
    "nemotron_toolcall": "json_tags",
    "functionary": "functionary",
    "granite20b": "json_tags",
    "phi4mini": "json_tags",
    "firefunction": "json_tags",
    "apriel": "json_tags",
}

READ_OTHERWISE = {
    "minicpm5: 7": "an argument that the schema does not have is left out",
    "minicpm5: 8": "a tool that does not exist is taken for another",
    "lfm2: 7": "quotes in a string that nothing escapes",
    "hy_v3: 9": "a tool that does not exist is passed over",
    "hy_v3: 10": "words in brackets are taken for a call",
    "minimax_m3: 3": "a number of which no schema knows is a string",
    "minimax_m3: 13": "tags inside a value that may be an object are a string",
    "plamo3: 4": "a call that is cut off counts without arguments",
    "muse_glimmer: 3": "a name said twice is taken for the name",
    "k2_horizon: 8": "calls in front of the end of a thought that the prompt had begun count",
    **dict.fromkeys(
        (
            "longcat: 3",
            "minicpm5: 1",
            "granite3: 3",
            "step3: 1",
            "k2_horizon: 1",
            "k2_horizon: 9",
            "lfm2: 13",
        ),
        "words follow the call: all of it is text (D8)",
    ),
    **dict.fromkeys(
        [f"nemotron_toolcall: {case}" for case in (7, 9, 10, 11, 12, 13)],
        "words follow the call: all of it is text (D8)",
    ),
    "xlam: 2": "a fence after words is text (D8)",
    "lfm2: 11": "a list without a marker after words is text (D8)",
    "deepseek_dsml: 11": "a call in the middle of a sentence is text (D8)",
    "functionary: 6": "a call whose arguments are complete, but not its closing tag, is left out",
}
"""Cases that another parser reads differently, and how: by a guess, or by running a call in reasoning."""


def cases() -> list[Any]:
    folder = os.environ.get("DRAGOMAN_RECORDINGS")
    path = Path(folder or "") / "text-formats.json"
    if not folder or not path.exists():
        reason = "DRAGOMAN_RECORDINGS is not set, or has no text-formats.json: there are no such replies here"
        return [pytest.param("", {}, marks=pytest.mark.skip(reason=reason))]
    found, seen = [], dict.fromkeys(DIALECTS, 0)
    for case in json.loads(path.read_text())["cases"]:
        if case["format"] in seen:
            seen[case["format"]] += 1
            title = f"{case['format']}: {seen[case['format']]}"
            if title not in READ_OTHERWISE:
                found.append(pytest.param(DIALECTS[case["format"]], case, id=title))
    return found


@pytest.mark.parametrize(("name", "case"), cases())
def test_d1_a_reply_in_a_models_own_format_has_the_calls_it_holds(name: str, case: dict[str, Any]) -> None:
    """A model's trained format is read as the calls that it means (D1)."""
    parsed, expect = dialect(name).parse(case["text"], tools_of(case)), case["expect"]

    if "calls" in expect:
        assert [{"name": call.name, "arguments": call.arguments} for call in parsed.calls] == expect["calls"]
        return
    assert len(parsed.calls) == expect["count"]
    for place, tool in expect.get("names", {}).items():
        assert parsed.calls[int(place)].name == tool
    for place, keys, wanted in expect["arg"]:
        value: Any = parsed.calls[place].arguments
        for key in keys:
            value = value[key]
        assert value == wanted or value == _as_it_looks(wanted, case)


@pytest.mark.parametrize(("name", "case"), some(cases(), 2, 0))
def test_d2_such_a_reply_reads_the_same_wherever_it_is_cut(name: str, case: dict[str, Any]) -> None:
    """Calls and text do not depend on how the reply is cut (D2)."""
    text, tools = case["text"], tools_of(case)
    whole = dialect(name).parse(text, tools)

    assert in_pieces(name, list(text), tools) == whole
    for cut in range(1, len(text), 1 if WHOLE else max(1, len(text) // 12)):
        assert in_pieces(name, [text[:cut], text[cut:]], tools) == whole


@pytest.mark.parametrize(("name", "case"), some(cases(), 2, 1))
def test_w4_such_a_reply_has_no_calls_inside_a_thought(name: str, case: dict[str, Any]) -> None:
    """A call in the reasoning never runs, whichever side started the reasoning (W4)."""
    text, tools = case["text"], tools_of(case)
    if any(end in text for end in CLOSING) or dialect(name).parse(text, tools).reasoning:
        return  # its reasoning has tags already
    for opening, closing in THOUGHTS.items():
        for reply in (f"{opening}Or {text}?{closing}\nNo.", f"Or\n{text}\n{closing}\nNo."):
            parsed = dialect(name).parse(reply, tools)
            assert (parsed.text, parsed.found) == ("No.", ()), reply


UNMARKED = ("lfm2", "xlam", "functionary", "muse_glimmer", "poolside")
"""Formats whose calls can start without a marker. `any` needs tools or a name for them."""


@pytest.mark.parametrize(("name", "case"), cases())
def test_d1_the_format_of_such_a_reply_is_recognised(name: str, case: dict[str, Any]) -> None:
    """For an unknown model, the start of its calls identifies the format (D1)."""
    if case["format"] not in UNMARKED:
        read, known = (dialect(one).parse(case["text"], tools_of(case)) for one in ("any", name))
        assert read.calls == known.calls


def tools_of(case: dict[str, Any]) -> Tools | None:
    return [
        ToolSpec(tool["name"], tool.get("description", ""), tool.get("parameters") or {})
        for tool in case["tools"] or ()
    ] or None


def _as_it_looks(wanted: Any, case: dict[str, Any]) -> Any:
    """Return the value read without tools: one that looks like JSON is parsed. Not every parser does so."""
    try:
        return wanted if case["tools"] or not isinstance(wanted, str) else json.loads(wanted)
    except ValueError:
        return wanted
