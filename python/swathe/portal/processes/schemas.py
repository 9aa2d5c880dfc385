"""JSON schemas of inputs in the words of OpenAPI 3.0, which all clients of OGC's standards read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NULL = {"type": "null"}
WORDS = ("title", "description", "default")
"""Words that inputs have themselves."""


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of pydantic in the words of OpenAPI 3.0, without title and null.

    A default that is null is left out: it means that there is none.
    """
    others = [each for each in schema.get("anyOf", ()) if each != NULL]
    if len(others) == 1:
        rest = {name: of for name, of in schema.items() if name != "anyOf"}
        return plain_schema({**rest, **others[0]})
    plain = {name: of for name, of in schema.items() if name not in (*WORDS, "anyOf")}
    if others:
        plain["oneOf"] = [plain_schema(each) for each in others]
    if schema.get("default") is not None:
        plain["default"] = schema["default"]
    if (kinds := plain.get("type")) and isinstance(kinds, list):
        plain["oneOf"] = [{"type": kind} for kind in kinds if kind != "null"]
        del plain["type"]
    if (items := plain.pop("prefixItems", None)) is not None:
        plain["items"] = plain_schema(items[0])
    for name in ("items", "additionalProperties"):
        if isinstance(plain.get(name), dict):
            plain[name] = plain_schema(plain[name])
    return plain
