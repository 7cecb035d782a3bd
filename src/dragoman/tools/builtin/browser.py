"""Declare the tools that the web UI runs: sandboxed JavaScript, and files stored in the browser."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, BaseModel, Field

from dragoman.tools.tool import client_tool


class BrowserCode(BaseModel):
    code: Annotated[
        str,
        Field(
            description="the body of an async function: `return` what is wanted. There is no network and no "
            "page; `await files.read(path)`, `files.write(path, text)` and `files.list(path)` reach the files"
        ),
    ]


class BrowserFolder(BaseModel):
    path: Annotated[str, Field(description="a folder of the browser's files; empty for all")] = ""


class BrowserRead(BaseModel):
    path: Annotated[str, Field(description="a text file of the browser's files")]


class BrowserWrite(BaseModel):
    path: Annotated[str, Field(description="the file; folders are made as needed")]
    text: Annotated[
        str,
        Field(
            # Many models know this argument by the other name.
            validation_alias=AliasChoices("text", "content"),
            description="everything that is to be in it",
        ),
    ]


browser_js_eval = client_tool(
    "browser_js_eval",
    "Run JavaScript in the person's browser and get what it returns and prints.",
    BrowserCode,
    permission="browser.run",
)
list_directory = client_tool(
    "list_directory",
    "List the files that live in the person's browser.",
    BrowserFolder,
    permission="browser.read",
)
read_file = client_tool(
    "read_file",
    "Read a text file that lives in the person's browser.",
    BrowserRead,
    permission="browser.read",
)
write_file = client_tool(
    "write_file",
    "Write a text file that lives in the person's browser.",
    BrowserWrite,
    permission="browser.write",
)
