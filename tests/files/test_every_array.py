"""Every array of the real files: read by us, by its library, or refused, and equal to the bit."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import swathe
from swathe.files.array_file import ArrayFile
from tests.arrays import test_dicom
from tests.conftest import DATA

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "formats-table.md"
LARGEST = 80_000_000
OF_DATA = sorted(path for folder in ("formats", "swath") for path in (DATA / folder).glob("*"))
FILES = [*OF_DATA, *(test_dicom.real(name) for name in sorted(test_dicom.REAL))]
"""Files of `$SWATHE_TEST_DATA`, and of DICOM those that come with pydicom."""
pytestmark = pytest.mark.skipif(not OF_DATA, reason=f"no data in {DATA}")


@contextmanager
def of_hdf5(path: Path) -> Iterator[Callable[[str], Any]]:
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("hdf5plugin")
    with h5py.File(path) as file:
        yield lambda name: file[name][()]


@contextmanager
def of_netcdf3(path: Path) -> Iterator[Callable[[str], Any]]:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        yield lambda name: file[name][...]


@contextmanager
def of_hdf4(path: Path) -> Iterator[Callable[[str], Any]]:
    sd = pytest.importorskip("pyhdf.SD")
    if path.suffix == ".gz":
        pytest.skip("pyhdf reads no compressed files")
    file = sd.SD(str(path), sd.SDC.READ)
    yield lambda name: file.select(name.rsplit("/", 1)[-1]).get()
    file.end()


@contextmanager
def of_tiff(path: Path) -> Iterator[Callable[[str], Any]]:
    tifffile = pytest.importorskip("tifffile")
    with tifffile.TiffFile(path) as file:
        yield lambda name: file.pages[int(name[1:])].asarray()


@contextmanager
def of_asdf(path: Path) -> Iterator[Callable[[str], Any]]:
    asdf = pytest.importorskip("asdf")
    with asdf.open(path, _force_raw_types=True) as file:
        yield lambda name: _in_tree(file, name)


def _in_tree(file: Any, name: str) -> Any:
    """Return an array of a tree whose objects stay plain, from its block."""
    raw = file.tree
    for key in name.strip("/").split("/"):
        raw = raw[int(key) if isinstance(raw, list) else key]
    if isinstance(raw, list):
        return np.asarray(raw)
    order = "<" if raw["byteorder"] == "little" else ">"
    dtype = np.dtype(raw["datatype"]).newbyteorder(order)
    block = file._blocks.blocks[raw["source"]].data
    return np.frombuffer(block, dtype).reshape(raw["shape"])


@contextmanager
def of_dicom(path: Path) -> Iterator[Callable[[str], Any]]:
    pixels = test_dicom.pixels_of_pydicom(path.read_bytes())
    yield {"/PixelData": pixels}.__getitem__


READERS = {
    "hdf5": of_hdf5, "netcdf3": of_netcdf3, "hdf4": of_hdf4, "tiff": of_tiff, "asdf": of_asdf,
    "dicom": of_dicom,
}  # fmt: skip


def arrays_in(path: Path) -> ArrayFile:
    """Open a file of arrays."""
    file = swathe.open(path)
    assert isinstance(file, ArrayFile)
    return file


def way_of(array: Any) -> str:
    """Return who reads an array."""
    if array.is_refused:
        return "refused"
    return "library" if array.problem else "native"


def rows() -> list[str]:
    """Return the lines of the table: file, format, and the number of arrays read in each way."""
    lines, total = [], Counter[str]()
    for path in FILES:
        file = arrays_in(path)
        counts = Counter(way_of(array) for array in file.arrays)
        total += counts
        why = sorted({array.problem for array in file.arrays if array.problem})
        cells = [str(counts[way]) for way in ("native", "library", "refused")]
        name = path.relative_to(DATA) if path in OF_DATA else f"pydicom/{path.name}"
        lines.append(f"| {name} | {file.format} | {' | '.join(cells)} | {'; '.join(why)} |")
    cells = [str(total[way]) for way in ("native", "library", "refused")]
    lines.append(f"| **all** | | {' | '.join(cells)} | |")
    assert total["native"] >= 0.9 * total.total()
    return lines


def page() -> str:
    """Return the page with the table."""
    return "\n".join(
        [
            "# Every array of the test files",
            "",
            "Who reads the arrays of `formats` and `swath` in `$SWATHE_TEST_DATA`, and of files of",
            "pydicom: Swathe from its chunk index, the library of the format in a confined",
            "process, or nobody.",
            "`python -m tests.files.test_every_array` writes this page; a test compares it.",
            "",
            "| file | format | native | library | refused | why |",
            "|---|---|---|---|---|---|",
            *rows(),
            "",
        ]
    )


def test_the_table_of_all_arrays_is_true() -> None:
    assert TABLE.read_text() == page()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_array_equals_what_its_library_reads(path: Path) -> None:
    file = arrays_in(path)
    with READERS[file.format](path) as read:
        compared = compare_all(file, read)
    assert compared or path.name == "corrupt.tif", f"nothing of {path}"


def compare_all(file: ArrayFile, read: Callable[[str], Any]) -> int:
    """Compare all arrays that both read; return their number."""
    compared = 0
    for array in file.arrays:
        if array.is_refused or array.size * array.dtype.itemsize > LARGEST:
            continue
        try:
            expected = read(array.path)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, LookupError):
            continue  # the library lists it by another name
        except Exception as error:  # of pyhdf, whose errors are of its own
            if "HDF4Error" not in type(error).__name__:
                raise
            continue
        assert_same(array.data, expected)
        compared += 1
    return compared


def assert_same(found: NDArray[Any], expected: Any) -> None:
    """Compare bits: NaN equals NaN, and texts equal texts."""
    expected = np.asarray(expected)
    if expected.dtype.hasobject or found.dtype.hasobject:
        assert [str(each) for each in found.ravel()] == [str(each) for each in expected.ravel()]
        return
    assert found.shape == expected.shape
    assert found.astype(found.dtype.newbyteorder("=")).tobytes() == (
        expected.astype(found.dtype.newbyteorder("=")).tobytes()
    )


@pytest.mark.parametrize("package", ["iris_sample_data", "esmvaltool_sample_data"])
def test_netcdf_of_sample_packages_equals_its_library(package: str) -> None:
    """The packages take 100 MB, and are not in the extra `dev`."""
    spec = find_spec(package)  # to import one needs iris
    if spec is None or spec.origin is None:
        pytest.skip(f"no {package}: pip install {package}")
    paths = sorted(Path(spec.origin).parent.rglob("*.nc"))
    assert paths
    for path in paths[:: max(1, len(paths) // 20)]:
        file = arrays_in(path)
        with READERS[file.format](path) as read:
            assert compare_all(file, read), f"nothing of {path}"


def test_a_compressed_file_of_arrays_is_read_as_it_is(tmp_path: Path) -> None:
    source = DATA / "formats" / "air.nc"
    packed = tmp_path / "air.nc.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    file = swathe.open(packed)
    assert file.compression == "gzip"
    assert_same(file["/air"][5:9], swathe.open(source)["/air"][5:9])


if __name__ == "__main__":
    TABLE.write_text(page())
