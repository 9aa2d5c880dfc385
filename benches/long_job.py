"""What a long job takes on a portal: seconds and peak memory of the portal and of its client.

    python benches/long_job.py [--smoke] [--rows N] [--format F] [--archive KIND] [--disk FOLDER]

A list of boxes of 10 x 10 pixels at random in the plain frames of the sample survey, as Parquet
sorted by file, is submitted to a portal whose threads cut. Then the job runs to its end, its
manifest is read in tables, and its results are fetched as one archive. Each step is a process of
its own, as of a user; the peak of the portal is counted anew for each.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from astropy.table import Table

from harness import FRAMES, HEIGHT, WIDTH, options, running, save, survey, work_folder
from swathe.catalog import Catalog

PORTAL = ("-m", "swathe.cli", "portal", "serve", "--port", "0", "--json", "--config")
SIDE = 10
ROW_BYTES = 8_192
"""Room on the disk for each row: its result, and its part of an archive."""
LIMITS = (
    "[limits]\nrows_per_job = {rows}\nrows_waiting = {rows}\nbody_mb = 200\nupload_mb = 2048\n"
    "result_gb = 100\n"
)
STEPS = {
    "submit": "print(portal.submit(sys.argv[2], format=sys.argv[3]).id)",
    "run": "print(portal.job(sys.argv[2]).wait(progress=False).counts['ok'])",
    "manifest": "print(sum(len(table) for table in portal.job(sys.argv[2]).manifest_tables()))",
    "fetch": "print(len(portal.job(sys.argv[2]).fetch(sys.argv[3], progress=False)))",
}
"""What each step does; it prints one value."""
STEP = """
import sys
from pathlib import Path
import swathe
with swathe.connect(sys.argv[1]) as portal:
    {step}
print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])
"""


def peak_mb(process: int) -> float:
    """Return the peak memory of a process since the last `count_anew`."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def count_anew(process: int) -> None:
    """Begin to count the peak memory of a process anew."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def take_step(name: str, url: str, portal: int, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Take a step in a process of its own; return its value, and what was measured."""
    count_anew(portal)
    begun = time.perf_counter()
    command = [sys.executable, "-c", STEP.format(step=STEPS[name]), url, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - begun
    value, client_kb = done.stdout.split()
    peaks = {"portal_mb": peak_mb(portal), "client_mb": int(client_kb) / 1024}
    return value, {"name": name, "seconds": seconds, **peaks}


def show(measured: dict[str, Any], rows: int) -> None:
    """Print what was measured of a step."""
    print(
        f"{measured['name']:10} {measured['seconds']:8.1f} {rows / measured['seconds']:9.0f} "
        f"{measured['portal_mb']:8.0f} {measured['client_mb']:8.0f}",
        flush=True,
    )


def write_targets(path: Path, sample: Path, rows: int) -> None:
    """Write boxes at random, sorted by file, as Parquet."""
    chosen = random.Random(1)
    names = sorted(file.name for file in sample.glob("*.fit"))
    boxes = {
        "file": sorted(f"survey:{chosen.choice(names)}" for _ in range(rows)),
        "x0": [chosen.randrange(WIDTH - SIDE) for _ in range(rows)],
        "y0": [chosen.randrange(HEIGHT - SIDE) for _ in range(rows)],
        "width": [SIDE] * rows,
        "height": [SIDE] * rows,
    }
    Table(boxes).write(path, format="parquet")


def register(folder: Path, sample: Path, rows: int) -> Path:
    """Make the sample known to a portal; return its settings."""
    database = f"sqlite:///{folder}/catalog.sqlite"
    with Catalog.open(database) as catalog:
        catalog.add_store("survey", str(sample))
    settings = folder / "swathe.toml"
    settings.write_text(
        f'[catalog]\ndatabase = "{database}"\n[results]\nfolder = "{folder}/results"\n'
        + LIMITS.format(rows=rows)
    )
    return settings


def main() -> None:
    """Run the job and all that a user does with it."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the job")
    parser.add_argument("--format", default="fits", help="of its results")
    parser.add_argument("--archive", default="tar", help="kind of archive: tar, zip or fits")
    parser.add_argument("--disk", type=Path, help="folder of the portal (default: memory disk)")
    asked = parser.parse_args()
    rows = 500 if asked.smoke else asked.rows
    sample = survey(1 if asked.smoke else FRAMES)
    with contextlib.ExitStack() as stack:
        if asked.disk is None:
            folder = stack.enter_context(work_folder(2 * rows * ROW_BYTES))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.disk)))
        targets = folder / "targets.parquet"
        write_targets(targets, sample, rows)
        settings = register(folder, sample, rows)
        url, process = stack.enter_context(running(*PORTAL, str(settings)))
        print(f"{rows} rows as {asked.format}: step, seconds, rows/s, portal MB, client MB")
        job, submitted = take_step("submit", url, process.pid, str(targets), asked.format)
        show(submitted, rows)
        results = [submitted]
        archive = str(folder / f"all.{asked.archive}")
        for name, *arguments in (("run",), ("manifest",), ("fetch", archive)):
            value, measured = take_step(name, url, process.pid, job, *arguments)
            assert int(value) == rows, f"{name}: expected {rows} rows, found {value}"
            show(measured, rows)
            results.append(measured)
    save("long_job", [{"rows": rows, "format": asked.format, "steps": results}])


if __name__ == "__main__":
    main()
