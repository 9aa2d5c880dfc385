"""The peers: each cuts a list of targets and prints the seconds it took.

    python benches/peers.py PEER LIST OUTDIR [--work FOLDER]

Imports and the building of an index that a peer keeps are not timed. Peers that only inflate
("first touch") read every file of the list whole and write nothing.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from contenders import Target, read_list
from swathe.experiments.clients.single_client import Astropy, Cutter, Fitsio, cut_with_cfitsio

Run = Callable[[], float | None]
"""Cuts; returns the seconds if the peer counts them itself."""

BLOCK_BYTES = 2880


@dataclass(frozen=True)
class Job:
    """What to cut, where to put it, where an index is kept, and where the C program is."""

    targets: Sequence[Target]
    out: Path
    index: Path
    cfitsio: Path


def cfitsio_program(job: Job, anew: bool) -> Run:
    """fits_copy_image_section, opening the file for each cut or once over its targets."""
    lines = "".join(f"{t.x0} {t.y0} {t.width} {t.height} {t.file}\n" for t in job.targets)

    def run() -> float:
        return cut_with_cfitsio(str(job.cfitsio), lines, job.out, anew, 1e9)[-1][0]

    return run


class AstropyData(Astropy):
    """Astropy with the default: a memory map, except that it reads where it must scale (BZERO)."""

    def read(self, path: str) -> Any:
        """Open the file."""
        from astropy.io import fits

        file = fits.open(path)
        return file, file[-1].data, file[-1].header


def cut_by(cutter: Cutter, job: Job, reopen: bool = False) -> Run:
    """Cut as the client of `swathe bench single` does; the file open over its targets, or not."""
    for module in ("fitsio",) if isinstance(cutter, Fitsio) else ("astropy.nddata", "astropy.wcs"):
        importlib.import_module(module)

    def run() -> None:
        groups = ((t.file, [t]) for t in job.targets) if reopen else by_file(job.targets)
        for path, group in groups:
            image = cutter.read(str(path))
            for t in group:
                crop = cutter.crop(image, (t.x0, t.y0, t.width, t.height))
                cutter.write(crop, out_path(job.out, t))
            cutter.close(image)

    return run


def rustfits_sections(job: Job) -> Run:
    """Read a section with rustfits, write it, shift CRPIX; a file stays open over its targets."""
    import rustfits

    def run() -> None:
        for path, group in by_file(job.targets):
            with rustfits.FITS(path) as file:
                hdu = file[len(file) - 1]
                for target in group:
                    with rustfits.FITS(out_path(job.out, target), "w+") as cutout:
                        image = cutout.write_image(hdu[section(target)], header=hdu.header)
                        shift_crpix(image.header, target)

    return run


def indexed_gzip_rows(job: Job) -> Run:
    """indexed_gzip with an index kept in a file; rows of the box sliced by numpy."""
    import indexed_gzip

    def build(path: Path, index: Path) -> None:
        with indexed_gzip.IndexedGzipFile(str(path)) as stream:
            stream.build_full_index()
            stream.export_index(str(index))

    def open_kept(path: Path, index: Path) -> AbstractContextManager[Any]:
        file: AbstractContextManager[Any] = indexed_gzip.IndexedGzipFile(
            str(path), index_file=str(index)
        )
        return file

    return seek_and_slice(job, build, open_kept)


def rapidgzip_rows(job: Job) -> Run:
    """Rapidgzip on one thread with an index kept in a file; rows sliced by numpy."""
    import rapidgzip

    def build(path: Path, index: Path) -> None:
        with rapidgzip.open(str(path), parallelization=1) as stream:
            stream.export_index(str(index))

    def open_kept(path: Path, index: Path) -> AbstractContextManager[Any]:
        stream: AbstractContextManager[Any] = rapidgzip.open(str(path), parallelization=1)
        stream.import_index(str(index))  # type: ignore[attr-defined]
        return stream

    return seek_and_slice(job, build, open_kept)


def seek_and_slice(
    job: Job,
    build: Callable[[Path, Path], None],
    open_kept: Callable[[Path, Path], AbstractContextManager[Any]],
) -> Run:
    """Seek to the rows of the box, slice, write one bare header block and the rows.

    To the peer's favour: where the pixels start is known and no header is read or copied.
    """
    job.index.mkdir(parents=True, exist_ok=True)

    def index_path(path: Path) -> Path:
        return job.index / f"{path.name}.index"

    for path in {target.file for target in job.targets}:
        if not index_path(path).exists():
            build(path, index_path(path))

    def cut(stream: Any, t: Target) -> None:
        stream.seek(t.data_start + t.y0 * t.row_pixels * t.pixel_bytes)
        rows = stream.read(t.height * t.row_pixels * t.pixel_bytes)
        pixels = np.frombuffer(rows, f">i{t.pixel_bytes}").reshape(t.height, t.row_pixels)
        write_bare(out_path(job.out, t), pixels[:, t.x0 : t.x0 + t.width])

    def run() -> None:
        for path, group in by_file(job.targets):
            with open_kept(path, index_path(path)) as stream:
                for target in group:
                    cut(stream, target)

    return run


def gunzip_by_program(job: Job, at_once: bool) -> Run:
    """`gzip -dc file > /dev/null`, the program started for every file, or once for all of them."""
    files = [str(path) for path, _ in by_file(job.targets)]

    def run() -> None:
        for some in [files] if at_once else [[file] for file in files]:
            subprocess.run(["gzip", "-dc", *some], stdout=subprocess.DEVNULL, check=True)

    return run


def gunzip_by_module(job: Job, module: str) -> Run:
    """Inflate whole files with Python's gzip module, or another like it."""
    package = importlib.import_module(module)

    def run() -> None:
        for path, _ in by_file(job.targets):
            with package.open(path) as stream:
                stream.read()

    return run


PEERS: dict[str, Callable[[Job], Run]] = {
    "cfitsio-anew": partial(cfitsio_program, anew=True),
    "cfitsio-once": partial(cfitsio_program, anew=False),
    "fitsio": partial(cut_by, Fitsio()),
    "rustfits": rustfits_sections,
    "astropy-reopen": partial(cut_by, AstropyData(), reopen=True),
    "astropy-keep-open": partial(cut_by, AstropyData()),
    "astropy-section": partial(cut_by, Astropy()),
    "indexed_gzip": indexed_gzip_rows,
    "rapidgzip": rapidgzip_rows,
    "gzip-program": partial(gunzip_by_program, at_once=False),
    "gzip-program-at-once": partial(gunzip_by_program, at_once=True),
    "gzip-python": partial(gunzip_by_module, module="gzip"),
    # zlib-ng by its Python binding.
    "zlib-ng": partial(gunzip_by_module, module="zlib_ng.gzip_ng"),
}


def by_file(targets: Sequence[Target]) -> Iterator[tuple[Path, list[Target]]]:
    """Targets that follow each other in the same file."""
    for path, group in itertools.groupby(targets, key=lambda target: target.file):
        yield path, list(group)


def section(target: Target) -> tuple[slice, slice]:
    """Box as NumPy slices (y, x)."""
    rows = slice(target.y0, target.y0 + target.height)
    return rows, slice(target.x0, target.x0 + target.width)


def out_path(out: Path, target: Target) -> Path:
    """Where the cut goes."""
    return out / f"{target.id}.fits"


def shift_crpix(header: Any, target: Target) -> None:
    """Move the reference pixel with the box."""
    header["CRPIX1"] = header["CRPIX1"] - target.x0
    header["CRPIX2"] = header["CRPIX2"] - target.y0


def write_bare(path: Path, pixels: np.ndarray) -> None:
    """Write pixels with the shortest header that describes them."""
    cards = [
        f"SIMPLE  = {'T':>20}",
        f"BITPIX  = {8 * pixels.itemsize:>20}",
        f"NAXIS   = {2:>20}",
        f"NAXIS1  = {pixels.shape[1]:>20}",
        f"NAXIS2  = {pixels.shape[0]:>20}",
        "END",
    ]
    header = "".join(f"{card:80}" for card in cards).ljust(BLOCK_BYTES).encode()
    path.write_bytes(header + pixels.tobytes() + bytes(-pixels.nbytes % BLOCK_BYTES))


def main() -> None:
    """Prepare one peer, untimed, then time it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("list", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, help="folder of the C program, and for indices")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # astropy's remarks on the header's dates
    index, cfitsio = args.work / f"index-{args.peer}", args.work / "cfitsio"
    job = Job(read_list(args.list), args.out, index, cfitsio)
    run = PEERS[args.peer](job)
    start = time.perf_counter()
    own_s = run()
    print(f"{own_s or time.perf_counter() - start:.6f}")


if __name__ == "__main__":
    main()
