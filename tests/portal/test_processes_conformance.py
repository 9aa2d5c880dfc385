"""The abstract tests of OGC API Processes 1.0 (18-062r2, annex A), each with what tests it here.

The names are those of the standard and of its suite, ets-ogcapi-processes10. HTML and OpenAPI 3.0
are no conformance classes of the portal. Tests that are not in `test_processes` and its neighbours
are below.
"""

from __future__ import annotations

import importlib
from typing import Any

import httpx
import pytest

from tests.portal.test_processes import ASYNC, ONE, Client, ask, problem

__all__ = ["ask"]

LANDING = "test_processes.test_landing_page_conformance_and_api_definition"
STRICT = "test_processes_clients.test_the_client_that_is_generated_from_the_standard"
LIST = "test_processes.test_the_process_list_has_all_once_by_pages"
OPTIONS = "test_processes.test_a_description_has_the_options_of_the_registry"
INPUT = "test_processes.test_job_creation_input"
INPUT_FORMS = "test_processes_clients.test_targets_by_reference_by_text_and_in_a_large_body"
BAD = "test_processes.test_bad_executions_are_problems"
RAW = "test_processes.test_job_creation_sync_raw"
ASYNC_JOB = "test_processes.test_job_creation_async_and_its_results"
OF_PORTAL = "test_processes.test_a_job_of_a_process_is_one_of_the_portal"
HERE = "test_processes_conformance"
PARAMETERS = f"{HERE}.test_parameters_are_defined_in_the_description_of_the_interface"
JOB_LIST = f"{HERE}.test_the_job_list_answers_to_each_parameter"
FORMS = f"{HERE}.test_results_of_a_job_have_the_form_of_its_execution"
UNKNOWN = f"{HERE}.test_a_job_that_is_not_there"
PROCESS = f"{HERE}.test_inputs_and_outputs_of_each_process_have_schemas"
MODES = f"{HERE}.test_the_preference_chooses_the_mode"

ABSTRACT_TESTS = {
    "core/http": LANDING,
    "core/landingpage-op": LANDING,
    "core/landingpage-success": STRICT,
    "core/api-definition-op": LANDING,
    "core/api-definition-success": LANDING,
    "core/conformance-op": LANDING,
    "core/conformance-success": STRICT,
    "core/process-list": LIST,
    "core/pl-limit-definition": PARAMETERS,
    "core/pl-limit-response": LIST,
    "core/process-list-success": STRICT,
    "core/pl-links": LIST,
    "core/process": OPTIONS,
    "core/process-success": STRICT,
    "core/process-exception-no-such-process": (
        "test_processes.test_process_exception_no_such_process"
    ),
    "core/job-creation-op": INPUT,
    "core/job-creation-request": BAD,
    "core/job-creation-auto-execution-mode": MODES,
    "core/job-creation-default-execution-mode": MODES,
    "core/job-creation-inputs": INPUT_FORMS,
    "core/job-creation-input-inline": INPUT,
    "core/job-creation-input-ref": INPUT_FORMS,
    "core/job-creation-input-array": INPUT,
    "core/job-creation-input-inline-object": INPUT,
    "core/job-creation-input-inline-mixed": INPUT,
    "core/job-creation-input-inline-binary": INPUT,
    "core/job-creation-input-inline-bbox": INPUT,
    "core/job-creation-input-validation": BAD,
    "core/job-creation-default-outputs": RAW,
    "core/job-creation-sync-raw-value-one": RAW,
    "core/job-creation-sync-raw-value-multi": RAW,
    "core/job-creation-sync-raw-ref": RAW,
    "core/job-creation-sync-raw-mixed-multi": RAW,
    "core/job-creation-sync-document": INPUT,
    "core/job-creation-success-async": ASYNC_JOB,
    "core/job-op": ASYNC_JOB,
    "core/job-success": STRICT,
    "core/job-exception-no-such-job": UNKNOWN,
    "core/job-results": ASYNC_JOB,
    "core/job-results-sync": RAW,
    "core/job-results-async-raw-value-one": FORMS,
    "core/job-results-async-raw-value-multi": FORMS,
    "core/job-results-async-raw-ref": FORMS,
    "core/job-results-async-raw-mixed-multi": FORMS,
    "core/job-results-async-document": FORMS,
    "core/job-results-no-such-job": UNKNOWN,
    "core/job-results-exception-results-not-ready": ASYNC_JOB,
    "core/job-results-failed": f"{HERE}.test_results_of_a_job_that_failed_say_why",
    "ogc-process-description/json-encoding": STRICT,
    "ogc-process-description/inputs-def": PROCESS,
    "ogc-process-description/input-def": PROCESS,
    "ogc-process-description/input-mixed-type": PROCESS,
    "ogc-process-description/outputs-def": PROCESS,
    "ogc-process-description/output-def": PROCESS,
    "ogc-process-description/output-mixed-type": PROCESS,
    "json/definition": LANDING,
    "job-list/job-list-op": OF_PORTAL,
    "job-list/type-definition": PARAMETERS,
    "job-list/type-response": JOB_LIST,
    "job-list/processID-definition": PARAMETERS,
    "job-list/processID-mandatory": STRICT,
    "job-list/processID-response": JOB_LIST,
    "job-list/status-definition": PARAMETERS,
    "job-list/status-response": JOB_LIST,
    "job-list/datetime-definition": PARAMETERS,
    "job-list/datetime-response": JOB_LIST,
    "job-list/duration-definition": PARAMETERS,
    "job-list/duration-response": JOB_LIST,
    "job-list/limit-definition": PARAMETERS,
    "job-list/limit-response": JOB_LIST,
    "job-list/job-list-success": STRICT,
    "job-list/links": JOB_LIST,
    "callback/job-callback": (
        "test_process_callbacks.test_a_job_tells_that_it_runs_and_that_it_was_dismissed"
    ),
    "dismiss/job-dismiss-op": OF_PORTAL,
    "dismiss/job-dismiss-success": OF_PORTAL,
}


@pytest.mark.parametrize("name", ABSTRACT_TESTS)
def test_each_abstract_test_has_a_test(name: str) -> None:
    module, function = ABSTRACT_TESTS[name].split(".")
    assert callable(getattr(importlib.import_module(f"tests.portal.{module}"), function))


def test_parameters_are_defined_in_the_description_of_the_interface(ask: Client) -> None:
    paths = ask("GET", "/openapi.json").json()["paths"]

    def schemas(path: str) -> dict[str, dict[str, Any]]:
        parameters = paths[path]["get"]["parameters"]
        assert not any(each.get("required") for each in parameters if each["in"] == "query")
        return {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}

    limit = schemas("/processes")["limit"]
    assert (limit["type"], limit["minimum"]) == ("integer", 1) and limit["default"] >= 1
    of_jobs = schemas("/jobs")
    assert of_jobs["limit"] == {**of_jobs["limit"], "type": "integer", "minimum": 1}
    for name in ("type", "processID", "status"):
        assert (of_jobs[name]["type"], of_jobs[name]["items"]["type"]) == ("array", "string")
    kinds = {kind["type"] for kind in of_jobs["datetime"].get("anyOf", [of_jobs["datetime"]])}
    assert "string" in kinds
    for name in ("minDuration", "maxDuration"):
        assert "number" in {each["type"] for each in of_jobs[name]["anyOf"]}


def test_the_preference_chooses_the_mode(ask: Client) -> None:
    content = {"inputs": {"stringInput": "a"}}
    default = ask.echo(content)
    assert (default.status_code, default.text) == (200, "a")
    later = ask.echo(content, **ASYNC)
    assert (later.status_code, later.json()["type"]) == (201, "process")
    assert later.headers["location"].endswith(f"/jobs/{later.json()['jobID']}")


BOTH = {"stringInput": "a", "binaryInput": "aGk="}
VALUE, REFERENCE = {"transmissionMode": "value"}, {"transmissionMode": "reference"}


def results_of(ask: Client, execution: dict[str, Any]) -> httpx.Response:
    """The results of a job that was executed asynchronously."""
    job = ask.echo({"inputs": BOTH, **execution}, **ASYNC).json()["jobID"]
    return ask("GET", f"/jobs/{job}/results")


def test_results_of_a_job_have_the_form_of_its_execution(ask: Client) -> None:
    """Raw: one value, several, a reference, both kinds; and the document."""
    one = results_of(ask, {"outputs": {"binaryOutput": VALUE}, "response": "raw"})
    assert (one.status_code, one.content) == (200, b"hi")
    several = results_of(ask, {"response": "raw"})
    assert several.headers["content-type"].startswith("multipart/related")
    for part in (b"<stringOutput>", b"<binaryOutput>", b"\r\n\r\nhi\r\n"):
        assert part in several.content
    link = results_of(ask, {"outputs": {"stringOutput": REFERENCE}, "response": "raw"})
    assert (link.status_code, link.content) == (204, b"")
    href = link.headers["link"].partition(">")[0].removeprefix("<")
    assert ask("GET", href.partition("/ogc")[2]).text == "a"
    mixed = {"stringOutput": REFERENCE, "binaryOutput": VALUE}
    parts = results_of(ask, {"outputs": mixed, "response": "raw"})
    assert b"Content-Location: http" in parts.content and b"\r\n\r\nhi\r\n" in parts.content
    document = results_of(ask, {"response": "document"})
    assert document.headers["content-type"] == "application/json"
    assert document.json()["stringOutput"] == "a"


@pytest.mark.parametrize("path", ["", "/results", "/results/stringOutput"])
def test_a_job_that_is_not_there(ask: Client, path: str) -> None:
    problem(ask("GET", f"/jobs/none{path}"), 404, "ogcapi-processes-1/1.0/no-such-job")


def test_results_of_a_job_that_failed_say_why(ask: Client) -> None:
    body = {"inputs": {"targets": ONE}}
    job = ask("POST", "/processes/cut/execution", body, **ASYNC).json()["jobID"]
    ask.app.state.portal.catalog.fail_job(job, lambda _usage: "the disk is full")
    assert ask("GET", f"/jobs/{job}").json()["status"] == "failed"
    assert "the disk is full" in problem(ask("GET", f"/jobs/{job}/results"), 422)


@pytest.mark.parametrize("name", ["cut", "stack", "rgb", "reduce", "echo"])
def test_inputs_and_outputs_of_each_process_have_schemas(ask: Client, name: str) -> None:
    process = ask("GET", f"/processes/{name}").json()
    for each in [*process["inputs"].values(), *process["outputs"].values()]:
        kinds = each["schema"].get("oneOf", [each["schema"]])
        assert kinds
        for kind in kinds:
            assert {"type", "$ref", "contentMediaType", "enum", "allOf"} & kind.keys(), each


def test_the_job_list_answers_to_each_parameter(ask: Client) -> None:
    made = [ask.echo({"inputs": BOTH}, **ASYNC).json()["jobID"] for _ in range(3)]

    def page(query: str) -> dict[str, Any]:
        answer = ask("GET", f"/jobs?{query}")
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def ids(query: str) -> set[str]:
        return {each["jobID"] for each in page(f"limit=1000&{query}")["jobs"]}

    assert set(made) <= ids("type=process") and set(made) <= ids("processID=echo")
    assert not set(made) & ids("processID=cut")
    assert {each["status"] for each in page("status=successful")["jobs"]} == {"successful"}
    assert set(made) <= ids("datetime=2001-01-01T00:00:00Z/..")
    assert not set(made) & ids("datetime=../2001-01-01T00:00:00Z")
    assert set(made) <= ids("maxDuration=1000") and not set(made) & ids("minDuration=1000")
    first = page("limit=2")
    assert len(first["jobs"]) == 2
    links = {each["rel"]: each["href"] for each in first["links"]}
    assert {"self", "next"} <= set(links)
    following = ask("GET", links["next"].partition("/ogc")[2]).json()["jobs"]
    assert not {each["jobID"] for each in following} & {each["jobID"] for each in first["jobs"]}
