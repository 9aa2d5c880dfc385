"""Empty catalogues in files: copies of one, since to create the tables takes longer than a test."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from swathe.catalog import Catalog


@cache
def empty_catalog() -> Path:
    """Create the catalogue that the others are copies of; once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="swathe-test-empty-catalog-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "catalog.sqlite"
    Catalog.open(f"sqlite:///{path}").close()
    return path


def new_catalog(path: Path) -> str:
    """Put an empty catalogue at a path where nothing is; return its URL."""
    assert not path.exists()
    shutil.copyfile(empty_catalog(), path)
    return f"sqlite:///{path}"
