"""Runs that programs in C and Fortran write over processes of MPI; Python reads them."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.runs.definition.pattern import Pattern
from swathe.runs.definition.shards import Sharding
from tests.capi.test_reading import fails
from tests.support.c_library import CRATE, EXAMPLES, CallError, Library, built_files, compiler

SHAPE = (24, 20, 16)
INCLUDE = CRATE / "include"


def expected_array(iteration: int) -> np.ndarray:
    numbers = np.arange(np.prod(SHAPE)).reshape(SHAPE) + 10000 * iteration
    return numbers.astype("f4")


def mpi() -> tuple[Path, list[str]]:
    """`mpiexec` of MPICH's wheel, and what a compiler needs."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip(f"no mpiexec beside {sys.executable}: pip install mpich")
    home = Path(sys.executable).parents[1]
    library = home / "lib"
    return mpiexec, [f"-I{home / 'include'}", f"-L{library}", "-lmpi", f"-Wl,-rpath,{library}"]


def link_options(folder: Path) -> list[str]:
    shared, _ = built_files()
    link = folder / "libswathe.so.0"
    if not link.exists():
        link.symlink_to(shared)
    return [f"-I{INCLUDE}", str(link), f"-Wl,-rpath,{folder}"]


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run-c")
    command = [compiler(), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-D_GNU_SOURCE"]
    command += [str(EXAMPLES / "c" / "run.c"), "-o", str(folder / "run")]
    subprocess.run([*command, *link_options(folder), *mpi()[1]], check=True)
    return folder / "run"


@pytest.fixture(scope="module")
def fortran_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    folder, options = tmp_path_factory.mktemp("run-fortran"), mpi()[1]
    ranks = folder / "swathe_mpi.o"
    command = [compiler(), "-c", str(INCLUDE / "swathe_mpi.c"), "-o", str(ranks)]
    subprocess.run([*command, f"-I{INCLUDE}", *options[:1]], check=True)
    command = ["gfortran", "-O1", f"-J{folder}", str(EXAMPLES / "fortran" / "run.f90"), str(ranks)]
    command += ["-o", str(folder / "run"), *link_options(folder), *options[1:]]
    subprocess.run(command, check=True)
    return folder / "run"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with Catalog.open() as catalog:
        catalog.add_store("disk", str(tmp_path / "disk"), "local")
        yield catalog


def run(program: Path, ranks: int, folder: Path) -> str:
    command = [str(mpi()[0]), "-n", str(ranks), str(program), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def only_group(folder: Path) -> Path:
    (group,) = folder.glob("waves-*.zarr")
    return group


@pytest.mark.parametrize("ranks", [1, 4, 6, 8])
def test_a_program_in_c(c_program: Path, catalog: Catalog, tmp_path: Path, ranks: int) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    lines = run(c_program, ranks, tmp_path / "disk" / "runs").splitlines()
    group = only_group(tmp_path / "disk" / "runs")
    row = expected_array(6)[3, 2]
    assert lines == [str(group), f"{row[0]:.0f} {row[15]:.0f}"]

    read = zarr.open_group(group, mode="r")
    np.testing.assert_array_equal(read["temp"], [expected_array(i) for i in (0, 2, 4, 6)])
    np.testing.assert_array_equal(read["iteration_2"], [0, 2, 4, 6])
    assert sorted(read["restart"].attrs["iterations"]) == [3, 6]

    stored = swathe.open_run(swathe.runs.add(f"disk:runs/{group.name}").label)
    assert {name: list(array) for name, array in stored.items()} == {
        "temp": [0, 2, 4, 6],
        "restart": [3, 6],
    }
    for array in stored.values():
        for iteration, dump in array.items():
            np.testing.assert_array_equal(dump[...], expected_array(iteration))


def test_a_program_in_fortran(fortran_program: Path, catalog: Catalog, tmp_path: Path) -> None:
    run(fortran_program, 4, tmp_path / "disk" / "runs")
    group = only_group(tmp_path / "disk" / "runs")
    stored = swathe.open_run(swathe.runs.add(f"disk:runs/{group.name}").label)
    for iteration in (0, 2, 4, 6):
        np.testing.assert_array_equal(stored["temp"][iteration], expected_array(iteration))


def test_what_ranks_write_is_what_python_writes(
    c_program: Path, catalog: Catalog, tmp_path: Path
) -> None:
    """Shards are the same to the byte, and so are the descriptions of arrays."""
    import json

    run(c_program, 4, tmp_path / "c")
    with swathe.run("waves", iterations=6) as ours:
        temp = ours.array("temp", SHAPE, "f4", every=2, location="disk")
        for iteration in (0, 2, 4, 6):
            temp.write(iteration, expected_array(iteration))
    theirs, group = only_group(tmp_path / "c"), only_group(tmp_path / "disk" / "runs")
    for folder in ("temp", "iteration_2"):
        files = [path.relative_to(group) for path in (group / folder).rglob("*") if path.is_file()]
        assert files
        for name in files:
            if name.suffix == ".json":
                assert json.loads((theirs / name).read_text()) == json.loads(
                    (group / name).read_text()
                )
            else:
                assert (theirs / name).read_bytes() == (group / name).read_bytes(), name


GRIDS = (("BBB", (17, 18, 19)), ("B**", (4, 5, 6)), ("*,CYCLIC(3),B", (7, 20, 9)))
"""Patterns and shapes."""


class Caller:
    """The calls for runs of one process."""

    def __init__(self, library: Library, folder: Path, iterations: int = 4) -> None:
        raw, number, long = library.raw, ctypes.c_int, ctypes.c_int64
        text, memory, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
        numbers = ctypes.POINTER(long)
        raw.sw_run_begin.argtypes = (text, text, long, memory)
        raw.sw_run_array.argtypes = (number, text, text, number, numbers, long, text, number)
        raw.sw_run_block.argtypes = (number, number, numbers, numbers)
        raw.sw_run_write.argtypes = (number, number, long, memory, size)
        raw.sw_run_folder.argtypes = (number, memory, size)
        raw.sw_run_open.argtypes = (text,)
        raw.sw_run_read.argtypes = (number, text, long, number, numbers, numbers, memory, size)
        for name in ("sync", "end"):
            getattr(raw, f"sw_run_{name}").argtypes = (number,)
        self.library = library
        self.run = library.call("run_begin", folder, b"app", iterations, None)

    def array(self, name: str, shape: tuple[int, ...], *, kind: str = "f4", every: int = 1,
              pattern: str | None = None, flags: int = 0) -> int:  # fmt: skip
        return self.library.call(
            "run_array", self.run, name, kind, len(shape), numbers_of(shape), every,
            pattern, flags,
        )  # fmt: skip

    def block(self, array: int, axes: int) -> tuple[list[int], list[int]]:
        start, shape = numbers_of([0] * axes), numbers_of([0] * axes)
        self.library.call("run_block", self.run, array, start, shape)
        return list(start), list(shape)

    def write(self, array: int, iteration: int, block: np.ndarray) -> int:
        return self.library.call(
            "run_write", self.run, array, iteration, block.ctypes.data, block.nbytes
        )

    def folder(self) -> str:
        buffer = ctypes.create_string_buffer(4096)
        self.library.call("run_folder", self.run, buffer, 4096)
        return buffer.value.decode()

    def end(self) -> None:
        self.library.call("run_end", self.run)


def numbers_of(values: tuple[int, ...] | list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


def read_box(library: Library, folder: str, array: str, iteration: int,
             box: tuple[slice, ...], kind: str = "f4") -> np.ndarray:  # fmt: skip
    start = [each.start for each in box]
    shape = [each.stop - each.start for each in box]
    handle = library.call("run_open", folder)
    result = np.full(shape, 99, kind)
    try:
        library.call(
            "run_read", handle, array, iteration, len(box), numbers_of(start), numbers_of(shape),
            result.ctypes.data, result.nbytes,
        )  # fmt: skip
    finally:
        library.close(handle)
    return result


@pytest.mark.parametrize("kind", ["u1", "f8", "c16"])
def test_boxes_across_chunks_and_shards(library: Library, tmp_path: Path, kind: str) -> None:
    shape = (5, 300, 3000 if kind == "u1" else 700)
    values = np.random.default_rng(1).integers(0, 255, shape).astype(kind)
    caller = Caller(library, tmp_path)
    array = caller.array("a", shape, kind=kind, every=2)
    assert caller.block(array, 3) == ([0, 0, 0], list(shape))
    assert [caller.write(array, i, values) for i in (0, 1, 2)] == [1, 0, 1]
    folder = caller.folder()
    caller.end()
    for box in (
        np.s_[0:5, 0:300, 0 : shape[2]],
        np.s_[1:3, 77:290, 5:600],
        np.s_[4:5, 299:300, 11:12],
        np.s_[2:2, 0:3, 0:3],
    ):
        np.testing.assert_array_equal(read_box(library, folder, "a", 2, box, kind), values[box])


def test_grids_of_ranks_are_those_of_python(library: Library, tmp_path: Path) -> None:
    """Each rank of several that are asked one by one: nothing is exchanged for that."""
    gather = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    )
    exchange = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)

    class Ranks(ctypes.Structure):
        _fields_ = (
            ("rank", ctypes.c_int), ("size", ctypes.c_int), ("gather", gather),
            ("exchange", exchange), ("context", ctypes.c_void_p),
        )  # fmt: skip

    size = 6

    def repeat(_context: int, own: int, length: int, everyone: int) -> int:
        for rank in range(size):
            ctypes.memmove(everyone + rank * length, own, length)
        return 0

    def refuse(*_arguments: int) -> int:
        return 7

    for rank in range(size):
        ranks = Ranks(rank, size, gather(repeat), exchange(refuse), None)
        caller = Caller(library, tmp_path)
        caller.run = library.call("run_begin", tmp_path, b"app", 4, ctypes.byref(ranks))
        for number, (pattern, shape) in enumerate(GRIDS):
            array = caller.array(f"a{number}", shape, pattern=pattern)
            division = Pattern.parse(pattern, 3).division(shape, size)
            spans = division.spans(rank)
            assert caller.block(array, 3) == (
                [of[0].start if of else 0 for of in spans],
                list(division.block_shape(rank)),
            )
        text = fails(library, errno.EIO, "run_write", caller.run, array, 0,
                     np.zeros(division.block_shape(rank), "f4").ctypes.data,
                     int(np.prod(division.block_shape(rank))) * 4)  # fmt: skip
        assert "exchange of the ranks failed with 7" in text
        library.close(caller.run)


@pytest.mark.parametrize(
    ("shape", "kind"), [((128, 128, 128), "f4"), ((1000, 1, 3, 999), "u1"), ((10**7,), "f8")]
)
def test_shards_are_those_of_python(
    library: Library, tmp_path: Path, shape: tuple[int, ...], kind: str
) -> None:
    import json

    caller = Caller(library, tmp_path)
    caller.array("a", shape, kind=kind)
    metadata = json.loads((Path(caller.folder()) / "a" / "zarr.json").read_text())
    caller.end()
    sharding = Sharding(shape, np.dtype(kind))
    assert metadata["chunk_grid"]["configuration"]["chunk_shape"] == [1, *sharding.shard_shape]
    codec = metadata["codecs"][0]["configuration"]
    assert codec["chunk_shape"] == [1, *sharding.chunk_shape]


def test_wrong_arguments_are_refused(library: Library, tmp_path: Path) -> None:
    caller = Caller(library, tmp_path)
    array, block = caller.array("a", (4, 6)), np.zeros((4, 6), "f4")
    shape = numbers_of([4, 6])
    refused: tuple[tuple[int, str, tuple[Any, ...]], ...] = (
        (errno.EINVAL, "name", ("run_begin", tmp_path, b"../x", 1, None)),
        (errno.EINVAL, "iterations", ("run_begin", tmp_path, b"x", -1, None)),
        (errno.EEXIST, "this name", ("run_array", caller.run, b"a", b"f4", 2, shape, 1, None, 0)),
        (errno.EINVAL, "type", ("run_array", caller.run, b"b", b"x4", 2, shape, 1, None, 0)),
        (errno.EINVAL, "pattern", ("run_array", caller.run, b"b", b"f4", 2, shape, 1, b"BBB", 0)),
        (errno.EINVAL, "every", ("run_array", caller.run, b"b", b"f4", 2, shape, 0, None, 0)),
        (errno.EINVAL, "flags", ("run_array", caller.run, b"b", b"f4", 2, shape, 1, None, 8)),
        (errno.EINVAL, "axes", ("run_array", caller.run, b"b", b"f4", 0, shape, 1, None, 0)),
        (errno.EINVAL, "iteration", ("run_write", caller.run, array, 9, block.ctypes.data, 96)),
        (errno.EINVAL, "96 bytes", ("run_write", caller.run, array, 0, block.ctypes.data, 95)),
        (errno.EFAULT, "buffer", ("run_write", caller.run, array, 0, None, 96)),
        (errno.EINVAL, "number 7", ("run_write", caller.run, 7, 0, block.ctypes.data, 96)),
        (errno.ERANGE, "length", ("run_folder", caller.run, ctypes.create_string_buffer(3), 3)),
        (errno.EBADF, "to write a run", ("read", caller.run, b"", 0)),
        (errno.ENOENT, "zarr.json", ("run_open", tmp_path / "nothing")),
    )
    for number, text, (name, *arguments) in refused:
        assert text in fails(library, number, name, *arguments), (name, arguments)
    caller.write(array, 0, block)
    assert "before" in fails(library, errno.EEXIST, "run_write", caller.run, array, 0,
                             block.ctypes.data, block.nbytes)  # fmt: skip
    folder = caller.folder()
    caller.end()
    fails(library, errno.EBADF, "run_end", caller.run)

    handle = library.call("run_open", folder)
    start = numbers_of([0, 0])
    memory = block.ctypes.data
    refused = (
        (errno.ENXIO, "one of a", ("run_read", handle, b"b", 0, 2, start, shape, memory, 96)),
        (errno.ENOENT, "iteration", ("run_read", handle, b"a", 9, 2, start, shape, memory, 96)),
        (errno.ENOENT, "c/1", ("run_read", handle, b"a", 1, 2, start, shape, memory, 96)),
        (errno.EDOM, "a box", ("run_read", handle, b"a", 0, 2, shape, shape, memory, 96)),
        (errno.EDOM, "a box", ("run_read", handle, b"a", 0, 1, start, shape, memory, 96)),
        (errno.EINVAL, "96 bytes", ("run_read", handle, b"a", 0, 2, start, shape, memory, 97)),
        (errno.EBADF, "to read a run", ("run_sync", handle)),
    )
    for number, text, (name, *arguments) in refused:
        assert text in fails(library, number, name, *arguments), (name, arguments)
    shard = Path(folder) / "a" / "c" / "0" / "0" / "0"
    content = shard.read_bytes()
    for damaged in (b"", content[:-1], content[:-5] + b"x" + content[-4:]):
        shard.write_bytes(damaged)
        text = fails(library, errno.EBADMSG, "run_read", handle, b"a", 0, 2, start, shape,
                     memory, 96)  # fmt: skip
        assert "expected a shard" in text
    library.close(handle)


def test_an_error_of_a_write_stops_the_run(library: Library, tmp_path: Path) -> None:
    caller = Caller(library, tmp_path)
    array, block = caller.array("a", (4, 6)), np.zeros((4, 6), "f4")
    caller.write(array, 0, block)
    library.call("run_sync", caller.run)
    # A file in the place of the next folder.
    (Path(caller.folder()) / "a" / "c" / "1").write_bytes(b"")
    caller.write(array, 1, block)
    fails(library, errno.ENOTDIR, "run_sync", caller.run)
    fails(library, errno.ENOTDIR, "run_write", caller.run, array, 2, block.ctypes.data, 96)
    fails(library, errno.ENOTDIR, "run_end", caller.run)
    fails(library, errno.EBADF, "run_sync", caller.run)
    np.testing.assert_array_equal(
        read_box(library, caller_folder(tmp_path), "a", 0, np.s_[0:4, 0:6]), block
    )


def test_a_checkpoint_is_read_as_it_is_now(library: Library, tmp_path: Path) -> None:
    caller = Caller(library, tmp_path)
    array = caller.array("a", (4, 6), flags=1)
    blocks = [np.full((4, 6), each, "f4") for each in range(4)]
    caller.write(array, 0, blocks[0])
    library.call("run_sync", caller.run)
    handle = library.call("run_open", caller.folder())
    start, shape, result = numbers_of([0, 0]), numbers_of([4, 6]), np.empty((4, 6), "f4")

    def read(iteration: int) -> None:
        library.call("run_read", handle, "a", iteration, 2, start, shape, result.ctypes.data, 96)

    read(0)
    for iteration in (1, 2, 3):
        caller.write(array, iteration, blocks[iteration])
    caller.end()
    read(3)
    np.testing.assert_array_equal(result, blocks[3])
    with pytest.raises(CallError, match="expected an iteration that is written, found 0"):
        read(0)
    library.close(handle)


def caller_folder(folder: Path) -> str:
    (group,) = folder.glob("app-*.zarr")
    return os.fspath(group)
