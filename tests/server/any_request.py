"""Requests that fit the description of the API, and some that do not: by schemathesis."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.server.site import Site
from tests.sweeps import examples

_PATIENCE = 60  # seconds for an answer: the machine may be busy
_STREAMS = r"/events$"  # they have no end
_CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


def try_everything(site: Site, known: dict[str, str]) -> int:
    described = schemathesis.openapi.from_url(f"{site.url}/api/openapi.json", timeout=_PATIENCE)
    schema = described.exclude(path_regex=_STREAMS)
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    for operation in operations:
        for mode in GenerationMode:
            try:
                _try(operation, mode, known)
            except Unsatisfiable:  # what takes nothing can be sent nothing wrong
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
            case.path_parameters["id"] = known[noun]  # what is there is worth more trouble than what is not
        case.call_and_validate(
            headers={"authorization": "Bearer key of local"}, checks=_CHECKS, timeout=_PATIENCE
        )

    send()
