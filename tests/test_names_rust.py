"""Names in Rust say what a thing is: no participles, but for a few terms."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.participles import is_participle, words_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (*sorted((ROOT / "crates").glob("*/src")), ROOT / "tests" / "proxy" / "src")

TERMS = {
    "compressed": "a place in the compressed data of a stream, beside one in the raw data",
    "elapsed": "as `Instant::elapsed`",
    "expected": "errors say: expected X, found Y",
    "explained": "`swathe.Prediction.explained`, under the same key",
    "found": "errors say: expected X, found Y",
    "hidden": "files whose names begin with a dot",
    "modified": "when a file was written last, as in Last-Modified",
    "multiplexed": "requests of HTTP/2 that share a connection",
    "stored": "pixels as FITS stores them, before BSCALE and BZERO",
    "vectored": "as `AsyncWrite::poll_write_vectored`",
}
"""Last words that stay, and why."""

#: Texts, comments and characters: they hold no names.
TEXTS = re.compile(
    r'r(#*)".*?"\1|//[^\n]*|/\*.*?\*/|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL
)
#: What follows is one name.
ITEM = re.compile(r"\b(?:fn|struct|enum|trait|type|union|mod|const|static|macro_rules!) (\w+)")
#: A field or a parameter, with its type or value.
FIELD = re.compile(r"(?<![\w:.'])([a-z_]\w*): ")
#: What follows is a pattern.
PATTERNS = (
    re.compile(r"\blet ([^=;]+?)(?:: [^=;]+)? ?[=;]"),
    re.compile(r"\bfor ([^;{]+?) in "),
    re.compile(r"(?:move |[(,=] ?)\|([^|;{}]+)\|"),
    re.compile(r"^\s*([^\n=]+?)(?: if [^\n]+)? => ", re.MULTILINE),
)
#: A name in a pattern: no type, no call, no path.
VARIABLE = re.compile(r"(?<![\w:.'])([a-z_]\w*)(?!\w*(?:\(|::|!|\.))")


def _declared(text: str) -> Iterator[str]:
    """Yield the names that a text declares: items, fields, parameters and variables."""
    text = TEXTS.sub('""', text)
    yield from ITEM.findall(text)
    yield from FIELD.findall(text)
    for pattern in PATTERNS:
        for names in pattern.findall(text):
            yield from VARIABLE.findall(names)


def _participles(text: str) -> set[str]:
    return {name for name in _declared(text) if is_participle(name)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_no_name_is_a_participle(source: Path) -> None:
    names = set()
    for path in source.rglob("*.rs"):
        if not path.stem.startswith("test"):
            text = path.read_text().split("#[cfg(test)]\nmod tests")[0]
            where = path.relative_to(ROOT)
            names |= {f"{where}: {n}" for n in _participles(text) if words_of(n)[-1] not in TERMS}
            names |= {f"{where}: {path.stem}"} if is_participle(path.stem) else set()
    assert not names


def test_the_terms_are_few_and_used() -> None:
    files = [path for source in SOURCES for path in source.rglob("*.rs")]
    used = {words_of(name)[-1] for path in files for name in _participles(path.read_text())}
    assert set(TERMS) <= used
    assert len(TERMS) < 40


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("fn written() -> u64 {", "written"),
        ("pub(super) struct DividedUnit {} struct Shared;", "Shared"),
        ("mod stolen;", "stolen"),
        ("    pub used: u64,", "used"),
        ("fn add(&self, mut bytes_taken: usize) {}", "bytes_taken"),
        ("let (seen, rest) = split(text);", "seen"),
        ("let mut merged: Vec<u8> = Vec::new();", "merged"),
        ("if let Some(kept) = cache.get(key) {", "kept"),
        ("for (number, given) in all.iter().enumerate() {", "given"),
        ("all.iter().map(|asked| asked.len())", "asked"),
        ("    Some(gone) if gone > 1 => {}", "gone"),
        ("    renamed => return renamed,", "renamed"),
    ],
)
def test_a_participle_is_found(line: str, name: str) -> None:
    assert _participles(line) == {name}


@pytest.mark.parametrize(
    "line",
    [
        "let is_closed = ring.is_closed();",
        "let begun_units = units.iter().filter(|unit| unit.is_begun());",
        "let speed = feed(seed); // what is needed",
        'let text = "a: {used}";',
        "let result = rows.iter().copied().collect::<Vec<_>>();",
        "Error::NotFound { url } => Err(Failed),",
        "fn sort(rows: &mut [Row], is_sorted: bool) {}",
    ],
)
def test_other_names_stay(line: str) -> None:
    assert _participles(line) == set()
