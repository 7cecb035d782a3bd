"""Permission rules: how one is written, what it matches, and which of many has the last word."""

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

# Names of files that other programs, or this one, execute or obey later: writing them is asked about.
#
# What the settings start is no matter of names: `config/trust/programs.py` computes it from the settings.


# A step of a path with one of these names, and everything below it, anywhere in a workspace: a person may
# start the program that obeys it in any folder. Compared casefolded (`_bare`).
NAMES = frozenset(
    (
        # Dragoman loads these, or reads them as prompts; so do other agents.
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
        # Version control: its configuration and hooks name programs. Without a file named HEAD, no folder
        # can become a repository, whose configuration git would obey.
        *(".git", ".hg", ".svn", ".jj", "head", ".gitattributes", ".gitmodules", ".gitconfig", ".hgrc"),
        *(".githooks", ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
        *("lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook-local.yml"),
        *(".gitlab-ci.yml", ".circleci", ".vim"),
        # Editors and shells run tasks, settings or modelines of a folder that is opened or entered.
        *(".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".envrc", ".exrc"),
        *(".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".lvimrc", ".helix", ".tool-versions"),
        # Debuggers and interpreters run these where they are started.
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
_SHORT = re.compile(r"(?:dragom|git|hg|svn|jj)~\d")  # what Windows also calls .dragoman, .git and the like


READS = "files.read"
# Names of files that hold keys and passwords: reading them is asked about, even where other reads are not.
_SECRETS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", ".netrc"),
    *(".npmrc", ".pypirc", ".htpasswd", ".pgpass", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("credentials", "credentials.*", ".ssh/*", ".aws/*", ".gnupg/*", ".docker/config.json", ".kube/*"),
)
SECRET_FILES = tuple(pattern for name in _SECRETS for pattern in (name, f"*/{name}"))


def changes_program(permission: str, patterns: Sequence[str]) -> bool:
    """Whether a call that touches these paths could change what is executed or obeyed later."""
    return changes_files(permission) and any(is_protected(pattern) for pattern in patterns)


def changes_files(permission: str) -> bool:
    """Of files, everything but reading changes them: a tool of one's own may delete or move some."""
    return permission.startswith("files.") and permission != "files.read"


def is_protected(path: str) -> bool:
    """Whether a step of the path has one of the names, in any spelling that some file system takes for it."""
    steps = (_bare(step) for step in re.split(r"[/\\]", path))
    return any(step in NAMES or step.endswith(_ENDS) or _SHORT.match(step) for step in steps)


@lru_cache(4096)
def spellings(path: str) -> tuple[str, ...]:
    """The path without what some file system overlooks in names; the same without their streams; and both
    as from the root of a workspace. A rule that denies or asks holds for all files that may be meant."""
    steps = [step for step in re.split(r"[/\\]", path) if step not in ("", ".")]
    root = "/" if path[:1] in ("/", "\\") else ""
    known = ["/".join(filter(None, map(plain, steps))) for plain in (_folded, _bare)]
    return tuple(dict.fromkeys([*(root + text for text in known), *known]))


def _bare(step: str) -> str:
    """Folded, and without the name of a stream."""
    return _folded(step).partition(":")[0].rstrip(" .")


def _folded(step: str) -> str:
    """Without what some file system overlooks: case, other forms of a character, invisible ones, dots and
    spaces at the end."""
    if not step.isascii():
        normal = unicodedata.normalize("NFKC", step)
        step = "".join(one for one in normal if unicodedata.category(one) != "Cf")
    step = step.casefold()
    kept = step.rstrip(" .")
    return step if kept.endswith(("*", "?")) or step == ".." else kept  # `*.` is not every name


_FETCH = "web.fetch"  # its patterns are pages: the site, then the path


@dataclass(slots=True, frozen=True)
class Ruling:
    """`rule` is what decided; None where no rule matched, which means ask."""

    action: Action
    rule: Rule | None = None


def decide(permission: str, patterns: Sequence[str], rules: Sequence[Rule]) -> Ruling:
    """Whether a call that touches these patterns may run. Each must be allowed; one denied is enough for no.

    All are looked at for a denial before any leads to a question, so that nobody is asked in vain.
    """
    rulings = [_last_match(permission, pattern, rules) for pattern in patterns or ("*",)]
    for action in ("deny", "ask"):
        for ruling in rulings:
            if ruling.action == action:
                return ruling
    return rulings[-1]


def hidden(permission: str, rules: Sequence[Rule]) -> bool:
    """True where rules deny everything of a permission: the tool is then not even offered. A rule behind
    these that denies some of it, as the bounds do, gives nothing back."""
    for rule in reversed(rules):
        if matches(rule.permission, permission) and (rule.action != "deny" or rule.pattern == "*"):
            return rule.action == "deny"
    return False


def is_known_later(permission: str) -> bool:
    """Whether a pattern is about tools that come with a server, a message or an editor: none is there yet."""
    return permission.startswith(("mcp.", "client.", "mcp_server"))


def parse_rule(text: str, action: Action, origin: str = "") -> Rule:
    """`"shell:git *"` or `"shell"` or `"*"` → a rule. What stands before the colon is the permission."""
    given: object = text
    permission, _, pattern = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not permission.strip():
        raise ConfigError(sentence("rule.malformed", text=text))
    return Rule(permission.strip(), pattern.strip() or "*", action, origin)


def rules_in_words(rules: Iterable[Rule]) -> str:
    """What "always" would mean, as a person reads it."""
    return "; ".join(
        f"{rule.action} {rule.permission} for everything"
        if rule.pattern == "*"
        else f"{rule.action} {rule.permission} for {rule.pattern!r}"
        for rule in rules
    )


def concerns(rule: Rule, permission: str) -> bool:
    """Whether a rule says anything about a permission."""
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
    """Of a file, what some file system takes for the same name; of a page, what some site does: encoded
    signs, doubled slashes, other case."""
    if permission.startswith("files."):
        return spellings(pattern)
    if permission != _FETCH:
        return ()
    address = unquote(pattern)
    plain = spellings(normpath(address))[0]
    return (f"{plain}/" if address.endswith("/") else plain,)


def _is_of_its_site(rule: Rule, permission: str, page: str) -> bool:
    """What `*.example.org/*` allows is on such a site: the path of another may look like one."""
    site, slash, _ = rule.pattern.partition("/")
    return (
        rule.action != "allow" or permission != _FETCH or not slash or matches(site, page.partition("/")[0])
    )


def _means(rule: Rule, path: str, others: tuple[str, ...]) -> bool:
    """Whether a rule that does not match a path is about another spelling of it, or would be if its own were
    another."""
    own = spellings(rule.pattern)[0]
    if own == rule.pattern and others == (path,):
        return False
    return any(matches(own, text) for text in others)


def matches(pattern: str, text: str) -> bool:
    """`*` is any text, `?` one character."""
    if pattern.endswith(" *"):
        text += " "  # so that `git *` matches `git`, too
    return pattern == "*" or _compiled(pattern).fullmatch(text) is not None


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` is any text, `?` one character; `[*]` and `[?]` are the characters themselves."""
    other_brackets = r"\[(?![*?]\])"
    return re.compile(translate(re.sub(other_brackets, "[[]", pattern)))


def literal(text: str) -> str:
    """The pattern that matches this text and nothing else."""
    return re.sub(r"[*?]", r"[\g<0>]", text)
