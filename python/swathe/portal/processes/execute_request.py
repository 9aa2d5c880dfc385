"""The request to execute a process, read from its JSON body and its header `Prefer`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from swathe.catalog.records.jobs import CallbackUrls
from swathe.core.errors import JobError
from swathe.core.value_errors import short_text
from swathe.portal.processes.process import Execution, OutputChoice, ResponseForm, Transmission
from swathe.subscriptions.webhook_address import check_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from swathe.portal.processes.process import Process

FIELDS = ("inputs", "outputs", "response", "subscriber")
SUBSCRIBER = ("successUri", "inProgressUri", "failedUri")
WAIT = re.compile(r"wait=([0-9]{1,6})")


class Preferences(NamedTuple):
    """Preferences of a client (RFC 7240).

    Attributes:
        is_async: whether it prefers a job to the results.
        wait_s: seconds that it would wait for the results first.
        transmission: how it prefers outputs in documents; `None`: as the server chooses.
    """

    is_async: bool = False
    wait_s: float = 0.0
    transmission: Transmission | None = None


def preferences_of(request: Request) -> Preferences:
    """Return the preferences of a client. Unknown ones are ignored, as RFC 7240 has it."""
    words = [
        word.strip().lower()
        for line in request.headers.getlist("prefer")
        for word in line.replace(";", ",").split(",")
    ]
    waits = [float(match[1]) for word in words if (match := WAIT.fullmatch(word))]
    returns: dict[str, Transmission] = {"return=minimal": "reference"}
    returns["return=representation"] = "value"
    choices = [returns[word] for word in words if word in returns]
    return Preferences(
        "respond-async" in words, min(waits, default=0.0), choices[0] if choices else None
    )


def read_execution(content: Any, targets: Mapping[str, list[Any]], process: Process) -> Execution:
    """Return the execution of a process that a body requests.

    Args:
        content: the body, without the targets.
        targets: targets of the body as columns; empty if they are none, or still in the body.
        process: the process.

    Raises:
        JobError: If a field, an input or an output is invalid, unknown or missing.
        WebhookError: If the URL of a callback is invalid.
    """
    if not isinstance(content, dict):
        raise JobError(f"the body: expected an object, found {short_text(content)}")
    for name in content:
        if name not in FIELDS:
            raise JobError(
                f"the body: expected the fields {', '.join(FIELDS)}, found {short_text(name)}"
            )
    inputs = _object("inputs", content.get("inputs"))
    inputs = {name: value for name, value in inputs.items() if value is not None}
    names = process.inputs
    for name in (*inputs, *(["targets"] if targets else [])):
        if name not in names:
            raise JobError(
                f"input {short_text(name)}: expected one of {', '.join(names)}, found another"
            )
    for name, of in names.items():
        is_there = name in inputs or (name == "targets" and targets)
        if of.get("minOccurs", 1) > 0 and not is_there:
            raise JobError(f"input {name}: expected a value, found none")
    response = content.get("response")
    if response is not None and response not in get_args(ResponseForm):
        raise JobError(f"response: expected raw or document, found {short_text(response)}")
    outputs = content.get("outputs")
    choices = None if outputs is None else _choices(_object("outputs", outputs), process)
    return Execution(inputs, targets, choices, response, _subscriber(content.get("subscriber")))


def _choices(outputs: dict[str, Any], process: Process) -> dict[str, OutputChoice]:
    descriptions = process.outputs
    if not outputs:
        raise JobError(f"outputs: expected one of {', '.join(descriptions)}, found none")
    choices = {}
    for name, value in outputs.items():
        if name not in descriptions:
            raise JobError(
                f"output {short_text(name)}: expected one of {', '.join(descriptions)}, "
                "found another"
            )
        choices[name] = _choice(name, _object(name, value), descriptions[name]["schema"])
    return choices


def _choice(name: str, value: dict[str, Any], schema: Mapping[str, Any]) -> OutputChoice:
    transmission = value.get("transmissionMode")
    if transmission is not None and transmission not in get_args(Transmission):
        raise JobError(
            f"output {name}: expected transmissionMode value or reference, "
            f"found {short_text(transmission)}"
        )
    kind = _object(name, value.get("format")).get("mediaType", "")
    kinds = [each.get("contentMediaType") for each in (schema, *schema.get("oneOf", ()))]
    kinds = [each for each in kinds if each]
    if kind and kind not in kinds:
        raise JobError(
            f"output {name}: expected a media type ({', '.join(kinds) or 'none'}), "
            f"found {short_text(kind)}"
        )
    return OutputChoice(kind, transmission)


def _subscriber(value: Any) -> CallbackUrls | None:
    """Return the URLs of a client that hear of its job."""
    if value is None:
        return None
    content = _object("subscriber", value)
    for name in content:
        if name not in SUBSCRIBER:
            raise JobError(
                f"subscriber: expected {', '.join(SUBSCRIBER)}, found {short_text(name)}"
            )
    urls = [
        None if content.get(name) is None else check_url(content[name], f"subscriber.{name}")
        for name in SUBSCRIBER
    ]
    if urls[0] is None:
        raise JobError(f"subscriber: expected {SUBSCRIBER[0]}, found none")
    return CallbackUrls(urls[0], urls[1], urls[2])


def _object(name: str, value: Any) -> dict[str, Any]:
    """Return an object of JSON; null is an empty one."""
    if not isinstance(value, dict | None):
        raise JobError(f"{name}: expected an object, found {short_text(value)}")
    return value or {}
