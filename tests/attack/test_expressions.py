"""Every regular expression of the package takes linear time, whatever it is given.

The property is linear against quadratic: 100,000 characters take milliseconds in the first case,
and tens of seconds in the second. So the bound of seconds says nothing of the machine's speed.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swathe
from swathe.catalog.store_urls import looks_secret
from swathe.core.box import SECTION, box_from_section
from swathe.core.errors import DatasetError, RegionError
from swathe.files.manifest_columns import BLANKS, LINE_ENDS, _before_comment
from swathe.portal.vo.parameters import NUMBER, SUB
from swathe.stores.listing import validate_pattern

PACKAGE = Path(swathe.__file__).parent
LENGTH = 100_000
LONGEST_S = 2.0
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
DYNAMIC = {(name, "re.compile") for name in ("stores.registry", "files.array_outputs.asdf_rest")}
"""Made while the package runs: of the names of stores, escaped, and of a mark that is drawn."""


class Use(NamedTuple):
    """An expression, and how the package asks for it."""

    module: str
    name: str
    pattern: re.Pattern[Any]
    method: str


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(path.read_text())


def methods_of(tree: ast.AST) -> dict[str, set[str]]:
    """Give which methods of each name a module asks for."""
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in METHODS:
                methods.setdefault(name, set()).add(method)
    return methods


def compiled() -> Iterator[Use]:
    """Give the expressions that are attributes of modules."""
    for name, tree in modules():
        if "re.compile(" not in ast.unparse(tree) or name.startswith("catalog.migrations"):
            continue
        module = importlib.import_module(f"swathe.{name}")
        methods = methods_of(tree)
        for attribute, value in vars(module).items():
            owner = getattr(value, "__self__", value)
            if isinstance(owner, re.Pattern):
                asked = {value.__name__} if owner is not value else methods.get(attribute, set())
                for method in sorted(asked):
                    yield Use(name, attribute, owner, method)


def inline() -> Iterator[Use]:
    """Give the expressions written where they are used, as `re.sub("/+", ...)`."""
    for name, tree in modules():
        for node in ast.walk(tree):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in METHODS
            ):
                continue
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) else None
            if isinstance(text, str | bytes):
                yield Use(name, f"line {node.lineno}", re.compile(text), node.func.attr)


def in_functions() -> set[tuple[str, str]]:
    """Give the modules that make expressions of what they learn as they run."""
    made = set()
    for name, tree in modules():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                made |= {
                    (name, "re.compile")
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
                }
    return made


USES = [*compiled(), *inline()]


def letters(parsed: Any) -> Iterator[int]:
    """Give a character of every class and every literal of a parsed expression."""
    for operator, argument in parsed:
        kind = str(operator)
        if kind in ("LITERAL", "NOT_LITERAL"):
            yield argument
        elif kind == "RANGE":
            yield argument[0]
        elif kind == "CATEGORY":
            yield ord({"DIGIT": "7", "SPACE": " ", "WORD": "w"}.get(str(argument)[9:], "~"))
        elif kind == "IN":
            yield from letters(argument)
        elif kind == "ANY":
            yield ord("q")
        elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield from letters(argument[2])
        elif kind == "SUBPATTERN":
            yield from letters(argument[3])
        elif kind == "ATOMIC_GROUP":
            yield from letters(argument)
        elif kind == "BRANCH":
            for branch in argument[1]:
                yield from letters(branch)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from letters(argument[1])


def words(parsed: Any) -> list[str]:
    """Give the literal texts of an expression; the first is what it begins with."""
    texts = [""]
    for operator, argument in parsed:
        if str(operator) == "LITERAL":
            texts[-1] += chr(argument)
            continue
        texts.append("")
        match str(operator):
            case "SUBPATTERN":
                texts += words(argument[3])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                texts += words(argument[2])
            case "BRANCH":
                texts += [text for branch in argument[1] for text in words(branch)]
    return texts


def attacks(pattern: re.Pattern[Any]) -> Iterator[Any]:
    """Give texts of one or two characters over and over, whole, broken off and with a beginning."""
    parsed = importlib.import_module("re._parser").parse(
        pattern.pattern, pattern.flags & ~re.UNICODE
    )
    found = sorted({chr(code) for code in letters(parsed) if code < 0x250} | {"a", "1", " "})
    start, *others = words(parsed)
    longer = {text for text in (start, *others) if text}
    units = [*found, *(one + other for one, other in itertools.pairwise(found))]
    units += [text + letter for text in sorted(longer) for letter in found[:20]]
    for unit in units:
        body = (unit * LENGTH)[:LENGTH]
        for text in (body, f"{body}\x01", f"{start}{body}\x01", f"{body}{found[0]}"):
            yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def asked(use: Use) -> Callable[[Any], Any]:
    if use.method in ("sub", "subn"):
        empty: Any = b"" if isinstance(use.pattern.pattern, bytes) else ""
        return lambda text: getattr(use.pattern, use.method)(empty, text)
    if use.method == "finditer":
        return use.pattern.findall
    return getattr(use.pattern, use.method)  # type: ignore[no-any-return]


def too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def test_the_walk_sees_the_expressions() -> None:
    """So that what follows tests something."""
    assert {
        "portal.vo.parameters",
        "portal.sources",
        "files.targets.result_names",
        "files.manifest",
        "files.manifest_columns",
    } <= {use.module for use in USES}
    assert len(USES) > 50
    assert in_functions() == DYNAMIC


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.module}:{use.name}:{use.method}")
def test_time_is_linear(use: Use) -> None:
    run = asked(use)
    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for text in attacks(use.pattern):
            signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
            try:
                run(text)
            except TimeoutError:
                pytest.fail(f"{use.pattern.pattern!r} took {LONGEST_S} s for {text[:20]!r}...")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


OLD_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE
)
OLD_SUB = re.compile(r"\s*(?:\[([^][:]*)\])?\s*(?:(\[[^][]*:[^][]*\]))?\s*")
OLD_SECTION = re.compile(r"\s*\[?\s*(\d+)\s*:\s*(\d+)\s*,\s*(\d+)\s*:\s*(\d+)\s*\]?\s*")
OLD_LINE_ENDS = re.compile("[\x00\r\v\f\x1c-\x1e\x85\u2028\u2029]|\n(?=\\s*#)")
OLD_SET = re.compile(r"\[!?\]?[^\]]*\]")
OLD_TOKEN = re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b|\beyJ[\w-]{8,}\.[\w-]{8,}|\bya29\.[\w-]{16,}")


def some(*parts: str, most: int = 12) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), max_size=most).map("".join)


@settings(max_examples=400)
@given(some("+", "-", ".", "1", "23", "e", "E", "inf", "Infinity", "x"))
def test_numbers_are_those_of_before(word: str) -> None:
    assert bool(NUMBER.fullmatch(word)) == bool(OLD_NUMBER.fullmatch(word))


@settings(max_examples=400)
@given(some(" ", "\t", "[", "]", "[", "]", "1", ":", ",", "SCI", "1:2,3:4"))
def test_parts_of_a_file_are_those_of_before(value: str) -> None:
    old = OLD_SUB.fullmatch(value)
    new = SUB.fullmatch(value.strip())
    assert (old and old.groups()) == (new and new.groups())


@settings(max_examples=400)
@given(some(" ", "[", "]", "12", ":", ",", "1:2,3:4", "0:1", "1 : 2"))
def test_sections_are_those_of_before(value: str) -> None:
    old = OLD_SECTION.fullmatch(value)
    new = SECTION.fullmatch(value.strip())
    assert (old and old.groups()) == (new and new.groups())


@settings(max_examples=400)
@given(some("\n", "\r", " ", "#", "a", '"', "\u2028", "\n\n"))
def test_cells_are_written_as_before(text: str) -> None:
    assert LINE_ENDS.sub(" ", BLANKS.sub(_before_comment, text)) == OLD_LINE_ENDS.sub(" ", text)


@settings(max_examples=400)
@given(some("[", "]", "!", "a", "*", "-", most=8))
def test_patterns_are_those_of_before(text: str) -> None:
    is_old = bool(text) and "[" not in OLD_SET.sub("", text)
    try:
        is_new = validate_pattern(text) is not None
    except DatasetError:
        is_new = False
    assert is_new == is_old


@settings(max_examples=400)
@given(some("AKIA", "ABCDEFGH12345678", "eyJ", ".", "-", "abcdefgh", "a", "ya29.", "/", "_"))
def test_secrets_are_those_of_before(text: str) -> None:
    assert looks_secret(text) == bool(OLD_TOKEN.search(text))


@pytest.mark.parametrize(
    "text", ["[" + "1" * 5000 + ":2,3:4]", " " * 50_000 + "x", "[1:2,3:4" + " " * 300 + "]"]
)
def test_sections_are_bounded(text: str) -> None:
    with pytest.raises(RegionError) as caught:
        box_from_section(text)
    assert len(str(caught.value)) < 300
