"""Conditions in the text form of CQL2, as its JSON form (OGC 21-065).

What `condition_of` understands is parsed: comparisons, LIKE, BETWEEN, IN and IS NULL of properties
with literals, joined by AND, OR and NOT.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from swathe.catalog.datasets.conditions import DEEPEST
from swathe.core.errors import DatasetError
from swathe.core.value_errors import short_text

_TOKEN = re.compile(
    r"""(?P<number>[+-]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+)
    |'(?P<text>(?:[^']|'')*+)'
    |"(?P<quoted>[^"]*+)"
    |(?P<word>[A-Za-z_:][A-Za-z0-9_:.]*+)
    |(?P<sign><>|<=|>=|[=<>(),])""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s*+")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
KEYWORDS = frozenset(
    {
        "AND",
        "BETWEEN",
        "DATE",
        "FALSE",
        "IN",
        "IS",
        "LIKE",
        "NOT",
        "NULL",
        "OR",
        "TIMESTAMP",
        "TRUE",
    }
)


class _Token(NamedTuple):
    kind: str
    text: str


def parse_cql2_text(text: str) -> dict[str, Any]:
    """Return a condition as the JSON form of CQL2; in linear time.

    Raises:
        DatasetError: If it is not such a condition, or has more than `DEEPEST` levels.
    """
    parser = _Parser(_tokens(text))
    condition = parser.condition(1)
    if parser.kind() != "end":
        raise parser.wrong("the end")
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while True:
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
        if at == len(text):
            return [*tokens, _Token("end", "")]
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _wrong("a property, a literal or an operator", text[at:])
        kind, value = match.lastgroup, match[match.lastgroup]
        if kind == "word" and value.upper() in KEYWORDS:
            kind, value = "keyword", value.upper()
        tokens.append(_Token(kind, value))
        at = match.end()


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def kind(self) -> str:
        """Return the kind of the next token."""
        return self._tokens[self._at].kind

    def wrong(self, form: str) -> DatasetError:
        """Return the error that something else was expected here."""
        return _wrong(form, self._tokens[self._at].text or "the end")

    def _take(self, *tokens: str) -> str | None:
        """Take the next token if it is one of these keywords and signs."""
        kind, text = self._tokens[self._at]
        if kind not in ("keyword", "sign") or text not in tokens:
            return None
        self._at += 1
        return text

    def _need(self, token: str) -> None:
        if self._take(token) is None:
            raise self.wrong(repr(token))

    def condition(self, depth: int) -> dict[str, Any]:
        """Parse conditions joined by OR."""
        if depth > DEEPEST:
            raise _wrong(f"at most {DEEPEST} levels", "more")
        parts = [self._conjunction(depth)]
        while self._take("OR"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else {"op": "or", "args": parts}

    def _conjunction(self, depth: int) -> dict[str, Any]:
        parts = [self._negation(depth)]
        while self._take("AND"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else {"op": "and", "args": parts}

    def _negation(self, depth: int) -> dict[str, Any]:
        if depth > DEEPEST:
            raise _wrong(f"at most {DEEPEST} levels", "more")
        if self._take("NOT"):
            return {"op": "not", "args": [self._negation(depth + 1)]}
        if self._take("("):
            condition = self.condition(depth + 1)
            self._need(")")
            return condition
        return self._predicate()

    def _predicate(self) -> dict[str, Any]:
        operand = self._operand()
        if (sign := self._take(*COMPARISONS)) is not None:
            return {"op": sign, "args": [operand, self._operand()]}
        if self._take("IS"):
            is_not = self._take("NOT")
            self._need("NULL")
            return _with_not(is_not, {"op": "isNull", "args": [operand]})
        is_not = self._take("NOT")
        match self._take("LIKE", "BETWEEN", "IN"):
            case "LIKE":
                condition = {"op": "like", "args": [operand, self._operand()]}
            case "BETWEEN":
                low = self._operand()
                self._need("AND")
                condition = {"op": "between", "args": [operand, low, self._operand()]}
            case "IN":
                self._need("(")
                values = [self._operand()]
                while self._take(","):
                    values.append(self._operand())
                self._need(")")
                condition = {"op": "in", "args": [operand, values]}
            case _:
                raise self.wrong("a comparison, LIKE, BETWEEN, IN or IS NULL")
        return _with_not(is_not, condition)

    def _operand(self) -> Any:
        kind, text = self._tokens[self._at]
        self._at += kind != "end"
        match kind, text:
            case (("word" | "quoted"), _):
                return {"property": text}
            case "text", _:
                return text.replace("''", "'")
            case "number", _:
                return float(text) if set(text) & set(".eE") or len(text) > 18 else int(text)
            case "keyword", ("TRUE" | "FALSE"):
                return text == "TRUE"
            case "keyword", ("TIMESTAMP" | "DATE"):
                self._need("(")
                moment = self._operand()
                self._need(")")
                return {text.lower(): moment}
        self._at -= kind != "end"
        raise self.wrong("a property or a literal")


def _with_not(is_not: str | None, condition: dict[str, Any]) -> dict[str, Any]:
    return condition if is_not is None else {"op": "not", "args": [condition]}


def _wrong(form: str, value: Any) -> DatasetError:
    return DatasetError(f"filter: expected {form}, found {short_text(value)}")
