"""Names of functions, classes, parameters, variables and attributes: none ends in a participle."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import swathe
from tests.support.participles import is_participle

FOLDER = Path(swathe.__file__).parent
TERMS = {
    "failed": "state of a row, a chunk or an event",
    "done": "state of a row, a batch or an event; number of what is done so far",
    "cancelled": "state of a job; the flag of a request",
    "connection_made": "method of asyncio.Protocol",
    "connection_lost": "method of asyncio.Protocol",
    "data_received": "method of asyncio.Protocol",
    "buffer_updated": "method of asyncio.BufferedProtocol",
    "bytes_moved": "column of jobs and probes",
    "unsent": "state of a request, and its key in the results of experiments",
    "measure_multiplexed": "method that the native class has, too",
}
"""Names that stay, with the reason."""
FIELDS = {
    "column of the catalogue": "asked held modified predicted removed",
    "result of a scan or a mirror, as --json prints it": (
        "changed copied deleted gone listed measured outdated returned skipped unchanged untold "
        "vanished"
    ),
    "count of a recording, as it is printed": (
        "damaged dropped last_begun lost recorded refused unfinished unowned vanished written"
    ),
    "field of the REST interface": (
        "held lost moved parted predicted refused reserved truncated unmatched"
    ),
    "key of costs and predictions in JSON": "compared explained measured multiplexed",
    "attribute that the native class has, too": "stored",
}
"""Names that only a field, property or attribute may have, by reason."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


Declared = tuple[str, bool, int]
"""A name, whether it is that of a field, and its line."""


def declared_in(tree: ast.AST) -> Iterator[Declared]:
    """Yield the names that a program declares."""
    nodes = deque([(tree, False)])
    while nodes:
        parent, in_class = nodes.popleft()
        for node in ast.iter_child_nodes(parent):
            yield from declared_by(node, in_class)
            if node._fields:
                is_function = isinstance(node, FUNCTIONS)
                inside = isinstance(node, ast.ClassDef) or (in_class and not is_function)
                nodes.append((node, inside))


def declared_by(node: ast.AST, in_class: bool) -> Iterator[Declared]:
    """Yield the names that one node declares, in the body of a class or elsewhere."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            yield name, in_class, node.lineno
        case ast.AsyncFunctionDef(name=name):
            yield name, in_class, node.lineno
        case ast.arg(arg=name):
            yield name, False, node.lineno
        case ast.Name(id=name, ctx=ast.Store()):
            yield name, in_class, node.lineno
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name, True, node.lineno
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name, False, node.lineno
        case ast.alias(asname=str(name)):
            yield name, False, node.lineno


@pytest.fixture(scope="module")
def declared() -> dict[Path, list[Declared]]:
    """The names that each file declares."""
    paths = sorted(FOLDER.rglob("*.py"))
    return {path: list(declared_in(ast.parse(path.read_text()))) for path in paths}


def faults_of(names: Iterable[Declared]) -> list[tuple[str, int]]:
    """Return the names that end in a participle and are no terms, with their lines."""
    fields = {name for group in FIELDS.values() for name in group.split()}
    return [
        (name, line)
        for name, is_field, line in names
        if is_participle(name)
        and name.strip("_").lower() not in TERMS
        and not (is_field and name in fields)
    ]


def test_no_name_ends_in_a_participle(declared: dict[Path, list[Declared]]) -> None:
    faults = defaultdict(list)
    for path, names in declared.items():
        for name, line in faults_of(names):
            faults[name].append(f"{path.relative_to(FOLDER)}:{line}")
    assert not faults


def test_every_term_is_a_name(declared: dict[Path, list[Declared]]) -> None:
    stems = {name.strip("_").lower() for names in declared.values() for name, _, _ in names}
    terms = {*TERMS, *(name for names in FIELDS.values() for name in names.split())}
    assert len(terms) <= 45
    assert terms <= stems


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def found(): ...", ["found"]),
        ("async def _row_named(): ...", ["_row_named"]),
        ("class RowTaken: ...", ["RowTaken"]),
        ("def read(rows_given): ...", ["rows_given"]),
        ("lambda _used: None", ["_used"]),
        (
            "_unkept = overwritten = rebuilt = under = rerun = 1",
            ["_unkept", "overwritten", "rebuilt"],
        ),
        ("for kept, row in rows: ...", ["kept"]),
        ("MOST_LISTED = 3", ["MOST_LISTED"]),
        ("self.told = row", ["told"]),
        ("with file as opened: ...", ["opened"]),
        ("from swathe import results as made", ["made"]),
        ("[told for told in rows]", ["told"]),
        ("predicted = 3", ["predicted"]),
        ("def read(predicted): ...", ["predicted"]),
        ("class Job:\n    predicted: int", []),
        ("class Job:\n    def read(self):\n        predicted = 3", ["predicted"]),
        ("self.predicted = 3", []),
        ("packed_rows = is_closed = has_begun = speed = seeds = need = 1", []),
        ("FAILED = done = _cancelled = 1", []),
        ("red = bed = read = put = 1", []),
    ],
)
def test_names_that_end_in_a_participle_are_found(text: str, names: list[str]) -> None:
    assert [name for name, _ in faults_of(declared_in(ast.parse(text)))] == names
