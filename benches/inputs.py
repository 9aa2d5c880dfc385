"""The files the benchmarks cut from, and the boxes cut from them.

Frames come from `swathe.core.sample_survey` (kept under build/bench/sample between runs). A
benchmark that wants more files than there are frames gets copies under other names: copies, not
links, because an index keeps files apart and so should the page cache.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from astropy.io import fits

from swathe.core.sample_survey import frame_name, make_sample
from targets import Target

SEED = 1
BOX_PX = 100
DISTINCT_FRAMES = 40

SAMPLE_KINDS = {"plain": "fit", "gz": "fit.gz", "bz2": "fit.bz2", "RICE_1": "fit.fz"}
"""Kinds the sample already holds, by file ending."""

MADE_KINDS = ("HCOMPRESS_1", "GZIP_1", "GZIP_2", "PLIO_1")
"""Tile codecs made here from the plain frames."""


class Inputs:
    """Files by kind, made when first asked for.

    Parameters
    ----------
    kept
        Folder for the sample, left in place for the next run.
    folder
        Folder for the files cut from, on a memory disk when there is room.
    frames
        How many distinct frames there are.

    """

    def __init__(self, kept: Path, folder: Path, frames: int) -> None:
        self.kept, self.folder, self.frames = kept, folder, frames
        make_sample(kept, frames=frames, seed=SEED, targets=frames)
        first = kept / frame_name(1, SAMPLE_KINDS["plain"])
        with fits.open(first) as hdus:
            self.data_start: int = hdus[0].fileinfo()["datLoc"]
            self.pixel_bytes: int = abs(hdus[0].header["BITPIX"]) // 8
            self.row_pixels: int = hdus[0].header["NAXIS1"]
            self.rows: int = hdus[0].header["NAXIS2"]

    def files(self, kind: str, count: int) -> list[Path]:
        """Paths of that many files of a kind; the frames repeat as copies."""
        folder = self.folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for number in range(count):
            frame = number % self.frames + 1
            path = folder / f"copy{number // self.frames:02d}-{self._name(kind, frame)}"
            if not path.exists():
                shutil.copyfile(self._original(kind, frame), path)
            paths.append(path)
        return paths

    def targets(self, kind: str, files: int, cuts: int) -> list[Target]:
        """Cuts of BOX_PX x BOX_PX at random places, all those of a file in a row."""
        draw = random.Random(SEED)
        shape = (self.data_start, self.row_pixels, self.pixel_bytes)
        made = []
        for number, path in enumerate(self.files(kind, files)):
            for cut in range(cuts):
                x0 = draw.randrange(self.row_pixels - BOX_PX)
                y0 = draw.randrange(self.rows - BOX_PX)
                name = f"{number:03d}-{cut:04d}"
                made.append(Target(path, *shape, x0, y0, BOX_PX, BOX_PX, name))
        return made

    def drop(self, kind: str) -> None:
        """Remove the copies of a kind, to free the memory disk."""
        shutil.rmtree(self.folder / kind, ignore_errors=True)

    @staticmethod
    def _name(kind: str, frame: int) -> str:
        return frame_name(frame, SAMPLE_KINDS.get(kind, f"{kind}.fits.fz"))

    def _original(self, kind: str, frame: int) -> Path:
        path = self.kept / self._name(kind, frame)
        if not path.exists():
            MAKERS[kind](self.kept / frame_name(frame, SAMPLE_KINDS["plain"]), path)
        return path


def _make_tiles(codec: str, tile_rows: int = 1) -> Callable[[Path, Path], None]:
    """Maker of files with lossless tiles of one codec."""

    def make(plain: Path, out: Path) -> None:
        with fits.open(plain) as hdus:
            pixels, header = hdus[0].data, hdus[0].header
        if codec == "PLIO_1":
            pixels = as_mask(pixels)
        tile = (tile_rows, pixels.shape[1])
        hdu = fits.CompImageHDU(pixels, header, compression_type=codec, tile_shape=tile)
        part = out.with_name(f".{out.name}.part")
        fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(part, overwrite=True)
        part.rename(out)

    return make


def as_mask(pixels: np.ndarray) -> np.ndarray:
    """Small positive numbers in runs, which is what PLIO is for: 0 in the sky, steps on stars."""
    steps = (pixels.astype(np.int32) - int(np.median(pixels))) // 64
    return np.clip(steps, 0, 1023).astype(np.int16)


# 16 rows would leave a last tile of one row, which HCOMPRESS forbids; cfitsio then takes 20.
MAKERS = {kind: _make_tiles(kind, 20 if kind == "HCOMPRESS_1" else 1) for kind in MADE_KINDS}
