"""Result of an experiment, and its files in a folder.

`results.ecsv` has a row for each case, and in its `meta` all settings and circumstances.
`samples.ecsv` has the single values by which cases are compared: case, round, value, unit, and
whether a lower or a higher one is better.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.errors import SettingsError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from astropy.table import Table
    from matplotlib.figure import Figure

RESULTS, SAMPLES, REPORT = "results.ecsv", "samples.ecsv", "report.html"
SAMPLE_COLUMNS = ("case", "round", "value", "unit", "better")


@dataclass
class Study:
    """Result of an experiment.

    Attributes:
        kind: `single`, `region`, ...
        title: title of the report.
        settings: all settings, as in a file.
        circumstances: see `circumstances` in `environment_record`.
        table: a row for each case; columns have units.
        samples: rows of SAMPLE_COLUMNS.
        figures: figures by file name.
        sentences: findings in words, made from the numbers.
        notes: cases that were left out, and why.
        more: further tables by title.
    """

    kind: str
    title: str
    settings: dict[str, Any]
    circumstances: dict[str, Any]
    table: Table
    samples: list[tuple[str, int, float, str, str]]
    figures: dict[str, Figure] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    more: dict[str, Table] = field(default_factory=dict)

    @property
    def meta(self) -> dict[str, Any]:
        """Metadata of `results.ecsv`."""
        return {
            "experiment": self.kind,
            "settings": self.settings,
            "circumstances": self.circumstances,
            "sentences": self.sentences,
            "notes": self.notes,
        }


def samples_table(rows: Iterable[tuple[Any, ...]]) -> Table:
    """Return samples as a table."""
    from astropy.table import Table

    kinds = (str, int, float, str, str)
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    descriptions = zip(SAMPLE_COLUMNS, columns, kinds, strict=True)
    import numpy as np

    return Table({name: np.array(values, dtype=kind) for name, values, kind in descriptions})


def read_result(folder: str | os.PathLike[str]) -> tuple[Table, Table]:
    """Read the results and the samples of a folder.

    Raises:
        SettingsError: If it has no results of an experiment.
    """
    from astropy.table import Table

    path = Path(folder)
    tables = []
    for name in (RESULTS, SAMPLES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tables.append(Table.read(path / name, format="ascii.ecsv"))
        except OSError as error:
            raise SettingsError(f"{path / name}: cannot be read: {error.strerror}") from error
        except Exception as error:  # astropy's reader raises many types
            raise SettingsError(f"{path / name}: expected a table of results: {error}") from error
    results, samples = tables
    if "experiment" not in results.meta:
        raise SettingsError(f"{path / RESULTS}: expected results of an experiment")
    if missing := set(SAMPLE_COLUMNS) - set(samples.colnames):
        raise SettingsError(f"{path / SAMPLES}: expected a column {min(missing)!r}, found none")
    return results, samples
