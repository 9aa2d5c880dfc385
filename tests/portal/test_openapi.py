"""The REST interface keeps to its OpenAPI, whatever it is asked: schemathesis."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from astropy.table import Table
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.portals import SECOND_S, RunningPortal, add_survey, finished, served, submitted

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    folder = tmp_path_factory.mktemp("openapi")
    add_survey(folder, targets=8)
    with served(folder, "[limits]\nrows_waiting = 5000\njobs = 5\n") as running:
        yield running


@pytest.fixture(scope="module")
def done(portal: RunningPortal) -> str:
    """Id of a job that has ended."""
    table = Table.read(portal.folder / "targets.csv", format="ascii.csv")
    with httpx.Client(base_url=f"{portal.url}/api", timeout=SECOND_S) as client:
        columns = {name: table[name].tolist() for name in table.colnames}
        return str(finished(client, submitted(client, columns)["id"])["id"])


@pytest.fixture(scope="module")
def schema(portal: RunningPortal) -> Any:
    return schemathesis.openapi.from_url(f"{portal.url}/api/openapi.json")


OPERATIONS = (
    "GET /about",
    "GET /datasets",
    "GET /datasets/{name}",
    "GET /datasets/{name}/footprints",
    "GET /stores",
    "GET /stores/{name}",
    "GET /find",
    "GET /pool",
    "GET /predictions",
    "GET /algorithms",
    "GET /algorithms/{name}",
    "GET /algorithms/{name}/source",
    "POST /algorithms",
    "DELETE /algorithms/{name}",
    "GET /libraries",
    "GET /libraries/{name}",
    "POST /libraries",
    "DELETE /libraries/{name}",
    "GET /runs",
    "GET /runs/{name}",
    "GET /runs/{name}/{array}/{iteration}/section.npy",
    "GET /runs/{name}/{array}/{iteration}/section.png",
    "POST /runs/predict",
    "POST /estimate",
    "POST /jobs",
    "GET /jobs",
    "GET /jobs/{job_id}",
    "DELETE /jobs/{job_id}",
    "PATCH /jobs/{job_id}",
    "POST /jobs/{job_id}/start",
    "POST /jobs/{job_id}/cancel",
    "POST /jobs/{job_id}/resume",
    "GET /jobs/{job_id}/rows",
    "GET /jobs/{job_id}/manifest",
    "GET /jobs/{job_id}/manifest.csv",
    "GET /jobs/{job_id}/events",
    "GET /jobs/{job_id}/archive.{kind}",
    "GET /jobs/{job_id}/files/{name}",
    "HEAD /jobs/{job_id}/files/{name}",
    "GET /jobs/{job_id}/previews/{name}.png",
    "GET /runs/{name}/pictures",
    "GET /runs/{name}/pictures/{number}",
    "GET /runs/{name}/{array}/{iteration}/volume",
    "GET /runs/{name}/{array}/{iteration}/slice.png",
    "GET /jobs/{job_id}/group",
    "GET /jobs/{job_id}/results/{group}/{output}",
    "HEAD /jobs/{job_id}/results/{group}/{output}",
    "POST /orders",
    "POST /orders/estimate",
    "GET /subscriptions",
    "GET /subscriptions/{subscription_id}",
    "GET /subscriptions/{subscription_id}/feed",
    "POST /subscriptions",
    "POST /subscriptions/{subscription_id}/pause",
    "POST /subscriptions/{subscription_id}/resume",
    "DELETE /subscriptions/{subscription_id}",
    "DELETE /datasets/{name}",
    "GET /datasets/{name}/moc",
)


def test_each_operation_has_its_own_id(schema: Any) -> None:
    ids = [
        operation["operationId"]
        for path in schema.raw_schema["paths"].values()
        for operation in path.values()
    ]
    assert len(set(ids)) == len(ids) > 20


def test_every_route_is_described(schema: Any) -> None:
    assert schema.raw_schema["openapi"].startswith("3.1")
    assert schema.raw_schema["servers"] == [{"url": "/api"}]
    found = {
        f"{method.upper()} {path}"
        for path, methods in schema.raw_schema["paths"].items()
        for method in methods
    }
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_answers_are_as_described(schema: Any, done: str, operation: str) -> None:
    method, path = operation.split()

    @given(case=schema[path][method].as_strategy())
    @settings(
        max_examples=15,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    def ask(case: Any) -> None:
        if "{job_id}" in path and method != "DELETE":
            # Else nearly all would be asked of jobs that are none.
            case.path_parameters["job_id"] = done
        if method == "PATCH" and isinstance(case.body, dict):
            # A time that has passed removes the job from under those that come after.
            case.body.pop("expires_at", None)
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        case.call_and_validate(checks=CHECKS, timeout=SECOND_S)

    ask()


def test_every_model_that_is_named_is_described(portal: RunningPortal) -> None:
    text = httpx.get(f"{portal.url}/api/openapi.json").text
    schemas = json.loads(text)["components"]["schemas"]
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert {"TargetsModel", "NewJob"} <= names <= set(schemas)
    assert set(schemas["NewJob"]["properties"]) > set(schemas["TargetsModel"]["properties"])
