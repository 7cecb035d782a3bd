"""Find reasoning between tags such as `<think>`, and turn it into reasoning events.

For models whose server leaves the tags in the text, and replies in which no calls are searched
(`dialects/scanner.py` does the same together with its calls). A chunk can end anywhere in a tag. Only text
that may become a tag, and blank lines next to one, are held back. Tags in code do not count. Tokens that end
a reply are left out. If the provider separates reasoning itself, the reply passes through unchanged.

An end tag without a start tag means that the reply began inside reasoning, because the prompt had already
opened it. If that is known beforehand (`inside=True`), the reply streams as reasoning up to the tag.
Otherwise the text before the tag was already shown as text. The tag then ends that text with a `text.end`
that is marked as reasoning, and consumers of the events turn it into reasoning. `lone_end` tells the caller
to set `inside` next time. A reply that was wrongly assumed to begin inside, and ends normally without any
tag, was the answer: it is sent again as text, and `no_end` is set.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from types import MappingProxyType

from dragoman.messages.events import Event, MessageEnd, ReasoningDelta, TextDelta, TextEnd, TextStart
from dragoman.wire.wire import Prose

THOUGHTS: Mapping[str, str] = MappingProxyType(
    {
        "<think>": "</think>",
        "<thinking>": "</thinking>",
        "<thought>": "</thought>",  # EXAONE Deep, Gemini
        "<Thought>": "</Thought>",  # Marco-o1
        "<reasoning>": "</reasoning>",  # Reka Flash 3
        "<scratch_pad>": "</scratch_pad>",  # Hermes 3
        "<unused94>thought": "<unused95>",  # MedGemma
        "[THINK]": "[/THINK]",  # Magistral, Ministral 3
        "<seed:think>": "</seed:think>",
        "<mm:think>": "</mm:think>",  # MiniMax M3
        "<think:opensource>": "</think:opensource>",  # Hunyuan 3
        "<ifm|think>": "</ifm|think>",  # K2 Horizon
        "<ifm|think_fast>": "</ifm|think_fast>",
        "<|channel>thought": "<channel|>",  # Gemma 4
        "<|START_THINKING|>": "<|END_THINKING|>",  # Cohere
        "<|begin_of_thought|>": "<|end_of_thought|>",  # Sky-T1, OpenThinker
        "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
        "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
        "<|plamo:begin_think:plamo|>": "<|plamo:end_think:plamo|>",
        "◁think▷": "◁/think▷",  # Kimi VL
        "<longcat_think>": "</longcat_think>",
        "[BEGIN REASONING]": "[BEGIN FINAL RESPONSE]",  # Apriel, whose first tag has another wording
    }
)
"""The tags that begin reasoning in the text of some model, and those that end it."""
OPENING, CLOSING = tuple(THOUGHTS), tuple(THOUGHTS.values())
WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Here is my thought process:": ("Here is my response:", "Here's my response:"),  # Granite 3.2
        "Here's my thought process:": ("Here's my response:", "Here is my response:"),
    }
)
"""Plain words that begin reasoning at the start of a reply. If nothing ends it, the text was the answer."""
HEADERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/think\n": ("<|im_end|>\n<|im_start|>assistant",),  # HyperCLOVA X, whose prompt ends within a header
        **WORDS,
    }
)
"""Other text that begins reasoning at the start of a reply. Anywhere else, it has no meaning."""
BEGIN_TOKENS = (
    *("<|im_start|>assistant<|im_sep|>", "<|im_start|>assistant\n", "<|im_assistant|>assistant<|im_middle|>"),
    *("<|start_header_id|>assistant<|end_header_id|>", "<|header_start|>assistant<|header_end|>"),
    *("<|start_of_role|>assistant<|end_of_role|>", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"),
    *("<start_of_turn>model\n", "<|turn>model\n", "<|assistant|>", "[|assistant|]", "<｜Assistant｜>"),
    *("<|begin_of_text|>", "<bos>", "<｜begin▁of▁sentence｜>"),
)
"""Tokens that some models repeat at the start of a reply, although the prompt ended with them."""
END_TOKENS = (
    *("</s>", "<eos>", "<|eos|>", "<end_of_turn>", "<turn|>", "<|im_end|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end|>", "<|return|>"),
    *("<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|endofturn|>", "<|stop|>", "[EOS]"),
    *("<|observation|>", "<|user|>", "[|endofturn|]", "[e~[", "<seed:eos>", "<|assistant_end|>"),
    *("<｜User｜>", "[END FINAL RESPONSE]"),
)
"""Tokens that some servers leave at the end of a reply, for any model."""
ANSWERS: Mapping[str, str] = MappingProxyType(
    {
        "<answer>": "</answer>",  # Hunyuan, K2 Think
        "<response>": "</response>",  # ERNIE
        "<|begin_of_solution|>": "<|end_of_solution|>",  # Sky-T1, OpenThinker
    }
)
"""Tags around an answer directly after reasoning, the second at the end of the reply."""
TAGS = "tags"  # used as the wire of reasoning, so that it is never sent back


class Thinking:
    """A filter for one reply. Put it between a decoder and the consumers of the events."""

    def __init__(self, *, inside: bool = False) -> None:
        self.lone_end = False
        self.no_end = False
        self._fresh = not inside  # nothing has come yet
        self._inside = inside  # reasoning is open, and nothing has come yet
        # text received before a tag confirmed the assumption
        self._assumed: list[str] | None = [] if inside else None
        self._thinking = False
        self._ends = CLOSING  # tags that end the reasoning
        self._apart = False  # the provider separates reasoning itself
        self._tagged = False  # A tag has come, so an end tag is no longer unmatched.
        self._answered = False  # some of the answer has been sent
        self._held = ""  # text that may become a tag
        self._blank = ""  # white space before an answer or reasoning
        self._before = ""  # the last character of the reasoning so far
        self._open = False  # a text has been started and not ended
        self._answer_end = ""  # the tag that ends the answer, if one began it
        self._prose = Prose(TAGS)
        self._code = _Code()

    def feed(self, event: Event) -> Iterable[Event]:
        if (
            isinstance(event, TextDelta)
            and self._open
            and not self._held
            and not self._apart
            and self._code.passes(event.text)
        ):
            return (event,)  # most chunks of most answers
        return self._read(event)

    def break_off(self) -> Iterable[Event]:
        """Yield the text held back from a reply that broke off."""
        return self._end()

    def _read(self, event: Event) -> Iterator[Event]:
        match event:
            case TextDelta() if not self._apart:
                yield from self._take(event.text)
            case TextStart() if not self._apart:
                pass  # ours starts with the first word of text
            case TextEnd() if not self._apart:
                self._prose.phase = event.phase
                yield from self._end()
                self._prose.phase = None
            case MessageEnd():
                yield from self._end()
                if event.finish in ("stop", "unknown"):
                    yield from self._repeat_as_text()
                yield event
            case _:
                self._apart = self._apart or (isinstance(event, ReasoningDelta) and not self._tagged)
                yield event

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    def _take(self, piece: str) -> Iterator[Event]:
        text, self._held = self._held + piece, ""
        if self._fresh:
            text = self._begin_with_header(text)
        elif self._inside:
            text = self._begin_inside(text)
        while text:
            text = yield from self._read_thought(text) if self._thinking else self._read_text(text)

    def _begin_with_header(self, text: str) -> str:
        if begun := _BEGINNING.match(text):
            text = text[begun.end() :] or text  # Blank lines belong to the token, and may still come.
        header = _tag(text, 0, (*HEADERS, *BEGIN_TOKENS))
        if header is None or header in BEGIN_TOKENS:
            self._held = text
            return ""
        self._fresh = False
        if header:
            self._thinking = self._tagged = True
            self._ends = thought_ends(header)
            self._assumed = [f"{header}\n\n"] if header in WORDS else None
        return text[len(header) :]

    def _begin_inside(self, text: str) -> str:
        """Continue reasoning that the prompt has opened. Some replies open it again."""
        text = text.lstrip()
        tag = _tag(text, 0, OPENING)
        if not text or tag is None:
            self._held = text
            return ""
        self._inside = False
        self._thinking = self._tagged = True
        if tag:
            self._assumed, self._ends = None, thought_ends(tag)
        return text[len(tag) :]

    def _read_thought(self, text: str) -> Generator[Event, None, str]:
        """Read up to the end tag. Return the rest.

        Code does not protect the tag here: in reasoning a fence often stays open, and the answer would be
        lost in it. Only the tag itself between backticks is a quotation.
        """
        for found in _FIRST.finditer(text):
            at = found.start()
            tag = _tag(text, at, self._ends)
            if tag == "":
                continue
            quoted = (text[at - 1] if at else self._before) == "`"
            behind = text[at + len(tag) :] if tag else ""
            if tag is None or (quoted and not behind):
                yield from self._thought(text[:at])
                self._held = text[at:]
                return ""
            if not (quoted and behind[0] == "`"):
                yield from self._thought(text[:at])
                yield from self._leave()
                return behind
        yield from self._thought(text)
        return ""

    def _read_text(self, text: str) -> Generator[Event, None, str]:
        """Read up to a tag that is not in code. Return the rest."""
        tags = OPENING if self._tagged else OPENING + CLOSING
        ends = (*END_TOKENS, self._answer_end) if self._answer_end else END_TOKENS
        for at in self._code.starts(text):
            unsaid = self._tagged and not self._answered and not text[:at].strip()
            tag = _tag(text, at, (*tags, *ANSWERS) if unsaid else tags)
            if tag is None or (tag == "" and _may_end(text, at, ends)):
                yield from self._answer(text[:at])
                self._held = text[at:]
                return ""
            if tag:
                yield from self._answer(text[:at])
                if tag in ANSWERS:
                    self._answer_end = ANSWERS[tag]
                    return text[at + len(tag) :]
                if tag in CLOSING:
                    yield from self._end_alone()
                self._thinking, self._tagged = tag in OPENING, True
                self._ends = thought_ends(tag)
                self._open, self._blank = False, ""
                return text[at + len(tag) :]
        yield from self._answer(text)
        return ""

    def _end(self) -> Iterator[Event]:
        """End the text and everything open in it: the text held back is not a tag."""
        held, self._held = self._held, ""
        if self._fresh and _BEGINNING.fullmatch(held):
            held = ""
        if self._thinking or self._inside:
            is_mark = held in CLOSING or _ENDING.fullmatch(held.strip())
            yield from self._thought("" if is_mark else held)
        else:
            marked = held.removeprefix(self._answer_end) if self._answer_end else held
            yield from self._answer("" if not marked.strip() or _ENDING.fullmatch(marked.strip()) else held)
            if not self._tagged:
                yield from self._prose.text(self._blank)
        yield from self._prose.close()
        self._begin_text()

    # ── tags ──────────────────────────────────────────────────────────────────────────────────────

    def _leave(self) -> Iterator[Event]:
        self._assumed = None
        if self._before:  # Consecutive reasoning stays separate. Empty reasoning is dropped.
            yield from self._prose.close()
        self._begin_text()

    def _end_alone(self) -> Iterator[Event]:
        self.lone_end = True
        for event in self._prose.close():
            yield TextEnd(was_reasoning=True) if isinstance(event, TextEnd) else event
        self._answered = False
        self._begin_text()

    def _begin_text(self) -> None:
        self._thinking = self._inside = self._open = False
        self._blank = self._before = ""
        self._code = _Code()

    # ── words ─────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, text: str) -> Iterator[Event]:
        if not self._answered:
            text = self._blank + text
            words = text.lstrip()
            if not words:
                self._blank = text
                return
            if self._tagged:  # Blank lines belong to the tag, an indent to the answer.
                blank = text[: -len(words)]
                text = blank[blank.rfind("\n") + 1 :] + words
            self._answered = True
            self._blank = ""
        if text:
            self._open = True
            yield from self._prose.text(text)

    def _thought(self, text: str) -> Iterator[Event]:
        if not self._before:
            text = text.lstrip()
        if text:
            self._before = text[-1]
            if self._assumed is not None:
                self._assumed.append(text)
            yield from self._prose.reasoning(text)

    def _repeat_as_text(self) -> Iterator[Event]:
        if self._assumed and not self._apart:
            self.no_end = True
            yield from self._prose.text("".join(self._assumed))
            yield from self._prose.close()


def thought_ends(opening: str) -> tuple[str, ...]:
    """Return the tags that end reasoning with this opening. If the prompt opened it, any end tag does."""
    if opening in ("<think>", "<thinking>"):  # models that were trained on both confuse them
        return "</think>", "</thinking>"
    if opening in HEADERS:
        return HEADERS[opening]
    end = THOUGHTS.get(opening)
    return (end,) if end else CLOSING


_HEADER_ENDS = tuple(end for ends in HEADERS.values() for end in ends)
_LONGEST = max(map(len, (*OPENING, *CLOSING, *HEADERS, *_HEADER_ENDS, *BEGIN_TOKENS)))
_FIRST = re.compile(f"[{re.escape(''.join({tag[0] for tag in (*OPENING, *CLOSING, *_HEADER_ENDS)}))}]")


_MOST_ENDING = 500  # characters
_BEGINNING = re.compile(rf"(?:(?:{'|'.join(map(re.escape, BEGIN_TOKENS))})\s*)+")
_ENDING = re.compile(rf"(?:(?:{'|'.join(map(re.escape, END_TOKENS))})\s*)+")


def _may_end(text: str, at: int, ends: tuple[str, ...]) -> bool:
    """Return whether the text ends, or may still end, with tokens that end a reply.

    More of them than any server leaves there come from a model that repeats itself.
    """
    if len(text) - at > _MOST_ENDING:
        return False
    if ends is not END_TOKENS and text.startswith(ends[-1], at):
        at = len(text) - len(text[at + len(ends[-1]) :].lstrip())
    while found := _ENDING.match(text, at):
        at = found.end()
    return at == len(text) or _tag(text, at, ends) is None


def _tag(text: str, at: int, tags: tuple[str, ...]) -> str | None:
    """Return the tag at this place.

    None if the text may still become one, and an empty string if it cannot.
    """
    rest = text[at : at + _LONGEST]
    for tag in tags:
        if rest.startswith(tag):
            return tag
        if tag.startswith(rest):
            return None
    return ""


class _Code:
    """Tracks where text is code: in a fence, or after backticks that are open on this line."""

    _TOKEN = re.compile(r"`+|~+|[<\[◁]|\n|[^`~<\[◁\n]+")
    _NOTABLE = re.compile(r"[`~<\[◁\n]")

    def __init__(self) -> None:
        self._fence = ""  # the marks that opened it
        self._opened = False  # on this line
        self._closing = False  # the line so far contains only the marks that close it
        self._span = 0  # this many backticks are open
        self._run = ""  # marks that may continue
        self._run_leads = False  # they are the first of their line
        self._indent: int | None = 0  # of a line that is still blank

    def passes(self, text: str) -> bool:
        """Return whether the text only continues the current line and contains no special characters."""
        under_way = self._indent is None and not self._run and not self._closing
        return under_way and not self._NOTABLE.search(text)

    def starts(self, text: str) -> Iterator[int]:
        """Yield the places where a tag could begin. The caller stops at the one that is a tag."""
        for token in self._TOKEN.finditer(text):
            mark = token[0]
            if mark[0] in "`~":
                self._mark(mark)
                continue
            self._settle()
            if mark == "\n":
                self._end_line()
            elif mark.isspace():
                self._indent = None if self._indent is None else self._indent + len(mark)
            else:
                if mark in "<[◁" and not self._fence and not self._span:
                    yield token.start()
                self._indent = None
                self._closing = False

    def _mark(self, marks: str) -> None:
        if self._run[:1] == marks[0]:
            self._run += marks
            return
        self._settle()
        self._run = marks
        self._run_leads = self._indent is not None and self._indent <= 3
        self._indent = None

    def _settle(self) -> None:
        run, self._run = self._run, ""
        if not run:
            return
        if self._fence and self._opened and run[0] == self._fence[0] == "`":
            self._span, self._fence = (
                len(self._fence),
                "",
            )  # a fence's own line has no backticks: it was a span
        if self._fence:
            self._closing = self._run_leads and run.startswith(self._fence)
        elif self._run_leads and len(run) >= 3:
            self._fence, self._opened = run, True
        elif run[0] == "`":
            self._span = 0 if self._span == len(run) else self._span or len(run)

    def _end_line(self) -> None:
        if self._closing:
            self._fence = ""
        self._opened = self._closing = False
        self._span = 0
        self._indent = 0
