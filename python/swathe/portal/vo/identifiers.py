"""Publisher DIDs: the names that images of datasets have in the Virtual Observatory.

`ivo://AUTHORITY/DATASET?PATH,HDU`: the authority of the portal's settings, the name of the dataset,
the object's path in the first store of the dataset, and the number of the HDU from 0. Of the path
all but letters, digits, `/`, `-`, `.`, `_` and `~` is percent-encoded; so an identifier has none of
the characters that mean something else in a URL's query but `?`, `:`, `,`, and those may stand
there as they are. Case matters but in the scheme and the authority.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from swathe.portal.vo.errors import usage

if TYPE_CHECKING:
    from swathe.catalog import Match

FORM = re.compile(r"ivo://([^/?#]{3,100})/([A-Za-z][A-Za-z0-9_.-]*)\?([^,?#\s]+),(\d{1,9})", re.I)
NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:(?!//)([^\x00-\x20]+)")
"""A file as targets of jobs name it, `STORE:path`."""
LONGEST = 4000


@dataclass(frozen=True)
class Identifier:
    """What a DID names."""

    dataset: str
    path: str
    hdu: int


def did_of(authority: str, match: Match) -> str:
    """Give the DID of a granule."""
    granule = match.granule
    return f"ivo://{authority}/{match.dataset}?{quote(granule.path)},{granule.hdu}"


def read_did(authority: str, text: str) -> Identifier:
    """Read a DID.

    Raises:
        VoError: where it is none, or one of another authority.
    """
    found = FORM.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None and (named := NAMED.fullmatch(text.strip()[:LONGEST])):
        raise usage(
            f"ID: expected ivo://{authority}/DATASET?PATH,HDU, found {text[:200]!r}; of that file "
            f"write ivo://{authority}/DATASET?{quote(named[1])[:200]},0 with the name of its "
            "dataset (query tells it as obs_publisher_did) and the number of the HDU",
            404,
        )
    if found is None:
        raise usage(f"ID: expected ivo://{authority}/DATASET?PATH,HDU, found {text[:200]!r}", 404)
    if found[1].lower() != authority.lower():
        raise usage(f"ID: {text[:200]!r} is not of {authority}", 404)
    path = unquote(found[3])
    if "\x00" in path:
        raise usage("ID: a path holds no NUL", 404)
    return Identifier(found[2], path, int(found[4]))
