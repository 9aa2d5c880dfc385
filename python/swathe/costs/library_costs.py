"""What it takes to read arrays by the libraries of their formats, in a confined process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from swathe.core.stored_record import stored_record

KEY = "library"
"""Where the costs of a host have these, beside those of results by format."""


@dataclass(frozen=True)
class LibraryCosts:
    """Seconds to read arrays by a library. The defaults are of a 2.5 GHz Xeon of 2019.

    Attributes:
        start_s: to start the process of a format, which imports the library.
        call_s: for each region: a process is forked, and opens the file.
        byte_s: for each byte decoded; JPEG, JPEG 2000 and RLE differ by a factor of ten.
        request_s: for each request to a server, one after another.
        gwcs_start_s: to start the process of GWCS, which imports asdf, astropy and gwcs, and loads
            their schemas.
        gwcs_s: for each time that the GWCS of a file is opened.
        gwcs_result_s: to write it into a result; asdf checks each of its nodes.
        position_s: for each position that it finds.
        bound: factor by which the time of a list differs at most in 80 of 100 cases.
    """

    start_s: float = 0.35
    call_s: float = 0.03
    byte_s: float = 40e-9
    request_s: float = 0.05
    gwcs_start_s: float = 2.4
    gwcs_s: float = 0.07
    gwcs_result_s: float = 0.15
    position_s: float = 1e-3
    bound: ClassVar[float] = 4.0

    @classmethod
    def of(cls, compute: str | None) -> LibraryCosts:
        """Return what the computing costs of a host say, as JSON; the defaults if nothing.

        Raises:
            CatalogError: If they are not values by name.
        """
        formats = {} if compute is None else json.loads(compute).get("formats", {})
        return stored_record(cls, formats.get(KEY, {}), "costs of libraries on this host")

    def seconds(self, size: float, requests: int) -> float:
        """Return the seconds of a region in a process that has started.

        Args:
            size: bytes that the library decodes.
            requests: requests to a server.
        """
        return self.call_s + size * self.byte_s + requests * self.request_s
