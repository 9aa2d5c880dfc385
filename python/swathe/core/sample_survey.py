"""Make a synthetic survey to try Swathe on: SDSS-like frames and a list of stars.

Each frame is one image of 2048 x 1489 pixels with the look of an SDSS fpC frame (soft bias,
sky, noise, about 300 stars, a TAN WCS along a stripe of sky), written four times: plain,
gzip, bzip2 and tile-compressed with RICE_1. All four hold the same pixels.

Rules of this module and of `sample_frame`:

- A frame depends only on the recipe, the seed and its own number. The number of frames does not
  matter, so a larger sample contains the frames of a smaller one.
- The stars of a frame follow from the seed, without its pixels. So the list of targets can be
  made again without drawing a frame.
- A file gets its final name only when it is complete, so a file that exists is finished.
- Nothing here reads a clock: the same arguments give the same bytes (with the same zlib,
  numpy and astropy).
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from swathe.core.argument_checks import check_count
from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.host import cores
from swathe.core.outputs import EXISTS, check_output, write_file
from swathe.core.progress import progress_bar
from swathe.core.sample_frame import CUTOUT_PX, NAXIS1, RECIPE, draw, fits_bytes, good_stars, header

MOST_FRAMES = 999_999
MOST_TARGETS = 10_000_000
MOST_SEED = (1 << 63) - 1
HEAD_BYTES = 16 * 2880
"""Bytes of a frame that contain its cards, also of a compressed image."""

KINDS = ("fit", "fit.gz", "fit.bz2", "fit.fz")
"""File endings of the four files of each frame."""


def sample(
    folder: str | os.PathLike[str],
    *,
    frames: int = 60,
    seed: int = 1,
    targets: int = 2000,
    overwrite: bool = False,
    progress: bool = True,
) -> Path:
    """Make a small SDSS-like survey for trials, with a table of targets.

    A script that calls this needs the usual `if __name__ == "__main__":`, since the work is shared
    by new processes.

    Example:
        >>> table = swathe.sample("survey", frames=6)
        >>> swathe.cut_many(table, output="cutouts/")

    Args:
        folder: folder of the survey; made if missing.
        frames: number of frames, each 1489 x 2048 pixels (y, x) and 12 MB in its four kinds.
        seed: random seed; the same seed gives the same files.
        targets: number of rows of `targets.csv`.
        overwrite: whether files of another sample may be replaced.
        progress: whether to show a bar, if standard error is a terminal.

    Returns:
        Path of `targets.csv`: id, file, x, y, height, width; positions in zero-based pixels.

    Raises:
        TypeError: If `frames`, `seed` or `targets` is not a whole number.
        ValueError: If `frames` is below 1 or needs more than six digits, or `seed` or `targets` is
            below 0 or too large.
        OutputError: If the folder cannot be written, or holds other files.
    """
    with progress_bar("drawing", progress, frames) as show_count:
        try:
            return make_sample(
                folder,
                frames,
                seed,
                targets,
                lambda count, _frames: show_count(count),
                overwrite=overwrite,
            )
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{os.fspath(folder)}: {error}") from error


def make_sample(
    folder: str | os.PathLike[str],
    frames: int = 60,
    seed: int = 1,
    targets: int = 2000,
    progress: Callable[[int, int], None] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Make the sample survey in a folder, or finish an incomplete one.

    Existing frames of the same seed and recipe are kept. A sample of another seed or recipe, or
    another targets.csv, is replaced only with `overwrite`. The work is shared by new processes,
    one per core, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        folder: folder of the sample; made if missing.
        frames: number of frames, each about 12 MB in its four kinds.
        seed: seed of the stars and the noise, from 0.
        targets: number of rows of `targets.csv`, spread evenly over the frames and the four kinds.
            A frame has about 75 suitable stars; beyond that, stars are repeated.
        progress: function called as `progress(done, frames)` after each frame, in this process.
        overwrite: whether files of another sample are replaced.

    Returns:
        Path of `targets.csv`. Its columns are id, file (relative to the folder), x and y (a star's
        centre in zero-based pixels, as in astropy's `Cutout2D`), height and width (pixels), sorted
        by frame and then by kind.

    Raises:
        TypeError: If `frames`, `seed` or `targets` is not a whole number.
        ValueError: If `frames` is below 1 or needs more than six digits, or `seed` or `targets` is
            below 0 or too large.
        FileExistsError: If the folder holds frames but no `sample.json`, so they are not a sample,
            or if another file has the name of a frame.
        OSError: If the folder cannot be made or written.
    """
    check_count("frames", frames, MOST_FRAMES)
    check_count("seed", seed, MOST_SEED, least=0)
    check_count("targets", targets, MOST_TARGETS, least=0)
    path = Path(folder)
    _start(path, seed, overwrite)
    rows = "".join(_target_rows(frames, seed, targets))
    table = f"id,file,x,y,height,width\n{rows}".encode()
    if not overwrite:
        _check_same(path / "targets.csv", table)
    _make_frames(path, frames, seed, progress)
    _write_if_new(path / "targets.csv", table)
    _write_if_new(path / "sample.json", _label(seed, frames))
    return path / "targets.csv"


def frame_name(frame: int, kind: str) -> str:
    """Return the file name of a frame (numbered from 1) in one of the KINDS."""
    return f"frame-{frame:06d}.{kind}"


def _target_rows(frames: int, seed: int, targets: int) -> Iterator[str]:
    """Yield the lines of targets.csv after its head."""
    first = 0
    for frame in range(1, frames + 1):
        end = targets * frame // frames
        centres = good_stars(seed, frame) if end > first else []
        # Kinds are dealt out over the whole sample, so each has a quarter of the rows.
        order = sorted((row % len(KINDS), row) for row in range(first, end))
        for number, (kind, row) in enumerate(order, start=first + 1):
            x, y = centres[(row - first) % len(centres)]
            name = frame_name(frame, KINDS[kind])
            yield f"{number},{name},{x:.3f},{y:.3f},{CUTOUT_PX},{CUTOUT_PX}\n"
        first = end


def _check_same(path: Path, content: bytes) -> None:
    """Refuse to replace a file with other content.

    Raises:
        OutputExistsError: If the content differs.
    """
    if path.exists() and path.read_bytes() != content:
        raise OutputExistsError(f"{path}: {EXISTS}")


def _start(folder: Path, seed: int, overwrite: bool) -> None:
    """Prepare the folder: remove all frames of another seed or recipe."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        label = _read_label(folder)
        if label == (RECIPE, seed):
            return
        old = sorted(
            entry for kind in KINDS for entry in folder.glob(f"frame-{'[0-9]' * 6}.{kind}")
        )
        if old and label is None:
            raise FileExistsError(f"{old[0].name} exists but sample.json does not: not a sample")
        if label is not None and not overwrite:
            raise OutputExistsError(f"{folder}: a sample of another seed or recipe {EXISTS}")
        if label is not None:
            # The old label is removed last: after an interruption it still describes the frames
            # left.
            (folder / "targets.csv").unlink(missing_ok=True)
            for entry in old:
                if _is_frame(entry, *label):
                    entry.unlink()
        check_output(folder / "sample.json", overwrite=overwrite)
        _write(folder / "sample.json", _label(seed, 0))
    except OutputExistsError:
        raise
    except OSError as error:
        raise type(error)(f"cannot make a sample in {os.fspath(folder)!r}: {error}") from error


def _label(seed: int, frames: int) -> bytes:
    """Return the content of sample.json; `frames` is 0 until all are made."""
    return (json.dumps({"recipe": RECIPE, "seed": seed, "frames": frames}) + "\n").encode()


def _read_label(folder: Path) -> tuple[int, int] | None:
    """Return recipe and seed of the sample in a folder, or `None` if it holds no sample."""
    path = folder / "sample.json"
    try:
        # A pipe would be waited for, and a device read without an end.
        if not path.is_file() or path.stat().st_size > HEAD_BYTES:
            return None
        label = json.loads(path.read_bytes())
        return int(label["recipe"]), int(label["seed"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _is_frame(path: Path, recipe: int, seed: int) -> bool:
    """Check whether a file is a frame of a sample, by the cards of its header."""
    _, number, kind = path.name.replace("-", ".", 1).split(".", 2)
    values = {"RECIPE": recipe, "SEED": seed, "FRAME": int(number)}
    cards = [f"{name:<8}= {value:>20}".encode() for name, value in values.items()]
    open_file: Any = {"fit.gz": gzip.open, "fit.bz2": bz2.open}.get(kind, open)
    try:
        with open_file(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return False
    return all(card in head for card in (b"ORIGIN  = 'Swathe  '", *cards))


def _make_frames(
    folder: Path, frames: int, seed: int, progress: Callable[[int, int], None] | None
) -> None:
    """Make the missing frames, one process per core.

    Raises:
        OutputExistsError: If a file of another origin has the name of a missing frame.
    """
    missing = []
    for frame in range(1, frames + 1):
        files = [folder / frame_name(frame, kind) for kind in KINDS]
        existing = [file for file in files if os.path.lexists(file)]
        if len(existing) == len(KINDS):
            continue
        missing.append(frame)
        for file in existing:
            if not _is_frame(file, RECIPE, seed):
                raise OutputExistsError(
                    f"{file}: expected a frame of this sample, found another file; move it away"
                )
    for count, _ in enumerate(_make_each(folder, seed, missing), start=frames - len(missing) + 1):
        if progress is not None:
            progress(count, frames)


def _make_each(folder: Path, seed: int, missing: list[int]) -> Iterator[None]:
    """Make frames, and yield after each is finished."""
    workers = min(cores(), len(missing))
    if workers < 2:
        for frame in missing:
            _make_frame(folder, seed, frame)
            yield
        return

    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Spawned, not forked: the caller may have threads, and a fork copies their locks as they are.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(_make_frame, folder, seed, n) for n in missing]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _make_frame(folder: Path, seed: int, frame: int) -> None:
    """Draw one frame and write its four files.

    astropy stores the unsigned pixels as BITPIX 16 with BZERO 32768, and a row per RICE_1
    tile as fpack does, which is lossless for integers.
    """
    from astropy.io import fits

    pixels, cards = draw(seed, frame), header(seed, frame)
    plain = fits_bytes([fits.PrimaryHDU(pixels, cards)])
    rice = fits.CompImageHDU(pixels, cards, compression_type="RICE_1", tile_shape=(1, NAXIS1))
    contents = {
        "fit": plain,
        # The SDSS archive uses gzip, unchanged here.
        "fit.gz": gzip.compress(plain, compresslevel=6, mtime=0),
        "fit.bz2": bz2.compress(plain),
        "fit.fz": fits_bytes([fits.PrimaryHDU(), rice]),
    }
    for kind in KINDS:
        _write(folder / frame_name(frame, kind), contents[kind])


def _write(path: Path, content: bytes) -> None:
    """Write a file of the sample, or replace it."""
    write_file(path, lambda file: file.write(content), overwrite=True)


def _write_if_new(path: Path, content: bytes) -> None:
    """Write a file unless it has this content already."""
    if not path.exists() or path.read_bytes() != content:
        _write(path, content)
