"""C9: of a long result a model sees head and tail, never more than it may."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dragoman import tool
from dragoman.turn.steps.shorten import bounded
from dragoman.wire.scripted import calls, says
from tests.runtimes import only_call, runtime_with


def parts(view: str) -> tuple[str, str, str]:
    """Head, note and tail."""
    head, _, rest = view.partition("\n[… ")
    note, _, tail = rest.partition(" …]\n")
    return head, note, tail


def test_what_is_short_enough_is_shown_as_it_is() -> None:
    """C9"""
    text = "one\ntwo\n"
    assert bounded(text, "call_1", 2, 8) is text


def test_what_has_too_many_lines_loses_its_middle() -> None:
    """C9"""
    head, note, tail = parts(bounded("".join(f"{n}\n" for n in range(100)), "call_1", 4, 1000))
    assert (head, tail) == ("0\n1\n", "98\n99\n")
    assert "280 of 290 characters (100 lines in all)" in note
    assert "read_output(call='call_1', start=LINE)" in note


def test_a_line_without_end_is_cut() -> None:
    """C9"""
    head, _, tail = parts(bounded("<" + "x" * 1000 + ">", "call_1", 10, 20))
    assert (head, tail) == ("<" + "x" * 9, "x" * 9 + ">")


def test_a_short_line_does_not_stand_alone_where_there_is_room() -> None:
    """C9: a heading above one endless line is not all a model gets to see."""
    head, _, tail = parts(bounded("title\n" + "x" * 1000 + "\nend", "call_1", 10, 100))
    assert (head, tail) == ("title\n" + "x" * 44, "x" * 46 + "\nend")


lines = st.text(st.sampled_from("ab é漢🎉\n\r\u2028"), max_size=60) | st.text(max_size=60)


@given(lines, st.integers(1, 12), st.integers(1, 40))
def test_a_view_never_exceeds_its_limits_and_its_ends_are_the_texts_own(
    text: str, max_lines: int, max_bytes: int
) -> None:
    """C9: cut between characters, with something left out between the ends."""
    view = bounded(text, "call_1", max_lines, max_bytes)
    if view == text:
        assert len(text.splitlines()) <= max_lines
        assert len(text.encode()) <= max_bytes
        return
    note = view.index("\n[… ")
    after = view.rindex(" …]\n") + len(" …]\n")
    head, tail = view[:note], view[after:]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert len((head + tail).encode()) <= max_bytes
    assert len(head.splitlines()) + len(tail.splitlines()) <= max_lines


async def test_the_whole_is_kept_and_can_be_read_in_pieces(tmp_path: Path) -> None:
    """C9, S4: by the model, with the built-in tool, and by the person."""
    whole = "".join(f"line {n}\n" for n in range(1, 5001))

    @tool
    def much() -> str:
        """Says much."""
        return whole

    async with runtime_with(tmp_path, [calls("much"), says("ok")], tools=[much]) as runtime:
        call = only_call(await (await runtime.send("go")).result())
        assert call.result is not None
        assert call.result.text.startswith("line 1\n")
        assert call.result.text.endswith("line 5000\n")
        assert len(call.result.text.splitlines()) <= 2003
        assert call.result.blob is not None
        assert (await runtime.store.blob(call.result.blob)).decode() == whole


async def test_a_tool_may_have_limits_of_its_own(tmp_path: Path) -> None:
    """C9"""
    chatty = tool(name="chatty", description="Talks.", max_lines=2, max_bytes=100)(lambda: "a\nb\nc\n")
    async with runtime_with(tmp_path, [calls("chatty"), says("ok")], tools=[chatty]) as runtime:
        call = only_call(await (await runtime.send("go")).result())
    assert call.result is not None
    assert parts(call.result.text)[::2] == ("a\n", "c\n")
