"""All readers: damaged files end in our errors, within the limits of a confined process."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swathe.arrays.readers import limits
from swathe.core.confined import ConfinedProcess, ProcessLimits
from swathe.core.errors import FormatError, LimitError, OptionError, SwatheError
from tests.arrays import test_asdf, test_dicom, test_hdf4, test_tiff
from tests.arrays.chunk_reader import parts_of

FILES = {
    "tiff": ["cogeo.tif", "all-nodata.tif", "float_nan.tif"],
    "asdf": ["nircamwcs.asdf"],
    "hdf4": ["MOD14.hdf4"],
    "dicom": [str(test_dicom.real(name)) for name in ("CT_small", "rtdose", "image_dfl")],
}
"""Files of `formats`, and of pydicom."""
BAD = {
    **{"tiff": test_tiff.BAD, "asdf": test_asdf.BAD, "hdf4": test_hdf4.BAD},
    **{"dicom": test_dicom.BAD},
}
LIMITS = ProcessLimits(memory_mb=256, cpu_s=20)


@pytest.fixture(scope="module")
def describe() -> Iterator[Callable[[str, Path], bytes]]:
    """Return a function that makes the chunk index of a file in a confined process."""
    modules = [f"swathe.arrays.readers.{name}" for name in FILES]
    process = ConfinedProcess(imports=(*modules, "tifffile", "yaml", "pydicom"))

    def call(reader: str, path: Path) -> bytes:
        argument = {"reader": reader, "path": str(path)}
        return process.run("a file", "tests.support.confined_calls:describe", argument, LIMITS)

    yield call
    process.close()


@pytest.mark.parametrize("reader", FILES)
def test_bad_files_stay_within_limits(reader: str, describe: Any, tmp_path: Path) -> None:
    for name, data in BAD[reader].items():
        path = tmp_path / "file"
        path.write_bytes(data)
        with pytest.raises(FormatError) as error:
            describe(reader, path)
        assert str(error.value), name


@pytest.mark.parametrize("reader", FILES)
def test_a_confined_process_makes_the_same_index(reader: str, describe: Any, data: Path) -> None:
    module = import_module(f"swathe.arrays.readers.{reader}")
    for name in FILES[reader]:
        path = data / "formats" / name
        with path.open("rb") as file:
            assert describe(reader, path) == module.describe(file)


@pytest.mark.parametrize("reader", FILES)
def test_damaged_files_end_in_our_errors(reader: str, data: Path) -> None:
    module = import_module(f"swathe.arrays.readers.{reader}")
    dice = np.random.default_rng(5)
    for number in range(120):
        whole = (data / "formats" / FILES[reader][number % len(FILES[reader])]).read_bytes()
        part = bytearray(whole)
        if number % 3 == 0:
            del part[int(dice.integers(len(whole))) :]
        else:
            for at in dice.integers(0, min(len(whole), 4000), 6):
                part[at] = dice.integers(256)
        try:
            parts_of(module.describe(io.BytesIO(bytes(part))))
        except SwatheError:
            continue


@pytest.mark.parametrize("reader", FILES)
def test_a_fault_of_the_store_stays_one(reader: str, data: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 0:
                raise TimeoutError("no answer")
            return super().read(size)

    module = import_module(f"swathe.arrays.readers.{reader}")
    file = Broken((data / "formats" / FILES[reader][0]).read_bytes())
    with pytest.raises(TimeoutError, match="no answer"):
        module.describe(file)


@pytest.mark.parametrize(
    ("reader", "package", "extra"),
    [
        ("tiff", "tifffile", "geotiff"),
        ("asdf", "yaml", "asdf"),
        ("dicom", "pydicom", "dicom"),
    ],
)
def test_a_missing_package_names_its_extra(
    reader: str, package: str, extra: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    module = import_module(f"swathe.arrays.readers.{reader}")
    with (
        (data / "formats" / FILES[reader][0]).open("rb") as file,
        pytest.raises(OptionError, match=rf"pip install swathe\[{extra}\]"),
    ):
        module.describe(file)


def test_a_bounded_file_reads_no_more_than_there_is() -> None:
    file = limits.BoundedFile(io.BytesIO(b"12345"))
    assert file.read(1 << 60) == b"12345"
    assert file.part("it", 1, 3) == b"234"
    for offset, length in [(-1, 2), (4, 2), (0, -1), (1 << 70, 1)]:
        with pytest.raises(FormatError):
            file.part("it", offset, length)
    with pytest.raises(FormatError):
        file.seek(-9)
    file.seek(3)
    buffer = bytearray(8)
    assert file.readinto(memoryview(buffer)) == 2
    assert buffer[:2] == b"45"
    with pytest.raises(LimitError):
        limits.check_chunk("it", 1 << 40)


@pytest.mark.parametrize(
    ("shape", "size", "chunk_shape"),
    [
        ((), 4, []),
        ((0, 5), 4, [1, 5]),
        ((1 << 20, 1 << 20), 8, [1 << 7, 1 << 20]),
        ((3, 1 << 40), 1, [1, 1 << 30]),
    ],
)
def test_chunks_of_what_has_none(shape: tuple[int, ...], size: int, chunk_shape: list[int]) -> None:
    assert limits.fill_chunk_shape(shape, size) == chunk_shape
    assert not limits.chunk_fault(chunk_shape, size)
