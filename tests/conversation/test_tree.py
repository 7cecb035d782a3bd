"""S1 and the tree's part of T10: paths, versions, tips, copies. Nothing is ever lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.conversation.tree import Tree, copied, summary_of
from dragoman.conversation.window import window
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import CallState, Message, Role, Summary, Text, ToolCall, ToolResult


def message(id: str, parent: str | None = None, role: Role = "user", turn: str | None = None) -> Message:
    return Message(id, "conv_1", parent, role, (Text(id),), turn=turn)


def ids(messages: list[Message]) -> list[str]:
    return [message.id for message in messages]


@pytest.fixture
def tree() -> Tree:
    """Return a tree: one question with two answers, and below the first a second question with two
    versions."""
    return Tree(
        [
            message("q1", turn="t1"),
            message("a1", "q1", "assistant", "t1"),
            message("q2", "a1", turn="t2"),
            message("a1b", "q1", "assistant", "t3"),
            message("q2b", "a1", turn="t4"),
            message("a2b", "q2b", "assistant", "t4"),
        ]
    )


def test_a_path_leads_from_the_first_message_to_this_one(tree: Tree) -> None:
    """S1"""
    assert ids(tree.path("a2b")) == ["q1", "a1", "q2b", "a2b"]
    assert ids(tree.path("a1b")) == ["q1", "a1b"]
    assert tree.path(None) == []


def test_versions_are_siblings_in_the_order_they_came(tree: Tree) -> None:
    """S1, T10"""
    assert tree.versions("a1b") == ["a1", "a1b"]
    assert tree.versions("q2") == tree.versions("q2b") == ["q2", "q2b"]
    assert tree.versions("q1") == ["q1"]
    tree.add(message("other beginning"))
    assert tree.versions("q1") == tree.children(None) == ["q1", "other beginning"]


def test_switching_to_a_branch_lands_at_its_newest_end(tree: Tree) -> None:
    """S1"""
    assert tree.tip("q1") == "a1b"
    assert tree.tip("a1") == "a2b"
    assert tree.tip("q2") == "q2"


def test_an_answer_is_run_again_from_the_question_it_answers() -> None:
    """T10: past calls, and past what plugins sent in the person's place."""
    tree = Tree(
        [
            message("q"),
            message("call", "q", "assistant"),
            replace(message("go on", "call"), author="length"),
            message("answer", "go on", "assistant"),
        ]
    )
    assert tree.question_of("answer").id == tree.question_of("q").id == "q"
    with pytest.raises(BadRequest, match="Message hello answers no user message"):
        Tree([message("hello", role="assistant")]).question_of("hello")


def test_a_message_can_grow_but_not_move(tree: Tree) -> None:
    """S1: a second place in the tree would make a path that never ends."""
    tree.add(replace(tree["a1"], parts=(Text("more"),)))
    assert (tree["a1"].text, len(tree)) == ("more", 6)
    assert tree.versions("a1") == ["a1", "a1b"]
    with pytest.raises(BadRequest, match=r"Message q1 belongs below None\. You cannot move it\."):
        tree.add(message("q1", "a1"))
    assert ids(tree.path("a2b")) == ["q1", "a1", "q2b", "a2b"]


def test_a_message_without_its_parent_is_refused(tree: Tree) -> None:
    """S1"""
    with pytest.raises(BadRequest, match="Message x belongs below nowhere"):
        tree.add(message("x", "nowhere"))
    with pytest.raises(BadRequest, match="Message x belongs below x"):
        tree.add(message("x", "x"))
    for look in (tree.__getitem__, tree.path, tree.versions, tree.question_of):
        with pytest.raises(NotFound, match="Unknown message 'x'"):
            look("x")
    assert "x" not in tree


def test_what_a_summary_replaced_is_left_behind_and_stays_in_the_tree() -> None:
    """R7"""
    tree = Tree(
        [message("a"), message("b", "a", "assistant"), message("c", "b"), message("d", "c", "assistant")]
    )
    tree.add(replace(message("sum", "d"), parts=(Summary("so far", "c"),)))
    tree.add(message("e", "sum", "assistant"))
    assert ids(tree.recent("e")) == ["c", "d", "sum", "e"]
    assert ids(tree.path("e")) == ["a", "b", "c", "d", "sum", "e"]
    tree.add(replace(message("sum 2", "e"), parts=(Summary("so far, again", None),)))
    assert ids(tree.recent("sum 2")) == ["sum 2"]


# ── copies ────────────────────────────────────────────────────────────────────────────────────────


def test_a_copy_has_new_ids_and_the_same_shape(tree: Tree) -> None:
    """S1: fork and import"""
    copies = copied(tree, "conv_2")
    again = Tree(copies.values())
    assert len({copy.id for copy in copies.values()} | set(ids(list(tree)))) == 12
    assert {copy.conversation for copy in copies.values()} == {"conv_2"}
    assert again.versions(copies["a1"].id) == [copies["a1"].id, copies["a1b"].id]
    assert copies["q2b"].turn == copies["a2b"].turn
    assert len({copy.turn for copy in copies.values()} | {"t1", "t2", "t3", "t4"}) == 8


def test_a_copied_call_has_its_result_and_one_under_way_never_ran() -> None:
    """A copied call cannot continue in the copy (C2, S1)."""
    done = ToolCall("call_1", "add", {"a": 1}, state=CallState.COMPLETED, result=ToolResult("2"))
    open = [ToolCall(f"call_{s}", "add", state=s) for s in CallState if not s.settled]
    (copy,) = copied([replace(message("a", role="assistant"), parts=(done, *open))], "conv_2").values()
    assert copy.calls[0] == replace(done, id=copy.calls[0].id)
    assert copy.calls[0].id != done.id
    assert {call.state for call in copy.calls[1:]} == {CallState.CANCELLED}
    assert all(
        call.result and "when the conversation was copied" in call.result.text for call in copy.calls[1:]
    )


def test_a_copied_summary_keeps_from_the_copy() -> None:
    """R7, S1"""
    path = [message("a"), message("b", "a"), replace(message("s", "b"), parts=(Summary("sum", "b"),))]
    copies = copied(path, "conv_2")
    summary = summary_of(copies["s"])
    assert summary is not None
    assert summary.keeps_from == copies["b"].id


# ── any tree ──────────────────────────────────────────────────────────────────────────────────────


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Messages that hang on any earlier one, some with a summary that keeps from any message above it."""
    tree = Tree()
    for number in range(draw(st.integers(1, 12))):
        parent = draw(st.sampled_from([None, *ids(list(tree))]))
        made = message(
            f"m{number}", parent, draw(st.sampled_from(["user", "assistant"])), draw(st.sampled_from("tu"))
        )
        if draw(st.integers(0, 3)) == 0:
            keeps = draw(st.sampled_from([None, *ids(tree.path(parent)), "gone"]))
            made = replace(made, parts=(Summary("so far", keeps),))
        tree.add(made)
    return tree


@given(trees())
def test_every_path_begins_at_a_root_and_goes_from_parent_to_child(tree: Tree) -> None:
    """S1"""
    for one in tree:
        path = tree.path(one.id)
        assert path[-1] is one
        assert [m.parent for m in path] == [None, *ids(path[:-1])]
        assert one.id in tree.versions(one.id)
        assert tree.versions(one.id) == tree.children(one.parent)
        assert one in tree.path(tree.tip(one.id))
        assert tree.children(tree.tip(one.id)) == []


@given(trees())
def test_the_children_of_all_messages_are_all_messages(tree: Tree) -> None:
    """S1"""
    below = [id for parent in (None, *ids(list(tree))) for id in tree.children(parent)]
    assert sorted(below) == sorted(ids(list(tree)))


@given(trees())
def test_what_is_recent_is_all_a_model_would_be_shown(tree: Tree) -> None:
    """R7"""
    for one in tree:
        path, recent = tree.path(one.id), tree.recent(one.id)
        assert path[len(path) - len(recent) :] == recent
        assert window(recent) == window(path)


@given(trees())
def test_a_copy_of_a_tree_is_the_same_tree(tree: Tree) -> None:
    """S1"""
    copies = copied(tree, "conv_2")
    again = Tree(copies.values())
    assert list(copies) == ids(list(tree))
    for one in tree:
        path = again.path(copies[one.id].id)
        assert path == [copies[m.id] for m in tree.path(one.id)]
        assert [m.text for m in path] == [m.text for m in tree.path(one.id)]
        assert len(window(again.recent(copies[one.id].id))) == len(window(tree.recent(one.id)))
