"""The files of a run, as functions take them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

Run = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file of events, or several."""


def run_files(run: Run) -> list[Path]:
    """Return the files of a run."""
    return [Path(each) for each in ([run] if isinstance(run, str | os.PathLike) else run)]
