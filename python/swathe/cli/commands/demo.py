"""Run a demonstration (`make run`): a sample survey, its portal, and a job of 500 targets.

The portal runs until Ctrl-C, or until the job has ended with `--once`. With `--files` the centre
of each of the user's own images is cut out instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import swathe
from swathe.catalog import Catalog, this_host
from swathe.client.portal import RemotePortal
from swathe.core.errors import NoSuchDatasetError, NoSuchStoreError, SettingsError, SwatheError
from swathe.core.format import size_text
from swathe.core.paths import VARIABLE
from swathe.core.progress import progress_bar
from swathe.core.sample_survey import make_sample
from swathe.files.preview import contact_sheet, picture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astropy.table import Table

    from swathe.jobs.types import Job

SHEET_ROWS = 48
SURVEY = "survey"
IMAGES = "*.fit"
"""Each frame exists in four kinds. Only this kind is catalogued."""
SETTINGS = """# Settings of the portal of `make run`.
[server]
port = 0
[catalog]
database = {database}
[results]
folder = {results}
[vo]
title = "Sample survey"
"""


def main() -> int:
    """Run the demonstration, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=__doc__)
    parser.add_argument(
        "--frames", type=int, default=60, help="number of frames in the sample (60)"
    )
    parser.add_argument(
        "--targets", type=int, default=500, help="number of targets in the sample (500)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    parser.add_argument("--build", type=Path, default=Path("build"), help="output folder (build)")
    parser.add_argument("--once", action="store_true", help="end when the job has ended")
    parser.add_argument(
        "--size", type=int, default=200, help="side of cuts from --files, pixels (200)"
    )
    parser.add_argument("--files", nargs="+", default=None, help="FITS files to cut from instead")
    arguments = parser.parse_args()
    try:
        if arguments.files:
            return cut_files(arguments.files, arguments.size, arguments.build / "cutouts")
        return show_portal(arguments)
    except SwatheError as error:
        print(f"swathe: {error}", file=sys.stderr)
        return 1


def show_portal(arguments: argparse.Namespace) -> int:
    """Make and register the sample, serve it, and run a job on it."""
    build = arguments.build.absolute()
    targets = make_targets(arguments, build / "sample")
    settings = register(build / "sample", build / "portal")
    try:
        with portal(settings) as (url, process):
            code = run_job(url, targets, build)
            print(f"portal: {url}", flush=True)
            if not arguments.once:
                process.wait()
    except KeyboardInterrupt:
        return 0
    return code


def make_targets(arguments: argparse.Namespace, folder: Path) -> Table:
    """Make the sample survey. Return its targets with files named `STORE:path`."""
    from astropy.table import Table

    print(f"sample survey: {arguments.frames} frames, seed {arguments.seed}, in {folder}/")
    with progress_bar("drawing", True, arguments.frames) as show:
        path = make_sample(
            folder,
            arguments.frames,
            arguments.seed,
            arguments.targets,
            lambda done, _frames: show(done),
            overwrite=True,
        )
    targets = Table.read(path, format="ascii.csv")
    targets["file"] = [f"{SURVEY}:{name}" for name in targets["file"]]
    return targets


def register(sample: Path, folder: Path) -> Path:
    """Register the sample in its own catalogue. Return the settings file of its portal.

    Also measure this machine, as the first probe does: predictions need it.
    """
    from swathe.costs.probing.host import measure_host
    from swathe.costs.probing.save import keep_host
    from swathe.datasets.scan import scan
    from swathe.stores.listing import list_objects

    folder.mkdir(parents=True, exist_ok=True)
    database = f"sqlite:///{folder}/catalog.sqlite"
    os.environ[VARIABLE] = database
    with Catalog.open(database) as catalog:
        if catalog.compute(this_host()) is None:
            keep_host(catalog, measure_host(quick=True))
        try:
            store = catalog.store(SURVEY)
        except NoSuchStoreError:
            store = catalog.add_store(SURVEY, str(sample))
        try:
            catalog.dataset(SURVEY)
        except NoSuchDatasetError:
            catalog.add_dataset(SURVEY, SURVEY, "", IMAGES)
        objects = list(list_objects(store, "", IMAGES))
        with progress_bar("cataloguing", True, len(objects)) as show:
            report = scan(catalog, SURVEY, objects, show=lambda done, _total: show(done))
    print(f"catalogue: {report.listed} images in {folder}/catalog.sqlite")
    settings = folder / "swathe.toml"
    # A JSON string is also a TOML string.
    values = {"database": json.dumps(database), "results": json.dumps(str(folder / "results"))}
    settings.write_text(SETTINGS.format(**values))
    return settings


@contextmanager
def portal(settings: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a portal in its own process. Yield its URL and the process.

    Raises:
        SettingsError: If the portal does not start.
    """
    serve = ["portal", "serve", "--config", str(settings), "--json"]
    command = [sys.executable, "-m", "swathe.cli", *serve]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SettingsError("portal: expected its URL, found that it did not start")
        yield json.loads(line)["portal"], process
    finally:
        process.terminate()
        process.wait()


def run_job(url: str, targets: Table, build: Path) -> int:
    """Submit a job, show its progress, fetch its results. Return the exit code."""
    with swathe.connect(url) as portal:
        estimate(portal, targets)
        job = portal.submit(targets, name="make run")
        status = job.wait(progress=True)
        print(f"job {job.id}: {outcome(status)}")
        for row in list(job.rows("error"))[:5]:
            print(f"  {row.id}: {row.reason}")
        folder = build / "cutouts"
        manifest = job.fetch(folder, overwrite=True, progress=True)
    succeeded = manifest[manifest["status"] == "ok"]
    sheet = build / "contact-sheet.png"
    draw_sheet(succeeded, folder, sheet)
    print(f"{len(succeeded)} cutouts in {folder}/, a selection in {sheet}")
    return 0 if len(succeeded) == len(targets) else 1


def estimate(portal: RemotePortal, targets: Table) -> None:
    """Print the cost of a job as the portal predicts it."""
    result = portal.estimate(targets)
    prediction = result.prediction
    if prediction is None:
        print(f"job of {result.targets} targets: nothing to cut")
        return
    low_s, high_s = prediction.interval_s
    print(
        f"job of {result.targets} targets: predicted {prediction.median_s:.2f} s "
        f"({low_s:.2f} to {high_s:.2f}), about {size_text(result.bytes_out)}"
    )


def outcome(status: Job) -> str:
    """Return the outcome of a job as one line."""
    counts = ", ".join(f"{number} {name}" for name, number in status.counts.items() if number)
    work_s = 0.0 if status.actual is None else status.actual["seconds"]
    return f"{status.phase}, {counts or 'no rows'}, {work_s:.2f} s of work"


def draw_sheet(manifest: Table, folder: Path, path: Path) -> None:
    """Draw a regular selection of the cutouts on one sheet."""
    step = max(1, len(manifest) // SHEET_ROWS)
    rows = manifest[::step][:SHEET_ROWS]
    cutouts = [swathe.open(folder / row["path"]).image().section[:, :] for row in rows]
    captions = [f"{row['id']} {Path(row['source']).suffix}" for row in rows]
    contact_sheet(cutouts, captions).save(path)


def cut_files(files: list[str], side: int, folder: Path) -> int:
    """Cut the centre of every image of the user's files. Continue after errors."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    used_paths: set[Path] = set()
    for name in files:
        try:
            for image in swathe.open(name).images:
                if len(image.shape) < 2:
                    continue
                height, width = image.shape[-2:]
                stem = Path(name).name.split(".")[0]
                path, copies = folder / f"{stem}-{image.index}.fits", 1
                while path in used_paths:
                    copies += 1
                    path = folder / f"{stem}-{image.index}-{copies}.fits"
                used_paths.add(path)
                box = ((width - side) // 2, (height - side) // 2, side, side)
                cutout = image.cut(box)
                cutout.write(path, overwrite=True)
                # The first plane of a cube.
                picture(cutout.data).save(path.with_suffix(".png"))
                print(f"{path}: {cutout}")
        except SwatheError as error:
            failed += 1
            print(f"swathe: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
