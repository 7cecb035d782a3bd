"""Serve S3 on the loopback address, check every signature, and fail on demand."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote
from xml.sax.saxutils import escape
from zlib import crc32

from aiohttp import web

ACCESS, SECRET, REGION = "AKIDEXAMPLE0123", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-central-1"
BUCKET = "attachments"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'

Fault: TypeAlias = Callable[["ObjectServer", web.Request], Any]  # a response, or None to continue normally


@dataclass
class StoredObject:
    data: bytes
    modified: float

    @property
    def tag(self) -> str:
        return f'"{crc32(self.data):08x}"'


@dataclass
class ObjectServer:
    """One bucket. A request uses up the first of the `faults` for its method."""

    url: str = ""
    objects: dict[str, StoredObject] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    faults: list[tuple[str, Fault]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    refused: str | None = None  # an error code for every request
    no_bucket = "NoSuchBucket"

    def environment(self, **changed: str) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            **changed,
        }

    def fail(self, method: str, *faults: Fault) -> None:
        self.faults += [(method, fault) for fault in faults]

    def copies(self, key: str) -> list[str]:
        """Return the names under which a blob's bytes are stored."""
        return [name for name in self.objects if f"{key[:2]}/{key[2:]}/" in name]

    def grow_old(self, seconds: float) -> None:
        """As if all that is there had been there so much longer."""
        for name, held in list(self.objects.items()):
            stem, _, when = name.rpartition("/")
            held.modified -= seconds
            if when.isdecimal():
                del self.objects[name]
                self.objects[f"{stem}/{int(when) - int(seconds)}"] = held

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(f"{request.method} {request.path_qs}")
        if self.refused is not None:
            return error(403, self.refused)
        if (refusal := self.refusal(request, body)) is not None:
            return refusal
        for at, (method, fault) in enumerate(self.faults):
            if method == request.method:
                del self.faults[at]
                if (response := await fault(self, request)) is not None:
                    assert isinstance(response, web.StreamResponse)
                    return response
                break
        bucket, _, name = request.path.lstrip("/").partition("/")
        if bucket != BUCKET:
            return error(404, self.no_bucket)
        return self.carry_out(request, name, body)

    def refusal(self, request: web.Request, body: bytes) -> web.Response | None:
        """For who cannot show that they have the key."""
        if request.headers.get("Authorization") == expected_signature(request, body):
            return None
        return error(403, "SignatureDoesNotMatch", f"<AWSAccessKeyId>{ACCESS}</AWSAccessKeyId>")

    def carry_out(self, request: web.Request, name: str, body: bytes) -> web.Response:
        query = request.query
        match request.method:
            case "GET" if "list-type" in query:
                return self._list(query.get("prefix", ""), query.get("continuation-token", ""))
            case "GET" | "HEAD":
                return self.get(name, request.headers.get("Range"))
            case "PUT" if "uploadId" in query:
                self.parts[query["uploadId"]][int(query["partNumber"])] = body
                return web.Response(headers={"ETag": f'"{len(body)}"'})
            case "PUT" if request.headers.get("If-None-Match") == "*" and name in self.objects:
                return error(412, "PreconditionFailed")
            case "PUT":
                return self.put(name, body)
            case "POST" if "uploads" in query:
                upload = f"upload-{len(self.parts)}"
                self.parts[upload] = {}
                text = f"<UploadId>{upload}</UploadId>"
                return xml("InitiateMultipartUploadResult", text)
            case "POST" if "uploadId" in query:
                parts = self.parts.pop(query["uploadId"])
                self.put(name, b"".join(parts[number] for number in sorted(parts)))
                return xml("CompleteMultipartUploadResult", '<ETag>"whole"</ETag>')
            case "POST" if "delete" in query:
                named = re.findall(r"<Key>([^<]+)</Key>", body.decode())
                for gone in named:
                    self.objects.pop(gone, None)
                return xml("DeleteResult", "".join(f"<Deleted><Key>{one}</Key></Deleted>" for one in named))
            case "DELETE":
                self.objects.pop(name, None)
                return web.Response(status=204)
        raise AssertionError(request.method)

    def put(self, name: str, data: bytes) -> web.Response:
        self.objects[name] = held = StoredObject(data, time.time())
        return web.Response(headers={"ETag": held.tag})

    def get(self, name: str, wanted: str | None) -> web.Response:
        if (held := self.objects.get(name)) is None:
            return error(404, "NoSuchKey")
        headers = {"ETag": held.tag, "Last-Modified": _date(held.modified)}
        if wanted is None:
            return web.Response(body=held.data, headers=headers)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = held.data[int(first) : int(last) + 1 if last else None]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(held.data)}"
        return web.Response(body=part, status=206, headers=headers)

    def _list(self, prefix: str, after: str, page: int = 3) -> web.Response:
        names = sorted(name for name in self.objects if name.startswith(prefix) and name > after)
        rows = "".join(_row(name, self.objects[name]) for name in names[:page])
        more = f"<NextContinuationToken>{names[page - 1]}</NextContinuationToken>" if names[page:] else ""
        return xml("ListBucketResult", f"<Name>{BUCKET}</Name>{rows}{more}")


def _row(name: str, held: StoredObject) -> str:
    modified = datetime.fromtimestamp(held.modified, UTC).isoformat()
    return (
        f"<Contents><Key>{escape(name)}</Key><Size>{len(held.data)}</Size>"
        f'<LastModified>{modified}</LastModified><ETag>"x"</ETag></Contents>'
    )


# ── what can go wrong ─────────────────────────────────────────────────────────────────────────────


def refuses(status: int, code: str) -> Fault:
    async def fault(server: ObjectServer, request: web.Request) -> web.Response:
        return error(status, code)

    return fault


async def cuts_the_body(server: ObjectServer, request: web.Request) -> web.StreamResponse:
    """Half of the bytes, and then the connection breaks."""
    held = server.objects[request.path.lstrip("/").partition("/")[2]]
    headers = {"ETag": held.tag, "Last-Modified": _date(held.modified), "Content-Length": str(len(held.data))}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    await response.write(held.data[: len(held.data) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


async def never_answers(server: ObjectServer, request: web.Request) -> None:
    await asyncio.Event().wait()


def waits_for(event: asyncio.Event, arrived: asyncio.Event) -> Fault:
    """Delay the request, then continue normally."""

    async def fault(server: ObjectServer, request: web.Request) -> None:
        arrived.set()
        await event.wait()

    return fault


def error(status: int, code: str, more: str = "") -> web.Response:
    return xml("Error", f"<Code>{code}</Code><Message>no</Message>{more}", status)


def xml(root: str, inside: str, status: int = 200) -> web.Response:
    return web.Response(
        text=f"{_XML}<{root}>{inside}</{root}>", status=status, content_type="application/xml"
    )


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


def expected_signature(request: web.Request, body: bytes) -> str:
    """Return the required Authorization header by Amazon's rules, from signed values only."""
    sent = request.headers.get("Authorization", "")
    names = sent.partition("SignedHeaders=")[2].partition(",")[0]
    path, _, query = request.raw_path.partition("?")
    head = "".join(f"{name}:{request.headers.get(name, '').strip()}\n" for name in names.split(";"))
    pairs = sorted(parse_qsl(query, keep_blank_values=True))
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
    claimed = request.headers.get("x-amz-content-sha256", "")
    hashed = claimed if claimed == "UNSIGNED-PAYLOAD" else hashlib.sha256(body).hexdigest()
    canonical = "\n".join([request.method, path, asked, head, names, hashed])
    at = request.headers.get("X-Amz-Date", "")
    scope = f"{at[:8]}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={ACCESS}/{scope}, SignedHeaders={names}, Signature={signature}"


@asynccontextmanager
async def object_server(server: ObjectServer | None = None) -> AsyncIterator[ObjectServer]:
    """Run a server (S3 by default) on a free port for the block."""
    server = server or ObjectServer()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{name:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        await runner.cleanup()
