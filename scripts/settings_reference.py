"""Generate the Markdown reference of every setting from `config/tables.py`.

`python scripts/settings_reference.py docs/reference/configuration.md` writes it between the two marks.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Required, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from dragoman.config.tables import (
    AgentTable,
    AllLimitsTable,
    ConfigTable,
    FormatterTable,
    OidcTable,
    PluginTable,
    PromptTable,
    RetentionTable,
    ServerTable,
    ShellTable,
    SnapshotsTable,
    TeamTable,
    WorkersTable,
    WorkspaceTable,
)
from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider, Traits
from dragoman.providers.catalog_tables import ProviderTable, TraitsTable
from dragoman.runtime import Runtime
from dragoman.tools.builtin.formatters import SECONDS
from dragoman.tools.mcp.servers import McpServer
from dragoman.workspace.states import DEFAULT_LIMITS

BEGIN = "<!-- made by `python scripts/settings_reference.py`: change the code, not this -->"
END = "<!-- the reference ends -->"


@dataclass(slots=True, frozen=True)
class Section:
    """A table of the file under its heading. `words` describe keys without an annotated description."""

    heading: str
    table: type
    defaults: Mapping[str, object]
    words: Mapping[str, str]


def sections() -> tuple[Section, ...]:
    """Return the sections in the order in which they are read."""
    runtime = _of_signature(Runtime)
    return (
        Section("At the top of the file", ConfigTable, {**runtime, **_DEFAULTS["top"]}, _TOP),
        Section("`[limits]`", AllLimitsTable, runtime, {}),
        Section("`[teams.NAME]`", TeamTable, {}, {}),
        Section("`[prompts.NAME]`", PromptTable, {}, {}),
        Section("`[agents.NAME]`", AgentTable, {}, {}),
        Section("`[plugins.NAME]`", PluginTable, {}, {"enabled": "true"}),
        Section("`[server]`", ServerTable, _DEFAULTS["server"], {}),
        Section("`[server.oidc]`", OidcTable, _DEFAULTS["oidc"], {}),
        Section("`[workers]`", WorkersTable, {"role": "both"}, {}),
        Section("`[retention]`", RetentionTable, _DEFAULTS["retention"], {}),
        Section("`[snapshots]`", SnapshotsTable, _DEFAULTS["snapshots"], {}),
        Section("`[workspaces.NAME]`", WorkspaceTable, {}, {}),
        Section("`[shell]`", ShellTable, _DEFAULTS["shell"], {}),
        Section("`[formatters.NAME]`", FormatterTable, {"timeout": SECONDS, "enabled": True}, {}),
        Section("`[mcp.NAME]`", McpServer, _of_fields(McpServer), {}),
        Section("`[providers.NAME]`", ProviderTable, _of_fields(Provider), _PROVIDER),
        Section(
            "`[providers.NAME.models]`, `[providers.NAME.defaults]` and `[families]`",
            TraitsTable,
            _of_fields(Traits),
            _TRAITS,
        ),
    )


def reference() -> str:
    """One heading, one sentence and one Markdown table for each table of the file."""
    return "\n\n".join(_render(section) for section in sections())


def rewrite(text: str) -> str:
    """Return the text with the reference between its marks. Raise ConfigError if a mark is missing."""
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ConfigError(f"there is no place for the reference: it goes between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def _render(section: Section) -> str:
    sentence = " ".join((inspect.getdoc(section.table) or "").split())
    rows = [f"| `{key}` | {kind} | {words} | {default} |" for key, kind, words, default in rows_of(section)]
    head = ["| key | type | meaning | default |", "|---|---|---|---|"]
    return "\n".join([f"### {section.heading}", "", sentence, "", *head, *rows])


def rows_of(section: Section) -> Iterator[tuple[str, str, str, str]]:
    """Return key, type in words, meaning and default of every setting of a table."""
    for key, kind in get_type_hints(section.table, include_extras=True).items():
        words = _described(kind) or section.words.get(key, "")
        yield key, describe_type(kind), words.replace("|", "\\|"), _shown(section.defaults.get(key))


# ── types in words ────────────────────────────────────────────────────────────────────────────────

_PLAIN: dict[Any, str] = {str: "string", int: "whole number", float: "number", bool: "`true` or `false`"}


def describe_type(kind: Any) -> str:
    """Return the type in a user's words: `list[str]` is a list of strings."""
    bare, marks = _split_annotation(kind)
    origin, arguments = get_origin(bare), get_args(bare)
    if origin is Literal:
        return ", ".join(f"`{json.dumps(word) if isinstance(word, bool) else word}`" for word in arguments)
    if origin in (Union, UnionType):
        return " or ".join(describe_type(one) for one in arguments if one is not NoneType)
    if origin in (list, tuple):
        return f"list: {describe_type(arguments[0])}" if _is_choice(arguments[0]) else "list of strings"
    if origin is dict:
        return "a table each" if _is_table(arguments[1]) else "table"
    if _is_table(bare):
        return "table"
    return f"{_PLAIN[bare]}{_bounds(marks)}"


def _split_annotation(kind: Any) -> tuple[Any, list[Any]]:
    """`Annotated[int, Gt(0)]` → both; pydantic keeps bounds inside its description of a field."""
    if get_origin(kind) is Required:
        (kind,) = get_args(kind)
    bare, *marks = get_args(kind) if hasattr(kind, "__metadata__") else (kind,)
    inner = [bound for mark in marks if isinstance(mark, FieldInfo) for bound in mark.metadata]
    return bare, [*marks, *inner]


def _bounds(marks: list[Any]) -> str:
    bounds = {
        name: getattr(mark, name) for mark in marks for name in ("gt", "ge", "le") if hasattr(mark, name)
    }
    match bounds:
        case {"ge": low, "le": high}:
            return f" from {low} to {high}"
        case {"gt": low, "le": high}:
            return f" above {low}, at most {high:,}"
        case {"gt": low}:
            return f" above {low}"
        case {"ge": low}:
            return f" of {low} or more"
    return ""


def _described(kind: Any) -> str:
    _, marks = _split_annotation(kind)
    texts = (mark.description for mark in marks if isinstance(mark, FieldInfo) and mark.description)
    return next(texts, "")


def _is_table(kind: Any) -> bool:
    return is_typeddict(kind) or is_dataclass(kind)


def _is_choice(kind: Any) -> bool:
    return get_origin(kind) is Literal


# ── defaults ──────────────────────────────────────────────────────────────────────────────────────


class ComputedDefault(str):
    """Return a default that is determined at startup, in words."""

    __slots__ = ()


# Defaults that packages above this one decide. A test compares them with the actual ones.
_DEFAULTS: dict[str, dict[str, object]] = {
    "top": {
        "model": ComputedDefault("the best that is there"),
        "store": ComputedDefault("`dragoman.db` in the data folder"),
        "blobs": ComputedDefault("`folder` next to a file, `database` in PostgreSQL"),
        "migrate": True,
        "workspace": ComputedDefault("the folder of the settings"),
        "tools": ("basics", "files", "shell", "web", "browser", "media"),
        "snapshots": None,  # a table here, and a string for a runtime
        "workspaces": None,
    },
    "snapshots": {
        "enabled": True,
        "max_file_size": DEFAULT_LIMITS.file_bytes,
        "max_files": DEFAULT_LIMITS.files,
        "max_seconds": DEFAULT_LIMITS.seconds,
        "keep_days": DEFAULT_LIMITS.days,
    },
    "shell": {"cage": "auto", "unasked": True, "watch": True},
    "server": {
        "host": "127.0.0.1",
        "port": 8721,
        "upload_limit": 25_000_000,
        "open": ComputedDefault("where there is a screen"),
    },
    "oidc": {
        "name": "OpenID Connect",
        "scopes": ("openid", "profile", "email"),
        "name_claim": "preferred_username",
        "groups_claim": "groups",
        "session": "12 hours",
    },
    "retention": {"audit": "1 year"},
}


def _of_signature(runtime: type) -> dict[str, object]:
    return {name: one.default for name, one in inspect.signature(runtime).parameters.items()}


def _of_fields(kind: Any) -> dict[str, object]:
    return {one.name: one.default for one in fields(kind) if one.default is not MISSING}


def _shown(default: object) -> str:
    """Return the default in TOML; empty if the default is absent or empty."""
    if default is None or default is inspect.Parameter.empty or default in ("", ()):
        return ""
    if isinstance(default, ComputedDefault):
        return str(default)
    if isinstance(default, tuple):
        return f"`{json.dumps(list(default))}`"
    if isinstance(default, str | bool | int | float):
        return f"`{json.dumps(default)}`"
    return ""


# ── words for keys that have none in their annotation ─────────────────────────────────────────────

_TOP = {
    "limits": "limits of one turn, and of one user per day",
    "prompts": "prompts that users send often",
    "teams": "users who share daily limits: [teams](../guide/sign-in.md#limit-what-a-team-uses)",
    "agents": "named sets of prompt, model, tools, permissions and limits",
    "plugins": "plugins with their parameters",
    "mcp": "servers that bring tools",
    "server": "`dragoman serve`",
    "workers": "the role of a process, and limits on turns at the same time",
    "retention": "when Dragoman deletes conversations",
    "snapshots": "records of file changes: [undo](../guide/undo.md)",
    "workspaces": "other folders for conversations",
    "shell": "the [cage](../concepts/cage.md) for programs that tools start",
    "formatters": "programs for written files: [formatters](../guide/undo.md#run-formatters-and-linters)",
    "providers": "servers of models, in addition to the catalog",
    "families": "open models by a pattern of their names, at any provider",
}
_PROVIDER = {
    "title": "its name for users",
    "base_url": "the address, with `/v1` or another prefix of the wire's paths",
    "base_url_from": "environment variables with the address, which win over `base_url`",
    "keys": "environment variables with the key; the first that is set counts",
    "wire": "the protocol it speaks",
    "endpoint": "paths, bodies and frames of a cloud: `wire/endpoint.py`",
    "auth": "how to sign in without a key: a signature or an access token; not in a project's file",
    "headers": "sent with each request; not for secrets",
    "query": "added to each address",
    "extra": "other options it accepts: a list, or `true` for all",
    "local": "it works without a key",
    "default": "the model if only its key is set",
    "prices": "its name in the package `genai-prices`",
    "routes": "models by a pattern, and the provider that serves them instead; not in a project's file",
    "facts": "its name in the sources of `providers/facts.json`",
    "quirks": "differences from its wire: `wire/endpoint.py`",
    "files": "limits on attachments: `picture_edge` (pixels; Dragoman shrinks larger images), "
    "`picture_bytes`, `together` (bytes), `upload_above` (bytes); and on a `reply` (bytes, "
    "default 128,000,000)",
    "defaults": "for all its models; their own values win",
    "models": "models by a pattern of the name; the first match counts",
}
_TRAITS = {
    "context": "tokens it can take",
    "type": "its type: it chats, makes or changes images, transcribes or speaks",
    "unit_prices": "dollars for an `image`, a `minute` heard, `million_characters` spoken",
    "modalities": "kinds of input: text, image, audio, video, pdf",
    "tools": "`native`, or the dialect in which it writes its calls",
    "spills": "the dialect in which its family writes calls as text, `ask`, or `none`",
    "reasoning": "where its reasoning is: fields of the wire, tags in the text, a tag that the prompt opens",
    "file": "the GGUF file of a model that is served here",
    "adapter": "the GGUF file of an adapter that taught it to call tools",
    "note": "a warning for users",
    "prompt": "text after the general system prompt",
    "options": "options of every request; those of the conversation win",
    "variants": "more options by name, for `provider/model#name`",
    "extra": "fields for every body, unchanged",
}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/settings_reference.py FILE")
    page = Path(sys.argv[1])
    page.write_text(rewrite(page.read_text("utf-8")), "utf-8")
