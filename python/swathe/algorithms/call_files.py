"""What a run is told, as files and variables: the call of each language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from swathe.algorithms.definition import Scalar

JSON, NAMELIST, GRANULES = "call.json", "call.nml", "granules.txt"
FROM_OUTPUTS = "../in/"
"""Folder of inputs, from that of outputs, in which programs start."""


def call_json(call: Mapping[str, Any]) -> bytes:
    """Return a call as JSON: names of files in `$SWATHE_IN` and `$SWATHE_OUT`."""
    return json.dumps(call).encode()


def call_namelist(call: Mapping[str, Any]) -> bytes:
    """Return a call as namelists of Fortran.

    They are `granules`, `granule_times`, `files`, `outputs` and `parameters`; the last three only
    if they have values. Paths lead from the folder that a program starts in.
    """
    (granules,) = call["granules"].values()
    groups: dict[str, dict[str, Sequence[Scalar | None]]] = {
        "granules": {
            "count": [len(granules)],
            "file": [FROM_OUTPUTS + each["file"] for each in granules],
        },
        "granule_times": {
            key: [each[key] for each in granules] for key in ("role", "start", "end")
        },
        "files": {name: [FROM_OUTPUTS + file] for name, file in call["files"].items()},
        "outputs": {name: [file] for name, file in call["outputs"].items()},
        "parameters": {name: [value] for name, value in call["parameters"].items()},
    }
    lines = []
    for group, values in groups.items():
        if values:
            lines.append(f"&{group}")
            lines += [
                f"  {name} = {', '.join(map(_literal, each))}" for name, each in values.items()
            ]
            lines.append("/")
    return ("\n".join(lines) + "\n").encode()


def _literal(value: Scalar | None) -> str:
    """Return a constant of Fortran."""
    if isinstance(value, bool):
        return ".true." if value else ".false."
    if isinstance(value, int | float):
        return repr(value)
    return "'" + (value or "").replace("'", "''") + "'"


def call_variables(call: Mapping[str, Any]) -> dict[str, str]:
    """Return a call as variables of the environment, with paths as in the namelists."""
    variables = {
        "SWATHE_CALL": FROM_OUTPUTS + JSON,
        "SWATHE_NAMELIST": FROM_OUTPUTS + NAMELIST,
        "SWATHE_GRANULES": FROM_OUTPUTS + GRANULES,
    }
    for kind, prefix in (("files", FROM_OUTPUTS), ("outputs", ""), ("parameters", "")):
        for name, value in call[kind].items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            variables[f"SWATHE_{kind[:-1].upper()}_{name.upper()}"] = prefix + text
    return variables


def granule_list(call: Mapping[str, Any]) -> bytes:
    """Return the paths of all granules, one a line."""
    (granules,) = call["granules"].values()
    return "".join(f"{FROM_OUTPUTS}{each['file']}\n" for each in granules).encode()
