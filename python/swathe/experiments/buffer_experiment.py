"""The read-buffer study of `swathe buffer` as an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.errors import SettingsError
from swathe.core.format import size_text
from swathe.costs.probing.read_buffer import study_buffer
from swathe.costs.probing.resolve_target import find_place
from swathe.experiments.results.environment_record import circumstances
from swathe.experiments.results.result import Study
from swathe.experiments.settings import BufferSettings, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def buffer(
    settings: BufferSettings, scratch: Path | None = None, tell: Callable[[str], None] | None = None
) -> Study:
    """Run the study on each store.

    Raises:
        SettingsError: If no store is named.
        SwatheError: If a store cannot be read.
    """
    del scratch  # nothing is written
    from astropy.table import Table, vstack

    from swathe.experiments.results import figures

    if not settings.stores:
        raise SettingsError("buffer.stores: expected stores to read, found none")
    conditions = circumstances(settings.stores)
    tables, samples, studies, sentences = [], [], [], []
    for store in settings.stores:
        study = study_buffer(
            find_place(store),
            repeats=settings.repeats,
            max_time_s=settings.budget_s,
            max_bytes=round(settings.budget_mb * 1e6),
            seed=settings.seed,
            tell=tell,
        )
        name = _swathe.redact_url(store)
        table = study.table()
        table.meta.clear()
        table.add_column([name] * len(table), index=0, name="store")
        tables.append(table)
        studies.append(study)
        samples += _samples(name, study)
        sentences.append(
            f"{name}: best with {size_text(study.best)}; {size_text(study.low)} to "
            f"{size_text(study.high)} are within 5 % or the noise; chosen "
            f"{size_text(study.choice)} ({study.cache})."
        )
    all_rows: Table = vstack(tables)
    title = "The best size of a read buffer"
    drawings = figures.buffers(studies)
    return Study(
        "buffer", title, plain(settings), conditions, all_rows, samples, drawings, sentences
    )


def _samples(name: str, study: Any) -> list[tuple[str, int, float, str, str]]:
    return [
        (f"{name} {size_text(size)}", turn, float(seconds), "s", "lower")
        for turn, row in enumerate(study.seconds)
        for size, seconds in zip(study.sizes.tolist(), row, strict=True)
        if np.isfinite(seconds)
    ]
