"""A demonstration: a sample survey, its portal and a job; or cuts out of the user's own images."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import swathe
from swathe.catalog import Catalog, this_host
from swathe.client.answers import as_json
from swathe.client.portal import RemotePortal
from swathe.core.errors import (
    NoSuchDatasetError,
    NoSuchStoreError,
    SettingsError,
    SwatheError,
)
from swathe.core.format import size_text
from swathe.core.outputs import check_output, make_folder, write_file
from swathe.core.paths import VARIABLE
from swathe.core.progress import progress_bar
from swathe.core.sample_survey import make_sample
from swathe.files.preview import contact_sheet, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astropy.table import Table
    from PIL.Image import Image as PillowImage

    from swathe.jobs.types import Job

SHEET_ROWS = 48
SURVEY = "survey"
IMAGES = "*.fit"
"""Each frame exists in four kinds. Only this kind is catalogued."""
SETTINGS = """# Settings of the portal of `swathe demo`.
[server]
port = 0
[catalog]
database = {database}
[results]
folder = {results}
[vo]
title = "Sample survey"
"""


@dataclass(frozen=True)
class Demonstration:
    """Sizes, folder and texts of a demonstration.

    Attributes:
        folder: folder for the survey, the portal and the results.
        frames: number of frames of the survey.
        targets: number of targets of the job.
        seed: seed of the survey.
        once: whether to end when the job has ended.
        overwrite: whether to replace files of others in the folder.
        progress: whether to show progress bars.
        tell: called with each line for the user.
    """

    folder: Path
    frames: int
    targets: int
    seed: int
    once: bool
    overwrite: bool
    progress: bool
    tell: Callable[[str], None]

    def run(self, show: Callable[[dict[str, Any]], None]) -> bool:
        """Make and register the sample, serve it, and run a job on it.

        The portal is served until Ctrl-C, unless `once` is set.

        Args:
            show: called with the status of the ended job, and the places of portal and results.

        Returns:
            Whether all rows have a result.

        Raises:
            OutputError: If a file would be replaced, or one cannot be written.
            SettingsError: If the portal does not start.
        """
        folder = self.folder.absolute()
        sheet = folder / "contact-sheet.png"
        make_folder(folder)
        check_output(sheet, overwrite=self.overwrite)
        settings = folder / "portal" / "swathe.toml"
        if not is_own_settings(settings):
            check_output(settings, overwrite=self.overwrite)
        targets = self.make_targets(folder / "sample")
        register(folder / "sample", settings, self.progress, self.tell)
        with portal(settings) as (url, process):
            status, results = self.run_job(url, targets, folder / "cutouts", sheet)
            self.tell(f"portal: {url}")
            places = {"portal": url, "output": f"{folder}/cutouts", "sheet": str(sheet)}
            show({**as_json(status), **places})
            if not self.once:
                with suppress(KeyboardInterrupt):
                    process.wait()
            return results == len(targets)

    def make_targets(self, folder: Path) -> Table:
        """Make the sample survey. Return its targets with files named `STORE:path`."""
        from astropy.table import Table

        self.tell(f"sample survey: {self.frames} frames, seed {self.seed}, in {folder}/")
        with progress_bar("drawing", self.progress, self.frames) as show:
            path = make_sample(
                folder,
                self.frames,
                self.seed,
                self.targets,
                lambda count, _frames: show(count),
                overwrite=self.overwrite,
            )
        targets = Table.read(path, format="ascii.csv")
        targets["file"] = [f"{SURVEY}:{name}" for name in targets["file"]]
        return targets

    def run_job(self, url: str, targets: Table, folder: Path, sheet: Path) -> tuple[Job, int]:
        """Submit a job, show its progress, fetch its results. Return its status and good rows."""
        with swathe.connect(url) as portal:
            self.tell(estimate(portal, targets))
            job = portal.submit(targets, name="swathe demo")
            status = job.wait(progress=self.progress)
            self.tell(f"job {job.id}: {outcome(status)}")
            for row in list(job.rows("error"))[:5]:
                self.tell(f"  {row.id}: {row.reason}")
            manifest = job.fetch(folder, overwrite=self.overwrite, progress=self.progress)
        results = manifest[manifest["status"] == "ok"]
        write_picture(draw_sheet(results, folder), sheet, self.overwrite)
        self.tell(f"{len(results)} cutouts in {folder}/, a selection in {sheet}")
        return status, len(results)


def is_own_settings(settings: Path) -> bool:
    """Check whether a file does not exist, or was written by `register`."""
    first = SETTINGS.partition("\n")[0]
    try:
        return settings.read_text().startswith(first)
    except FileNotFoundError:
        return not settings.is_symlink()
    except (OSError, UnicodeDecodeError):
        return False


def register(sample: Path, settings: Path, progress: bool, tell: Callable[[str], None]) -> None:
    """Register the sample in its own catalogue, and write the settings file of its portal.

    Also measure this machine, as the first probe does: predictions need it.
    """
    from swathe.costs.probing.host import measure_host
    from swathe.costs.probing.save import keep_host
    from swathe.datasets.scan import scan
    from swathe.stores.listing import list_objects

    folder = settings.parent
    make_folder(folder)
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
        with progress_bar("cataloguing", progress, len(objects)) as show:
            report = scan(catalog, SURVEY, objects, show=lambda count, _total: show(count))
    tell(f"catalogue: {report.listed} images in {folder}/catalog.sqlite")
    # A JSON string is also a TOML string.
    values = {"database": json.dumps(database), "results": json.dumps(str(folder / "results"))}
    content = SETTINGS.format(**values).encode()
    write_file(settings, lambda file: file.write(content), overwrite=True)


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


def estimate(portal: RemotePortal, targets: Table) -> str:
    """Return the cost of a job as the portal predicts it, as one line."""
    result = portal.estimate(targets)
    prediction = result.prediction
    if prediction is None:
        return f"job of {result.targets} targets: nothing to cut"
    low_s, high_s = prediction.interval_s
    return (
        f"job of {result.targets} targets: predicted {prediction.median_s:.2f} s "
        f"({low_s:.2f} to {high_s:.2f}), about {size_text(result.bytes_out)}"
    )


def outcome(status: Job) -> str:
    """Return the outcome of a job as one line."""
    counts = ", ".join(f"{number} {name}" for name, number in status.counts.items() if number)
    work_s = 0.0 if status.actual is None else status.actual["work_s"]
    return f"{status.phase}, {counts or 'no rows'}, {work_s:.2f} s of work"


def draw_sheet(manifest: Table, folder: Path) -> PillowImage:
    """Draw a regular selection of the cutouts on one sheet."""
    step = max(1, len(manifest) // SHEET_ROWS)
    rows = manifest[::step][:SHEET_ROWS]
    cutouts = [swathe.open(folder / row["path"]).image().section[:, :] for row in rows]
    captions = [f"{row['id']} {Path(row['source']).suffix}" for row in rows]
    return contact_sheet(cutouts, captions)


def write_picture(drawing: PillowImage, path: Path, overwrite: bool) -> None:
    """Write a picture to a PNG file."""
    write_file(path, lambda file: drawing.save(file, "png"), overwrite=overwrite)


def cut_files(
    files: Sequence[str],
    side: int,
    folder: Path,
    overwrite: bool,
    tell: Callable[[str], None],
) -> tuple[list[Path], dict[str, str]]:
    """Cut the centre of every image of the user's files. Continue after errors.

    Returns:
        Paths of the cutouts, each with a picture beside it, and the errors by file.
    """
    make_folder(folder)
    faults: dict[str, str] = {}
    paths: list[Path] = []
    for name in files:
        try:
            images = [image for image in swathe.open(name).images if len(image.shape) >= 2]
            if not images:
                faults[name] = f"{name}: no HDU with an image of two axes or more"
            for image in images:
                height, width = image.shape[-2:]
                stem = Path(name).name.split(".")[0]
                path, copies = folder / f"{stem}-{image.index}.fits", 1
                while path in paths:
                    copies += 1
                    path = folder / f"{stem}-{image.index}-{copies}.fits"
                box = ((width - side) // 2, (height - side) // 2, side, side)
                cutout = image.cut(box)
                cutout.write(path, overwrite=overwrite)
                paths.append(path)
                # The first plane of a cube.
                write_picture(picture(cutout.data), path.with_suffix(".png"), overwrite)
                x0, y0, _, _ = cutout.box
                shape = " x ".join(map(str, cutout.shape[::-1]))
                tell(f"{path}: {shape} pixels from [{x0}, {y0}]")
        except SwatheError as error:
            faults[name] = str(error)
    return paths, faults
