"""The calls of libswathe on a file in the page cache, beside those of the system.

    python benches/capi.py [--smoke] [--rounds N]

A program in C (`benches/capi.c`) reads a file on the memory disk: blocks of 4 kB at random with
`sw_pread` and `pread(2)`; byte after byte with `sw_read`; all of it in pieces of 8 MiB with
`sw_read` and `read(2)`. The Rust reader is the same library: `swathe.fs` and cuts stand on it.
"""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path

import numpy as np

from harness import HERE, options, save, work_folder
from tests.support.c_library import compile_program

FILE_BYTES = 256 << 20


def measure(program: Path, target: Path, count: int) -> dict[str, tuple[int, float]]:
    """Return how many calls or bytes, and seconds, of each way to read."""
    command = [str(program), str(target), str(count)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: (int(n), float(s)) for name, n, s in (line.split() for line in lines)}


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    arguments = parser.parse_args()
    rounds, size, count = arguments.rounds, FILE_BYTES, 1_000_000
    if arguments.smoke:
        rounds, size, count = 1, 1 << 20, 1000
    with work_folder(2 * size) as work:
        program = compile_program(HERE / "capi.c", work)
        target = work / "object"
        target.write_bytes(np.random.default_rng(1).bytes(size))
        all_rounds = [measure(program, target, count) for _ in range(rounds)]
    results = {}
    for name in all_rounds[0]:
        number = all_rounds[0][name][0]
        seconds = statistics.median(each[name][1] for each in all_rounds)
        results[name] = {"count": number, "median_s": seconds}
        each = f"{seconds / number * 1e9:10.1f} ns each"
        rate = f"{number / seconds / 1e6:10.1f} MB/s" if "pread" not in name else ""
        print(f"{name:14}{number:12,} {seconds:9.4f} s{each}{rate}")
    save("capi", results)


if __name__ == "__main__":
    main()
