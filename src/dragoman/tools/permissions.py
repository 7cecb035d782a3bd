"""Define permission rules: how they are written, what they match, and which rule wins."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote

from dragoman.errors import ConfigError
from dragoman.messages.questions import Action, Rule
from dragoman.sentences import sentence

# Names of files that other programs, or Dragoman, execute or obey later. Writing one needs approval.
#
# Paths of programs that the settings start do not depend on names: `config/trust/programs.py` computes them
# from the settings.


# A path step with one of these names, and everything below it, anywhere in a workspace: a user can start the
# program that obeys it in any folder. Compared casefolded (`_bare`).
NAMES = frozenset(
    (
        # Dragoman and other agents load these, or read them as prompts.
        *(
            "dragoman.toml",
            "tools",
            "plugins",
            "skills",
            ".dragoman",
            ".dragoman-held",
            "agents.md",
            "claude.md",
            "gemini.md",
        ),
        # Version control: its configuration and hooks name programs. Without a file named HEAD, no folder can
        # become a repository whose configuration git would obey.
        *(".git", ".hg", ".svn", ".jj", "head", ".gitattributes", ".gitmodules", ".gitconfig", ".hgrc"),
        *(".githooks", ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
        *("lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook-local.yml"),
        *(".gitlab-ci.yml", ".circleci", ".vim"),
        # Editors and shells run tasks, settings or modelines from a folder that is opened or entered.
        *(".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".envrc", ".exrc"),
        *(".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".lvimrc", ".helix", ".tool-versions"),
        # Debuggers and interpreters run these from the folder in which they start.
        *(".gdbinit", ".lldbinit", ".rprofile", ".irbrc", ".pryrc"),
        # Other agents start servers, hooks and commands from these, or obey them.
        *(".mcp.json", "mcp.json", ".claude", ".claude.json", ".cursor", ".cursorrules", ".windsurf"),
        *(".windsurfrules", ".clinerules", ".roo", ".continue", ".aider.conf.yml", ".gemini", ".codex"),
        *(
            "claude.local.md",
            "agents.override.md",
            "agent.md",
            "qwen.md",
            ".qwen",
            ".crush.json",
            "crush.json",
        ),
        *(".junie", ".goosehints", "mise.toml", ".mise.toml", ".bashrc", ".zshrc", ".zshenv", ".profile"),
        *(".bash_profile", ".ssh"),
        *(".opencode", "opencode.json", "opencode.jsonc", ".kiro", ".amazonq", "copilot-instructions.md"),
        *(".amp", ".trae"),
    )
)
_ENDS = (".git", ".code-workspace", ".sublime-project")  # a bare repository; the settings of editors
# the short names that Windows gives to .dragoman, .git and the like
_SHORT = re.compile(r"(?:dragom|git|hg|svn|jj)~\d")


READS = "files.read"
# Names of files that hold keys and passwords. Reading one needs approval, even if other reads do not.
_SECRETS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", ".netrc"),
    *(".npmrc", ".pypirc", ".htpasswd", ".pgpass", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("credentials", "credentials.*", ".ssh/*", ".aws/*", ".gnupg/*", ".docker/config.json", ".kube/*"),
)
SECRET_FILES = tuple(pattern for name in _SECRETS for pattern in (name, f"*/{name}"))


def changes_program(permission: str, patterns: Sequence[str]) -> bool:
    """Return whether a call on these paths could change what is executed or obeyed later."""
    return changes_files(permission) and any(is_protected(pattern) for pattern in patterns)


def changes_files(permission: str) -> bool:
    """Return whether a permission changes files. Everything but reading does: a custom tool can delete or
    move files."""
    return permission.startswith("files.") and permission != "files.read"


def is_protected(path: str) -> bool:
    """Return whether a path step has one of the names, in any spelling that some file system accepts
    for it."""
    steps = (_bare(step) for step in re.split(r"[/\\]", path))
    return any(step in NAMES or step.endswith(_ENDS) or _SHORT.match(step) for step in steps)


@lru_cache(4096)
def spellings(path: str) -> tuple[str, ...]:
    """Return the path as file systems normalize it, with and without stream names, also from a workspace's
    root.

    A rule that denies or asks applies to all files that may be meant.
    """
    steps = [step for step in re.split(r"[/\\]", path) if step not in ("", ".")]
    root = "/" if path[:1] in ("/", "\\") else ""
    known = ["/".join(filter(None, map(plain, steps))) for plain in (_folded, _bare)]
    return tuple(dict.fromkeys([*(root + text for text in known), *known]))


def _bare(step: str) -> str:
    """Fold a path step, and remove the name of a stream."""
    return _folded(step).partition(":")[0].rstrip(" .")


def _folded(step: str) -> str:
    """Remove what some file system ignores: case, other forms of a character, invisible ones, trailing dots
    and spaces."""
    if not step.isascii():
        normal = unicodedata.normalize("NFKC", step)
        step = "".join(one for one in normal if unicodedata.category(one) != "Cf")
    step = step.casefold()
    kept = step.rstrip(" .")
    return step if kept.endswith(("*", "?")) or step == ".." else kept  # `*.` does not match every name.


_FETCH = "web.fetch"  # its patterns are pages: the site, then the path


@dataclass(slots=True, frozen=True)
class Ruling:
    """A decision. `rule` made it. None if no rule matched, which means ask."""

    action: Action
    rule: Rule | None = None


def decide(permission: str, patterns: Sequence[str], rules: Sequence[Rule]) -> Ruling:
    """Decide whether a call on these patterns may run: each must be allowed, and one denial denies the call.

    All denials are checked before Dragoman asks, so that the user is never asked in vain.
    """
    rulings = [_last_match(permission, pattern, rules) for pattern in patterns or ("*",)]
    for action in ("deny", "ask"):
        for ruling in rulings:
            if ruling.action == action:
                return ruling
    return rulings[-1]


def hidden(permission: str, rules: Sequence[Rule]) -> bool:
    """Return whether rules deny everything of a permission: then the tool is not even offered.

    A later rule that denies a part, as the bounds do, does not restore the rest.
    """
    for rule in reversed(rules):
        if matches(rule.permission, permission) and (rule.action != "deny" or rule.pattern == "*"):
            return rule.action == "deny"
    return False


def is_known_later(permission: str) -> bool:
    """Return whether a pattern is about tools from a server, a message or an editor, which are not
    known yet."""
    return permission.startswith(("mcp.", "client.", "mcp_server"))


def parse_rule(text: str, action: Action, origin: str = "") -> Rule:
    """Parse `"shell:git *"`, `"shell"` or `"*"` into a rule. The permission comes before the colon."""
    given: object = text
    permission, _, pattern = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not permission.strip():
        raise ConfigError(sentence("rule.malformed", text=text))
    return Rule(permission.strip(), pattern.strip() or "*", action, origin)


def rules_in_words(rules: Iterable[Rule]) -> str:
    """Describe the rules that "always" would add, for people."""
    return "; ".join(
        f"{rule.action} {rule.permission} for everything"
        if rule.pattern == "*"
        else f"{rule.action} {rule.permission} for {rule.pattern!r}"
        for rule in rules
    )


def concerns(rule: Rule, permission: str) -> bool:
    """Return whether a rule concerns a permission."""
    return matches(rule.permission, permission)


def _last_match(permission: str, pattern: str, rules: Sequence[Rule]) -> Ruling:
    other = _other_spellings(permission, pattern)
    for rule in reversed(rules):
        if matches(rule.permission, permission) and (
            (matches(rule.pattern, pattern) and _is_of_its_site(rule, permission, pattern))
            or (other and rule.action != "allow" and _means(rule, pattern, other))
        ):
            return Ruling(rule.action, rule)
    return Ruling("ask")


def _other_spellings(permission: str, pattern: str) -> tuple[str, ...]:
    """Return other spellings: of a file, those that some file system accepts; of a page, those that some site
    does (encoded characters, doubled slashes, other case)."""
    if permission.startswith("files."):
        return spellings(pattern)
    if permission != _FETCH:
        return ()
    address = unquote(pattern)
    plain = spellings(normpath(address))[0]
    return (f"{plain}/" if address.endswith("/") else plain,)


def _is_of_its_site(rule: Rule, permission: str, page: str) -> bool:
    """Return whether a page is on the site that the rule allows: `*.example.org/*` must not match another
    site's path."""
    site, slash, _ = rule.pattern.partition("/")
    return (
        rule.action != "allow" or permission != _FETCH or not slash or matches(site, page.partition("/")[0])
    )


def _means(rule: Rule, path: str, others: tuple[str, ...]) -> bool:
    """Return whether a rule that does not match a path concerns another spelling of it, or would if spelled
    differently itself."""
    own = spellings(rule.pattern)[0]
    if own == rule.pattern and others == (path,):
        return False
    return any(matches(own, text) for text in others)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches: `*` is any text, `?` one character."""
    if pattern.endswith(" *"):
        text += " "  # so that `git *` matches `git`, too
    return pattern == "*" or _compiled(pattern).fullmatch(text) is not None


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern.

    `*` is any text, `?` one character. `[*]` and `[?]` are the characters themselves.
    """
    other_brackets = r"\[(?![*?]\])"
    return re.compile(translate(re.sub(other_brackets, "[[]", pattern)))


def literal(text: str) -> str:
    """Return the pattern that matches only this text."""
    return re.sub(r"[*?]", r"[\g<0>]", text)
