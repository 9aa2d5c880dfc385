"""How fast many cuts go into a folder, and into each kind of archive.

    python benches/archives.py [--targets 100000] [--rounds 3] [--folder /dev/shm]

Cuts of 100 x 100 pixels at random places of 60 plain frames, all on a memory disk. Kinds take
turns in each round; the medians are printed, with what a folder takes as the measure.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import swathe
from inputs import Inputs

FRAMES = 60
OUTPUTS = {"folder": "out", "zip": "out.zip", "tar": "out.tar", "fits": "out.fits"}


def table_of(inputs: Inputs, targets: int) -> dict[str, list[object]]:
    """Return the columns of the targets."""
    rows = inputs.targets("plain", FRAMES, -(-targets // FRAMES))[:targets]
    return {
        "id": [row.id for row in rows],
        "file": [str(row.file) for row in rows],
        "x0": [row.x0 for row in rows],
        "y0": [row.y0 for row in rows],
        "width": [row.width for row in rows],
        "height": [row.height for row in rows],
    }


def seconds_of(table: dict[str, list[object]], output: Path) -> float:
    """Return what the cuts take, and remove them."""
    begun = time.perf_counter()
    manifest = swathe.cut_many(table, output, progress=False)
    taken_s = time.perf_counter() - begun
    assert set(manifest["status"]) == {"ok"}
    if output.is_dir():
        shutil.rmtree(output)
    else:
        output.unlink()
        output.with_name("out.manifest.ecsv").unlink()
    return taken_s


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--kept", type=Path, default=Path("build/bench/sample"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="swathe-archives-") as made:
        table = table_of(Inputs(options.kept, Path(made), FRAMES), options.targets)
        seconds_of({name: column[:1000] for name, column in table.items()}, Path(made) / "out")
        taken_s: dict[str, list[float]] = {kind: [] for kind in OUTPUTS}
        for _ in range(options.rounds):
            for kind, name in OUTPUTS.items():
                taken_s[kind].append(seconds_of(table, Path(made) / name))
    folder_s = statistics.median(taken_s["folder"])
    print("| output | seconds, each round | cuts a second | of a folder's speed |")
    print("|---|---|---|---|")
    for kind, seconds in taken_s.items():
        median_s = statistics.median(seconds)
        rounds = ", ".join(f"{each:.2f}" for each in seconds)
        print(
            f"| {kind} | {rounds} | {options.targets / median_s:,.0f} | {folder_s / median_s:.2f} |"
        )


if __name__ == "__main__":
    main()
