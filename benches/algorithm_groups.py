"""Groups of one granule per second: a job of a trivial algorithm, and what it is compared with.

`alike` starts the same interpreter with the same runner, inputs and description for each granule,
collects and checks the output, and writes the archive, without sandbox, launcher and job. `bare`
is a process that only writes the line.

python -m benches.algorithm_groups --groups 1000 --users 71000:4
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from swathe import sandbox
from swathe.algorithms.box_python import BoxPython
from swathe.algorithms.group_run import BoxSettings, algorithm_call, run_group
from swathe.algorithms.groups import Granule, GranuleGroup
from swathe.algorithms.header import parse_source
from swathe.algorithms.read_definition import read_definition
from swathe.catalog import Catalog
from swathe.jobs import Jobs, Limits, Options
from swathe.sandbox import UserIds
from swathe.workers import LocalPool, Runner
from swathe.workers.algorithm_groups import write_archive

SOURCE = """\
# /// script
# [tool.swathe.algorithm]
# name = "sizes"
# version = "1"
# inputs.granules = {}
# outputs.table = {media_type = "text/csv"}
# ///
import os
def run(granules, table):
    table.write_text(f"{granules[0].id},{os.path.getsize(granules[0])}")
"""
BARE = """\
import os, sys
open(sys.argv[2], "w").write(f"{sys.argv[1]},{os.path.getsize(sys.argv[1])}")
"""
PARALLEL = 2
FEW = 4
PYTHON = "/usr/bin/python3"


def main() -> None:
    """Measure both, and print groups per second as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--users", default="71000:4" if os.geteuid() == 0 else "")
    parser.add_argument("--smoke", action="store_true", help="a few groups only")
    options = parser.parse_args()
    groups = FEW if options.smoke else options.groups
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        files = [folder / f"g{number}.txt" for number in range(groups)]
        for file in files:
            file.write_text("granule")
        bare = groups / bare_s(files, folder)
        users = UserIds.parse(options.users) if options.users else None
        box = BoxSettings(BoxPython(PYTHON, ()), "auto", users)
        alike = groups / alike_s(files, folder, box)
        job = groups / job_s(files, folder, box)
    rates = {"bare_per_s": bare, "alike_per_s": alike, "job_per_s": job}
    print(json.dumps({**rates, "ratio": job / alike, "load": os.getloadavg()[0]}))


def bare_s(files: list[Path], folder: Path) -> float:
    """Return the seconds of a fresh process for each file, two at a time."""

    def run(file: Path) -> None:
        command = [PYTHON, "-I", "-B", "-c", BARE, str(file), str(folder / f"{file.stem}.csv")]
        subprocess.run(command, check=True)

    begin = time.perf_counter()
    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(run, files))
    return time.perf_counter() - begin


def alike_s(files: list[Path], folder: Path, box: BoxSettings) -> float:
    """Return the seconds of the same runs without a sandbox, two at a time."""
    definition = read_definition(parse_source(SOURCE.encode(), "sizes"))
    call = algorithm_call(definition, SOURCE.encode(), {}, {})

    def run(file: Path) -> None:
        collect = folder / f"alike-{file.stem}"
        collect.mkdir()
        granule = Granule(file.name, str(file))
        done = run_group(call, GranuleGroup(file.name, (granule,)), collect, box)
        assert not done.problem, done
        write_archive(collect / "outputs.zip", done.outputs.values())

    begin = time.perf_counter()
    with (
        mock.patch.object(sandbox, "run", run_outside),
        ThreadPoolExecutor(PARALLEL) as pool,
    ):
        list(pool.map(run, files))
    return time.perf_counter() - begin


def run_outside(
    request: sandbox.Request, collect: Path, is_gone: Callable[[], bool] | None
) -> sandbox.Report:
    """Run the program of a request without a sandbox, and collect its outputs."""
    del is_gone
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        inputs, outputs = Path(name, "in"), Path(name, "out")
        inputs.mkdir()
        outputs.mkdir()
        for each in request.inputs:
            assert each.path is not None
            (inputs / each.name).symlink_to(each.path)
        places = {"SWATHE_IN": str(inputs), "SWATHE_OUT": str(outputs)}
        done = subprocess.run(
            request.command, env={**request.environment, **places}, capture_output=True, check=True
        )
        files = {}
        for output in request.outputs:
            copy = collect / output.name
            shutil.copyfile(outputs / output.name, copy)
            digest = hashlib.sha256(copy.read_bytes()).hexdigest()
            files[output.name] = sandbox.OutputFile(copy, copy.stat().st_size, digest)
    out, err = (sandbox.Log(text.decode(), len(text), True) for text in (done.stdout, done.stderr))
    wall_s = time.perf_counter() - begin
    return sandbox.Report("OK", "", "", 0, None, "", 0, 0.0, wall_s, 0, out, err, files, {})


def job_s(files: list[Path], folder: Path, box: BoxSettings) -> float:
    """Return the seconds of a job, from its submission to its end."""
    os.environ["SWATHE_DATABASE"] = f"sqlite:///{folder}/catalog.sqlite"
    with Catalog.open() as catalog:
        catalog.add_algorithm("sizes", "1", SOURCE.encode(), "bench")
        with Jobs(catalog, folder / "results", limits=Limits()) as jobs:
            runner = Runner(jobs, LocalPool(jobs.place, PARALLEL, box=box))
            runner.start()
            begin = time.perf_counter()
            choices = {"operation": "algorithm", "algorithm": "sizes"}
            table = {"file": list(map(str, files))}
            job = jobs.submit(table, Options.from_mapping(choices), "bench")
            while job.phase in ("QUEUED", "EXECUTING"):
                job = jobs.wait(job.id, job.phase, 5.0)
            seconds = time.perf_counter() - begin
            runner.stop()
    assert job.counts["ok"] == 2 * len(files), job
    return seconds


if __name__ == "__main__":
    main()
