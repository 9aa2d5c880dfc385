"""What all benchmarks share: the sample survey, a work folder, servers, the machine, results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from astropy.table import Table

from swathe.core.sample_survey import make_sample
from swathe.experiments.results.environment_record import cpu_model
from swathe.experiments.results.environment_record import version as version_of

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
MEMORY_DISK = Path("/dev/shm")
WIDTH, HEIGHT, PIXEL_BYTES = 2048, 1489, 2
"""Of a frame of the sample survey."""
FRAMES = 60
PACKAGES = ("swathe", "numpy", "astropy", "fitsio", "rustfits", "indexed_gzip", "rapidgzip",
            "zlib-ng")  # fmt: skip

sys.path.insert(0, str(HERE.parent))  # tests.support


def options(text: str | None, parts: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parser with the options of all benchmarks: `--smoke` and `--only`."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="everything tiny, to see it work")
    if parts:
        what = f"part to run: {', '.join(parts)}; may be repeated (default: all)"
        parser.add_argument("--only", action="append", choices=parts, metavar="PART", help=what)
    return parser


def survey(frames: int = FRAMES) -> Path:
    """Return the folder of the sample survey; it is kept between runs."""
    folder = BUILD / f"sample-{frames}"
    make_sample(folder, frames, seed=1, targets=2000)
    return folder


def survey_targets(sample: Path, rows: int, *, together: bool = False) -> dict[str, list[Any]]:
    """Return targets on plain frames, named relative to the survey.

    Args:
        sample: folder of the survey.
        rows: number of targets; stars are repeated if need be.
        together: whether those of a frame follow each other.
    """
    table = Table.read(sample / "targets.csv", format="ascii.csv")
    table = table[[name.endswith(".fit") for name in table["file"]]]
    at = [row % len(table) for row in range(rows)]
    if together:
        at.sort(key=table["file"].tolist().__getitem__)
    columns = {name: table[name][at].tolist() for name in ("file", "x", "y", "height", "width")}
    return columns | {"id": [str(row) for row in range(rows)]}


def in_folder(columns: dict[str, list[Any]], folder: Path) -> dict[str, list[Any]]:
    """Return targets whose files are in a folder."""
    return columns | {"file": [str(folder / name) for name in columns["file"]]}


@contextmanager
def work_folder(needed_bytes: int = 0) -> Iterator[Path]:
    """Yield a folder on the memory disk, if that has room; the catalogue of this process is there.

    On a disk, its own speed would be measured, which changes after files were removed.
    """
    parent = MEMORY_DISK if room(MEMORY_DISK) > needed_bytes else BUILD
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="swathe-bench-", dir=parent) as folder:
        kind = "a memory disk" if parent == MEMORY_DISK else "NOT a memory disk"
        print(f"work folder: {folder} ({kind})", file=sys.stderr)
        os.environ["SWATHE_DATABASE"] = f"sqlite:///{folder}/catalog.sqlite"
        yield Path(folder)


def room(disk: Path) -> int:
    """Return the bytes a memory disk can take: its own limit and the memory that is free."""
    meminfo = Path("/proc/meminfo")
    if not disk.is_dir() or not meminfo.exists():
        return 0
    lines = meminfo.read_text().splitlines()
    available = next(line for line in lines if line.startswith("MemAvailable"))
    return min(shutil.disk_usage(disk).free, int(available.split()[1]) * 1024)


@contextmanager
def running(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a Python server; yield the address that it prints first, and its process."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        address = next(iter(json.loads(line).values())) if line.startswith("{") else line
        yield address.rstrip("/"), process
    finally:
        process.terminate()
        process.wait()


def machine() -> dict[str, str]:
    """Return CPU, kernel and the versions of everything compared."""
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
    """Return the first line a program prints, or that it is not installed."""
    if not shutil.which(command[0]):
        return "not installed"
    process = subprocess.run(command, capture_output=True, text=True)
    return (process.stdout.splitlines() or ["not installed"])[0]


def version(package: str) -> str:
    """Return the version of a Python package; fitsio also names the cfitsio it brings."""
    number = version_of(package)
    if package == "fitsio" and number != "not installed":
        import fitsio

        number += f" (cfitsio {fitsio.cfitsio_version()})"
    return number


def save(name: str, results: Any) -> None:
    """Write results into build/bench, with the machine they are from."""
    path = BUILD / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "results": results}
    path.write_text(json.dumps(content, indent=1, default=vars) + "\n")
    print(f"\n{path}", file=sys.stderr)
