"""Starts the telemetry that the environment asks for."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from dragoman.telemetry.environment import wanted_telemetry
from dragoman.telemetry.observer import Telemetry

_log = logging.getLogger("dragoman.telemetry")


def telemetry_from_environment(environment: Mapping[str, str] = os.environ) -> Telemetry | None:
    """None where nothing is asked for, or where the packages for it are missing, which is logged."""
    wanted = wanted_telemetry(environment)
    if not wanted.anything:
        return None
    try:
        from dragoman.telemetry.otel import OtelTelemetry

        return OtelTelemetry(wanted)
    except ImportError as error:
        _log.warning(
            "the environment asks for OpenTelemetry, and %s is not installed: pip install 'dragoman[otel]'",
            error.name,
        )
        return None
