"""The head of a manifest file: names and types of its columns, and metadata, in YAML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from swathe.files.manifest import COLUMNS, INTEGERS

UNPRINTABLE = re.compile("[^ -~]")


def head_of(meta: Mapping[str, Any]) -> bytes:
    """Return the part of the file before the rows.

    Raises:
        TypeError: If a value is not text, a number or a list.
    """
    types = [f"# - {{name: {name}, datatype: {_type(name)}}}" for name in COLUMNS]
    entries = [f"# - {_yaml(name)}: {_yaml(value)}" for name, value in meta.items()]
    lines = ["# %ECSV 1.0", "# ---", "# datatype:", *types, "# delimiter: ','"]
    lines += [*(["# meta: !!omap", *entries] if entries else []), "# schema: astropy-2.0"]
    return "\n".join([*lines, ",".join(COLUMNS), ""]).encode()


def _type(name: str) -> str:
    return "int64" if name in INTEGERS else "string"


def _yaml(value: Any) -> str:
    """Return a value as YAML in one line. Not by a library, whose import takes 0.1 s.

    Raises:
        TypeError: If it is not a plain value.
    """
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + UNPRINTABLE.sub(_escape, text) + '"'
    if value is None or isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
        text = repr(float(value))
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, Mapping):
        pairs = (f"{_yaml(name)}: {_yaml(each)}" for name, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    raise TypeError(f"a value in a manifest: expected text, number or list, found {value!r:.50}")


def _escape(letter: re.Match[str]) -> str:
    return "\\U" + f"{ord(letter[0]):08X}"
