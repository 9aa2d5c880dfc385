"""A chunk index that another version of a reader made is made anew."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swathe import _swathe
from swathe.arrays.array_tree import READER_VERSIONS, ArrayTree
from swathe.arrays.indexing import READERS, describe
from swathe.core.errors import FormatError
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda head: head.pop("library"),
        lambda head: head["arrays"][0].pop("shape"),
        lambda head: head["arrays"][0].update(dtype="no type"),
        lambda head: head["arrays"][0].update(dims=None),
    ],
)
def test_a_damaged_index_is_made_anew(
    tmp_path: Path, described: list[str], damage: Callable[[Any], Any]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(12).reshape(3, 4)
    native = _swathe.open(str(path))
    good = tree_of(native)
    head = json.loads(native.chunk_index() or b"")
    damage(head)

    class Damaged:
        """A file whose index is damaged until a reader describes the file."""

        is_new = False

        def chunk_index(self) -> bytes | None:
            return native.chunk_index() if self.is_new else json.dumps(head).encode()

        def set_chunk_index(self, index: bytes) -> None:
            self.is_new = True

        def __getattr__(self, name: str) -> Any:
            return getattr(native, name)

    damaged: Any = Damaged()
    tree = tree_of(damaged)
    assert good is not None and tree is not None and tree.arrays == good.arrays
    assert described == ["hdf5", "hdf5"]


def test_damaged_attributes_of_an_index_are_an_error() -> None:
    array = {
        "name": "/a", "dtype": "<i2", "shape": [2], "dims": [], "storage": {"kind": "inline"},
        "attributes": {"units": {"dtype": "<f8", "data": "AAAA", "shape": [1]}}, "fill": "!",
    }  # fmt: skip
    head = {"format": "hdf5", "library": "", "groups": {"/": {"title": 3}}, "arrays": [array]}
    tree = ArrayTree(json.dumps(head).encode())
    read: list[Callable[[], Any]] = [
        lambda: tree.arrays["/a"].attributes,
        lambda: tree.arrays["/a"].fill,
        lambda: tree.arrays["/a"].data,
        lambda: tree.groups,
    ]
    for each in read:
        with pytest.raises(FormatError, match="found a damaged one"):
            each()


def test_a_refusal_for_lack_of_a_package_ends_when_it_is_installed(
    tmp_path: Path, described: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pydicom_data = pytest.importorskip("pydicom.data")
    if find_spec("gdcm") or find_spec("pylibjpeg"):
        pytest.skip("a decoder of JPEG-LS is installed")
    source = pydicom_data.get_testdata_file("MR_small_jpeg_ls_lossless.dcm", download=False)
    assert source is not None
    path = tmp_path / "a.dcm"
    path.write_bytes(Path(source).read_bytes())

    def is_refused() -> bool:
        tree = tree_of(_swathe.open(str(path)))
        assert tree is not None and "gdcm" in tree.missing
        return bool(tree.arrays["/PixelData"].storage["kind"] == "refused")

    assert is_refused() and is_refused()
    assert described == ["dicom"], "the second one is from the index"
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "gdcm.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "packages")
    is_refused()
    assert described == ["dicom", "dicom"]


def test_a_tiff_that_needs_imagecodecs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile = pytest.importorskip("tifffile")
    from swathe.arrays.readers import tiff

    monkeypatch.setattr(tiff, "find_spec", lambda name: None)
    monkeypatch.setattr(tifffile.TIFF, "DECOMPRESSORS", {1: None})
    content = io.BytesIO()
    tifffile.imwrite(content, np.zeros((8, 8), "u1"), compression="lzma")
    index = tiff.describe(content)
    tree = ArrayTree(index[16 : 16 + int.from_bytes(index[8:16], "little")])
    assert tree.arrays["/0"].storage["kind"] == "refused"
    assert tree.missing == ["imagecodecs"]
    assert tree.is_current is (find_spec("imagecodecs") is None)
