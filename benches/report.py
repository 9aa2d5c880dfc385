"""What is printed and kept: the machine, a table, results.json."""

from __future__ import annotations

import importlib.metadata
import json
import operator
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from swathe.experiments.results.environment_record import cpu_model

PACKAGES = (
    "swathe",
    "numpy",
    "astropy",
    "fitsio",
    "rustfits",
    "indexed_gzip",
    "rapidgzip",
    "zlib-ng",
)


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


def machine() -> dict[str, str]:
    """CPU, kernel and the versions of everything compared."""
    facts = {
        "cpu": cpu_model(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cfitsio (C)": first_line("pkg-config", "--modversion", "cfitsio"),
        "gzip": first_line("gzip", "--version"),
        "cc": first_line("cc", "--version"),
        "command": " ".join(sys.argv),
    }
    return facts | {package: version(package) for package in PACKAGES}


def first_line(*command: str) -> str:
    """First line a program prints, or that it is not installed."""
    if not shutil.which(command[0]):
        return "not installed"
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout.splitlines() or ["not installed"])[0]


def version(package: str) -> str:
    """Version of a Python package; fitsio also names the cfitsio it brings."""
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    if package == "fitsio":
        import fitsio

        found += f" (cfitsio {fitsio.cfitsio_version()})"
    return found


def write_json(path: Path, facts: dict[str, str], figures: Sequence[Figure]) -> None:
    """Keep the figures with the machine they are from."""
    lines = [figure.as_json() for figure in figures]
    path.write_text(json.dumps({"machine": facts, "figures": lines}, indent=1) + "\n")
