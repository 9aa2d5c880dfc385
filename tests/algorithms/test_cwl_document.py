"""Texts of CWL: the values that one has, and how a hostile one is refused."""

from __future__ import annotations

import json

import pytest

from swathe.algorithms.cwl_document import MOST_DOCUMENT_BYTES, parse_document
from swathe.algorithms.header import parse_source
from swathe.core.errors import AlgorithmError

HEAD = "cwlVersion: v1.2\n"
HOSTILE = {
    "bomb of aliases": (f"{HEAD}a: &a [x, x]\nb: [*a, *a]\n", "line 2: expected no anchor"),
    "merge": (f"{HEAD}a: {{<<: *b}}\n", "line 2: expected no anchor"),
    "object of Python": (f"{HEAD}a: !!python/object/apply:os.system [id]\n", "expected no tag"),
    "bytes": (f"{HEAD}a: !!binary aGE=\n", "expected no tag"),
    "deep YAML": (f"{HEAD}a: {'[' * 50_000}", "line 2: expected at most 40 levels"),
    "deep JSON": ('{"cwlVersion": "v1.2", "a": ' + "[" * 50_000, "recursion"),
    "less deep JSON": (
        '{"cwlVersion": "v1.2", "a": ' + "[" * 50 + "]" * 50 + "}",
        "expected at most 40 levels",
    ),
    "many values": (f"{HEAD}a: [{'1,' * 40_000}]", "10,000 values, found more"),
    "many values of JSON": (
        json.dumps({"cwlVersion": "v1.2", "a": [1] * 30_000}),
        "10,000 values, found more",
    ),
    "long": (f"{HEAD}a: {'x' * MOST_DOCUMENT_BYTES}", "expected CWL of at most 97.66 KiB"),
    "twice": (f"{HEAD}a: 1\na: 2\n", "expected each key once, found 'a' twice"),
    "twice in JSON": ('{"cwlVersion": "v1.2", "a": 1, "a": 2}', "found 'a' twice"),
    "NaN": ('{"cwlVersion": "v1.2", "a": NaN}', "expected a finite number"),
    "infinity": (f"{HEAD}a: 1e999\n", "expected a finite number"),
    "long number": (f"{HEAD}a: {'9' * 5000}\n", "at most 40 digits"),
    "long number of JSON": ('{"cwlVersion": "v1.2", "a": ' + "9" * 5000 + "}", "40 digits"),
    "half a character": ('{"cwlVersion": "v1.2", "a": "\\ud83d"}', "surrogates not allowed"),
    "NUL": (f"{HEAD}a: \0\n", "expected YAML: unacceptable character"),
    "two documents": (f"{HEAD}---\nb: 1\n", "expected YAML: but found another document"),
    "key that is a list": (f"{HEAD}? [a]\n: b\n", "line 2: expected a text as a key"),
    "no YAML": (f"{HEAD}\ta: b\n", "line 2: expected YAML"),
    "list": (f"- {HEAD}", "cwlVersion at the start of a line, found none"),
    "empty": ("", "found none"),
    "no CWL": ("a: 1\n", "found none"),
    "key that is hidden": ('"cwlV\\x65rsion": v1.2\n', "found none"),
    "two kinds": (f"# /// script\n{HEAD}", "found none"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_document_is_refused(kind: str) -> None:
    text, message = HOSTILE[kind]
    with pytest.raises(AlgorithmError, match=r"^x\.cwl: ") as error:
        parse_source(text.encode(), "x.cwl")
    assert message in str(error.value)
    assert len(str(error.value)) < 400


def test_values_are_those_of_the_core_schema() -> None:
    text = "{a: yes, b: 010, c: 1:30, d: 2001-01-01, e: 1e3, f: ~, g: 0x1f, h: '1', i: true}"
    assert parse_document(text.encode(), "x") == {
        **{"a": "yes", "b": 10, "c": "1:30", "d": "2001-01-01", "e": 1000.0},
        **{"f": None, "g": 31, "h": "1", "i": True},
    }
