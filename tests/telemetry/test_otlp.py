"""O1: spans as OTLP, read again by OpenTelemetry's own classes, and sent as the standard variables say."""

from __future__ import annotations

import gzip
import logging
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from dragoman.telemetry.otlp import encode_head, encode_request, encode_span
from dragoman.telemetry.sender import Collector, Sender, collector_from
from dragoman.telemetry.spans import SpanValue, Usual
from tests.patience import PATIENCE

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
VALUES = st.one_of(
    TEXT,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.lists(TEXT, max_size=4),
)
IDS = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
TIMES = st.floats(0, 4e9)
SPANS = st.builds(
    SpanValue,
    name=TEXT,
    trace=st.integers(1, 2**128 - 1).map(lambda n: f"{n:032x}"),
    id=IDS,
    parent=st.none() | IDS,
    start=TIMES,
    end=TIMES,
    attributes=st.dictionaries(TEXT, VALUES, max_size=6),
    usual=st.builds(Usual, st.dictionaries(TEXT, VALUES, max_size=3)),
    client=st.booleans(),
    error=st.none() | TEXT,
    events=st.lists(st.tuples(TEXT, TIMES), max_size=3),
)
HEAD = encode_head({"service.name": "s", "pid": 7, "tags": ("a", "b")}, "https://schema", "dragoman", "1")


def value_of(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [one.string_value for one in value.array_value.values]
    return getattr(value, str(kind))


@given(st.lists(SPANS, max_size=5))
def test_what_is_written_is_read_again_by_their_classes(spans: list[SpanValue]) -> None:
    """O1: every field, of any value and length."""
    body = encode_request(HEAD, [encode_span(span) for span in spans])
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    told = {one.key: value_of(one.value) for one in resource.resource.attributes}
    assert told == {"service.name": "s", "pid": 7, "tags": ["a", "b"]}
    assert resource.schema_url == "https://schema"
    (scope,) = resource.scope_spans
    assert (scope.scope.name, scope.scope.version) == ("dragoman", "1")
    for span, read in zip(spans, scope.spans, strict=True):
        assert read.trace_id.hex() == span.trace
        assert read.span_id.hex() == span.id
        assert read.parent_span_id.hex() == (span.parent or "")
        assert read.name == span.name
        assert read.kind == (Span.SPAN_KIND_CLIENT if span.client else Span.SPAN_KIND_INTERNAL)
        assert read.start_time_unix_nano == int(span.start * 1e9)
        assert read.end_time_unix_nano >= read.start_time_unix_nano
        error = {} if span.error is None else {"error.type": span.error}
        pairs = [(one.key, value_of(one.value)) for one in read.attributes]
        assert pairs == [*span.usual.attributes.items(), *span.attributes.items(), *error.items()]
        failed = Status.STATUS_CODE_ERROR if span.error is not None else Status.STATUS_CODE_UNSET
        assert read.status.code == failed
        assert [(one.name, one.time_unix_nano) for one in read.events] == [
            (name, int(at * 1e9)) for name, at in span.events
        ]
        assert read.flags & 1


def test_long_attributes_are_cut_where_the_environment_says_so() -> None:
    span = SpanValue("n", "1" * 32, "2" * 16, None, 1, 2, {"a": "x" * 9, "b": ["y" * 9], "c": 5})
    (resource,) = ExportTraceServiceRequest.FromString(
        encode_request(HEAD, [encode_span(span, 4)])
    ).resource_spans
    read = [value_of(one.value) for one in resource.scope_spans[0].spans[0].attributes]
    assert read == ["xxxx", ["yyyy"], 5]


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, Collector()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, Collector("http://c:4318/v1/traces")),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x",
                "OTEL_EXPORTER_OTLP_HEADERS": "api-key=all",
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=a%20b, x-team = red ,wrong",
                "OTEL_EXPORTER_OTLP_TIMEOUT": "3",
                "OTEL_EXPORTER_OTLP_COMPRESSION": "GZIP",
                "OTEL_BSP_SCHEDULE_DELAY": "250",
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "7",
                "OTEL_BSP_MAX_QUEUE_SIZE": "9",
            },
            Collector(
                "http://t/x",
                {"api-key": "a b", "x-team": "red"},
                "gzip",
                3.0,
                delay=0.25,
                batch=7,
                most=9,
            ),
        ),
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "soon", "OTEL_BSP_SCHEDULE_DELAY": "x"}, Collector()),
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "nan", "OTEL_BSP_MAX_QUEUE_SIZE": "inf"}, Collector()),
    ],
)
def test_the_standard_variables_say_where_and_how(environment: dict[str, str], wanted: Collector) -> None:
    """Variables for traces take precedence over general ones, and invalid values fall back to the default
    (O1)."""
    assert collector_from(environment) == wanted


def test_metrics_have_variables_of_their_own() -> None:
    """O1: one report at a time, of which the newest counts."""
    found = collector_from(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x",
            "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "api-key=m",
        },
        "metrics",
    )
    assert (found.url, found.headers, found.batch, found.most) == (
        "http://c:4318/v1/metrics",
        {"api-key": "m"},
        1,
        1,
    )
    assert collector_from({}, "metrics").url == "http://localhost:4318/v1/metrics"


# ── sending ───────────────────────────────────────────────────────────────────────────────────────


class Taken:
    """The requests that a collector received, and its answers: 200 when no other answer is left."""

    def __init__(self, *answers: int) -> None:
        self.answers = [*answers]
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.came = threading.Condition()
        self.url = ""

    def wait_for(self, requests: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.bodies) >= requests, PATIENCE)


@contextmanager
def taking(*answers: int) -> Iterator[Taken]:
    taken = Taken(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = taken.answers.pop(0) if taken.answers else 200
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            with taken.came:
                taken.bodies.append(body)
                taken.headers.append({name.lower(): value for name, value in self.headers.items()})
                taken.came.notify_all()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        taken.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        yield taken
        server.shutdown()


@pytest.mark.parametrize(
    ("compression", "unpack"), [("none", bytes), ("gzip", gzip.decompress), ("deflate", zlib.decompress)]
)
def test_what_is_gathered_comes_in_one_request(compression: str, unpack: object) -> None:
    """The request has the configured headers and compression, and a full batch is sent immediately (O1)."""
    with taking() as taken:
        collector = Collector(taken.url, {"api-key": "k"}, compression, delay=PATIENCE, batch=3)
        sender = Sender(collector, b"".join)
        for span in (b"a", b"b", b"c"):
            sender.add([span])
        taken.wait_for(1)
        sender.add([b"d"])
        sender.close()
        assert callable(unpack)
        assert [unpack(body) for body in taken.bodies] == [b"abc", b"d"]
        assert taken.headers[0]["api-key"] == "k"
        assert taken.headers[0]["content-type"] == "application/x-protobuf"


def test_a_busy_collector_is_asked_again_and_one_that_refuses_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log reports a refused batch without keys, and the batch is dropped (O1)."""
    with taking(429, 200, 400) as taken:
        sender = Sender(Collector(taken.url, delay=0.01), b"".join)
        sender.add([b"first"])
        taken.wait_for(2)
        with caplog.at_level(logging.WARNING, "dragoman.telemetry"):
            sender.add([b"second"])
            taken.wait_for(3)
            sender.close()
        assert taken.bodies == [b"first", b"first", b"second"]
    assert "1 spans were not sent" in caplog.text
    assert "answered 400" in caplog.text


def test_where_the_collector_is_away_the_oldest_go_and_closing_does_not_hang(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No caller waits for the collector (O1 × T9)."""
    sender = Sender(Collector("http://127.0.0.1:1/v1/traces", delay=PATIENCE, most=2), b"".join)
    with caplog.at_level(logging.WARNING, "dragoman.telemetry"):
        for span in (b"a", b"b", b"c"):
            sender.add([span])
        began = time.monotonic()
        sender.close()
    assert time.monotonic() - began < PATIENCE
    assert "1 spans were not sent: the collector does not keep up" in caplog.text
    assert "2 spans were not sent" in caplog.text


@pytest.mark.parametrize(
    ("url", "headers"),
    [("collector/v1/traces", {}), ("http://[::1/", {}), ("http://127.0.0.1:1/", {"a": "b\nc"})],
)
def test_where_nothing_can_be_asked_it_is_said_each_time(
    caplog: pytest.LogCaptureFixture, url: str, headers: dict[str, str]
) -> None:
    """A mistyped address is reported for every batch, and the thread survives it (O1)."""
    sender = Sender(Collector(url, headers, delay=PATIENCE, batch=1), b"".join)
    with caplog.at_level(logging.WARNING, "dragoman.telemetry"):
        sender.add([b"1"])
        sender.add([b"2"])
        sender.close()
    assert [record.message.partition(":")[0] for record in caplog.records] == ["1 spans were not sent"] * 2
