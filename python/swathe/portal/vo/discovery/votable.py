"""VOTables as text, as far as services need them.

Astropy can write no parameter without a value that is an array, and no bounds of such: and these
are what descriptions of services are made of.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MEDIA_TYPE = "application/x-votable+xml"
HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">
"""
NO_XML = re.compile(r"[^\t\n\r\x20-\x7e]")


@dataclass(frozen=True)
class Field:
    """A column, or a parameter of a service; texts are of any length.

    Attributes:
        name: it is also its XML ID.
        kind: `char`, `int`, `long`, `double` or `boolean`.
        size: how many numbers, as "3" or "*"; none for one.
    """

    name: str
    kind: str = "char"
    size: str | None = None
    unit: str | None = None
    ucd: str | None = None
    utype: str | None = None
    xtype: str | None = None
    about: str | None = None

    @property
    def attributes(self) -> str:
        """As attributes of XML, without an ID."""
        given = {
            "name": self.name,
            "datatype": self.kind,
            "arraysize": "*" if self.kind == "char" else self.size,
            "unit": self.unit,
            "ucd": self.ucd,
            "utype": self.utype,
            "xtype": self.xtype,
        }
        return _attributes(given)


def document(*parts: str) -> bytes:
    """Give a document of these resources."""
    return (HEAD + "".join(parts) + "</VOTABLE>\n").encode("ascii", "xmlcharrefreplace")


def results(*parts: str) -> str:
    """Give the resource that the answer to a query is."""
    return f'<RESOURCE type="results">\n{"".join(parts)}</RESOURCE>\n'


def info(name: str, value: str, text: str = "") -> str:
    """Give a note."""
    return f"<INFO{_attributes({'name': name, 'value': value})}>{plain(text)}</INFO>\n"


def table(fields: Sequence[Field], rows: Iterable[Sequence[Any]]) -> str:
    """Give a table; `None` and NaN are empty."""
    parts = ["<TABLE>\n"]
    for field in fields:
        identifier = _attributes({"ID": field.name})
        about = f"<DESCRIPTION>{plain(field.about)}</DESCRIPTION>" if field.about else ""
        parts.append(f"<FIELD{identifier}{field.attributes}>{about}</FIELD>\n")
    parts.append("<DATA><TABLEDATA>\n")
    for row in rows:
        parts.append(f"<TR>{''.join(f'<TD>{_cell(value)}</TD>' for value in row)}</TR>\n")
    parts.append("</TABLEDATA></DATA>\n</TABLE>\n")
    return "".join(parts)


def param(
    field: Field,
    value: str = "",
    *,
    ref: str | None = None,
    least: str | None = None,
    most: str | None = None,
    options: Sequence[str] = (),
) -> str:
    """Give a parameter: `ref` is the column that its values come from."""
    given = f"{field.attributes}{_attributes({'value': value, 'ref': ref})}"
    about = f"<DESCRIPTION>{plain(field.about)}</DESCRIPTION>" if field.about else ""
    bounds = "".join(
        f"<{word}{_attributes({'value': bound})}/>"
        for word, bound in (("MIN", least), ("MAX", most))
        if bound is not None
    )
    bounds += "".join(f"<OPTION{_attributes({'value': option})}/>" for option in options)
    values = f"<VALUES>{bounds}</VALUES>" if bounds else ""
    return f"<PARAM{given}>{about}{values}</PARAM>\n"


def service(
    identifier: str, url: str, standard: str, inputs: Iterable[str], about: str, *more: str
) -> str:
    """Give the description of a service that takes these parameters (DataLink 1.1, section 4)."""
    return (
        f'<RESOURCE type="meta" utype="adhoc:service"{_attributes({"ID": identifier})}>\n'
        f"<DESCRIPTION>{plain(about)}</DESCRIPTION>\n"
        f'<GROUP name="inputParams">\n{"".join(inputs)}</GROUP>\n'
        + param(Field("accessURL"), url)
        + param(Field("standardID"), standard)
        + "".join(more)
        + "</RESOURCE>\n"
    )


def plain(text: str) -> str:
    """Give text for XML; what is not plain is marked."""
    return escape(NO_XML.sub("?", text))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "T" if value else "F"
    return plain(value) if isinstance(value, str) else repr(value)


def _attributes(given: dict[str, str | None]) -> str:
    return "".join(
        f" {name}={quoteattr(NO_XML.sub('?', value))}"
        for name, value in given.items()
        if value is not None
    )
