"""The parameters of a query: LANG, QUERY, MAXREC, RESPONSEFORMAT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.portal.vo.discovery.votable import MEDIA_TYPE
from swathe.portal.vo.errors import usage
from swathe.portal.vo.parameters import quote_value

if TYPE_CHECKING:
    from swathe.portal.vo.parameters import RequestParameters

LANGUAGES = ("ADQL", "ADQL-2.0", "ADQL-2.1")
DEFAULT_ROWS = 20_000
MOST_ROWS = 200_000
"""Largest number of rows of an answer."""
CSV = "text/csv;header=present"
FORMATS = {
    MEDIA_TYPE: MEDIA_TYPE,
    "votable": MEDIA_TYPE,
    "votable/td": MEDIA_TYPE,
    "text/xml": MEDIA_TYPE,
    "application/x-votable+xml;serialization=tabledata": MEDIA_TYPE,
    "csv": CSV,
    "text/csv": CSV,
    CSV: CSV,
}
"""Media types of answers, by the values of RESPONSEFORMAT."""


@dataclass(frozen=True)
class QueryRequest:
    """A query: its text, the largest number of rows, and the media type of the answer."""

    text: str
    most: int
    media_type: str

    @classmethod
    def read(cls, parameters: RequestParameters) -> QueryRequest:
        """Read the parameters of a request.

        Raises:
            VoError: If one is missing or invalid.
        """
        task = parameters.one("REQUEST")
        if task is not None and task.strip().lower() != "doquery":
            raise usage(f"REQUEST: expected doQuery, found {quote_value(task)}")
        language = parameters.one("LANG")
        if language is None or language.strip().upper() not in LANGUAGES:
            value = "none" if language is None else quote_value(language)
            raise usage(f"LANG: expected one of {', '.join(LANGUAGES)}, found {value}")
        text = parameters.one("QUERY")
        if text is None:
            raise usage("QUERY: expected a query in ADQL, found none")
        return cls.of(text, parameters)

    @classmethod
    def of(cls, text: str, parameters: RequestParameters) -> QueryRequest:
        """Return a query, with the parameters of a request for its answer.

        Raises:
            VoError: If one is invalid.
        """
        return cls(text, _most(parameters), _media_type(parameters))


def _most(parameters: RequestParameters) -> int:
    text = parameters.one("MAXREC")
    if text is None:
        return DEFAULT_ROWS
    digits = text.strip()
    if not digits.isascii() or not digits.isdecimal():
        raise usage(f"MAXREC: expected a number of rows, found {quote_value(text)}")
    return min(int(digits[:20]), MOST_ROWS)


def _media_type(parameters: RequestParameters) -> str:
    text = parameters.one("RESPONSEFORMAT") or parameters.one("FORMAT")
    if text is None:
        return MEDIA_TYPE
    name = "".join(text.split()).lower()
    if name not in FORMATS:
        raise usage(
            f"RESPONSEFORMAT: expected one of {', '.join(FORMATS)}, found {quote_value(text)}"
        )
    return FORMATS[name]
