"""Recognise the format of an object, and make its chunk index in a confined process."""

from __future__ import annotations

import atexit
import math
import operator
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from swathe.core.confined import ConfinedProcess, ProcessLimits
from swathe.core.errors import (
    FormatError,
    LimitError,
    NoSuchHduError,
    RegionError,
    SettingsError,
)
from swathe.core.served_file import FileReads

if TYPE_CHECKING:
    from swathe import _swathe

HDF5 = b"\x89HDF\r\n\x1a\n"
MAGIC = {
    "fits": (b"SIMPLE  =",),
    "hdf5": (HDF5,),
    "netcdf3": (b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    "hdf4": (b"\x0e\x03\x13\x01",),
    "asdf": (b"#ASDF ",),
    "zarr": (b"SWFOLDER", b"PK\x03\x04"),
    "dicom": (b"DICM",),
    "tiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
}
"""First bytes of the formats. A Zarr is a folder, as the engine reads it, or a zip file. HDF5 may
begin at byte 512, 1024, 2048, ... too."""
MAGIC_AT = {"dicom": 128}
"""Where these bytes are, if not at 0. Before them DICOM may have the head of a TIFF."""
FIRST_READ = 132
MOST_USER_BYTES = 1 << 20
"""Largest block of a user before HDF5; 512 bytes are usual."""


@dataclass(frozen=True)
class Reader:
    """How a format is read.

    Attributes:
        module: module of `swathe.arrays.readers`.
        libraries: modules that it needs.
        extra: extra of the package that installs them.
        files: files that a call may open, such as schemas of the library.
        is_flat: whether it reads elements by their numbers in C order, and not a region.
        loads_more: whether the library loads more at its first use than by its import; the module's
            function `load` does it before there is any input.
    """

    module: str
    libraries: tuple[str, ...] = ()
    extra: str = ""
    files: int = 0
    is_flat: bool = False
    loads_more: bool = False


READERS = {
    "hdf5": Reader("hdf5", ("h5py",), "hdf"),
    "netcdf3": Reader("netcdf3"),
    "hdf4": Reader("hdf4", is_flat=True),
    "tiff": Reader("tiff", ("tifffile",), "geotiff", files=16, is_flat=True),
    "asdf": Reader("asdf", ("yaml",), "asdf", files=16, is_flat=True),
    "zarr": Reader("zarr"),
    "dicom": Reader("dicom", ("pydicom",), "dicom", files=16),
}
TOOLS = {
    "gwcs": Reader("gwcs", ("asdf", "gwcs", "asdf_astropy"), "asdf", files=64, loads_more=True),
    "dicom_part": Reader("dicom_part", ("pydicom",), "dicom", files=16),
    "hdf5_external": Reader("hdf5_external", ("h5py",), "hdf", files=1000),
    "asdf_external": Reader("asdf_external", ("yaml",), "asdf", files=64),
}
"""What is read besides arrays."""
_LOCK = threading.Lock()
_PROCESSES: dict[str, ConfinedProcess] = {}
_PLACES = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
LIMITS = {"memory_mb": 1024, "wall_s": 600.0, "answer_mb": 256, "file_mb": 0}
DESCRIBE_CPU_S, OTHER_CPU_S = 5, 15
"""CPU time of a small file: to describe it, and to decode or compute something of it."""
CPU_S_PER_MB = 10
"""CPU time that each MiB of a file adds; h5py needs up to 0.7 s for 1 MiB of small arrays, and 6 s
for one of nothing but links."""
MOST_CPU_S = 120


def format_of(read_at: Callable[[int, int], bytes]) -> str | None:
    """Return the format of an object by its bytes, or None if it is not known.

    Args:
        read_at: function that returns the bytes from an offset, as many as its second argument;
            fewer at the end of the object.
    """
    first = read_at(0, FIRST_READ)
    for name, starts in MAGIC.items():
        if first.startswith(starts, MAGIC_AT.get(name, 0)):
            return name
    at = 512
    while at <= MOST_USER_BYTES and len(start := read_at(at, len(HDF5))) == len(HDF5):
        if start == HDF5:
            return "hdf5"
        at *= 2
    return None


def running_formats() -> frozenset[str]:
    """Return the formats whose confined process was started by this process."""
    with _LOCK:
        return frozenset(_PROCESSES)


def reads_of(native: _swathe.Object) -> FileReads:
    """Return the engine's file as one that a confined process can read."""
    size, first_bytes = native.content_len(), native.first_bytes
    return FileReads(
        native.read_at,
        size,
        native.block_bytes,
        min(first_bytes, size),
        read_ranges=native.read_ranges,
    )


def describe(file: FileReads, file_format: str, what: str = "the file") -> bytes:
    """Return the chunk index of an object.

    Args:
        file: the object.
        file_format: what `format_of` returns.
        what: name of the object in errors.

    Raises:
        FormatError: If the object is damaged, has no such reader, or crashes the library.
        SettingsError: If an extra of the package is missing.
        LimitError: If it needs too much memory, time or reads.
        SwatheError: If reading the object raises it.
    """
    return _run("describe", {}, file, file_format, what)


def read(
    file: FileReads,
    file_format: str,
    name: str,
    shape: Sequence[int],
    start: list[int],
    stop: list[int],
    what: str = "the file",
) -> bytes:
    """Return the elements `[start, stop)` of an array that only the library reads.

    Args:
        file: the object.
        file_format: what `format_of` returns.
        name: path of the array.
        shape: its elements along each axis, slowest first.
        start: first element along each axis.
        stop: element after the last along each axis.
        what: name of the object in errors.

    Raises:
        RegionError: If the region is not within the array.
        SwatheError: As `describe` does.
    """
    if file_format in READERS and READERS[file_format].is_flat:
        import numpy as np

        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        first = sum(map(operator.mul, start, strides))
        last = sum((end - 1) * stride for end, stride in zip(stop, strides, strict=True))
        argument = {"name": name, "start": first, "stop": last + 1}
        elements = _run("read", argument, file, file_format, what)
        size, rest = divmod(len(elements), last + 1 - first)
        if rest or not size:
            raise FormatError(
                f"{what}, array {name}: expected {last + 1 - first} elements, "
                f"found {len(elements)} bytes"
            )
        some = np.frombuffer(elements, f"V{size}")
        region = [end - begin for begin, end in zip(start, stop, strict=True)]
        steps = [stride * size for stride in strides]
        return np.lib.stride_tricks.as_strided(some, region, steps, writeable=False).tobytes()
    argument = {"name": name, "start": start, "stop": stop}
    return _run("read", argument, file, file_format, what)


def run_gwcs(
    function: str, argument: dict[str, object], file: FileReads, what: str = "the file"
) -> bytes:
    """Return the result of a function of `readers.gwcs` on an ASDF file.

    Raises:
        FormatError: If the file is damaged, or crashes the library.
        RegionError: If the coordinate system is not one of the sky.
        SettingsError: If an extra of the package is missing.
        LimitError: If it needs too much memory, time or reads.
    """
    return _run(function, argument, file, "gwcs", what)


def run_asdf_rest(file: FileReads, what: str = "the file") -> bytes:
    """Return the tree of an ASDF file without its arrays, as `readers.asdf.rest` does.

    Raises:
        FormatError: If the file is damaged, or crashes the library.
        SettingsError: If an extra of the package is missing.
        LimitError: If it needs too much memory, time or reads.
    """
    return _run("rest", {}, file, "asdf", what)


def run_dicom_head(argument: dict[str, object], file: FileReads, what: str = "the file") -> bytes:
    """Return what `readers.dicom_part.head` makes of a DICOM file.

    Raises:
        FormatError: If the file is damaged, or crashes the library.
        OutputError: If DICOM cannot hold the part.
        SettingsError: If an extra of the package is missing.
        LimitError: If it needs too much memory, time or reads.
    """
    return _run("head", argument, file, "dicom_part", what)


def run_external(
    function: str, argument: dict[str, object], file_format: str, what: str, folder: str
) -> bytes:
    """Return the result of a function of the reader of arrays in other files of a folder.

    Args:
        function: `describe` or `read`.
        argument: its arguments.
        file_format: `hdf5` or `asdf`.
        what: name of the object in errors.
        folder: folder in which the process may read files, and nowhere else.

    Raises:
        FormatError: If the file is damaged, or crashes the library.
        SettingsError: If the system cannot confine a process to a folder.
        LimitError: If it needs too much memory or time.
    """
    from swathe.core.landlock import landlock_version

    if not landlock_version():
        raise SettingsError(
            f"{what}: allow_external: expected Linux 5.13 or later with Landlock, which confines "
            "the reader to a folder, found none"
        )
    return _run(function, argument, None, f"{file_format}_external", what, folder)


def cpu_limit(function: str, size: int | None) -> int:
    """Return the CPU time that a function of a reader may take, in seconds.

    A damaged file of a few KiB can keep a library in a loop, so a small file gets little of it.

    Args:
        function: name of the function.
        size: bytes of its file, if it reads one.
    """
    if size is None:
        return MOST_CPU_S
    least = DESCRIBE_CPU_S if function == "describe" else OTHER_CPU_S
    return min(MOST_CPU_S, least + CPU_S_PER_MB * size // (1 << 20))


def new_process(file_format: str) -> ConfinedProcess:
    """Return a process that imports what a format needs, when it is called first."""
    reader = (READERS | TOOLS)[file_format]
    module = _module(reader)
    return ConfinedProcess(
        imports=(*reader.libraries, f"{module}:load" if reader.loads_more else module)
    )


def _module(reader: Reader) -> str:
    return f"swathe.arrays.readers.{reader.module}"


def _run(
    function: str,
    argument: dict[str, object],
    file: FileReads | None,
    file_format: str,
    what: str,
    folder: str = "",
) -> bytes:
    reader = (READERS | TOOLS).get(file_format)
    if reader is None:
        raise FormatError(f"{what}: expected one of {', '.join(READERS)}, found {file_format}")
    missing = [name for name in reader.libraries if find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"{what}: {file_format} needs {', '.join(missing)}; try: "
            f"pip install 'swathe[{reader.extra}]'"
        )
    with _LOCK:
        if file_format not in _PROCESSES:
            _PROCESSES[file_format] = new_process(file_format)
            atexit.register(_PROCESSES[file_format].close)
        process = _PROCESSES[file_format]
    return call_reader(process, function, argument, file, file_format, what, folder)


def call_reader(
    process: ConfinedProcess,
    function: str,
    argument: dict[str, object],
    file: FileReads | None,
    file_format: str,
    what: str,
    folder: str = "",
) -> bytes:
    """Return the result of a function of the reader of a format, in a process of `new_process`.

    Args:
        process: the process.
        function: name of the function.
        argument: its arguments.
        file: the object that it reads, if any.
        file_format: format, or tool.
        what: name of the object in errors.
        folder: folder whose files alone it may open; empty: any, as many as the reader needs.

    Raises:
        FormatError: If the file is damaged, or crashes the library.
        LimitError: If it needs too much memory, time or reads.
        SwatheError: If reading the object raises it.
    """
    reader = (READERS | TOOLS)[file_format]
    cpu_s = cpu_limit(function, None if file is None else file.size)
    bounds = ProcessLimits(
        **LIMITS,  # type: ignore[arg-type]
        cpu_s=cpu_s,
        files=reader.files,
        folder=folder,
    )
    try:
        with _PLACES:
            return process.run(
                what,
                f"{_module(reader)}:{function}",
                argument,
                bounds,
                file,
                ", ".join(reader.libraries) or "swathe",
            )
    except (FormatError, LimitError, NoSuchHduError, RegionError) as error:
        if str(error).startswith(what):
            raise
        raise type(error)(f"{what}: {error}") from error
