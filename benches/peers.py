"""The Python peers: each cuts a list of targets and prints the seconds it took.

    python benches/peers.py PEER LIST OUTDIR [--index-dir FOLDER]

Imports and the building of an index that a peer keeps are not timed. Peers that only inflate
("first touch") read every file of the list whole and write nothing.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import itertools
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from targets import Target, read_list

Run = Callable[[], None]

BLOCK_BYTES = 2880


@dataclass(frozen=True)
class Job:
    """What to cut, where to put it, and where an index is kept."""

    targets: Sequence[Target]
    out: Path
    index: Path


def fitsio_sections(job: Job) -> Run:
    """Read a section with fitsio, shift CRPIX, write it; a file stays open over its targets."""
    import fitsio

    def run() -> None:
        for path, group in by_file(job.targets):
            with fitsio.FITS(str(path)) as file:
                hdu = file[-1]
                for target in group:
                    header = hdu.read_header()
                    shift_crpix(header, target)
                    fitsio.write(
                        str(out_path(job.out, target)), hdu[section(target)], header=header
                    )

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
                        made = cutout.write_image(hdu[section(target)], header=hdu.header)
                        shift_crpix(made.header, target)

    return run


def astropy_cutouts(job: Job, reopen: bool, use_section: bool = False) -> Run:
    """Cutout2D with its WCS put into the header, then writeto."""
    from astropy.io import fits
    from astropy.nddata import Cutout2D
    from astropy.wcs import WCS

    def cut(hdu: Any, target: Target) -> None:
        pixels = hdu.section if use_section else hdu.data
        centre = (target.x0 + (target.width - 1) / 2, target.y0 + (target.height - 1) / 2)
        size = (target.height, target.width)
        cutout = Cutout2D(pixels, centre, size, wcs=WCS(hdu.header))
        header = hdu.header.copy()
        header.update(cutout.wcs.to_header())
        fits.PrimaryHDU(np.asarray(cutout.data), header).writeto(out_path(job.out, target))

    def run() -> None:
        groups = ((t.file, [t]) for t in job.targets) if reopen else by_file(job.targets)
        for path, group in groups:
            # The default: a memory map, except that astropy reads where it must scale (BZERO).
            with fits.open(path) as hdus:
                for target in group:
                    cut(hdus[-1], target)

    return run


def astropy_reopen(job: Job) -> Run:
    """astropy, the file opened again for every target."""
    return astropy_cutouts(job, reopen=True)


def astropy_keep_open(job: Job) -> Run:
    """astropy, a file open over its targets."""
    return astropy_cutouts(job, reopen=False)


def astropy_section(job: Job) -> Run:
    """Astropy as an expert uses it: Cutout2D of `hdu.section`, a file open over its targets."""
    return astropy_cutouts(job, reopen=False, use_section=True)


def indexed_gzip_rows(job: Job) -> Run:
    """indexed_gzip with an index kept in a file; rows of the box sliced by numpy."""
    import indexed_gzip

    def build(path: Path, kept: Path) -> None:
        with indexed_gzip.IndexedGzipFile(str(path)) as stream:
            stream.build_full_index()
            stream.export_index(str(kept))

    def open_kept(path: Path, kept: Path) -> AbstractContextManager[Any]:
        made: AbstractContextManager[Any] = indexed_gzip.IndexedGzipFile(
            str(path), index_file=str(kept)
        )
        return made

    return seek_and_slice(job, build, open_kept)


def rapidgzip_rows(job: Job) -> Run:
    """Rapidgzip on one thread with an index kept in a file; rows sliced by numpy."""
    import rapidgzip

    def build(path: Path, kept: Path) -> None:
        with rapidgzip.open(str(path), parallelization=1) as stream:
            stream.export_index(str(kept))

    def open_kept(path: Path, kept: Path) -> AbstractContextManager[Any]:
        stream: AbstractContextManager[Any] = rapidgzip.open(str(path), parallelization=1)
        stream.import_index(str(kept))  # type: ignore[attr-defined]
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

    def kept(path: Path) -> Path:
        return job.index / f"{path.name}.index"

    for path in {target.file for target in job.targets}:
        if not kept(path).exists():
            build(path, kept(path))

    def cut(stream: Any, t: Target) -> None:
        stream.seek(t.data_start + t.y0 * t.row_pixels * t.pixel_bytes)
        rows = stream.read(t.height * t.row_pixels * t.pixel_bytes)
        pixels = np.frombuffer(rows, f">i{t.pixel_bytes}").reshape(t.height, t.row_pixels)
        write_bare(out_path(job.out, t), pixels[:, t.x0 : t.x0 + t.width])

    def run() -> None:
        for path, group in by_file(job.targets):
            with open_kept(path, kept(path)) as stream:
                for target in group:
                    cut(stream, target)

    return run


def gunzip_program(job: Job) -> Run:
    """`gzip -dc file > /dev/null`, the program started for every file."""

    def run() -> None:
        for path, _ in by_file(job.targets):
            subprocess.run(["gzip", "-dc", path], stdout=subprocess.DEVNULL, check=True)

    return run


def gunzip_program_at_once(job: Job) -> Run:
    """`gzip -dc` of all files in one call: without the cost of starting the program."""

    def run() -> None:
        files = [path for path, _ in by_file(job.targets)]
        subprocess.run(["gzip", "-dc", *files], stdout=subprocess.DEVNULL, check=True)

    return run


def gunzip_python(job: Job) -> Run:
    """Python's gzip module."""

    def run() -> None:
        for path, _ in by_file(job.targets):
            with gzip.open(path) as stream:
                stream.read()

    return run


def gunzip_zlib_ng(job: Job) -> Run:
    """zlib-ng through its Python binding."""
    zlib_ng = importlib.import_module("zlib_ng.gzip_ng")

    def run() -> None:
        for path, _ in by_file(job.targets):
            with zlib_ng.open(path) as stream:
                stream.read()

    return run


PEERS = {
    "fitsio": fitsio_sections,
    "rustfits": rustfits_sections,
    "astropy-reopen": astropy_reopen,
    "astropy-keep-open": astropy_keep_open,
    "astropy-section": astropy_section,
    "indexed_gzip": indexed_gzip_rows,
    "rapidgzip": rapidgzip_rows,
    "gzip-program": gunzip_program,
    "gzip-program-at-once": gunzip_program_at_once,
    "gzip-python": gunzip_python,
    "zlib-ng": gunzip_zlib_ng,
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
    parser.add_argument("--index-dir", type=Path, default=Path("/tmp/peer-index"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # astropy's remarks on the header's dates
    run = PEERS[args.peer](Job(read_list(args.list), args.out, args.index_dir / args.peer))
    start = time.perf_counter()
    run()
    print(f"{time.perf_counter() - start:.6f}")


if __name__ == "__main__":
    main()
