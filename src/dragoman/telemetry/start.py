"""Start the telemetry that the environment requests."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from dragoman.telemetry.environment import wanted_telemetry
from dragoman.telemetry.observer import Telemetry

_log = logging.getLogger("dragoman.telemetry")


def telemetry_from_environment(environment: Mapping[str, str] = os.environ) -> Telemetry | None:
    """Return the telemetry, or None if none is requested. Missing packages are logged, and also return
    None."""
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
