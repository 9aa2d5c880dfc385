"""Commands that run an algorithm, with its own names and values: shell, Python, curl."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe.algorithms.definition import Algorithm, Parameter, Scalar

BEARER = "Authorization: Bearer $SWATHE_TOKEN"


def commands_of(definition: Algorithm, url: str, *, with_token: bool) -> list[tuple[str, str]]:
    """Return commands with the title of each: to order it, to fetch its source, and to try it.

    Args:
        definition: the algorithm.
        url: URL of the portal.
        with_token: whether requests need a token.
    """
    suffix = "cwl" if definition.language == "cwl" else "py"
    file = f"{definition.name}-{definition.version}.{suffix}"
    token = f'-H "{BEARER}" ' if with_token else ""
    source = f"{url}/api/algorithms/{definition.name}/source?version={definition.version}"
    fetch = f"curl -o {quote(file)} {token}{quote(source)}"
    return [
        ("Order it", _order(definition, url)),
        ("Order it in Python", _python_order(definition, url)),
        ("Order it with curl", _curl_order(definition, url, token)),
        ("Try it on files of your machine", f"{fetch}\n{_trial(definition, file)}"),
    ]


def _order(definition: Algorithm, url: str) -> str:
    words = [f"swathe order {quote(definition.label)} --url {quote(url)}"]
    words.append(f"--collection {_collection(definition)}")
    words += [f"--file {name}=STORE:{quote(each.file)}" for name, each in definition.files.items()]
    return " \\\n  ".join([*words, *_settings(definition), "--wait"])


def _python_order(definition: Algorithm, url: str) -> str:
    lines = ["import swathe", "", f"portal = swathe.connect({url!r})", "job = portal.order("]
    lines += [f"    {definition.label!r},", f"    collection={_collection(definition)!r},"]
    values, files = _values(definition)
    lines += [f"    files={files!r},"] if files else []
    lines += [f"    parameters={values!r},"] if values else []
    return "\n".join([*lines, ")", "job.wait()"])


def _curl_order(definition: Algorithm, url: str, token: str) -> str:
    values, files = _values(definition)
    body = {
        "algorithm": definition.label,
        "collection": _collection(definition),
        "parameters": values,
        "files": files,
    }
    content = quote(json.dumps({name: each for name, each in body.items() if each}))
    kind = "-H 'Content-Type: application/json'"
    return f"curl {token}{kind} \\\n  -d {content} \\\n  {quote(url + '/api/orders')}"


def _collection(definition: Algorithm) -> str:
    return definition.granules[1].collection or "DATASET"


def _values(definition: Algorithm) -> tuple[dict[str, Scalar], dict[str, str]]:
    """Return values of parameters, and places of files, by name."""
    values = {name: example_value(each) for name, each in definition.parameters.items()}
    return values, {name: f"STORE:{each.file}" for name, each in definition.files.items()}


def _settings(definition: Algorithm) -> list[str]:
    """Return the parameters as options of a command."""
    return [
        f"--set {name}={quote(_shell_text(example_value(each)))}"
        for name, each in definition.parameters.items()
    ]


def _trial(definition: Algorithm, file: str) -> str:
    words = [f"swathe algorithm try {quote(file)}", "--granules GRANULE..."]
    words += [f"--file {name}={quote(each.file)}" for name, each in definition.files.items()]
    return " \\\n  ".join([*words, *_settings(definition), "-o results"])


def example_value(parameter: Parameter) -> Scalar:
    """Return the default of a parameter, else a valid value, else a place for one."""
    if parameter.default is not None:
        return parameter.default
    if parameter.enum:
        return parameter.enum[0]
    bound = parameter.minimum if parameter.minimum is not None else parameter.maximum
    match parameter.type:
        case "integer":
            return 0 if bound is None else round(bound)
        case "number":
            return 0.0 if bound is None else bound
        case "boolean":
            return True
        case "string":
            return "TEXT"


def _shell_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
