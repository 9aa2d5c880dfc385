"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """A check of a portal.

    Attributes:
        name: what was checked.
        state: `OK`; `WARN` if the portal works, but not as well or as safely as it could; `FAIL` if
            it does not work.
        text: what was found.
        remedy: what to do; empty if nothing.
    """

    name: str
    state: State
    text: str
    remedy: str = ""
