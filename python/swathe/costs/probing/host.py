"""Measure the costs of computing on this host, independent of the store.

Synthetic frames in a temporary folder are cut by one thread from the page cache. Each repeat uses
new file names, so that nothing is cached and seek points are made anew.
"""

from __future__ import annotations

import bz2
import gzip
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe import _swathe
from swathe.core.sample_frame import NAXIS1, draw, fits_bytes, header
from swathe.costs.engine_job import to_engine_job
from swathe.costs.fit.robust_stats import lower_median
from swathe.costs.library_costs import KEY
from swathe.costs.probing.loopback_server import loopback
from swathe.costs.probing.probe_dumps import measure_dumps
from swathe.costs.probing.probe_filters import measure_filters
from swathe.costs.probing.probe_gwcs import measure_gwcs
from swathe.costs.probing.probe_library import measure_library
from swathe.costs.probing.probe_results import measure_formats
from swathe.costs.run_costs import KEY as RUN
from swathe.files.targets.target_list import read_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Box = tuple[int, int, int, int]

BUDGET_S, QUICK_BUDGET_S = 5.0, 2.0
ROWS, QUICK_ROWS = 768, 256
CODECS = ("RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1", "PLIO_1", "NOCOMPRESS")
LEAST_REPEATS, MOST_REPEATS = 3, 20
SMALL, MANY, FILES, TIMES = 16, 64, 24, 16
LARGE, FEW = 256, 6
"""Sides of small and large cuts, their number, and the number of files."""
REQUESTS, FEW_REQUESTS, STREAMS = 256, 64, 8
SMALL_BYTES, LARGE_BYTES = 4096, 1 << 20


@dataclass(frozen=True)
class Frame:
    """A frame in one kind of file."""

    suffix: str
    content: bytes
    raw_bytes: int


@dataclass(frozen=True)
class BatchTiming:
    """Time of a batch on one thread.

    Attributes:
        cpu_s: computing time, without `unpack_s`.
        unpack_s: elapsed time of opening, reading and decoding. Opening a stream decompresses its
            beginning, for bzip2 up to 900 kB.
        open_s: elapsed time of opening alone.
        wall_s: elapsed time of the whole.
        write_s: elapsed time of writing results.
    """

    cpu_s: float
    unpack_s: float
    open_s: float
    wall_s: float
    write_s: float


def measure_host(quick: bool = False) -> dict[str, Any]:
    """Measure the costs of computing on this host; takes some seconds.

    Returns:
        Costs in seconds. `job_s`: per job; `request_s`: per request to a server;
        `received_byte_s`: per byte of its answers; `object_s`: per local object, to open it and
        parse its header; `cut_s`: per cut of any size, with its file; `null_cut_s`: the same if
        results are dropped; `byte_s`: per byte of pixels cut out; `gzip_byte_s`: per byte
        decompressed, and `gzip_first_byte_s`: the same while seek points are made; `restart_s`: per
        start at a seek point; `bzip2_byte_s`: per byte decompressed; `tile_byte_s`: per byte
        decoded, by codec of tiles or filter of chunks; `write`: what of `cut_s` and `byte_s` is
        writing, as in `WriteCosts`; `formats`: by format of results, what `FormatCosts` has, and
        as `library` what `LibraryCosts` has, without GWCS if `quick`; `run`: what `RunCosts` has.
    """
    budget_s = QUICK_BUDGET_S if quick else BUDGET_S
    begun_s = time.perf_counter()
    frames = make_frames(QUICK_ROWS if quick else ROWS)
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="swathe-host-") as folder_name:
        for turn in range(MOST_REPEATS):
            start_s = time.perf_counter()
            folder = Path(folder_name) / str(turn)
            folder.mkdir()
            for cost, seconds in _once(folder, frames).items():
                samples.setdefault(cost, []).append(seconds)
            now = time.perf_counter()
            if turn + 1 >= LEAST_REPEATS and now + (now - start_s) - begun_s > budget_s:
                break
        formats = measure_formats(Path(folder_name))
        library = measure_library(Path(folder_name)) | ({} if quick else measure_gwcs())
        if library:
            formats[KEY] = library
    filters = measure_filters()
    samples |= _receiving(FEW_REQUESTS if quick else REQUESTS) | filters
    costs = {cost: lower_median(np.array(seconds)) for cost, seconds in samples.items()}
    tiles = {codec: costs.pop(codec) for codec in (*CODECS, *filters) if codec in costs}
    write = {name: costs.pop(f"write_{name}") for name in ("result_s", "byte_s")}
    run = measure_dumps()
    return {**costs, "tile_byte_s": tiles, "write": write, "formats": formats, RUN: run}


def _receiving(requests: int) -> dict[str, list[float]]:
    """Return the computing time per request to a server, and per byte received."""
    small, large = [(0, SMALL_BYTES)] * requests, [(0, LARGE_BYTES)] * (requests // 16)
    samples: dict[str, list[float]] = {"request_s": [], "received_byte_s": []}
    with loopback() as url:
        _cpu_s(url, small[:8])  # warm up: connections and other one-time work
        for _ in range(LEAST_REPEATS):
            request_s = _cpu_s(url, small) / len(small)
            byte_s = (_cpu_s(url, large) / len(large) - request_s) / LARGE_BYTES
            samples["request_s"].append(request_s)
            samples["received_byte_s"].append(max(byte_s, 1e-11))
    return samples


def _cpu_s(url: str, requests: list[tuple[int, int]]) -> float:
    began_s = time.process_time()
    _swathe.measure(url, requests, STREAMS)
    return time.process_time() - began_s


def _once(folder: Path, frames: dict[str, Frame]) -> dict[str, float]:
    """Return the seconds per unit of each cost."""
    plain, *others = [_put(folder, kind, frame) for kind, frame in frames.items()]
    rows = frames["plain"].raw_bytes // (2 * NAXIS1)
    small = [(31 * at % 1900, at * (rows - SMALL) // MANY, SMALL, SMALL) for at in range(MANY)]
    large = [(200 * at, 0, LARGE, min(LARGE, rows)) for at in range(FEW)]
    one = run_batch([plain], small[:1], folder)
    many = run_batch([plain], small, folder)
    wide = run_batch([plain], large, folder)
    times_s = [run_batch([plain], boxes, None) for boxes in (small[:1], small * TIMES)]
    files = [_put(folder, f"{at}", frames["plain"]) for at in range(FILES)]
    across = run_batch(files, small[:1], folder)
    cut_s = max((many.cpu_s - one.cpu_s) / (MANY - 1), 1e-7)
    large_bytes = 2 * sum(width * height for _, _, width, height in large)
    object_s = max((across.cpu_s + across.open_s - one.cpu_s - one.open_s) / (FILES - 1), 1e-7)
    null_cut_s = max((times_s[1].cpu_s - times_s[0].cpu_s) / (TIMES * MANY - 1), 1e-7)
    byte_s = max((wide.cpu_s - one.cpu_s - (FEW - 1) * cut_s) / large_bytes, 1e-11)
    # Others on this host may have delayed it: it is a part of the computing.
    write_s = min(many.write_s / MANY, max(cut_s - null_cut_s, 1e-7))
    costs = {
        "job_s": max(one.wall_s - object_s, 1e-6),
        "object_s": max(object_s - cut_s, 1e-7),
        "cut_s": cut_s,
        "null_cut_s": null_cut_s,
        "byte_s": byte_s,
        "write_result_s": write_s,
        "write_byte_s": min(max((wide.write_s - FEW * write_s) / large_bytes, 1e-11), byte_s),
    }
    boxes = [(0, 0, NAXIS1, rows)]
    for (kind, frame), path in zip(list(frames.items())[1:], others, strict=True):
        first = _unpacking(path, boxes, folder, frame, one.open_s)
        match kind:
            case "gzip":
                costs["gzip_first_byte_s"] = first
                # Its seek points are cached now.
                costs["gzip_byte_s"] = _unpacking(path, boxes, folder, frame, one.open_s)
                costs["restart_s"] = lower_median(np.array(_swathe.measure_restarts(str(path))))
            case "bzip2":
                costs["bzip2_byte_s"] = first
            case codec:
                costs[codec] = first
    return costs


def _unpacking(path: Path, boxes: list[Box], folder: Path, frame: Frame, open_s: float) -> float:
    """Return the seconds per byte decompressed."""
    return max(run_batch([path], boxes, folder).unpack_s - open_s, 1e-9) / frame.raw_bytes


def _put(folder: Path, name: str, frame: Frame) -> Path:
    path = folder / f"{name}{frame.suffix}"
    path.write_bytes(frame.content)
    return path


def make_frames(rows: int) -> dict[str, Frame]:
    """Make a frame in all kinds: `plain` first, then `gzip`, `bzip2` and the tile codecs."""
    from astropy.io import fits

    pixels, cards = draw(1, 1)[:rows], header(1, 1)
    plain = fits_bytes([fits.PrimaryHDU(pixels, cards)])
    frames = {
        "plain": Frame(".fit", plain, pixels.nbytes),
        "gzip": Frame(".fit.gz", gzip.compress(plain, compresslevel=6, mtime=0), len(plain)),
        "bzip2": Frame(".fit.bz2", bz2.compress(plain), len(plain)),
    }
    # Signed and small, so that all codecs accept them; PLIO_1 is for masks.
    frame: NDArray[np.int16] = (pixels >> 1).astype(np.int16)
    mask = (frame > np.quantile(frame, 0.95)).astype(np.int16)
    for codec in CODECS:
        tile = (1, NAXIS1) if codec != "HCOMPRESS_1" else (16, NAXIS1)
        compressed_hdu = fits.CompImageHDU(
            mask if codec == "PLIO_1" else frame, compression_type=codec, tile_shape=tile
        )
        frames[codec] = Frame(
            ".fit.fz", fits_bytes([fits.PrimaryHDU(), compressed_hdu]), pixels.nbytes
        )
    return frames


def run_batch(files: Iterable[Path], boxes: list[Box], folder: Path | None) -> BatchTiming:
    """Cut these boxes from each file on one thread, into files in a folder or into none."""
    cuts = [(str(file), *box) for file in files for box in boxes]
    columns = zip(("file", "x0", "y0", "width", "height"), zip(*cuts, strict=True), strict=True)
    target_list = read_targets({name: list(values) for name, values in columns}, _no_sky)
    output = "null:" if folder is None else tempfile.mkdtemp(dir=folder)
    kind = "null" if folder is None else "folder"
    begun_s, began_s = time.perf_counter(), time.process_time()
    names = [f"{number}.fits" for number in range(len(cuts))]
    job = to_engine_job(target_list, names=names, output=output, kind=kind, threads=1)
    batch = job.start()
    statuses: list[str] = []
    while (rows := batch.poll(0.1)) is not None:
        statuses += rows.status
    stages = batch.finish()
    wall_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - began_s
    assert statuses == ["ok"] * len(cuts), "made frames can be cut"
    unpack_s = stages["open"] + stages["read"] + stages["decode"]
    return BatchTiming(
        max(cpu_s - unpack_s, 0.0), unpack_s, stages["open"], wall_s, stages["write"]
    )


def _no_sky(*_: object) -> Any:
    raise AssertionError("boxes are in pixels")
