"""What recording events costs.

    python benches/tracing.py [--smoke] [--rounds N] [--rows N] [--events DIR] [--sampled]

Events a second from Python, with all of them written to the memory disk. And cuts of 100 x 100
pixels at random from the plain frames of a sample survey in the page cache, results on the memory
disk, events in a file on the disk of temporary files, as users have them (`--events DIR`: in
another folder). By one thread and by two, in turns with events recorded and without, each round
beginning with the other. What is reported is the median over rounds of the ratio within a round,
of wall time and of CPU time (which includes the thread that writes).

Where other work of the machine moves these by more than recording costs, `--sampled` counts instead
in what code the processor is, 4,000 times a second (`perf`, Debian's linux-perf): what records in
the threads that cut, and all of the thread that writes, over all of those that cut.

How many events Rust records a second: `cargo test --release -p swathe-trace --test speed --
--ignored --nocapture`.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import swathe
from harness import FRAMES, in_folder, options, save, survey, survey_targets, work_folder
from swathe import trace

POINTS = 200_000
RECORDING = ("swathe_trace", "swathe_engine::timing::record_events")
"""In what functions events are recorded."""


def cpu_s() -> float:
    """Seconds of all cores that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def points(work: Path, count: int) -> dict[str, Any]:
    """Record points from Python."""
    trace.start(work / "points.ulm")
    start_s, cpu = time.perf_counter(), time.thread_time()
    for number in range(count):
        trace.point("REDUCED", target="star-17", bytes=number)
    seconds, own_s = time.perf_counter() - start_s, time.thread_time() - cpu
    counts = trace.stop()
    start_s = time.perf_counter()
    for number in range(count):
        trace.point("REDUCED", target="star-17", bytes=number)
    off_s = time.perf_counter() - start_s
    return {
        "events_per_s": round(count / seconds),
        "events_per_cpu_s": round(count / own_s),
        "off_ns": round(1e9 * off_s / count),
        "dropped": counts.dropped,
    }


def once(
    columns: dict[str, list[Any]], work: Path, run: Path, threads: int, on: bool
) -> dict[str, float]:
    """Cut all, with events recorded to `run` or not."""
    out = work / "out"
    run.unlink(missing_ok=True)
    if on:
        trace.start(run)
    start_s, cpu = time.perf_counter(), cpu_s()
    manifest = swathe.cut_many(columns, out, threads=threads, progress=False)
    seconds = time.perf_counter() - start_s
    counts = trace.stop()
    used_s = cpu_s() - cpu
    if not all(manifest["status"] == "ok"):
        raise SystemExit("a target failed")
    shutil.rmtree(out)
    times = {"wall_s": seconds, "cut_s": manifest.meta["wall_s"], "cpu_s": used_s}
    if on:
        rows = len(manifest)
        times |= {
            "events_per_cut": counts.recorded / rows,
            "ulm_bytes_per_cut": run.stat().st_size / rows,
            "dropped": counts.dropped,
        }
    return times


def compare_recording(
    columns: dict[str, list[Any]], work: Path, run: Path, threads: int, rounds: int
) -> dict[str, Any]:
    """Return what recording adds, in percent, and what is recorded."""
    ratios: dict[str, list[float]] = {"cut_s": [], "cpu_s": []}
    rates: dict[bool, list[float]] = {True: [], False: []}
    on: dict[str, float] = {}
    once(columns, work, run, threads, True)
    for number in range(rounds):
        order = (False, True) if number % 2 else (True, False)
        times = {each: once(columns, work, run, threads, each) for each in order}
        on = times[True]
        for key, ratio in ratios.items():
            ratio.append(times[True][key] / times[False][key])
        for each, rate in rates.items():
            rate.append(len(columns["file"]) / times[each]["cut_s"])
    quartiles = {
        key: [round(100 * (q - 1), 2) for q in statistics.quantiles(ratio, n=4)]
        for key, ratio in ratios.items()
    }
    return {
        "threads": threads,
        "rounds": rounds,
        "cuts_per_s_off": round(statistics.median(rates[False])),
        "cuts_per_s_on": round(statistics.median(rates[True])),
        "more_wall_percent": quartiles["cut_s"],
        "more_cpu_percent": quartiles["cpu_s"],
        "events_per_cut": round(on["events_per_cut"], 2),
        "ulm_bytes_per_cut": round(on["ulm_bytes_per_cut"]),
        "dropped": on["dropped"],
    }


def sample_recording(
    columns: dict[str, list[Any]], work: Path, run: Path, threads: int, rounds: int
) -> dict[str, Any]:
    """Return what is recording of what cutting computes, in percent, by sampling."""
    samples = work / "perf.data"
    command = ["perf", "record", "-q", "-F", "4000", "-p", str(os.getpid()), "-o", str(samples)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as perf:
        while not samples.is_file() and perf.poll() is None:
            time.sleep(0.1)
        for _ in range(rounds):
            once(columns, work, run, threads, True)
        perf.send_signal(signal.SIGINT)
    told = ["perf", "report", "-i", str(samples), "--no-children", "--stdio"]
    told += ["-F", "sample,comm,symbol"]
    report = subprocess.run(told, capture_output=True, text=True, check=True)
    cutting = recording = writing = 0
    for line in report.stdout.splitlines():
        match line.split(maxsplit=2):
            case [count, "swathe-trace", _] if count.isdigit():
                writing += int(count)
            case [count, thread, symbol] if count.isdigit() and thread.startswith("swathe-cut"):
                cutting += int(count)
                recording += int(count) * any(name in symbol for name in RECORDING)
    return {
        "threads": threads,
        "samples": cutting,
        "recording_percent": round(100 * recording / cutting, 2),
        "writing_percent": round(100 * writing / cutting, 2),
    }


def main() -> None:
    """Measure, and print a line for each."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--events", type=Path, help="where events are written")
    parser.add_argument(
        "--sampled", action="store_true", help="by sampling, not by rounds in turns"
    )
    arguments = parser.parse_args()
    rounds, rows = (2, 200) if arguments.smoke else (arguments.rounds, arguments.rows)
    sample = survey(3 if arguments.smoke else FRAMES)
    columns = in_folder(survey_targets(sample, rows, together=True), sample)
    columns["id"] = [f"star-{number}" for number in range(rows)]
    measure = sample_recording if arguments.sampled else compare_recording
    with (
        work_folder() as work,
        tempfile.TemporaryDirectory(prefix="swathe-trace-", dir=arguments.events) as events,
    ):
        run = Path(events) / "run.ulm"
        results = {
            "points": points(work, 2_000 if arguments.smoke else POINTS),
            "cut_many": [measure(columns, work, run, threads, rounds) for threads in (1, 2)],
        }
    for key, value in results.items():
        for line in value if isinstance(value, list) else [value]:
            print(key, json.dumps(line))
    save("tracing", results)


if __name__ == "__main__":
    main()
