"""P1 and P2: which rule decides, what a pattern matches, and which tools are not even offered."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ConfigError, Rule, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import Action
from dragoman.tools.permissions import decide, hidden, literal, parse_rule, rules_in_words
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of, only_call, play, runtime_with


def action(pattern: str, *rules: Rule) -> Action:
    return decide("shell", [pattern], rules).action


# ── which rule decides ────────────────────────────────────────────────────────────────────────────


def test_the_last_rule_that_matches_decides() -> None:
    """P1"""
    rules = [Rule("*", "*", "deny"), Rule("shell", "git *", "allow"), Rule("shell", "git push *", "ask")]
    assert action("git status", *rules) == "allow"
    assert action("git push origin", *rules) == "ask"
    assert action("rm -rf /", *rules) == "deny"
    assert action("git push origin", *reversed(rules)) == "deny"


def test_no_rule_means_ask() -> None:
    """P1"""
    assert decide("shell", ["ls"], []).action == "ask"
    assert decide("shell", ["ls"], [Rule("files", "*", "allow")]).rule is None


def test_every_pattern_is_looked_at_for_a_denial_before_anybody_is_asked() -> None:
    """P1"""
    rules = [Rule("write", "*", "allow"), Rule("write", "b*", "ask"), Rule("write", "c*", "deny")]
    assert decide("write", ["a"], rules).action == "allow"
    assert decide("write", ["a", "b"], rules).action == "ask"
    assert decide("write", ["b", "a", "c"], rules) == decide("write", ["c"], rules)
    assert decide("write", ["c"], rules).rule == rules[2]


def test_a_call_without_patterns_is_decided_by_its_permission() -> None:
    """P1"""
    assert decide("now", [], [Rule("now", "*", "allow")]).action == "allow"
    assert decide("now", [], [Rule("now", "noon", "allow")]).action == "ask"


# ── what a pattern matches ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "matches", "does_not"),
    [
        ("git *", ["git", "git ", "git status", "git a\nb"], ["gitk", "git\tx", "digit", ""]),
        ("git*", ["git", "gitk", "git status"], ["a git"]),
        ("* *", ["", "a", "a b"], []),
        ("a?c", ["abc", "a c", "a\nc"], ["ac", "abbc"]),
        ("*.txt", [".txt", "a/b.txt"], ["a.txt.exe", "atxt"]),
        ("a*b*c", ["abc", "aXbYc", "abbcc"], ["acb", "ab"]),
        ("a**c", ["ac", "abc"], ["a"]),
        ("(a|b)+", ["(a|b)+"], ["a", "ab"]),
        ("[*]", ["*"], ["", "a", "[*]"]),
        ("ls [?][*]", ["ls ?*"], ["ls ab"]),
        ("[a]", ["[a]"], ["a"]),
        ("", [""], ["a"]),
        ("*", ["", "anything\nat all"], []),
    ],
)
def test_a_star_is_any_text_and_a_question_mark_one_character(
    pattern: str, matches: list[str], does_not: list[str]
) -> None:
    """A trailing ` *` is optional, and in brackets both characters are literal (P1)."""
    rule = Rule("shell", pattern, "allow")
    assert [text for text in matches if action(text, rule) != "allow"] == []
    assert [text for text in does_not if action(text, rule) == "allow"] == []


def reference(pattern: str, text: str) -> bool:
    """Match a pattern by a reference implementation that is simple rather than fast."""
    if pattern.endswith(" *") and reference(pattern[:-2], text):
        return True
    if not pattern:
        return not text
    if pattern[:3] in ("[*]", "[?]"):
        return text[:1] == pattern[1] and reference(pattern[3:], text[1:])
    if pattern[0] == "*":
        return any(reference(pattern[1:], text[place:]) for place in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and reference(pattern[1:], text[1:])


@given(st.text("ab *?[]\n", max_size=7), st.text("ab *?[]\n", max_size=7))
def test_patterns_mean_what_the_simplest_reading_says(pattern: str, text: str) -> None:
    """P1"""
    assert (action(text, Rule("shell", pattern, "allow")) == "allow") == reference(pattern, text)


@given(st.text("ab *?[]"), st.text("ab *?[]"))
def test_a_literal_pattern_matches_its_text_alone(text: str, other: str) -> None:
    """P3"""
    rule = Rule("shell", literal(text), "allow")
    assert action(text, rule) == "allow"
    assert (action(other, rule) == "allow") == (other == text)


@pytest.mark.parametrize(
    "path",
    [
        *("secrets/key.txt", "Secrets/key.txt", "SECRETS/KEY.TXT", "secrets./key.txt", "secrets /key.txt"),
        *("secrets/key.txt.", "secrets/key.txt::$DATA", "secrets/key.txt:Zone", "secre\u200bts/key.txt"),
        *("ｓecrets/key.txt", "ſecrets/key.txt", "secrets\\key.txt"),
    ],
)
def test_p1_a_denial_of_files_holds_for_every_spelling_of_the_name(path: str) -> None:
    """Some file system opens the same file under each of these."""
    for denied in ("secrets/*", "Secrets/key.txt", "*/KEY.txt"):
        rules = [parse_rule("files.*", "allow"), parse_rule(f"files.*:{denied}", "deny")]
        assert decide("files.read", [path], rules).action == "deny", denied
        asked = [parse_rule("files.*", "allow"), parse_rule(f"files.*:{denied}", "ask")]
        assert decide("files.write", [path], asked).action == "ask", denied
        assert decide("shell", [path], [parse_rule("*", "allow"), *rules[1:]]).action == "allow"


def test_p1_what_allows_files_is_exact_and_other_names_are_other_files() -> None:
    assert decide("files.read", ["Docs/a"], [parse_rule("files.*:docs/*", "allow")]).action == "ask"
    rules = [parse_rule("files.*", "allow"), parse_rule("files.*:log/10:00.txt", "deny")]
    assert decide("files.read", ["log/10:30.txt"], rules).action == "allow"
    composed = [parse_rule("files.*", "allow"), parse_rule("files.*:caf\u00e9/*", "deny")]
    assert decide("files.read", ["cafe\u0301/x"], composed).action == "deny"
    assert decide("files.read", ["cafe/x"], composed).action == "allow"


@pytest.mark.parametrize("denied", ["/*", "../*", "*.", "/src/*", "src/?.", "../src/*"])
def test_p1_a_denial_of_some_files_is_none_of_all(denied: str) -> None:
    """Files outside the folder, and names that end with a dot, are not files in the folder (P1)."""
    rules = [parse_rule("files.*", "allow"), parse_rule(f"files.*:{denied}", "deny")]
    assert decide("files.write", ["src/a"], rules).action == "allow"


@pytest.mark.parametrize(
    ("denied", "path"),
    [
        *(("/etc/*", "/ETC/passwd"), ("../*", "../Other/x"), ("../other/*", "../OTHER/x"), ("*.", "a.")),
        *(("secrets/*", "./Secrets/key"), ("./secrets/*", "Secrets//key"), ("secrets/*", "/secrets/key")),
    ],
)
def test_p1_a_denial_is_about_the_same_place_however_it_is_written(denied: str, path: str) -> None:
    rules = [parse_rule("files.*", "allow"), parse_rule(f"files.*:{denied}", "deny")]
    assert decide("files.read", [path], rules).action == "deny"


@pytest.mark.parametrize(
    ("allowed", "page", "runs"),
    [
        *(("*.example.org/*", "docs.example.org/a", True), ("*.example.org/*", "docs.example.org/", True)),
        ("*.example.org/*", "evil.test/.example.org/what?was=read", False),
        ("*.example.org/*", "evil.test/a.example.org/b", False),
        *(
            ("*.example.org:8080/*", "a.example.org:8080/b", True),
            ("*/robots.txt", "a.test/b/robots.txt", True),
        ),
        *(("*.pdf", "a.test/b.pdf", True), ("a.test/*", "a.test/b.test/c", True), ("*", "a.test/b", True)),
    ],
)
def test_p1_a_site_that_is_allowed_is_not_the_path_of_another(allowed: str, page: str, runs: bool) -> None:
    """A request to any host for `/.example.org/` could send that host whatever the model has read (P1)."""
    rules = [parse_rule(f"web.fetch:{allowed}", "allow")]
    assert decide("web.fetch", [page], rules).action == ("allow" if runs else "ask")


@pytest.mark.parametrize(
    "page",
    [
        *(
            "example.org/private/a",
            "example.org//private/a",
            "example.org/private%2Fa",
            "example.org/PRIVATE/a",
        ),
        *(
            "example.org/b/..%2Fprivate/a",
            "example.org//private/",
            "example.org/private//",
            "example.org/./private/a",
        ),
    ],
)
def test_p1_a_denial_of_pages_holds_for_every_spelling_of_the_path(page: str) -> None:
    """P1: some site shows the same page under each of these."""
    for denied in ("example.org/private/*", "Example.org/Private/*"):
        rules = [parse_rule("web.fetch", "allow"), parse_rule(f"web.fetch:{denied}", "deny")]
        assert decide("web.fetch", [page], rules).action == "deny"
        assert decide("web.fetch", ["example.org/privately/a"], rules).action == "allow"
        assert decide("web.fetch", ["example.org:8080/private/a"], rules).action == "allow"


def test_no_text_takes_long_to_refuse() -> None:
    """P1: the text is the model's, and must not be able to stop the house."""
    rule = Rule("shell", "*a" * 20 + "b", "allow")
    assert action("a" * 50_000, rule) == "ask"


# ── rules as people write and read them ───────────────────────────────────────────────────────────


def test_rules_are_written_short() -> None:
    assert parse_rule("shell", "allow") == Rule("shell", "*", "allow")
    assert parse_rule(" shell : git * ", "deny") == Rule("shell", "git *", "deny")
    assert parse_rule("fetch:https://example.org/*", "ask").pattern == "https://example.org/*"
    for wrong in ("", "  ", ":git *"):
        with pytest.raises(ConfigError, match="PERMISSION:PATTERN"):
            parse_rule(wrong, "allow")


def test_rules_are_read_aloud() -> None:
    """P3"""
    rules = [Rule("shell", "git status", "allow"), Rule("now", "*", "allow")]
    assert rules_in_words(rules) == "allow shell for 'git status'; allow now for everything"
    assert [str(rule) for rule in rules] == ["allow shell on git status", "allow now"]


# ── P2 ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tool_is_hidden_if_the_last_word_on_it_denies_everything() -> None:
    """P2"""
    deny = Rule("shell", "*", "deny")
    assert hidden("shell", [Rule("shell", "*", "allow"), deny])
    assert hidden("shell", [Rule("*", "*", "deny")])
    assert not hidden("shell", [deny, Rule("shell", "git *", "allow")])
    assert hidden("shell", [deny, Rule("shell", "rm *", "deny")])
    assert not hidden("shell", [deny, Rule("shell", "git *", "ask"), Rule("shell", "git push *", "deny")])
    assert not hidden("shell", [Rule("shell", "rm *", "deny")])
    assert not hidden("shell", [Rule("files", "*", "deny")])
    assert not hidden("shell", [])


@tool(permission="files", pattern="path")
def write(path: str = "secret.txt") -> str:
    """Write."""
    return path


@tool
def shell() -> str:
    """Anything."""
    return "done"


async def test_a_denied_tool_is_not_offered_whatever_the_bounds_deny_of_it(tmp_path: Path) -> None:
    """P2 × P9: as where the store is in the folder that file tools work in."""
    bounds = [Rule("files", "chat.db*", "deny")]
    async with runtime_with(tmp_path, [says("ok")], tools=[write], deny=["files"], bounds=bounds) as runtime:
        await (await runtime.send("go")).result()
        assert not model_of(runtime).requests[0].tools


async def test_a_denied_tool_is_not_offered_and_not_run(tmp_path: Path) -> None:
    """P2"""
    async with runtime_with(
        tmp_path, [calls("shell"), says("ok")], tools=[write, shell], deny=["shell"]
    ) as runtime:
        result = await (await runtime.send("go")).result()
        assert [spec.name for spec in model_of(runtime).requests[0].tools] == ["write", "read_output"]
    assert only_call(result).state is CallState.FAILED


@pytest.mark.parametrize("arguments", [{"path": "secret.txt"}, {}])
async def test_a_denial_met_by_a_call_is_its_result(tmp_path: Path, arguments: dict[str, str]) -> None:
    """P2: also where the denied path is what the model left out."""
    result = await play(
        tmp_path, [calls("write", **arguments), says("ok")], tools=[write], deny=["files:secret*"]
    )
    call = only_call(result)
    assert (call.state, result.text) == (CallState.REJECTED, "ok")
    assert call.result is not None
    assert "A rule forbids files" in call.result.text
