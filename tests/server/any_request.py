"""Requests that fit the description of the API, and some that do not: by schemathesis."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CheckContext, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.site import Site
from tests.sweeps import examples

_PATIENCE = 60  # seconds for an answer: the machine may be busy
_STREAMS = r"/events$"  # they have no end
_LONGEST_LINE = 8_000  # bytes of an address: of a longer one uvicorn says what is wrong, not a route


def what_fits_is_taken(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """The server can refuse a well-formed request for the names in it, but never for its form."""
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        refused = response.json() if response.status_code in (400, 422) else {}
        assert "errors" not in refused, refused


def its_type_is_described(context: CheckContext, response: Response, case: Case[Any]) -> None:
    if len(str(response.request.url)) < _LONGEST_LINE:
        content_type_conformance(context, response, case)


_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    response_schema_conformance,
    what_fits_is_taken,
    its_type_is_described,
]


def try_everything(site: Site, known: dict[str, str]) -> int:
    described = schemathesis.openapi.from_url(f"{site.url}/api/openapi.json", timeout=_PATIENCE)
    schema = described.exclude(path_regex=_STREAMS)
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    for operation in operations:
        for mode in GenerationMode:
            try:
                _try(operation, mode, known)
            except Unsatisfiable:  # an operation without input has no invalid input
                assert mode is GenerationMode.NEGATIVE
    return len(operations)


def _try(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, known: dict[str, str]) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples(1, 20),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Case[Any]) -> None:
        noun = case.path.split("/")[2]
        if "id" in case.path_parameters and noun in known and case.method != "DELETE":
            # requests for existing objects test more than requests for missing ones
            case.path_parameters["id"] = known[noun]
        case.call_and_validate(
            headers={"authorization": "Bearer key of local"}, checks=_CHECKS, timeout=_PATIENCE
        )

    send()
