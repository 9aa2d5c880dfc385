"""What this host takes to make cuts of what it has read, by kind of file.

Measured with the native half's own clock on made frames in a temporary folder, one thread, in
page cache: the part of a cut's time that no store changes.
"""

from __future__ import annotations

import bz2
import gzip
import os
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.many import cut_many
from swathe.sample import NAXIS1, NAXIS2, draw, header

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK_ROWS = 512
CUTS, SIDE = 24, 16
REPEATS, QUICK_REPEATS = 7, 3


@dataclass(frozen=True)
class Speed:
    """Cost of one kind of file.

    Attributes
    ----------
    s_per_cut
        For each cut, whatever its size; with seek points, also the way from the nearest one.
    s_per_byte
        For each byte that is unpacked.
    spread
        Largest relative half range of the two over the repeats.

    """

    s_per_cut: float
    s_per_byte: float
    spread: float


def decode_speeds(quick: bool = False) -> dict[str, Speed]:
    """Measure this host.

    Returns
    -------
    dict
        `plain`, `gz`, `bz2` and `rice`, bytes counted as unpacked; `gz-indexed` and
        `bz2-indexed`, where seek points are known; `output`, bytes counted as written: putting
        together, hashing and writing the pixels of a cut.

    """
    repeats = QUICK_REPEATS if quick else REPEATS
    with tempfile.TemporaryDirectory(prefix="swathe-decode-") as name:
        folder = Path(name)
        files = _make_frames(folder, QUICK_ROWS if quick else NAXIS2)
        measured: dict[str, list[tuple[float, float]]] = {}
        for turn in range(repeats):
            with _index_in(folder / f"index-{turn}"):
                for kind, file in files.items():
                    for found, pair in _measure(kind, file, folder / f"{kind}-{turn}").items():
                        measured.setdefault(found, []).append(pair)
    return {kind: _speed(pairs) for kind, pairs in measured.items()}


def _measure(kind: str, file: _File, output: Path) -> dict[str, tuple[float, float]]:
    """Seconds per cut and per byte of a kind, once."""
    whole = _cut(file, output / "whole", [(0, 0, NAXIS1, file.rows)])
    # At the end, where the way is longest without seek points.
    places = [(37 * turn, file.rows - SIDE, SIDE, SIDE) for turn in range(CUTS)]
    few = _cut(file, output / "few", places)
    one = _cut(file, output / "one", [(7, file.rows // 2 + 9, SIDE, SIDE)])
    unpacking = whole["read_s"] + whole["decode_s"]
    making = sum(whole[f"{stage}_s"] for stage in ("assemble", "hash", "write"))
    per_cut = sum(few[f"{stage}_s"] for stage in ("assemble", "hash", "write")) / CUTS
    found = {kind: (per_cut + few["open_s"] / CUTS, unpacking / file.bytes)}
    if kind == "plain":
        found["output"] = per_cut, making / file.bytes
    if kind in ("gz", "bz2"):
        found[f"{kind}-indexed"] = per_cut + one["read_s"] + one["open_s"], unpacking / file.bytes
    return found


def _speed(pairs: list[tuple[float, float]]) -> Speed:
    per_cut, per_byte = zip(*pairs, strict=True)
    return Speed(
        statistics.median(per_cut),
        statistics.median(per_byte),
        max((max(of) - min(of)) / 2 / statistics.median(of) for of in (per_cut, per_byte)),
    )


@dataclass(frozen=True)
class _File:
    """A frame as a file; `bytes` of pixels."""

    path: Path
    rows: int
    bytes: int


def _make_frames(folder: Path, rows: int) -> dict[str, _File]:
    """Write one frame in all kinds, as swathe.sample does."""
    import io

    from astropy.io import fits

    pixels, cards = draw(1, 1)[:rows], header(1, 1)
    stored = io.BytesIO()
    fits.PrimaryHDU(pixels, cards).writeto(stored)
    plain = stored.getvalue()
    packed = io.BytesIO()
    rice = fits.CompImageHDU(pixels, cards, compression_type="RICE_1", tile_shape=(1, NAXIS1))
    fits.HDUList([fits.PrimaryHDU(), rice]).writeto(packed)
    contents = {
        "plain": (".fit", plain),
        "gz": (".fit.gz", gzip.compress(plain, compresslevel=6, mtime=0)),
        "bz2": (".fit.bz2", bz2.compress(plain)),
        "rice": (".fit.fz", packed.getvalue()),
    }
    files = {}
    for kind, (suffix, content) in contents.items():
        files[kind] = _File(folder / f"frame{suffix}", rows, pixels.nbytes)
        files[kind].path.write_bytes(content)
    return files


def _cut(file: _File, output: Path, boxes: list[tuple[int, int, int, int]]) -> dict[str, Any]:
    """Seconds by stage of these cuts (x0, y0, width, height), on one thread."""
    columns = zip(("x0", "y0", "width", "height"), zip(*boxes, strict=True), strict=True)
    targets = {"file": [str(file.path)] * len(boxes), **{name: list(of) for name, of in columns}}
    meta: dict[str, Any] = cut_many(targets, output, threads=1, progress=False).meta
    return meta


@contextmanager
def _index_in(folder: Path) -> Iterator[None]:
    """Keep seek points in a folder of our own: none are there yet, and the user's stay apart."""
    usual = os.environ.get("SWATHE_INDEX_DIR")
    os.environ["SWATHE_INDEX_DIR"] = str(folder)
    try:
        yield
    finally:
        if usual is None:
            del os.environ["SWATHE_INDEX_DIR"]
        else:
            os.environ["SWATHE_INDEX_DIR"] = usual
