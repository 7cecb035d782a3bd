"""Check skills that are written over HTTP: available to the next turn, and stored in the user's own skills
folder."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.server.site import Site
from tests.server.test_setup import Folder, folder, set_up
from tests.tools.test_skills import skill

__all__ = ["folder"]

URL = "/api/setup/skills"
BAKE = {"description": "How to bake.", "when": "bread is wanted", "text": "1. Knead.\n2. Wait."}


def own_folder(folder: Folder) -> Path:
    return folder.file.parent / "skills"


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def names(site: Site) -> list[str]:
    return [one["name"] for one in (await site.get(URL))["items"]]


async def offered(site: Site) -> bool:
    """Whether there is a tool that loads skills."""
    groups = {one["name"]: one for one in (await site.get("/api/tools"))["groups"]}
    return "load_skill" in [tool["name"] for tool in groups.get("skills", {"tools": []})["tools"]]


async def test_a_skill_is_written_changed_and_removed(folder: Folder) -> None:
    """C12, P11: the first one brings the tool that loads it, without a restart, and the last one takes it."""
    file = own_folder(folder) / "bake" / "SKILL.md"
    async with set_up(folder) as site:
        assert await site.get(URL) == {"folder": str(own_folder(folder)), "items": [], "left_out": []}
        assert not await offered(site)
        made = (await site.ask("PUT", f"{URL}/bake", BAKE)).body
        assert (made["own"], made["origin"], made["always"]) == (True, str(file), False)
        assert file.read_text() == (
            "---\nname: bake\ndescription: How to bake.\nwhen: bread is wanted\n---\n\n1. Knead.\n2. Wait.\n"
        )
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert await offered(site)
        assert (await site.get(URL))["items"] == [made]
        again = {"description": "How to bake.", "text": "Buy it.", "always": True, "version": made["version"]}
        changed = (await site.ask("PUT", f"{URL}/bake", again)).body
        assert (changed["when"], changed["always"], changed["text"]) == ("", True, "Buy it.")
    async with set_up(folder) as site:
        assert (await site.get(URL))["items"] == [changed]
        assert (await site.ask("DELETE", f"{URL}/bake")).status == 204
        assert not file.parent.exists()
        assert not await offered(site)
        assert (await site.ask("DELETE", f"{URL}/bake")).status == 404


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a.b", {}, "letters, digits"),
    ("x" * 65, {}, "letters, digits"),
    ("%2e%2e%5cbake", {}, "letters, digits"),
    ("bake%0a", {}, "letters, digits"),
    ("b%C3%A4ck", {}, "letters, digits"),
    ("b%EF%BD%81ke", {}, "letters, digits"),  # a wide a
    ("-rf", {}, "letters, digits"),
    ("NUL", {}, "Windows"),
    ("com1", {}, "Windows"),
    ("bake", {"description": ""}, "description"),
    ("bake", {"description": " \n"}, "needs a description"),
    ("bake", {"description": "x" * 4001}, "description"),
    ("bake", {"text": ""}, "text"),
    ("bake", {"text": "ö" * 150_000}, "too large"),
    ("bake", {"license": "MIT"}, "license"),
    ("bake", {"always": "perhaps"}, "always"),
]


async def test_a_skill_that_cannot_be_is_refused(folder: Folder) -> None:
    """The answer names the fault, and nothing is written (P11)."""
    async with set_up(folder) as site:
        for name, body, said in REFUSED:
            refused = await site.ask("PUT", f"{URL}/{name}", {**BAKE, **body})
            assert refused.status in (413, 422), name
            assert said in json.dumps(refused.body)
            assert not own_folder(folder).exists()
        assert (await site.ask("PUT", f"{URL}/bake", {**BAKE, "version": "x"})).status == 404


async def test_no_name_leads_out_of_the_folder(folder: Folder) -> None:
    """P11"""
    async with set_up(folder) as site:
        before = files_in(folder.path / "config")
        for name in ("..", "%2e%2e", "..%2f..%2fbake", "a%2fb"):
            for method, body in (("PUT", BAKE), ("DELETE", None)):
                assert (await site.ask(method, f"{URL}/{name}", body)).status in (404, 405, 422)
            assert files_in(folder.path / "config") == before


async def test_half_a_character_is_refused(folder: Folder) -> None:
    async with set_up(folder) as site:
        for key in ("description", "text"):
            refused = await site.ask("PUT", f"{URL}/bake", {**BAKE, key: "half \ud83d"})
            assert refused.status == 422
        assert not own_folder(folder).exists()


async def test_a_skill_of_a_project_is_edited_there(folder: Folder) -> None:
    """The server never writes to a project folder, even if it is trusted (P11)."""
    file = skill(folder.path / ".dragoman" / "skills", "bake")
    before = file.read_bytes()
    async with set_up(folder) as site:
        assert await names(site) == []  # not trusted: it is not there, and not in the way
        assert (await site.ask("PUT", f"{URL}/bake", BAKE)).status == 200
        assert (await site.ask("DELETE", f"{URL}/bake")).status == 204
    async with set_up(folder, DRAGOMAN_TRUST=str(folder.path)) as site:
        (one,) = (await site.get(URL))["items"]
        assert (one["own"], one["text"]) == (False, "Do it so.")
        for method, body in (("PUT", {**BAKE, "version": one["version"]}), ("PUT", BAKE), ("DELETE", None)):
            refused = await site.ask(method, f"{URL}/bake", body)
            assert (refused.status, "Edit it there" in refused.body["detail"]) == (422, True)
    assert file.read_bytes() == before


async def test_a_skill_that_is_a_link_out_of_the_folder_is_not_written(folder: Folder) -> None:
    """The skill is not used either (P11)."""
    file = skill(folder.path / "elsewhere", "bake")
    before = file.read_bytes()
    own_folder(folder).mkdir(parents=True)
    (own_folder(folder) / "bake").symlink_to(file.parent)
    async with set_up(folder) as site:
        assert await names(site) == []
        refused = await site.ask("PUT", f"{URL}/bake", BAKE)
        assert (refused.status, " exists. " in refused.body["detail"]) == (422, True)
        assert (await site.ask("DELETE", f"{URL}/bake")).status == 404
    assert file.read_bytes() == before


async def test_what_a_person_put_beside_a_skill_stays(folder: Folder) -> None:
    """Other files in its folder survive a change and a removal, and unknown front matter keys survive a
    change (C12)."""
    file = skill(own_folder(folder), "bäcker", "# mine\nname: Bäcker und Co\ndescription: d\nlicense: MIT")
    (file.parent / "oven.sh").write_text("echo hot")
    async with set_up(folder) as site:
        (one,) = (await site.get(URL))["items"]
        body = {"description": "d", "text": "Otherwise.", "version": one["version"]}
        changed = await site.ask("PUT", f"{URL}/Bäcker und Co", body)
        assert (changed.status, changed.body["own"]) == (200, True)
        assert file.read_text() == (
            "---\n# mine\nname: Bäcker und Co\ndescription: d\nlicense: MIT\n---\n\nOtherwise.\n"
        )
        assert (await site.ask("DELETE", f"{URL}/Bäcker und Co")).status == 204
        assert files_in(own_folder(folder)) == {"bäcker/oven.sh": b"echo hot"}
        (own_folder(folder) / "brew").mkdir()
        (own_folder(folder) / "brew" / "tea.txt").write_text("green")
        assert (await site.ask("PUT", f"{URL}/brew", BAKE)).status == 200
        assert sorted(files_in(own_folder(folder) / "brew")) == ["SKILL.md", "tea.txt"]


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ("Bake", "---\ndescription: d\n---\n"),
        ("BAKE", None),
        ("bake", "needs front matter"),
        ("bake", "---\nname: other\ndescription: d\n---\n"),
    ],
)
async def test_what_stands_there_under_this_name_is_not_overwritten(
    folder: Folder, there: str, text: str | None
) -> None:
    """This includes names that another system treats as equal, and the list reports unreadable
    skills (P11)."""
    (own_folder(folder) / there).mkdir(parents=True)
    if text is not None:
        (own_folder(folder) / there / "SKILL.md").write_text(text)
    before = files_in(own_folder(folder))
    async with set_up(folder) as site:
        refused = await site.ask("PUT", f"{URL}/bake", BAKE)
        assert (refused.status, " exists. " in refused.body["detail"]) == (422, True)
        assert files_in(own_folder(folder)) == before
        assert len((await site.get(URL))["left_out"]) == (text == "needs front matter")


async def test_nobody_overwrites_what_they_have_not_seen(folder: Folder) -> None:
    """If two clients change the same skill, the second is refused. So is a client whose skill was edited by
    hand or removed."""
    async with set_up(folder) as site:
        made = await asyncio.gather(
            *(site.ask("PUT", f"{URL}/bake", {**BAKE, "text": text}) for text in "ab")
        )
        assert sorted(one.status for one in made) == [200, 422]
        (one,) = (await site.get(URL))["items"]
        assert one in [answer.body for answer in made]
        body = {**BAKE, "version": one["version"]}
        changes = await asyncio.gather(
            *(site.ask("PUT", f"{URL}/bake", {**body, "text": text}) for text in "cd")
        )
        assert sorted(each.status for each in changes) == [200, 422]
        (refused,) = (each for each in changes if each.status == 422)
        assert "changed since you read it" in refused.body["detail"]
        file = own_folder(folder) / "bake" / "SKILL.md"
        version = (await site.get(URL))["items"][0]["version"]
        file.write_text(file.read_text().replace("bake.", "cook."))
        assert (await site.ask("PUT", f"{URL}/bake", {**BAKE, "version": version})).status == 422
        assert "How to cook." in file.read_text()
        file.unlink()
        assert (await site.ask("PUT", f"{URL}/bake", {**BAKE, "version": version})).status == 404
        assert not file.exists()


async def test_skills_that_are_written_at_the_same_time_are_all_there(folder: Folder) -> None:
    """P11"""
    async with set_up(folder) as site:
        all_of_them = [f"skill{number}" for number in range(8)]
        made = await asyncio.gather(*(site.ask("PUT", f"{URL}/{name}", BAKE) for name in all_of_them))
        assert [one.status for one in made] == [200] * 8
        assert await names(site) == all_of_them
        gone = await asyncio.gather(*(site.ask("DELETE", f"{URL}/{name}") for name in all_of_them))
        assert [one.status for one in gone] == [204] * 8
        assert await names(site) == []


async def test_a_name_that_no_address_holds_is_not_offered_to_be_changed(folder: Folder) -> None:
    for place, name in enumerate(("a/b", "..")):
        skill(own_folder(folder), f"skill{place}", f"name: {name}\ndescription: d")
    async with set_up(folder) as site:
        assert [one["own"] for one in (await site.get(URL))["items"]] == [False, False]


async def test_a_folder_that_cannot_be_written_is_told(folder: Folder) -> None:
    async with set_up(folder) as site:
        own_folder(folder).write_text("a file")
        refused = await site.ask("PUT", f"{URL}/bake", BAKE)
        assert (refused.status, "Dragoman cannot" in refused.body["detail"]) == (422, True)
        assert own_folder(folder).read_text() == "a file"
