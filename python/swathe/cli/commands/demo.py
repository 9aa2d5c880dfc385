"""What `make run` shows: a sample survey, a portal that serves it, a job of 500 targets.

The portal goes on until Ctrl-C, or ends after the job with `--once`. With `--files` the middle is
cut out of the user's own images instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

SHEET_ROWS = 48
SURVEY = "survey"
IMAGES = "*.fit"
"""Of the four kinds of each frame, the one that is found by its place in the sky."""
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
    """Run the demonstration; gives the exit code."""
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=__doc__)
    parser.add_argument("--frames", type=int, default=60, help="frames of the sample (60)")
    parser.add_argument("--targets", type=int, default=500, help="targets of the sample (500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where it all goes")
    parser.add_argument("--once", action="store_true", help="end after the job")
    parser.add_argument("--size", type=int, default=200, help="side of cuts from --files, pixels")
    parser.add_argument("--files", nargs="+", default=None, help="cut from these instead")
    arguments = parser.parse_args()
    try:
        if arguments.files:
            return cut_files(arguments.files, arguments.size, arguments.build / "cutouts")
        return show_portal(arguments)
    except SwatheError as error:
        print(f"swathe: {error}", file=sys.stderr)
        return 1


def show_portal(arguments: argparse.Namespace) -> int:
    """Make and register the sample, serve it, run a job on it."""
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
    """Make the sample survey; gives its targets, as a portal names their files."""
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
    """Make the sample known in a catalogue of its own; gives the settings of its portal.

    This machine is measured too, as the first probe would: predictions go by it.
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
    # Texts of TOML are written as those of JSON.
    told = {"database": json.dumps(database), "results": json.dumps(str(folder / "results"))}
    settings.write_text(SETTINGS.format(**told))
    return settings


@contextmanager
def portal(settings: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a portal in a process of its own; gives its URL.

    Raises:
        SettingsError: where it does not start.
    """
    command = [sys.executable, "-m", "swathe.cli", "serve", "--config", str(settings), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise SettingsError("the portal did not start")
        yield json.loads(said)["portal"], process
    finally:
        process.terminate()
        process.wait()


def run_job(url: str, targets: Table, build: Path) -> int:
    """Submit a job, show how it goes, fetch what it made; gives the exit code."""
    with swathe.connect(url) as portal:
        estimate(portal, targets)
        job = portal.submit(targets, name="make run")
        told = job.wait(progress=True)
        print(f"job {job.id}: {outcome(told)}")
        for row in list(job.rows("error"))[:5]:
            print(f"  {row['id']}: {row['reason']}")
        folder = build / "cutouts"
        manifest = job.fetch(folder, overwrite=True, progress=True)
    good = manifest[manifest["status"] == "ok"]
    sheet = build / "contact-sheet.png"
    draw_sheet(good, folder, sheet)
    print(f"{len(good)} cutouts in {folder}/, some of them in {sheet}")
    return 0 if len(good) == len(targets) else 1


def estimate(portal: RemotePortal, targets: Table) -> None:
    """Show what the portal says a job will cost."""
    told = portal.estimate(targets)
    low, high = told["prediction"]["interval_s"]
    print(
        f"job of {told['targets']} targets: predicted {told['prediction']['seconds']:.2f} s "
        f"({low:.2f} to {high:.2f}), about {size_text(told['bytes_out'])}"
    )


def outcome(told: dict[str, Any]) -> str:
    """One line: what became of a job."""
    counts = ", ".join(f"{number} {name}" for name, number in told["counts"].items() if number)
    return f"{told['phase']}, {counts or 'no rows'}, in {told['actual']['seconds']:.2f} s of work"


def draw_sheet(manifest: Table, folder: Path, path: Path) -> None:
    """Draw some of the cutouts, evenly chosen, on one sheet."""
    step = max(1, len(manifest) // SHEET_ROWS)
    chosen = manifest[::step][:SHEET_ROWS]
    cutouts = [swathe.open(folder / row["path"]).image().section[:, :] for row in chosen]
    captions = [f"{row['id']} {Path(row['source']).suffix}" for row in chosen]
    contact_sheet(cutouts, captions).save(path)


def cut_files(files: list[str], side: int, folder: Path) -> int:
    """Cut the middle of every image of the user's files; show each, go on after errors."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    taken: set[Path] = set()
    for name in files:
        try:
            for image in swathe.open(name).images:
                if len(image.shape) < 2:
                    continue
                height, width = image.shape[-2:]
                stem = Path(name).name.split(".")[0]
                path, copies = folder / f"{stem}-{image.index}.fits", 1
                while path in taken:
                    copies += 1
                    path = folder / f"{stem}-{image.index}-{copies}.fits"
                taken.add(path)
                box = ((width - side) // 2, (height - side) // 2, side, side)
                cutout = image.cut(box)
                cutout.write(path, overwrite=True)
                # Of a cube the first plane.
                picture(cutout.data).save(path.with_suffix(".png"))
                print(f"{path}: {cutout}")
        except SwatheError as error:
            failed += 1
            print(f"swathe: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
