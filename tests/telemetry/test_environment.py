"""Check OpenTelemetry's standard variables: their effect, and warnings about unsupported values."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError
from dragoman.telemetry.environment import NOTHING, Wanted, wanted_telemetry
from dragoman.telemetry.start import telemetry_from_environment
from dragoman.trace_context import TraceContext, context_of_turn, parse_header

AT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, NOTHING),
        (AT, Wanted("otlp", "otlp")),
        ({**AT, "OTEL_SDK_DISABLED": "true"}, NOTHING),
        ({**AT, "OTEL_METRICS_EXPORTER": "none"}, Wanted("otlp", None)),
        ({**AT, "OTEL_METRICS_EXPORTER": "prometheus"}, Wanted("otlp", None)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"}, Wanted("otlp", None)),
        ({"OTEL_TRACES_EXPORTER": "console"}, Wanted("console", None)),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, NOTHING),
        (
            {**AT, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"},
            Wanted("otlp", "otlp", content=True),
        ),
        (
            {**AT, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"},
            Wanted("otlp", "otlp"),
        ),
    ],
)
def test_the_variables_switch_it_on(environment: dict[str, str], wanted: Wanted) -> None:
    """O1"""
    assert wanted_telemetry(environment) == wanted


@pytest.mark.parametrize(
    "wrong", [{"OTEL_TRACES_EXPORTER": "zipkin"}, {**AT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}]
)
def test_what_is_not_spoken_here_is_said(wrong: dict[str, str]) -> None:
    """O1"""
    with pytest.raises(ConfigError, match="OTEL_"):
        wanted_telemetry(wrong)


def test_off_is_nothing() -> None:
    """O1: nor is anything of it imported, which `test_public_names.py` looks at."""
    assert telemetry_from_environment({}) is None


def test_a_header_that_is_none_is_ignored() -> None:
    """O1: as the W3C says."""
    good = "00-" + "0af7651916cd43dd8448eb211c80319c" + "-b7ad6b7169203331-01"
    assert parse_header(good) == TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    for wrong in (
        None,
        "",
        "hello",
        good.upper(),
        good.replace("00-0", "ff-0"),
        good[:-1],
        "00-" + "0" * 32 + good[35:],
    ):
        assert parse_header(wrong) is None


def test_a_turn_has_the_same_trace_whoever_runs_it() -> None:
    """IDs are derived, so that another process finds them (O1)."""
    assert context_of_turn("turn_1", None) == context_of_turn("turn_1", None)
    assert context_of_turn("turn_1", None).trace != context_of_turn("turn_2", None).trace
    child = context_of_turn("turn_1", None).child("call", "c")
    assert (len(child.trace), len(child.span)) == (32, 16)
    assert parse_header(child.header) == child
