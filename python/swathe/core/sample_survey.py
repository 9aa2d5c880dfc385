"""Make a synthetic survey to try Swathe on: SDSS-like frames and a list of stars.

Each frame is one image of 2048 x 1489 pixels with the look of an SDSS fpC frame (soft bias,
sky, noise, about 300 stars, a TAN WCS along a stripe of sky), written four times: plain,
gzip, bzip2 and tile-compressed with RICE_1. All four hold the same pixels.

Rules of this module:

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
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.argument_checks import check_count
from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.host import cores
from swathe.core.outputs import EXISTS, check_output, write_file
from swathe.core.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np
    from astropy.io import fits
    from numpy.typing import NDArray

RECIPE = 2
"""Version of the recipe; raise it when the same seed gives different bytes."""

MOST_FRAMES = 999_999
MOST_TARGETS = 10_000_000
MOST_SEED = (1 << 63) - 1
HEAD_BYTES = 16 * 2880
"""Bytes of a frame that contain its cards, also of a compressed image."""

KINDS = ("fit", "fit.gz", "fit.bz2", "fit.fz")
"""File endings of the four files of each frame."""

NAXIS1, NAXIS2 = 2048, 1489
PIXEL_ARCSEC = 0.396
FWHM_ARCSEC = 1.2
SOFTBIAS = 1000
GAIN = 3.9  # electrons per count
DARK_VARIANCE = 2.2  # counts squared: read noise and dark current
SATURATION = 65535

STARS = 300
FAINTEST_PEAK = 30.0  # counts above the sky, about five sigma
BRIGHTEST_PEAK = 2e6  # far beyond saturation; bounds the time to draw a star
FLUX_SLOPE = 0.6  # N(brighter than f) goes as f ** -slope; two or three stars in 300 saturate

# A Moffat profile with beta = 3 needs only products and quotients, which IEEE 754 rounds
# alike on every machine, and its wings let a bright star fade softly.
MOFFAT_ALPHA_PX = FWHM_ARCSEC / PIXEL_ARCSEC / (2 * (2 ** (1 / 3) - 1) ** 0.5)

CUTOUT_PX = 100
TARGET_PEAKS = (150.0, 50000.0)  # counts above the sky: bright, yet not saturated
LONELY_PX = 30.0  # no star with over 2 % of a target's flux is closer than this

# Stripe 82 lies along the equator. SDSS frames of 1489 rows overlap the next by 128.
STRIPE_RA_DEG, STRIPE_DEC_DEG = 10.0, -1.05
STEP_DEG = (NAXIS2 - 128) * PIXEL_ARCSEC / 3600
FRAMES_PER_TURN = int(360 / STEP_DEG)
STRIP_DEC_DEG = 0.21  # between two turns of the sky
TILT_DEG = 2.0  # of the rows against the meridian
EXPTIME_S = 53.907456  # a star's drift over the 2048 rows of an SDSS detector
STEP_S = (NAXIS2 - 128) * EXPTIME_S / 2048
FIRST_TAI_S = 51813 * 86400  # 2000-09-26, in seconds since MJD 0


@dataclass(frozen=True)
class Stars:
    """Stars of one frame, brightest first; all arrays have shape (STARS,).

    Attributes:
        x: centres in zero-based pixels along NAXIS1, rounded to 0.001 pixel. The profile is drawn
            at the rounded position, so these are exact and not a measurement.
        y: centres along NAXIS2, likewise.
        peak: height of the profile above the sky at its centre, in counts, before saturation.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    peak: NDArray[np.float64]


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
    with progress_bar("drawing", progress, frames) as show_done:
        try:
            return make_sample(
                folder,
                frames,
                seed,
                targets,
                lambda count, _frames: show_done(count),
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


def stars(seed: int, frame: int) -> Stars:
    """Return the stars of a frame (numbered from 1)."""
    import numpy as np

    rng = _generator(seed, frame, "stars")
    # Rounded to the three decimals of targets.csv, so that both agree.
    x = np.round(rng.uniform(0, NAXIS1 - 1, STARS), 3)
    y = np.round(rng.uniform(0, NAXIS2 - 1, STARS), 3)
    peak = FAINTEST_PEAK * (1 - rng.random(STARS)) ** (-1 / FLUX_SLOPE)
    peak = np.minimum(peak, BRIGHTEST_PEAK)
    order = np.argsort(-peak)
    return Stars(x[order], y[order], peak[order])


def draw(seed: int, frame: int) -> NDArray[np.uint16]:
    """Draw the pixels of a frame (numbered from 1).

    Returns:
        Counts as uint16, shape (NAXIS2, NAXIS1): soft bias, sky, stars and noise, clipped at
        SATURATION.
    """
    import numpy as np

    rng = _generator(seed, frame, "noise")
    light = np.full((NAXIS2, NAXIS1), rng.uniform(95, 110), dtype=np.float32)
    catalogue = stars(seed, frame)
    for x, y, peak in zip(catalogue.x, catalogue.y, catalogue.peak, strict=True):
        _add_star(light, float(x), float(y), float(peak))
    noise = rng.standard_normal(light.shape, dtype=np.float32)
    noise *= np.sqrt(light / np.float32(GAIN) + np.float32(DARK_VARIANCE))
    light += noise
    light += np.float32(SOFTBIAS)
    np.rint(light, out=light)
    return np.clip(light, 0, SATURATION, out=light).astype(np.uint16)


def header(seed: int, frame: int) -> fits.Header:
    """Return the header of a frame (numbered from 1), as in SDSS, with a TAN WCS.

    The scan runs along NAXIS2 with right ascension, so the CD matrix is a quarter turn, a
    flip and the small TILT_DEG; CRPIX is the centre of the frame.
    """
    import math
    from datetime import datetime, timedelta

    from astropy.io import fits

    turn, step = divmod(frame - 1, FRAMES_PER_TURN)
    ra_deg = (STRIPE_RA_DEG + step * STEP_DEG) % 360
    dec_deg = STRIPE_DEC_DEG + turn * STRIP_DEC_DEG
    tai_s = FIRST_TAI_S + (frame - 1) * STEP_S
    began = datetime(1858, 11, 17) + timedelta(seconds=tai_s)
    along = PIXEL_ARCSEC / 3600 * math.cos(math.radians(TILT_DEG))
    across = PIXEL_ARCSEC / 3600 * math.sin(math.radians(TILT_DEG))
    run, camcol, field = 1000 + seed % 9000, 1 + turn % 6, 10 + step
    cards: list[tuple[str, str | int | float, str]] = [
        ("TELESCOP", "2.5m", "made up after the Sloan telescope"),
        ("ORIGIN", "Swathe", "sample survey, not an observation"),
        ("FLAVOR", "science", "Flavor of this run"),
        ("OBJECT", "82 N", "e.g., 'stripe 50.6 degrees, north strip'"),
        ("OBSERVER", "swathe", "Observer"),
        ("STRIPE", 82, "Stripe index number"),
        ("STRIP", "N", "Strip in the stripe being tracked"),
        ("RUN", run, "Run number"),
        ("CAMCOL", camcol, "Column in the imaging camera"),
        ("CAMROW", 1, "Row in the imaging camera"),
        ("CCDLOC", 10 + camcol, "Survey location of CCD (e.g., rowCol)"),
        ("FILTER", "r", "Filter used"),
        ("FRAME", frame, "Frame sequence number within the run"),
        ("FIELD", field, "Field sequence number within the turn"),
        ("SEED", seed, "Seed of the sample"),
        ("RECIPE", RECIPE, "Version of the recipe of the sample"),
        ("TIMESYS", "TAI", "Time system"),
        ("DATE-OBS", began.isoformat(timespec="milliseconds"), "TAI date and time at row 0"),
        # Without this card astropy would add it to the WCS and warn.
        ("MJD-OBS", round(tai_s / 86400, 8), "[d] TAI at row 0"),
        ("TAIHMS", f"{began:%H:%M:%S.%f}"[:11], "TAI time at row 0 (HH:MM:SS.ss)"),
        ("TAI", round(tai_s, 3), "[s] since MJD 0, at row 0"),
        ("EXPTIME", EXPTIME_S, "[s] Exposure time"),
        ("DRIFTSCA", 1, "Taken in drift scan mode"),
        ("BUNIT", "DNs", "Unit of the pixels"),
        ("SOFTBIAS", SOFTBIAS, "Software bias added to all DN"),
        ("GAIN", GAIN, "Electrons per DN"),
        ("DARKVAR", DARK_VARIANCE, "[DN**2] Dark current and read noise"),
        ("SATURATE", SATURATION, "DN at which a pixel is full"),
        ("FWHM", FWHM_ARCSEC, "[arcsec] Full width at half maximum of a star"),
        ("BADLINES", 0, "Number of bad lines in frame"),
        ("RADESYS", "ICRS", "Celestial frame"),
        ("EQUINOX", 2000.0, "[yr] Equinox"),
        ("RA", round(ra_deg, 6), "[deg] of the frame's centre"),
        ("DEC", round(dec_deg, 6), "[deg] of the frame's centre"),
        ("SPA", 90.0 + TILT_DEG, "[deg] Scan position angle"),
        ("IPA", 82.5, "[deg] Instrument rotator position angle"),
        ("CTYPE1", "RA---TAN", "Gnomonic projection"),
        ("CTYPE2", "DEC--TAN", "Gnomonic projection"),
        ("CUNIT1", "deg", "Unit of CRVAL1"),
        ("CUNIT2", "deg", "Unit of CRVAL2"),
        ("CRPIX1", (NAXIS1 + 1) / 2, "Column of the reference point, from 1"),
        ("CRPIX2", (NAXIS2 + 1) / 2, "Row of the reference point, from 1"),
        ("CRVAL1", round(ra_deg, 9), "[deg] RA of the reference point"),
        ("CRVAL2", round(dec_deg, 9), "[deg] Dec of the reference point"),
        ("CD1_1", round(across, 15), "[deg] RA per column"),
        ("CD1_2", round(along, 15), "[deg] RA per row"),
        ("CD2_1", round(along, 15), "[deg] Dec per column"),
        ("CD2_2", round(-across, 15), "[deg] Dec per row"),
        ("VERSION", "v5_6_3", "Version of the pipeline imitated"),
    ]
    result = fits.Header(cards)
    result["COMMENT"] = "Made by swathe.core.sample_survey in the likeness of an SDSS fpC frame."
    result["COMMENT"] = "Stars and noise are drawn from a seed; the sky position is fictitious."
    result["HISTORY"] = "bias, sky, Moffat stars (beta = 3), noise, clipping"
    return result


def _generator(seed: int, frame: int, part: str) -> np.random.Generator:
    """Return a random generator for one part of one frame, independent of all others."""
    import numpy as np

    key = (RECIPE, frame, ("stars", "noise").index(part))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _add_star(light: NDArray[np.float32], x: float, y: float, peak: float) -> None:
    """Add a Moffat star to the image in place, out to the radius where it has 0.1 counts."""
    import numpy as np

    reach = int(MOFFAT_ALPHA_PX * (peak / 0.1) ** (1 / 6)) + 2
    left, low = max(0, round(x) - reach), max(0, round(y) - reach)
    stamp = light[low : round(y) + reach + 1, left : round(x) + reach + 1]
    dy = (np.arange(stamp.shape[0]) + (low - y)) / MOFFAT_ALPHA_PX
    dx = (np.arange(stamp.shape[1]) + (left - x)) / MOFFAT_ALPHA_PX
    base = 1 + (dy * dy)[:, None] + (dx * dx)[None, :]
    stamp += (peak / (base * base * base)).astype(np.float32)


def _good_stars(seed: int, frame: int) -> list[tuple[float, float]]:
    """Return the centres (x, y) in pixels of the stars fit to be targets, brightest first.

    They are bright but not saturated, half a cutout from every edge, and alone: no
    neighbour pulls the centroid of their light.
    """
    import numpy as np

    catalogue = stars(seed, frame)
    margin = CUTOUT_PX // 2
    inside = (catalogue.x >= margin) & (catalogue.x <= NAXIS1 - 1 - margin)
    inside &= (catalogue.y >= margin) & (catalogue.y <= NAXIS2 - 1 - margin)
    bright = (catalogue.peak >= TARGET_PEAKS[0]) & (catalogue.peak <= TARGET_PEAKS[1])
    near = (
        np.hypot(catalogue.x[:, None] - catalogue.x, catalogue.y[:, None] - catalogue.y) < LONELY_PX
    )
    near &= catalogue.peak > 0.02 * catalogue.peak[:, None]
    alone = near.sum(axis=1) == 1  # itself
    chosen = np.flatnonzero(inside & bright & alone)
    return [(float(catalogue.x[star]), float(catalogue.y[star])) for star in chosen]


def _target_rows(frames: int, seed: int, targets: int) -> Iterator[str]:
    """Yield the lines of targets.csv after its head."""
    first = 0
    for frame in range(1, frames + 1):
        end = targets * frame // frames
        centres = _good_stars(seed, frame) if end > first else []
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


def fits_bytes(hdus: list[fits.PrimaryHDU | fits.CompImageHDU]) -> bytes:
    """Return the bytes of a FITS file with these HDUs."""
    from astropy.io import fits

    file = io.BytesIO()
    fits.HDUList(hdus).writeto(file)
    return file.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Write a file of the sample, or replace it."""
    write_file(path, lambda file: file.write(content), overwrite=True)


def _write_if_new(path: Path, content: bytes) -> None:
    """Write a file unless it has this content already."""
    if not path.exists() or path.read_bytes() != content:
        _write(path, content)
