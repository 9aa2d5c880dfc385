"""Contenders, and timing them in turn.

A contender is a program that is given a list of cuts and a folder and prints the seconds it
took. Contenders of one comparison run in rounds, one after the other, starting from another one
each round, so that a slow minute of the machine falls on all of them. A ratio is taken within
a round; what is reported is the median over the rounds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from astropy.io import fits

from targets import Target, write_list


class ContenderError(Exception):
    """A contender could not do its part."""


@dataclass(frozen=True)
class Contender:
    """A program to time.

    Attributes
    ----------
    before, after
        Its command line around ``LIST OUTDIR``.
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
        chosen = list(groups.values())[: self.files]
        return [target for group in chosen for target in group[: self.per_file]]


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
        listed = self.work / "targets.tsv"
        write_list(listed, targets)
        empty(self.out)
        environment = dict(os.environ)
        if contender.index:
            (empty if contender.cold else make)(contender.index)
            environment["SWATHE_INDEX_DIR"] = str(contender.index)
        command = [*contender.before, str(listed), str(self.out), *contender.after]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise ContenderError("\n".join(done.stderr.strip().splitlines()[-5:]))
        return done.stdout

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
