"""Cuts to make, contenders that make them, and timing these in turn.

A contender is a program that is given a list of cuts and a folder and prints the seconds it
took. Contenders of one comparison run in rounds, one after the other, starting from another one
each round, so that a slow minute of the machine falls on all of them. A ratio is taken within
a round; what is reported is the median over the rounds.
"""

from __future__ import annotations

import operator
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from astropy.io import fits

from swathe.core.sample_survey import frame_name

SEED = 1
BOX_PX = 100
DISTINCT_FRAMES = 40

SAMPLE_KINDS = {"plain": "fit", "gz": "fit.gz", "bz2": "fit.bz2", "RICE_1": "fit.fz"}
"""Kinds the sample already holds, by file ending."""


@dataclass(frozen=True)
class Target:
    """One cut, as the programs read it from a line of a list; pixels count from 0.

    Attributes
    ----------
    data_start, row_pixels, pixel_bytes
        Where the pixels of the (uncompressed) file start, and its row length and pixel size.

    """

    x0: int
    y0: int
    width: int
    height: int
    data_start: int
    row_pixels: int
    pixel_bytes: int
    id: str
    file: Path

    def line(self) -> str:
        """Target as a line of a list."""
        return " ".join(str(value) for value in vars(self).values()) + "\n"


def read_list(path: Path) -> list[Target]:
    """Read a list of targets, one a line."""
    targets = []
    for line in path.read_text().splitlines():
        *words, name, file = line.split(" ", 8)
        x0, y0, width, height, start, row, size = (int(word) for word in words)
        targets.append(Target(x0, y0, width, height, start, row, size, name, Path(file)))
    return targets


class Inputs:
    """Files by kind, made when first asked for.

    A comparison that wants more files than there are frames gets copies under other names: copies,
    not links, because an index keeps files apart and so should the page cache.

    Parameters
    ----------
    sample
        Folder of the sample survey; tiles of other codecs are left there for the next run.
    folder
        Folder for the files cut from, on a memory disk when there is room.
    frames
        How many distinct frames there are.

    """

    def __init__(self, sample: Path, folder: Path, frames: int) -> None:
        self.sample, self.folder, self.frames = sample, folder, frames
        first = sample / frame_name(1, SAMPLE_KINDS["plain"])
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
        result = []
        for number, path in enumerate(self.files(kind, files)):
            for cut in range(cuts):
                x0 = draw.randrange(self.row_pixels - BOX_PX)
                y0 = draw.randrange(self.rows - BOX_PX)
                name = f"{number:03d}-{cut:04d}"
                result.append(Target(x0, y0, BOX_PX, BOX_PX, *shape, name, path))
        return result

    @staticmethod
    def _name(kind: str, frame: int) -> str:
        return frame_name(frame, SAMPLE_KINDS.get(kind, f"{kind}.fits.fz"))

    def _original(self, kind: str, frame: int) -> Path:
        path = self.sample / self._name(kind, frame)
        if not path.exists():
            MAKERS[kind](self.sample / frame_name(frame, SAMPLE_KINDS["plain"]), path)
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
TILE_ROWS = {"HCOMPRESS_1": 20, "GZIP_1": 1, "GZIP_2": 1, "PLIO_1": 1}
MAKERS = {kind: _make_tiles(kind, rows) for kind, rows in TILE_ROWS.items()}


class ContenderError(Exception):
    """A contender could not do its part."""


@dataclass(frozen=True)
class Contender:
    """A program to time.

    Attributes
    ----------
    before, after
        Its command line around ``LIST OUTDIR``; ``{work}`` is the work folder.
    per_file, files
        How many cuts a file, of how many files of the list it is given; None for all. The slow
        ones get fewer, and rates are compared.
    slow
        Whether a smoke test leaves it out.
    index
        Its SWATHE_INDEX_DIR; `cold` empties it before every run.
    writes
        Whether it leaves FITS files; `bare` ones have no BZERO in their headers.

    """

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    files: int | None = None
    per_file: int | None = None
    slow: bool = False
    index: Path | None = None
    cold: bool = False
    writes: bool = True
    bare: bool = False

    def share(self, targets: Sequence[Target]) -> list[Target]:
        """Part of the list this contender is given."""
        groups: dict[Path, list[Target]] = {}
        for target in targets:
            groups.setdefault(target.file, []).append(target)
        choice = list(groups.values())[: self.files]
        return [target for group in choice for target in group[: self.per_file]]


class Runner:
    """Runs contenders in a work folder that is emptied before each run."""

    def __init__(self, work: Path, repeats: int) -> None:
        self.work, self.repeats = work, repeats
        self.out = work / "out"

    def output(self, contender: Contender, targets: Sequence[Target]) -> str:
        """Run a contender on these targets and return what it prints.

        Raises
        ------
        ContenderError
            If the program fails, with the end of what it said.

        """
        list_path = self.work / "targets.tsv"
        list_path.write_text("".join(target.line() for target in targets))
        empty(self.out)
        environment = dict(os.environ)
        if contender.index:
            (empty if contender.cold else make)(contender.index)
            environment["SWATHE_INDEX_DIR"] = str(contender.index)
        words = [*contender.before, str(list_path), str(self.out), *contender.after]
        command = [word.replace("{work}", str(self.work)) for word in words]
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        if process.returncode:
            raise ContenderError("\n".join(process.stderr.strip().splitlines()[-5:]))
        return process.stdout

    def seconds_per_cut(self, contender: Contender, targets: Sequence[Target]) -> float:
        """Wall time of one run divided by its number of cuts."""
        share = contender.share(targets)
        return float(self.output(contender, share)) / len(share)

    def verify(self, contender: Contender, targets: Sequence[Target]) -> None:
        """Run once on the first target and compare each file written with astropy's pixels.

        Raises
        ------
        ContenderError
            If no file is written, or pixels differ.

        """
        target = contender.share(targets)[0]
        self.output(contender, [target])
        if not contender.writes:
            return
        written = [path for path in self.out.rglob("*") if is_fits(path)]
        if not written:
            raise ContenderError(f"{contender.name} wrote no file, {target}")
        truth = expected(target, contender.bare)
        if not all(np.array_equal(cut_of(path, contender.bare), truth) for path in written):
            raise ContenderError(f"{contender.name}: pixels differ from astropy's, {target}")

    def rounds(
        self, contenders: Sequence[Contender], targets: Sequence[Target]
    ) -> dict[str, list[float]]:
        """Seconds per cut of each contender, one value a round."""
        runs = {c.name: lambda c=c: self.seconds_per_cut(c, targets) for c in contenders}
        seconds = interleave(runs, self.repeats)
        empty(self.out)
        return seconds


def interleave(runs: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Values of each run, in rounds that each start from the next one."""
    values: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(repeats):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            values[name].append(runs[name]())
    return values


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Median over the rounds of the ratio within a round."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


@lru_cache
def expected(target: Target, stored: bool) -> np.ndarray:
    """Pixels astropy reads in the box; stored ones without BSCALE and BZERO."""
    with fits.open(target.file, do_not_scale_image_data=stored) as hdus:
        rows = slice(target.y0, target.y0 + target.height)
        pixels: np.ndarray = hdus[-1].data[rows, target.x0 : target.x0 + target.width].copy()
    return pixels


def cut_of(path: Path, stored: bool) -> np.ndarray:
    """Pixels of a written cut."""
    with fits.open(path, do_not_scale_image_data=stored) as hdus:
        image = next(hdu for hdu in hdus if hdu.data is not None)
        pixels: np.ndarray = image.data.copy()
    return pixels


def is_fits(path: Path) -> bool:
    """Whether a path is a file that starts as FITS does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(6) == b"SIMPLE"


def empty(folder: Path) -> None:
    """Make a folder, or make it empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def make(folder: Path) -> None:
    """Make a folder unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class Goal:
    """A target of the project: a value ">=", "<=" or "<" a limit."""

    sense: str
    limit: float

    def met(self, value: float) -> bool:
        """Whether the value reaches the target."""
        compare = {">=": operator.ge, "<=": operator.le, "<": operator.lt}[self.sense]
        return bool(compare(value, self.limit))

    def __str__(self) -> str:
        return f"{self.sense} {self.limit:g}"


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes
    ----------
    value, unit
        What is judged: "x as fast", "x the time" or "ms".
    ours, theirs
        Seconds per cut (or file, or start), one value a round.

    """

    benchmark: str
    against: str
    value: float | None
    unit: str = ""
    goal: Goal | None = None
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def verdict(self) -> str:
        """Met, MISSED, or nothing where no target is set."""
        if self.goal is None:
            return ""
        if self.value is None:
            return "not measured"
        return "met" if self.goal.met(self.value) else "MISSED"

    def cells(self) -> tuple[str, ...]:
        """Line as text."""
        value = "-" if self.value is None else f"{self.value:.3g} {self.unit}"
        goal = f"[{self.goal}]" if self.goal else ""
        rates = rate(self.ours), rate(self.theirs)
        return (self.benchmark, self.against, *rates, value, goal, self.verdict, self.note)

    def as_json(self) -> dict[str, object]:
        """Line with all its rounds."""
        goal = str(self.goal) if self.goal else None
        return {**asdict(self), "goal": goal, "verdict": self.verdict}


HEAD = ("benchmark", "against", "swathe", "other", "swathe is", "target", "", "")


def rate(seconds: Sequence[float]) -> str:
    """Median time of one, and how many that is in a second."""
    if not seconds:
        return "-"
    median = statistics.median(seconds)
    return f"{median * 1e3:.3f} ms {1 / median:>7,.0f}/s"


def table(figures: Sequence[Figure]) -> str:
    """Figures as aligned text."""
    rows = [HEAD, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in rows)
    return "\n".join(line.rstrip() for line in lines)
