"""What a host takes for a dump of a run, beside what the store takes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from swathe.core.stored_record import stored_record

KEY = "run"
"""Where the computing costs of a host have these."""


@dataclass(frozen=True)
class RunCosts:
    """Seconds of a host for the dumps of runs. The defaults are of a 2.5 GHz Xeon of 2019.

    Attributes:
        commit_s: to enter a dump in the catalogue.
        step_s: for each rank, to wait for the others once.
        copy_byte_s: to copy a byte of an array, in parts of a few hundred bytes or more.
        scatter_s: to copy an element by itself, as those of a cyclic pattern are.
        spool_byte_s: to give a byte of an object to the threads of the engine.
    """

    commit_s: float = 1.2e-3
    step_s: float = 0.15e-3
    copy_byte_s: float = 0.3e-9
    scatter_s: float = 4e-9
    spool_byte_s: float = 0.3e-9

    @classmethod
    def of(cls, compute: str | None) -> RunCosts:
        """Return what the computing costs of a host say, as JSON; the defaults if nothing.

        Raises:
            CatalogError: If they are not values by name.
        """
        record = {} if compute is None else json.loads(compute).get(KEY, {})
        return stored_record(cls, record, "costs of runs on this host")
