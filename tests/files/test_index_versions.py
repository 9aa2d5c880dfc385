"""A chunk index that another version of a reader made is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swathe import _swathe
from swathe.arrays.array_tree import READER_VERSIONS
from swathe.arrays.indexing import READERS, describe
from swathe.files import array_file
from swathe.files.array_file import tree_of

h5py = pytest.importorskip("h5py")


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Formats of the files that a reader described, one for each time."""
    formats: list[str] = []

    def describe_and_note(file: Any, file_format: str, *rest: Any) -> bytes:
        formats.append(file_format)
        return describe(file, file_format, *rest)

    monkeypatch.setattr(array_file, "describe", describe_and_note)
    return formats


def test_every_format_has_a_version() -> None:
    assert READER_VERSIONS.keys() == READERS.keys()
    assert min(READER_VERSIONS.values()) > 0, "0 is that of indexes that name none"


def test_an_index_of_another_version_is_made_anew(
    tmp_path: Path, described: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(1200).reshape(30, 40)

    def version() -> int:
        tree = tree_of(_swathe.open(str(path)))
        assert tree is not None and tree.arrays["/a"].shape == (30, 40)
        return tree.reader

    assert version() == version() == READER_VERSIONS["hdf5"]
    assert described == ["hdf5"], "the second one is from the index"
    monkeypatch.setitem(READER_VERSIONS, "hdf5", READER_VERSIONS["hdf5"] + 1)
    version()
    assert described == ["hdf5", "hdf5"]
    # The nursery of readers has the version of this program, so that it is kept again.
    monkeypatch.undo()
    assert version() == READER_VERSIONS["hdf5"]
