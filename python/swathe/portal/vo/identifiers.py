"""Publisher DIDs: the identifiers of images in the Virtual Observatory.

`ivo://AUTHORITY/DATASET?PATH,HDU`: the authority from the portal's settings, the name of the
dataset, the object's path in the first store of the dataset, and the number of the HDU from 0. All
characters of the path other than letters, digits, `/`, `-`, `.`, `_` and `~` are percent-encoded.
So an identifier needs no further encoding in a URL's query: `?`, `:` and `,` are allowed there.
Case matters, except in the scheme and the authority.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from swathe.portal.vo.errors import usage

if TYPE_CHECKING:
    from swathe.catalog.records.datasets import Granule

FORM = re.compile(r"ivo://([^/?#]{3,100})/([A-Za-z][A-Za-z0-9_.-]*)\?([^,?#\s]+),(\d{1,9})", re.I)
NAME_AND_PATH = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:(?!//)([^\x00-\x20]+)")
"""A file in the form of job targets, `STORE:path`."""
LONGEST = 4000


@dataclass(frozen=True)
class Identifier:
    """The image that a DID names."""

    dataset: str
    path: str
    hdu: int


def did_of(authority: str, dataset: str, granule: Granule) -> str:
    """Return the DID of a granule of a dataset."""
    return f"ivo://{authority}/{dataset}?{quote(granule.path)},{granule.hdu}"


def read_did(authority: str, text: str) -> Identifier:
    """Parse a DID.

    Raises:
        VoError: If the text is not a DID, or has another authority.
    """
    match = FORM.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None and (file_name := NAME_AND_PATH.fullmatch(text.strip()[:LONGEST])):
        raise usage(
            f"ID: expected ivo://{authority}/DATASET?PATH,HDU, found {text[:200]!r}; for that file "
            f"write ivo://{authority}/DATASET?{quote(file_name[1])[:200]},0 with the name of its "
            "dataset (in obs_publisher_did of a query) and the number of the HDU",
            404,
        )
    if match is None:
        raise usage(f"ID: expected ivo://{authority}/DATASET?PATH,HDU, found {text[:200]!r}", 404)
    if match[1].lower() != authority.lower():
        raise usage(f"ID: expected the authority {authority}, found {text[:200]!r}", 404)
    path = unquote(match[3])
    if "\x00" in path:
        raise usage("ID: expected a path without NUL, found one", 404)
    return Identifier(match[2], path, int(match[4]))
