"""What a call costs before and after its work: starting, importing, planning, recording.

    python benches/startup.py [--smoke] [--rounds N] [--source FOLDER]

Processes: `python -c pass`, `import swathe`, and `swathe cut` of one box to `.fits`, `.npy` and
`.png`, in turns; and the first `predict` and `cut_many` of a process. In one process: what a later
`cut_many` of ten targets takes beside the engine, and what each of many targets adds. Everything is
on the memory disk. CPU time (user and system) depends less on other work of the machine than wall
time. `--source FOLDER` measures the package in another folder, such as `python/` of an older
checkout.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from astropy.io import fits

from harness import options, save, work_folder

MANY = 20_000
FIRST = """
import sys, time
import swathe
image, call = sys.argv[1:]
targets = {"file": [image] * 10, "x0": [*range(10)], "y0": [5] * 10, "width": [99] * 10,
           "height": [99] * 10}
begun, cpu = time.perf_counter(), time.process_time()
swathe.predict(targets) if call == "predict" else swathe.cut_many(targets, "new", progress=False)
print(time.perf_counter() - begun, time.process_time() - cpu)
"""
LATER = """
import json, statistics, sys, time
import swathe
image, rounds, many = sys.argv[1], *map(int, sys.argv[2:])
def around_s(count, folder):
    targets = {"file": [image] * count, "x0": [each % 1900 for each in range(count)],
               "y0": [each % 1300 for each in range(count)], "width": [99] * count,
               "height": [99] * count}
    begun = time.perf_counter()
    meta = swathe.cut_many(targets, folder, progress=False, overwrite=True).meta
    return time.perf_counter() - begun - meta["wall_s"]
around_s(10, "later")
few = statistics.median(around_s(10, "later") for _ in range(10 * rounds))
each = statistics.median(around_s(many, "many.tar") for _ in range(rounds)) / many
print(json.dumps({"cut_many_s": few, "target_s": each}))
"""


def used(command: list[str], work: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of a process."""
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, cwd=work, stdout=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - start_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s


def first(call: str, image: Path, work: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of the first call in a process."""
    command = [sys.executable, "-c", FIRST, str(image), call]
    process = subprocess.run(command, check=True, cwd=work, capture_output=True, text=True)
    subprocess.run(["rm", "-rf", "new"], check=True, cwd=work)
    wall_s, cpu_s = map(float, process.stdout.split())
    return wall_s, cpu_s


def main() -> int:
    """Run from the command line."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds (15; 1 with --smoke)")
    parser.add_argument("--source", type=Path, help="folder with the package (this checkout's)")
    args = parser.parse_args()
    rounds, many = (1, 100) if args.smoke else (args.rounds, MANY)
    if args.source is not None:
        os.environ["PYTHONPATH"] = str(args.source.resolve())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with work_folder() as work:
        image = work / "image.fits"
        pixels = np.random.default_rng(1).normal(1000, 9, (1489, 2048)).astype(np.int16)
        fits.PrimaryHDU(pixels).writeto(image)
        cut = [sys.executable, "-m", "swathe.cli", "cut", str(image), "--box", "9 9 100 100"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import swathe": [sys.executable, "-c", "import swathe"],
            **{
                f"swathe cut to .{kind}": [*cut, "-o", f"x.{kind}"]
                for kind in ("fits", "npy", "png")
            },
        }
        times: dict[str, list[tuple[float, float]]] = {}
        for number in range(rounds + 1):
            for name, command in commands.items():
                seconds = used(command, work)
                for path in work.glob("x.*"):
                    path.unlink()
                if number:  # the first round compiles
                    times.setdefault(name, []).append(seconds)
            for call in ("predict", "cut_many"):
                seconds = first(call, image, work)
                if number:
                    times.setdefault(f"first {call}", []).append(seconds)
        command = [sys.executable, "-c", LATER, str(image), str(rounds), str(many)]
        process = subprocess.run(command, check=True, cwd=work, capture_output=True, text=True)
        later = json.loads(process.stdout)
    print("| what | wall, ms | CPU, ms | CPU, of `python -c pass` |\n|---|---|---|---|")
    figures = {}
    for name, pairs in times.items():
        wall_s, cpu_s = map(statistics.median, zip(*pairs, strict=True))
        figures[name] = {"wall_s": wall_s, "cpu_s": cpu_s}
        ratio = cpu_s / figures["python -c pass"]["cpu_s"]
        print(f"| {name} | {1e3 * wall_s:.1f} | {1e3 * cpu_s:.1f} | {ratio:.1f} x |")
    print(f"| later cut_many of 10, beside the engine | {1e3 * later['cut_many_s']:.2f} | | |")
    print(f"| each of {many:,} targets, beside the engine | {1e3 * later['target_s']:.4f} | | |")
    save("smoke-startup" if args.smoke else "startup", figures | later)
    return 0


if __name__ == "__main__":
    sys.exit(main())
