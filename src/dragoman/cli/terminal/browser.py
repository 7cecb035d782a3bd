"""Opens a link in the browser without showing it to others: a command line can be read by every user."""

from __future__ import annotations

import html
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.stored_keys import open_private

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={url}">
<title>Dragoman</title>
<a href="{url}">Dragoman</a>
"""


@contextmanager
def open_privately(url: str) -> Iterator[Path]:
    """The browser is given a file that only this user can read, which leads on to the link."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        file = Path(folder) / "open.html"
        with open(file, "x", encoding="utf-8", opener=open_private) as page:
            page.write(_PAGE.format(url=html.escape(url)))
        # some browsers stay until they are closed: nobody waits for them
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield file
