"""Read a document of CWL, YAML or JSON, as plain values: bounded, and without other documents.

Values are those of the core schema of YAML 1.2, as `cwltool` reads them: `yes` is a text. What
parsers disagree about is refused: aliases, tags, a key that occurs twice.

References:
    Common Workflow Language v1.2. YAML 1.2.2, chapter 10.3. RFC 8259.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from swathe.core.errors import AlgorithmError
from swathe.core.format import size_text
from swathe.core.json_hooks import refuse_constant, unique_pairs
from swathe.core.value_errors import short_text

MOST_DOCUMENT_BYTES = 100_000
"""Longest document: to parse one takes a second for each 100 kB, at worst."""
MOST_DEPTH = 40
MOST_VALUES = 10_000
LONGEST_NUMBER = 40
LOADING_KEYS = ("$import", "$include", "$mixin")
"""Keys that load another document."""
FILES = ("File", "Directory")
PLAIN = "tag:yaml.org,2002:"
CORE = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    ("float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")),
)
"""Plain scalars that are no texts."""
VERSION_KEY = re.compile(rb"""^[ \t]*["']?cwlVersion["']?[ \t]*:""", re.MULTILINE)
FLOW_KEY = re.compile(rb"""[{,]\s*["']?cwlVersion["']?\s*:""")
HEADER = re.compile(rb"^# /// script", re.MULTILINE)
SUFFIX = ".cwl"


def is_cwl(content: bytes, label: str = "") -> bool:
    """Check whether a source is a document of CWL, by its key `cwlVersion` or its suffix."""
    if HEADER.search(content):
        return False
    key = FLOW_KEY if is_json(content) else VERSION_KEY
    return label.endswith(SUFFIX) or key.search(content) is not None


def is_json(content: bytes) -> bool:
    """Check whether a document is an object of JSON, or a mapping of YAML that looks like one."""
    return content.lstrip()[:1] == b"{"


def parse_document(content: bytes, label: str) -> dict[str, Any]:
    """Parse a document of CWL.

    Args:
        content: YAML or JSON in UTF-8.
        label: its name in errors.

    Raises:
        AlgorithmError: If it is too long, too deep, neither YAML nor JSON, or names other
            documents and files.
    """
    if len(content) > MOST_DOCUMENT_BYTES:
        raise AlgorithmError(
            f"{label}: expected CWL of at most {size_text(MOST_DOCUMENT_BYTES)}, found "
            f"{size_text(len(content))}"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AlgorithmError(f"{label}: expected UTF-8, found byte {error.start}") from error
    try:
        value = _json(text) if is_json(content) else _yaml(text)
        if not isinstance(value, dict):
            raise ValueError(f"expected CWL, found {short_text(value)}")
        _check(value)
    except (ValueError, RecursionError) as error:
        raise AlgorithmError(f"{label}: {str(error)[:300]}") from error
    return value


def _json(text: str) -> Any:
    """Parse JSON; a text that only looks like it is YAML."""
    try:
        return json.loads(
            text, object_pairs_hook=_mapping, parse_constant=refuse_constant, parse_int=_integer
        )
    except json.JSONDecodeError:
        return _yaml(text)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return unique_pairs(pairs, "key")


def _integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"expected a number of at most {LONGEST_NUMBER} digits, found more")
    return int(text)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Composer of YAML in plain Python, which bounds nodes and depth while it reads."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.count = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise ValueError(f"line {line}: expected no anchor and no alias, found one")
        self.depth += 1
        self.count += 1
        if self.depth > MOST_DEPTH or self.count > 2 * MOST_VALUES:
            raise ValueError(
                f"line {line}: expected at most {MOST_DEPTH} levels and {MOST_VALUES:,} values, "
                "found more"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """Return the tag of a node without one, by the core schema."""
        if kind is not yaml.ScalarNode:
            return PLAIN + ("seq" if kind is yaml.SequenceNode else "map")
        is_plain = implicit[0]
        names = (name for name, form in CORE if is_plain and form.fullmatch(value))
        return PLAIN + next(names, "str")


def _yaml(text: str) -> Any:
    """Parse YAML.

    Raises:
        ValueError: If it is none, or has what JSON cannot have.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"line {line}: expected YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML: {str(error).partition(chr(10))[0]}") from error
    if node is None:
        raise ValueError("expected CWL, found an empty document")
    return _value(node)


def _value(node: Any) -> Any:
    """Return the value of a node."""
    line, kind = node.start_mark.line + 1, node.tag.removeprefix(PLAIN)
    if isinstance(node, yaml.SequenceNode) and kind == "seq":
        return [_value(each) for each in node.value]
    if isinstance(node, yaml.MappingNode) and kind == "map":
        pairs = [(_key(key), _value(value)) for key, value in node.value]
        try:
            return _mapping(pairs)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from error
    if not isinstance(node, yaml.ScalarNode) or kind not in ("str", *dict(CORE)):
        raise ValueError(f"line {line}: expected no tag, found {short_text(node.tag)}")
    text: str = node.value
    if kind != "str" and not dict(CORE)[kind].fullmatch(text):
        raise ValueError(f"line {line}: expected {kind}, found {short_text(text)}")
    if kind in ("int", "float") and len(text) > LONGEST_NUMBER:
        raise ValueError(f"line {line}: expected a number of at most {LONGEST_NUMBER} digits")
    match kind:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        case "float":
            return float(text)
    return text


def _key(node: Any) -> str:
    """Return a key, which is a text."""
    value = _value(node) if isinstance(node, yaml.ScalarNode) else None
    if not isinstance(value, str):
        line = node.start_mark.line + 1
        raise ValueError(f"line {line}: expected a text as a key, found another")
    return value


def _check(document: dict[str, Any]) -> None:
    """Check the values, without recursion.

    Raises:
        ValueError: If they are too many, too deep, no Unicode, no finite numbers, or name other
            documents and files.
    """
    level: list[Any] = [document]
    count = 0
    for _ in range(MOST_DEPTH):
        for each in level:
            _check_value(each)
        level = [inner for each in level for inner in _inner(each)]
        count += len(level)
        if not level:
            return
        if count > MOST_VALUES:
            break
    raise ValueError(f"expected at most {MOST_DEPTH} levels and {MOST_VALUES:,} values, found more")


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_value(value: Any) -> None:
    if isinstance(value, str):
        value.encode()  # half of a UTF-16 pair cannot be written
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected a finite number, found another")
    if not isinstance(value, dict):
        return
    for key in value:
        key.encode()
        if key in LOADING_KEYS:
            raise ValueError(
                f"{key}: expected the content itself, found another document; pack them first "
                "(cwltool --pack)"
            )
    if value.get("class") in FILES:
        for key in ("location", "path"):
            if key in value:
                raise ValueError(
                    f"{key}: expected a literal with contents, found a file elsewhere, "
                    f"{short_text(value[key])}"
                )
