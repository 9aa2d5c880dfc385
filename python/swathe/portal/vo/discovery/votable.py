"""VOTables as text, as far as services need them.

Service descriptors need array parameters without a value, and bounds of these. Astropy cannot write
them.
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
    """A column, or a parameter of a service. Texts may have any length.

    Attributes:
        name: Name, which is also its XML ID.
        kind: `char`, `int`, `long`, `double` or `boolean`.
        size: Number of values, as "3" or "*"; None for one.
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
        """XML attributes of the field, without an ID."""
        values = {
            "name": self.name,
            "datatype": self.kind,
            "arraysize": "*" if self.kind == "char" else self.size,
            "unit": self.unit,
            "ucd": self.ucd,
            "utype": self.utype,
            "xtype": self.xtype,
        }
        return _attributes(values)


def document(*parts: str) -> bytes:
    """Return a VOTable document with these resources."""
    return (HEAD + "".join(parts) + "</VOTABLE>\n").encode("ascii", "xmlcharrefreplace")


def results(*parts: str) -> str:
    """Return the resource with the results of a query."""
    return f'<RESOURCE type="results">\n{"".join(parts)}</RESOURCE>\n'


def info(name: str, value: str, text: str = "") -> str:
    """Return an INFO element."""
    return f"<INFO{_attributes({'name': name, 'value': value})}>{plain(text)}</INFO>\n"


def table(fields: Sequence[Field], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table, with empty cells for `None` and NaN."""
    parts = [table_start(fields, [field.name for field in fields])]
    parts += map(table_row, rows)
    parts.append(TABLE_END)
    return "".join(parts)


def table_start(fields: Sequence[Field], identifiers: Sequence[str | None]) -> str:
    """Return a table up to its first row; each field may have an XML ID."""
    parts = ["<TABLE>\n"]
    for field, name in zip(fields, identifiers, strict=True):
        identifier = _attributes({"ID": name})
        about = f"<DESCRIPTION>{plain(field.about)}</DESCRIPTION>" if field.about else ""
        parts.append(f"<FIELD{identifier}{field.attributes}>{about}</FIELD>\n")
    parts.append("<DATA><TABLEDATA>\n")
    return "".join(parts)


def table_row(row: Sequence[Any]) -> str:
    """Return a row of a table. A cell that is a tuple is an array."""
    return f"<TR>{''.join(f'<TD>{_cell(value)}</TD>' for value in row)}</TR>\n"


TABLE_END = "</TABLEDATA></DATA>\n</TABLE>\n"


def param(
    field: Field,
    value: str = "",
    *,
    ref: str | None = None,
    least: str | None = None,
    most: str | None = None,
    options: Sequence[str] = (),
) -> str:
    """Return a parameter; `ref` is the column of its values."""
    attributes = f"{field.attributes}{_attributes({'value': value, 'ref': ref})}"
    about = f"<DESCRIPTION>{plain(field.about)}</DESCRIPTION>" if field.about else ""
    bounds = "".join(
        f"<{word}{_attributes({'value': bound})}/>"
        for word, bound in (("MIN", least), ("MAX", most))
        if bound is not None
    )
    bounds += "".join(f"<OPTION{_attributes({'value': option})}/>" for option in options)
    values = f"<VALUES>{bounds}</VALUES>" if bounds else ""
    return f"<PARAM{attributes}>{about}{values}</PARAM>\n"


def service(
    identifier: str, url: str, standard: str, inputs: Iterable[str], about: str, *more: str
) -> str:
    """Return the descriptor of a service with these parameters (DataLink 1.1, section 4)."""
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
    """Return text escaped for XML, with `?` for characters other than printable ASCII."""
    return escape(NO_XML.sub("?", text))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, tuple):
        return " ".join(map(_cell, value))
    return plain(value) if isinstance(value, str) else repr(value)


def _attributes(values: dict[str, str | None]) -> str:
    return "".join(
        f" {name}={quoteattr(NO_XML.sub('?', value))}"
        for name, value in values.items()
        if value is not None
    )
