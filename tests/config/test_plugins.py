"""Plugins anywhere: by settings, from a folder, and brought by installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import ScriptedModel
from dragoman.config.build import build_runtime
from dragoman.config.settings import load
from dragoman.config.trust.contents import inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.errors import ConfigError
from dragoman.tools.python_files import run_file
from dragoman.wire.scripted import says
from tests.fork_server import python

MOTTO = """
from dragoman import Plugin, tool


@tool
def recite() -> str:
    "Recite the motto."
    return "Per aspera."


class Motto(Plugin):
    tools = (recite,)

    def __init__(self, text: str = "Per aspera.") -> None:
        self.text = text

    async def system_prompt(self, text, turn):
        return f"{text}\\n{self.text}"
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder, with settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("DRAGOMAN_TRUST", raising=False)
    folder = tmp_path / "config" / "dragoman"
    (folder / "plugins").mkdir(parents=True)
    (folder / "dragoman.toml").write_text("tools = []\n")
    return folder


async def _system(start: Path) -> str:
    """Return the system prompt under the settings of this folder."""
    model = ScriptedModel([says("Hi.")])
    built = build_runtime(load(start=start), model=model)
    assert built.warnings == []
    async with built.runtime as runtime:
        await (await runtime.send("Hi")).result()
    (request,) = model.requests
    return f"{request.system} {[spec.name for spec in request.tools]}"


async def test_a_plugin_of_ones_own_folder_acts(own: Path, tmp_path: Path) -> None:
    """It adds its tools, and its settings table supplies or omits its parameters (H1)."""
    (own / "plugins" / "motto.py").write_text(MOTTO)
    assert "Per aspera." in await _system(tmp_path)
    assert "recite" in await _system(tmp_path)
    (own / "dragoman.toml").write_text('tools = []\n[plugins.motto]\ntext = "Ad astra."\n')
    assert "Ad astra." in await _system(tmp_path)
    (own / "dragoman.toml").write_text("tools = []\n[plugins.motto]\nenabled = false\n")
    assert "Per aspera." not in await _system(tmp_path)


async def test_a_folder_that_is_not_trusted_brings_no_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11"""
    project = tmp_path / "project"
    (project / "plugins").mkdir(parents=True)
    (project / "dragoman.toml").write_text('[plugins.other]\nuse = "json:dumps"\n')
    (project / "plugins" / "motto.py").write_text(MOTTO)
    assert "Per aspera." not in await _system(project)
    seen = summarise(inspect_project(project))
    assert "runs Python: plugins/motto.py" in seen
    assert "runs the plugin other: json:dumps" in seen
    (project / "dragoman.toml").write_text("")
    monkeypatch.setenv("DRAGOMAN_TRUST", str(project))
    assert "Per aspera." in await _system(project)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ("[plugins.nobody]", "No folder or installed package has 'nobody'"),
        ("[plugins.moto]", "Did you mean 'motto'"),
        ('[plugins.x]\nuse = "no.such:Thing"', "cannot import"),
        ('[plugins.x]\nuse = "json"', "package.module:Name"),
        ('[plugins.x]\nuse = "json:dumps"', "Plugin 'x'"),
        ("[plugins.motto]\nwords = 3", "Plugin 'motto'"),
        ("[plugins.loop_guard]\nlimit = 5", "built-in plugin 'loop_guard'"),
        ("[plugins.loop_guard]\nenabled = false", "built-in plugin 'loop_guard'"),
        ("[plugins.snapshots]", "built-in plugin 'snapshots'"),
    ],
)
def test_a_plugin_that_cannot_be_is_an_error_with_its_place(
    own: Path, tmp_path: Path, settings: str, wrong: str
) -> None:
    (own / "plugins" / "motto.py").write_text(MOTTO)
    (own / "dragoman.toml").write_text(f"tools = []\n{settings}\n")
    with pytest.raises(ConfigError, match=wrong) as error:
        build_runtime(load(start=tmp_path), model=ScriptedModel([]))
    assert "dragoman.toml:2" in str(error.value)


FAMILY = """
from dragoman import Plugin


class Saying(Plugin):
    def __init__(self, text):
        self.text = text

    async def system_prompt(self, text, turn):
        return f"{text}\\n{self.text}"


class _Hidden(Saying):
    def __init__(self):
        super().__init__("Hidden.")


class Hope(Saying):
    def __init__(self):
        super().__init__("Dum spiro.")


class LoopGuard(Saying):
    def __init__(self, text="No guard."):
        super().__init__(text)
"""


async def test_a_class_for_others_to_inherit_from_is_no_plugin(own: Path, tmp_path: Path) -> None:
    """H1: neither is one whose name begins with `_`. A file may take the place of a built-in plugin."""
    (own / "plugins" / "family.py").write_text(FAMILY)
    (own / "dragoman.toml").write_text('tools = []\n[plugins.loop_guard]\ntext = "My guard."\n')
    system = await _system(tmp_path)
    assert "Dum spiro." in system
    assert "My guard." in system
    assert "Hidden." not in system


TYPED = """
from __future__ import annotations
from pydantic import BaseModel
from dragoman import Plugin, tool


class Thing(BaseModel):
    {field}: str


@tool
def {name}(thing: Thing) -> str:
    "Take it."
    return ""
"""


async def test_files_of_one_name_are_modules_of_their_own(own: Path, tmp_path: Path) -> None:
    """This holds in `tools` and in `plugins`, and in two folders. Each file finds its own types (T1)."""
    first, second = own / "tools" / "same.py", tmp_path / "other" / "tools" / "same.py"
    third = own / "plugins" / "same.py"
    for file, field in ((first, "one"), (second, "two"), (third, "three")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TYPED.format(field=field, name=f"take_{field}"))
    modules = [run_file(file) for file in (first, second, third)]
    assert len({module.__name__ for module in modules}) == 3
    assert [sys.modules[module.__name__] is module for module in modules] == [True, True, True]


def test_a_broken_file_is_left_out_with_a_warning(own: Path, tmp_path: Path) -> None:
    (own / "plugins" / "broken.py").write_text("1 / 0\n")
    built = build_runtime(load(start=tmp_path), model=ScriptedModel([]))
    assert ["broken.py, line 1: ZeroDivisionError" in warning for warning in built.warnings] == [True]


PROGRAM = """
import asyncio
from pathlib import Path
from dragoman import ScriptedModel
from dragoman.config.build import build_runtime
from dragoman.config.settings import load
from dragoman.config.sources import catalog_here
from dragoman.installed import installed
from dragoman.wire.scripted import says

installed.cache_clear()  # what it was forked off looked before


async def main():
    model = ScriptedModel([says("Hi.")])
    async with build_runtime(load(start=Path.cwd()), model=model).runtime as runtime:
        await (await runtime.send("Hi")).result()
    print(model.requests[0].system.split()[-1], [spec.name for spec in model.requests[0].tools])
    print(catalog_here().find("acme/x")[0].base_url, catalog_here().find("openai/x")[0].base_url)


asyncio.run(main())
"""


@pytest.mark.slow
def test_installed_packages_bring_plugins_tools_and_providers(own: Path, tmp_path: Path) -> None:
    """Packages use entry points: active ones are named in the settings, and optional ones are known by name.
    A known provider keeps its address."""
    site = tmp_path / "site"
    meta = site / "acme_dragoman-1.0.dist-info"
    meta.mkdir(parents=True)
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dragoman\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(
        "[dragoman.plugins]\nmotto = acme_dragoman:Motto\n[dragoman.tools]\nacme = acme_dragoman:recite\n"
        "[dragoman.providers]\nacme = acme_dragoman:PROVIDER\nopenai = acme_dragoman:PROVIDER\n"
        "broken = acme_dragoman:nothing\n"
    )
    (site / "acme_dragoman.py").write_text(
        MOTTO.replace("    tools = (recite,)\n", "")
        + '\nPROVIDER = {"base_url": "https://acme.example/v1"}\n'
    )
    (own / "dragoman.toml").write_text('tools = ["acme"]\n[plugins.motto]\n')
    done = subprocess.run(
        python("-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{PROGRAM}"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first == "aspera. ['recite', 'read_output']"
    assert second == "https://acme.example/v1 https://api.openai.com/v1"
