"""Docstrings name the attributes and arguments that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "swathe"
SECTION = re.compile(r"^(Args|Attributes):\n((?: {4}.*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}([a-z_][\w, *]*): ", re.MULTILINE)


def names_of(node: ast.AST) -> set[str]:
    """Return the arguments of a function, or the attributes of a class and what it is made from."""
    arguments = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    if isinstance(node, ast.ClassDef):
        fields = {
            each.target.id
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        properties = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        own = {
            each.attr
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
        }
        return arguments | fields | properties | own
    return arguments


def unknown_names(source: str) -> Iterator[str]:
    """Yield the names that a docstring explains, and its class or function lacks."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, kinds):
            continue
        sections = SECTION.findall(ast.get_docstring(node) or "")
        known = names_of(node) if sections else set()
        for _, entries in sections:
            for entry in ENTRY.findall(entries):
                listed = {name.strip(" *") for name in entry.split(",")}
                yield from (f"{node.name}: {name}" for name in sorted(listed - known))


@pytest.mark.parametrize(
    "package", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
)
def test_docstrings_name_what_there_is(package: str) -> None:
    path = PACKAGE / package
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert not [name for file in files for name in unknown_names(file.read_text())]


def test_an_unknown_name_is_found() -> None:
    source = 'class A:\n    """A.\n\n    Attributes:\n        b, c: d.\n    """\n\n    b: int\n'
    assert list(unknown_names(source)) == ["A: c"]
