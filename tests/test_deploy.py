"""Check the files for running Dragoman for a team: they match the program."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import TypeAdapter

from dragoman.config.tables import ConfigTable
from tests.cli.program import invoke, started
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of

ROOT = Path(__file__).parent.parent


def test_the_settings_of_the_fleet_are_settings() -> None:
    """N2"""
    settings = tomllib.loads((ROOT / "deploy" / "dragoman.toml").read_text("utf-8"))
    TypeAdapter(ConfigTable).validate_python(settings)


def test_every_command_of_the_fleet_is_one_of_ours() -> None:
    """N2: with flags that it has."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    commands = [service["command"] for service in services.values() if "command" in service]
    pods = [pod["template"]["spec"] for pod in (one["spec"] for one in manifests()) if "template" in pod]
    assert commands == [
        pod["containers"][0]["command"] for pod in pods
    ]  # compose and Kubernetes run the same
    assert [command[:2] for command in commands] == [["dragoman", "serve"], ["dragoman", "worker"]]
    for _, name, *words in commands:
        shown = invoke(name, "--help", terminal_width=200, color=False).output
        for flag in (word for word in words if word.startswith("--")):
            assert flag in shown


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8")))


def test_the_manifests_fit_the_schema_of_kubernetes_and_each_other() -> None:
    """The schema knows every field, and every name, label and port that a manifest refers to exists (N2)."""
    named = {(one["kind"], one["metadata"]["name"]) for one in manifests()}
    pods = []
    for manifest in manifests():
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        if manifest["kind"] == "Deployment":
            pods.append(pod := manifest["spec"]["template"])
            assert manifest["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
            (container,) = pod["spec"]["containers"]
            volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
            claim = volumes["work"]["persistentVolumeClaim"]["claimName"]
            assert ("PersistentVolumeClaim", claim) in named
    (service,) = [one["spec"] for one in manifests() if one["kind"] == "Service"]
    (web,) = [pod["spec"] for pod in pods if pod["metadata"]["labels"] == service["selector"]]
    (port,) = web["containers"][0]["ports"]
    assert port["name"] == service["ports"][0]["targetPort"]
    command = web["containers"][0]["command"]
    assert command[command.index("--port") + 1] == str(port["containerPort"])


def test_the_image_has_what_the_fleet_needs_and_nothing_private() -> None:
    """The image has drivers for a database and an object store. It has no keys, no conversations of its
    builder and no old web UI (N1, N2)."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    wanted = re.search(r"/src\[([\w,]+)\]", (ROOT / "Dockerfile").read_text("utf-8"))
    assert wanted is not None
    assert {"programs", "postgres", "objects"} <= set(wanted[1].split(",")) <= extras.keys()
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {".env", ".git", "**/*.db", "**/*.db.files", "src/dragoman/server/page"} <= set(ignored)


def test_whatever_a_service_refers_to_is_there() -> None:
    """N2: files, volumes, services."""
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    for service in compose["services"].values():
        assert set(service.get("depends_on", ())) <= compose["services"].keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (ROOT / source).is_file() if source.startswith(".") else source in compose["volumes"]


@pytest.mark.slow
async def test_the_services_start_with_their_settings(tmp_path: Path, postgres: Server) -> None:
    """The test runs the commands, settings and variables of the containers on this machine (N2)."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    settings = (ROOT / "deploy" / "dragoman.toml").read_text("utf-8").replace('"/work"', f'"{tmp_path}"')
    (tmp_path / "config" / "dragoman").mkdir(parents=True)
    (tmp_path / "config" / "dragoman" / "dragoman.toml").write_text(settings, "utf-8")
    environment = {
        **services["web"]["environment"],
        "DRAGOMAN_STORE": postgres.url(schema_of(tmp_path)),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "DRAGOMAN_PASSWORD": "open sesame",
        "ANTHROPIC_API_KEY": "sk-none",
    }
    _, *words = services["web"]["command"]
    words[words.index("--port") + 1] = "0"
    web = await started(*words, folder=tmp_path, **environment)
    worker = await started(*services["worker"]["command"][1:], folder=tmp_path, **environment)
    try:
        async with asyncio.timeout(PATIENCE):
            port = (await printed(web, r"http://[^/\s]+:(\d+)"))[1]
            await printed(worker, "a worker")
            async with aiohttp.ClientSession(f"http://localhost:{port}") as http:
                async with http.get("/readyz") as ready:
                    assert ready.status == 200
                async with http.post("/api/login", json={"password": "open sesame"}) as signed_in:
                    assert signed_in.status < 300, await signed_in.text()
            _, _, *look = services["web"]["healthcheck"]["test"]
            look = [word.replace(":8000/", f":{port}/") for word in look]
            assert await (await asyncio.create_subprocess_exec(sys.executable, *look)).wait() == 0
    finally:
        for process in (web, worker):
            process.terminate()
            await process.communicate()


async def printed(process: Process, pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    text = ""
    while (found := re.search(pattern, text)) is None:
        line = await process.stdout.readline()
        assert line, text
        text += line.decode()
    return found
