"""Identifiers of objects: the path in the dataset, such that it fits into a URL.

Letters, digits, `_`, `.` and `-` stand for themselves, other bytes of UTF-8 are `~` and two digits
of base 16: `2005/day one.hdf` is `2005~2Fday~20one.hdf`.
"""

from __future__ import annotations

import re

from swathe.core.errors import DatasetError
from swathe.core.value_errors import short_text

_OTHER = re.compile(rb"[^A-Za-z0-9_.-]")
_CODE = re.compile(rb"~([0-9A-F]{2})")
_FORM = re.compile(r"(?:[A-Za-z0-9_.-]|~[0-9A-F]{2}){1,3000}")


def id_of(path: str) -> str:
    """Return the identifier of an object in its collection."""
    return _OTHER.sub(lambda code: b"~%02X" % code[0][0], path.encode()).decode()


def path_of(identifier: str) -> str:
    """Return the path of an object.

    Raises:
        DatasetError: If the text is not an identifier.
    """
    if _FORM.fullmatch(identifier) is not None:
        path = _CODE.sub(lambda code: bytes([int(code[1], 16)]), identifier.encode())
        if b"\0" not in path:
            try:
                return path.decode()
            except UnicodeDecodeError:
                identifier = f"{identifier} (not UTF-8)"
    raise DatasetError(f"expected the id of an object, found {short_text(identifier)}")
