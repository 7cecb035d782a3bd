"""The system's Firefox, driven by WebDriver BiDi, which it speaks itself: a person's hands and eyes."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from tests.patience import PATIENCE

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
_LISTENS = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")
_PREFERENCES = """\
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
"""
_TEXT = "document.body.innerText"
# The middle of the last such element, once it stays in place: the conversation scrolls to its end by itself.
_MIDDLE = """(async () => {
  const middle = () => {
    const found = [...document.querySelectorAll(%s)].at(-1);
    found?.scrollIntoView({block: "nearest"});
    const box = found?.getBoundingClientRect();
    if (!box) return "";
    const at = {x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2)};
    return found.contains(document.elementFromPoint(at.x, at.y)) ? JSON.stringify(at) : "";
  };
  const before = middle();
  if (before) await new Promise((wake) => setTimeout(wake, 200));
  return before === middle() ? before : "";
})()"""


@dataclass
class FirefoxPage:
    """One tab."""

    _socket: aiohttp.ClientWebSocketResponse
    context: str = ""
    complaints: list[str] = field(default_factory=list)  # errors of the page's scripts
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async for said in self._socket:
            message = json.loads(said.data)
            if message.get("method") == "log.entryAdded" and message["params"]["type"] == "javascript":
                self.complaints.append(message["params"]["text"])
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]
        raise ConnectionError("Firefox is gone")

    async def open(self, url: str) -> None:
        await self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def reload(self) -> None:
        """Reload the page after its fonts have arrived: an aborted font request counts as a complaint."""
        await self.evaluate("document.fonts.ready.then(() => true)")
        await self.command("browsingContext.reload", context=self.context, wait="complete")

    async def evaluate(self, expression: str, context: str = "") -> Any:
        return (await self._evaluated(expression, context or self.context)).get("value")

    async def _evaluated(self, expression: str, context: str) -> Any:
        wanted = {"expression": expression, "target": {"context": context}, "awaitPromise": True}
        answer = await self.command("script.evaluate", **wanted)
        assert answer["type"] == "success", answer
        return answer["result"]

    async def attach(self, testid: str, file: Path) -> None:
        """As a person who chose this file."""
        node = await self._evaluated(f"document.querySelector('[data-testid={testid}]')", self.context)
        element = {"sharedId": node["sharedId"]}
        await self.command("input.setFiles", context=self.context, element=element, files=[str(file)])

    async def sees_inside(self, path: str, text: str) -> None:
        """Soon, in a frame with this path."""
        async with asyncio.timeout(PATIENCE):
            while text not in await self._text_inside(path):  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.1)

    async def _text_inside(self, path: str) -> str:
        tree = await self.command("browsingContext.getTree", root=self.context)
        frames = [one for one in tree["contexts"][0]["children"] or [] if one["url"].endswith(path)]
        texts = [await self.evaluate("document.body?.innerText", frame["context"]) for frame in frames]
        return "".join(text or "" for text in texts)

    async def sees(self, text: str) -> None:
        """Soon, anywhere in the page."""
        await self.soon(f"document.body.textContent.includes({json.dumps(text)})")

    async def finds(self, selector: str) -> None:
        """Soon, anywhere in the page."""
        await self.soon(f"document.querySelector({json.dumps(selector)}) !== null")

    async def soon(self, expression: str) -> Any:
        """Return the value of the expression as soon as it is truthy."""
        ends = time.monotonic() + PATIENCE
        while not (found := await self.evaluate(expression)):
            if time.monotonic() > ends:
                raise TimeoutError(f"Not so: {expression}. The page:\n{await self.evaluate(_TEXT)}")
            await asyncio.sleep(0.1)
        return found

    async def click(self, testid: str) -> None:
        """The last one of that name, when it is there."""
        middle = await self.soon(_MIDDLE % json.dumps(f"[data-testid={testid}]:not([disabled])"))
        move = {"type": "pointerMove", **json.loads(middle)}
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._act("pointer", [move, *press])

    async def type(self, text: str) -> None:
        """Key by key, where the cursor is. `\\ue007` is Enter."""
        keys = [{"type": way, "value": key} for key in text for way in ("keyDown", "keyUp")]
        await self._act("key", keys)

    async def _act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        source = {"type": kind, "id": kind, "actions": actions}
        await self.command("input.performActions", context=self.context, actions=[source])


@asynccontextmanager
async def firefox(profile: Path) -> AsyncIterator[FirefoxPage]:
    """A new one, with nothing remembered."""
    assert FIREFOX is not None
    _make_profile(profile)
    process = await asyncio.create_subprocess_exec(
        *(FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(profile), "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
    )
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{await _address(process)}/session", max_msg_size=0) as socket,
        ):
            page = FirefoxPage(socket)
            await page.command("session.new", capabilities={})
            await page.command("session.subscribe", events=["log.entryAdded"])
            tree = await page.command("browsingContext.getTree")
            page.context = tree["contexts"][0]["context"]
            yield page
    finally:
        process.kill()
        await process.wait()


def _make_profile(folder: Path) -> None:
    folder.mkdir()
    (folder / "user.js").write_text(_PREFERENCES, "utf-8")


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        async for line in process.stderr:
            if found := _LISTENS.search(line):
                return found.group(1).decode()
    raise ConnectionError("Firefox did not start")
