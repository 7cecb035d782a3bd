"""Google Cloud Storage and Azure Blob Storage on the loopback address, as far as attachments need them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.parser import BytesParser
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

from tests.store.object_server import BUCKET, ObjectServer, StoredObject, error, xml

TOKEN = "ya29.a0AfB_EXAMPLE-token"
ACCOUNT, KEY = "exampleaccount", base64.b64encode(b"an example of an account's key!!").decode()


@dataclass
class GoogleServer(ObjectServer):
    """Speaks like S3, except for authorization, the header for new names, and removing objects one by one."""

    def environment(self, **changed: str) -> dict[str, str]:
        own = {"GOOGLE_BASE_URL": self.url, "GOOGLE_BEARER_TOKEN": TOKEN, "GOOGLE_ALLOW_HTTP": "true"}
        return {**own, **changed}

    def refusal(self, request: web.Request, body: bytes) -> web.Response | None:
        known = request.headers.get("Authorization") == f"Bearer {TOKEN}"
        return None if known else error(401, "AuthenticationRequired")

    def carry_out(self, request: web.Request, name: str, body: bytes) -> web.Response:
        there = name in self.objects
        match request.method:
            case "PUT" if request.headers.get("x-goog-if-generation-match") == "0" and there:
                return error(412, "PreconditionFailed")
            case "DELETE" if not there:
                return error(404, "NoSuchKey")
            case "POST" if "delete" in request.query:
                return error(400, "InvalidArgument")
        return super().carry_out(request, name, body)


@dataclass
class AzureServer(ObjectServer):
    """Checks every signature, those inside a batch as well."""

    no_bucket = "ContainerNotFound"

    def environment(self, **changed: str) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": self.url,
            "AZURE_ALLOW_HTTP": "true",
            **changed,
        }

    def refusal(self, request: web.Request, body: bytes) -> web.Response | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        expected = shared_key(request.method, request.raw_path, headers)
        known = headers.get("authorization") == expected
        return None if known else error(403, "AuthenticationFailed")

    def carry_out(self, request: web.Request, name: str, body: bytes) -> web.Response:
        query = request.query
        match request.method, query.get("comp"):
            case "GET", "list":
                return self._list_blobs(query.get("prefix", ""), query.get("marker", ""))
            case "GET" | "HEAD", None:
                return self.get(name, request.headers.get("Range"))
            case "PUT", "block":
                blocks = self.parts.setdefault(name, {})
                blocks[len(blocks)] = body
                self._ids[name, query["blockid"]] = len(blocks) - 1
                return web.Response(status=201)
            case "PUT", "blocklist":
                blocks = self.parts.pop(name)
                ids = re.findall(r"<Uncommitted>([^<]+)</Uncommitted>", body.decode())
                return self._created(name, b"".join(blocks[self._ids[name, one]] for one in ids))
            case "PUT", None if request.headers.get("If-None-Match") == "*" and name in self.objects:
                return error(409, "BlobAlreadyExists")
            case "PUT", None:
                assert request.headers["x-ms-blob-type"] == "BlockBlob"
                return self._created(name, body)
            case "POST", "batch":
                return self._batch(request, body)
        raise AssertionError((request.method, request.path_qs))

    def __post_init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}

    def _created(self, name: str, data: bytes) -> web.Response:
        answer = self.put(name, data)
        answer.set_status(201)
        return answer

    def _list_blobs(self, prefix: str, after: str, page: int = 3) -> web.Response:
        names = sorted(name for name in self.objects if name.startswith(prefix) and name > after)
        rows = "".join(_row(name, self.objects[name]) for name in names[:page])
        more = names[page - 1] if names[page:] else ""
        return xml("EnumerationResults", f"<Blobs>{rows}</Blobs><NextMarker>{more}</NextMarker>")

    def _batch(self, request: web.Request, body: bytes) -> web.Response:
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        answers = []
        for part in BytesParser().parsebytes(head + body).walk():
            if part.get_content_type() == "application/http":
                asked = str(part.get_payload())
                answers.append(
                    f"Content-Type: application/http\r\nContent-ID: {part['Content-ID']}\r\n\r\n"
                    f"{self._remove(asked)}\r\n"
                )
        text = "".join(f"--answers\r\n{answer}\r\n" for answer in answers) + "--answers--\r\n"
        kind = "multipart/mixed; boundary=answers"
        return web.Response(status=202, body=text.encode(), headers={"Content-Type": kind})

    def _remove(self, asked: str) -> str:
        """One request of a batch, with its own signature."""
        first, *lines = asked.strip().splitlines()
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if headers["authorization"] != shared_key(method, path, headers):
            return "HTTP/1.1 403 Forbidden\r\nx-ms-error-code: AuthenticationFailed\r\n"
        name = unquote(path).removeprefix(f"/{BUCKET}/")
        if self.objects.pop(name, None) is None:
            return "HTTP/1.1 404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound\r\n"
        return "HTTP/1.1 202 Accepted\r\n"


def _row(name: str, held: StoredObject) -> str:
    modified = datetime.fromtimestamp(held.modified, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{modified}</Last-Modified>"
        f"<Content-Length>{len(held.data)}</Content-Length><Content-Type>application/octet-stream</Content-Type>"
        f"<Etag>x</Etag></Properties></Blob>"
    )


def shared_key(method: str, path_and_query: str, headers: dict[str, str]) -> str:
    """Return the required Authorization header by Microsoft's rules. Header names are in lower case."""
    path, _, query = path_and_query.partition("?")
    length = headers.get("content-length", "")
    standard = [
        "" if name == "content-length" and length == "0" else headers.get(name, "")
        for name in (
            *(
                "content-encoding",
                "content-language",
                "content-length",
                "content-md5",
                "content-type",
                "date",
            ),
            *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
        )
    ]
    own = [f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-ms-")]
    pairs = sorted(
        (name, unquote(value)) for name, _, value in (one.partition("=") for one in query.split("&")) if name
    )
    resource = [f"/{ACCOUNT}{path}", *(f"{name}:{value}" for name, value in pairs)]
    text = "\n".join([method, *standard, *own, *resource])
    signature = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
