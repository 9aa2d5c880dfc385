"""Many cuts: `swathe.cut_many`."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe import _swathe, trace
from swathe.archive import whole_members
from swathe.conversion import SUFFIXES, Written, convert
from swathe.core.outputs import (
    check_new,
    make_folder,
    publish,
    remove_unfinished,
    sole_writer,
    sync_folder,
)
from swathe.environment import cores
from swathe.errors import OutputError, OutputExistsError, RegionError
from swathe.known import local_paths
from swathe.manifest import FAILED, MANIFEST, Manifest, manifest_path, read_manifest
from swathe.progress import progress_bar
from swathe.sizes import forecast_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from astropy.table import Table

    from swathe._swathe import Mode, OutputKind
    from swathe.conversion import CutFormat
    from swathe.predict import Prediction
    from swathe.targets import Targets

    Told = tuple[list[int], list[str], list[str], list[int], list[str], list[str]]

log = logging.getLogger(__name__)

UNCONVERTED = ".swathe-cut-many.part"
"""In a folder of results: what is cut and not converted yet."""
POLL_S = 0.1
LOOKED_INTO = 16
"""Objects of each storage that the prediction of every job looks into; the rest are like them."""
CHECKPOINT_S = 10.0
"""The manifest is written this often while the work goes on, in case the process is killed."""


class _Place(NamedTuple):
    """Where results go, and the manifest of them.

    Attributes:
        path: the folder or archive.
        kind: which of those.
        manifest: of what is whole.
        unfinished: the manifest while the work goes on; of an archive another file, as the
            archive has a hidden name until it is whole.
        format: of each result.
        overwrite: whether files of the names of results are replaced.
    """

    path: Path
    kind: OutputKind
    manifest: Path
    unfinished: Path
    format: CutFormat = "fits"
    overwrite: bool = False

    @classmethod
    def of(cls, path: Path, wanted: CutFormat) -> _Place:
        """Return the place of an output.

        Raises:
            OutputError: If there is no such format, or the output cannot hold it.
        """
        if wanted not in SUFFIXES:
            raise OutputError(
                f"format: expected fits, npy or png, found {wanted!r}; stacks and rgb pictures are "
                "made by jobs of a portal"
            )
        kind = output_kind(path)
        if wanted != "fits" and kind != "folder":
            raise OutputError(
                f"{path}: expected a folder for format {wanted}, found *.{kind}: an archive that "
                "is written here holds fits"
            )
        manifest = manifest_path(path, kind)
        if kind == "folder":
            return cls(path, kind, manifest, manifest, wanted)
        hidden = path.with_name(f".{path.name}.{MANIFEST}.part")
        return cls(path, kind, manifest, hidden, wanted)

    @property
    def cut_into(self) -> Path:
        """Where the engine cuts to: the output, or a folder in it whose files are converted."""
        return self.path if self.format == "fits" else self.path / UNCONVERTED

    def remove_unconverted(self) -> None:
        """Remove what was not converted."""
        if self.format != "fits":
            shutil.rmtree(self.cut_into, ignore_errors=True)

    def member(self, name: str) -> str:
        """Return the path of a result within the output."""
        return name if self.kind == "fits" else name + SUFFIXES[self.format]

    @property
    def part(self) -> Path:
        """The archive until it is whole."""
        return self.path.with_name(f".{self.path.name}.part")

    @property
    def archive(self) -> Path:
        """What is there of the archive."""
        return self.part if self.part.exists() else self.path

    @property
    def latest_manifest(self) -> Path:
        """The manifest of the last run."""
        return self.unfinished if self.unfinished.exists() else self.manifest


def cut_many(
    targets: Any,
    output: str | os.PathLike[str],
    *,
    mode: Mode = "trim",
    fill: float | None = None,
    planes: slice | tuple[int, int] | None = None,
    format: CutFormat = "fits",  # noqa: A002 - as jobs of a portal call it
    threads: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
) -> Table:
    """Cut many regions, each file opened and decompressed once for all of its targets.

    One bad target never stops the others. Ctrl-C does, within a second: what is finished stays,
    and the manifest says what is not. What it is predicted to take is logged (`swathe`, INFO)
    before any pixel is read, and beside that what it took, once it is done.

    Args:
        targets: an astropy Table or QTable, pandas DataFrame, mapping of columns, list of lines
            (`FILE RA Dec size`), SkyCoord, or the path of a FITS, VOTable, CSV, ECSV, TSV, text or
            Parquet table, with a column `file` and one of (`x`, `y`, `height`, `width`: centre and
            size, as `Cutout2D`), (`x0`, `y0`, `width`, `height`) or a position in the sky and a
            size; optionally `id` and `hdu`. Units of columns are honoured. Files that a table file
            names are relative to its folder.
        output: a folder, or a `.zip`, `.tar` or multi-extension `.fits` file.
        mode: `trim`, `partial` or `strict`, as for `cut`.
        fill: physical value outside the image, with `partial`.
        planes: of cubes, those to keep along NAXIS3, zero-based; by default all. An image that
            has not all of them is an `error`.
        format: of each result: `fits`, `npy` (the physical pixels) or `png` (a preview of one
            plane). The last two go into a folder.
        threads: by default as many as there are cores.
        resume: keep what an earlier run finished, by id and source, and do only the rest.
        overwrite: replace an archive of this name, or files of the names of this run's results.
            Other files in the folder stay; so does every file that is read.
        progress: show a bar, if standard error is a terminal.
        file: the file of targets that name none.
        size: of targets in the sky that have none: an angle or pixels, as for `cut`.
        frame: of positions, if not ICRS or what the columns tell: as `galactic`, `fk4`.
        ra: name of the column of right ascension or longitude, where that is not clear.
        dec: name of the column of declination or latitude.

    Returns:
        The manifest, one row per target in their order: id, status (`ok`, `no-overlap`,
        `missing`, `error`), reason, path (within the output), bytes, source, source_version,
        sha256. Its `meta` holds counts and seconds per stage. It is written as `manifest.ecsv`
        into the folder; of `o.zip` as `o.manifest.ecsv` beside it, and within it as the last
        member (`.fits`: as the extension MANIFEST).

    Raises:
        TargetsError: where the list cannot be read.
        OutputExistsError: if a result or manifest of this name is there, and neither `resume`
            nor `overwrite` is true.
        OutputError: if results cannot be written at all, or an output is a file that is read.
        KeyboardInterrupt: after Ctrl-C, once the manifest is written.
    """
    from swathe.predict import sky_of
    from swathe.targets import choices_of, read_targets

    started = time.perf_counter()
    place = _Place.of(Path(output), format)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    read = read_targets(targets, sky_of, choices=choices)
    make_folder(place.manifest.parent)
    settings: dict[str, Any] = {
        "mode": mode,
        "fill": fill,
        "planes": _plane_pair(planes),
        "threads": threads,
    }
    with sole_writer(place.manifest):
        earlier = read_manifest(place.latest_manifest) if resume else None
        sources = partial(_sources, targets, read.files)
        _check_place(place, read.names, earlier, sources, overwrite)
        if place.kind == "folder":
            remove_unfinished(place.path)
        replaces = overwrite or (place.kind == "folder" and earlier is not None)
        place = place._replace(overwrite=replaces)
        return _cut_into(place, read, earlier, settings, progress, started)


def _cut_into(
    place: _Place,
    read: Targets,
    earlier: Table | None,
    settings: dict[str, Any],
    progress: bool,
    started: float,
) -> Table:
    """Cut what an earlier run did not; return the manifest of all."""
    from swathe.predict import expected, job_of

    meta = {"output": place.path.name, "mode": settings["mode"], "format": place.format}
    meta["swathe"] = _swathe.__version__
    shown = [_swathe.shown(file) for file in read.files]
    manifest = Manifest(read.ids, [shown[file] for file in read.file.tolist()], meta)
    todo, end = _keep_earlier(manifest, read, earlier, place)
    manifest.meta["done_before"] = len(read) - len(todo)
    todo = _without_faults(manifest, read, todo)
    paths = {row: place.member(read.names[row]) for row in todo}
    settings = {**settings, "threads": settings["threads"] or cores()}
    job = job_of(
        read,
        todo,
        list(paths.values()) if place.format == "fits" else [f"{row}.fits" for row in todo],
        output=str(place.cut_into),
        kind=place.kind,
        append=end,
        overwrite=place.overwrite,
        **settings,
    )
    try:
        prediction = expected(job, LOOKED_INTO)
    except KeyboardInterrupt:
        if earlier is not None:
            manifest.write(place.latest_manifest)
        elif place.kind == "folder":
            manifest.write(place.manifest)
        raise
    if earlier is None:
        # Should the process be killed: no manifest of an older run vouches for this one, and
        # these results are known as those of this one.
        manifest.write(place.unfinished)
    _tell_prediction(prediction, place, len(todo))
    with (
        trace.scope.where_none(job=token_hex(4)),
        trace.event("JOB", rows=len(todo), predicted_s=round(prediction.seconds, 6)) as event,
    ):
        try:
            _run(job, prediction, manifest, paths, place, progress, started)
        except KeyboardInterrupt as error:
            done = manifest.counts()["ok"]
            raise KeyboardInterrupt(f"{done:,} of {len(read):,} targets are done") from error
        event.add(bytes=int(sum(manifest.bytes)))
    return manifest.table()


def output_kind(path: Path) -> OutputKind:
    """Tell from its name what an output is.

    Raises:
        OutputError: where the suffix is that of a file we do not write.
    """
    match path.suffix.lower():
        case ".zip":
            return "zip"
        case ".tar":
            return "tar"
        case ".fits" | ".fit" | ".fts":
            return "fits"
        case ".gz" | ".bz2" | ".tgz" | ".fz" | ".7z" | ".csv" | ".png" | ".npy":
            raise OutputError(f"{path}: the output is a folder, *.zip, *.tar or *.fits")
        case _:
            return "folder"


def _check_place(
    place: _Place,
    names: list[str],
    earlier: Table | None,
    sources: Callable[[], Iterable[str]],
    overwrite: bool,
) -> None:
    """Check that no result or manifest takes the place of a source, or of what may not go.

    Args:
        place: where results go.
        names: those of the targets.
        earlier: manifest of the run that is resumed: its own results are replaced.
        sources: gives the local files that are read.
        overwrite: whether any other file of such a name is replaced.

    Raises:
        OutputExistsError: if there is such a file, and nobody asked to replace it.
        OutputError: if an output is a source.
    """
    resumes = earlier is not None
    is_broken_off = place.kind != "folder" and place.part.exists()
    if is_broken_off and not (resumes or overwrite):
        raise OutputExistsError(
            f"{place.path}: a run was broken off and left {place.part.name}; give --resume to go "
            "on with it, or --overwrite to begin anew"
        )
    try:
        check_new(
            place.manifest.parent,
            [place.manifest.name],
            overwrite=overwrite or resumes,
            sources=sources,
        )
        if place.kind != "folder":
            archive = [place.path.name]
            may_go = overwrite or (resumes and not is_broken_off)
            check_new(place.path.parent, archive, overwrite=may_go, sources=sources)
            return
        own = _own_results(earlier, place) if earlier is not None else set()
        results = [place.member(name) for name in names]
        check_new(place.path, own.intersection(results), overwrite=True, sources=sources)
        others = [result for result in results if result not in own]
        check_new(place.path, others, overwrite=overwrite, sources=sources)
    except OutputExistsError as error:
        raise OutputExistsError(f"{error}, or --resume to do only what is not done") from None


def _own_results(earlier: Table, place: _Place) -> set[str]:
    """Return the paths of an earlier run's results, of those it did not come to, too."""
    from swathe.targets import unique_names

    return {place.member(name) for name in unique_names(earlier["id"].tolist())}


def _sources(targets: Any, files: Iterable[str]) -> list[str]:
    """Return the local files that are read: images, and the table that lists them."""
    paths = local_paths(files)
    if isinstance(targets, str | os.PathLike):
        paths.append(os.fsdecode(targets))
    return paths


def _keep_earlier(
    manifest: Manifest, targets: Targets, earlier: Table | None, place: _Place
) -> tuple[list[int], int | None]:
    """Take over what an earlier run finished, and why it failed at others.

    Returns:
        The rows to do, and up to which byte an archive is kept; `None` to begin anew.
    """
    if earlier is None:
        return list(range(len(targets))), None
    end = None
    rows = {place.member(name): row for row, name in enumerate(targets.names)}
    _keep_failed(manifest, rows, earlier, place)
    done = {}
    for kept in earlier[earlier["status"] == "ok"]:
        row = rows.get(str(kept["path"]))
        if row is not None and str(kept["source"]) == manifest.source[row]:
            done[str(kept["path"])] = kept
    sizes = {path: int(kept["bytes"]) for path, kept in done.items()}
    if place.kind == "folder":
        there = {path for path, size in sizes.items() if _has_size(place.path / path, size)}
    else:
        there, end = whole_members(place.archive, place.kind, sizes, rows)
    todo = []
    for path, row in rows.items():
        if path not in there or path not in done:
            todo.append(row)
            continue
        kept = done[path]
        manifest.status[row], manifest.reason[row], manifest.path[row] = "ok", "", path
        manifest.bytes[row] = int(kept["bytes"])
        manifest.source_version[row] = str(kept["source_version"])
        manifest.sha256[row] = str(kept["sha256"])
    return todo, end


def _keep_failed(manifest: Manifest, rows: dict[str, int], earlier: Table, place: _Place) -> None:
    """Take over why an earlier run failed at rows, which are given by path within the output."""
    from swathe.targets import unique_names

    # What failed has no path, but had a name by its id.
    names = unique_names(earlier["id"].tolist())
    columns = (earlier[name].tolist() for name in ("status", "reason", "source", "source_version"))
    for name, status, reason, source, version in zip(names, *columns, strict=True):
        row = rows.get(place.member(name))
        if status in FAILED and row is not None and source == manifest.source[row]:
            # It stands until the row ends anew: this run may be stopped before that.
            manifest.status[row], manifest.reason[row] = status, reason
            manifest.source_version[row] = version


def _without_faults(manifest: Manifest, targets: Targets, todo: list[int]) -> list[int]:
    """Enter why some rows cannot be cut; gives the others."""
    for row in todo:
        if row in targets.faults:
            manifest.status[row], manifest.reason[row] = targets.faults[row]
            manifest.source_version[row] = ""
    return [row for row in todo if row not in targets.faults]


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _plane_pair(planes: slice | tuple[int, int] | None) -> tuple[int, int] | None:
    """Give planes as `(first, last)`. Files differ in length, so ends must be given."""
    from swathe.core.planes import planes_of_list
    from swathe.errors import RegionError

    planes = planes_of_list(planes)
    if isinstance(planes, slice):
        if planes.start is None or planes.stop is None or planes.step not in (None, 1):
            raise RegionError(f"planes of many files need a first and a last, not {planes}")
        planes = (planes.start, planes.stop)
    if planes is not None and not 0 <= planes[0] < planes[1]:
        raise RegionError(f"planes must be (first, last) with 0 <= first < last, not {planes}")
    return planes


def _tell_prediction(prediction: Prediction, place: _Place, targets: int) -> None:
    low_s, high_s = prediction.interval_s
    spread = "" if high_s < 0.1 else f" ({seconds_text(low_s)} to {seconds_text(high_s)})"
    log.info(
        "%s: predicted %s%s for %d targets: %d bytes in %d requests",
        *(place.path, forecast_text(prediction.seconds), spread, targets),
        *(prediction.bytes, prediction.requests),
    )


def _run(
    job: _swathe.Job,
    prediction: Prediction,
    manifest: Manifest,
    paths: dict[int, str],
    place: _Place,
    progress: bool,
    started: float,
) -> None:
    """Do the job. However it ends, the manifest is written and says what was done."""
    begun = time.perf_counter()
    place.remove_unconverted()
    batch = job.start()
    stop = threading.Event()

    def cancel() -> None:
        stop.set()
        batch.cancel()

    with (
        _interrupt_later(cancel),
        progress_bar("cutting", progress, len(paths)) as show,
    ):
        try:
            _collect(batch, manifest, paths, show, place, stop)
        except BaseException:
            batch.cancel()
            raise
        finally:
            try:
                cost = batch.finish()
                place.remove_unconverted()
                manifest.meta["predicted_s"] = round(prediction.seconds, 6)
                manifest.meta["actual_s"] = round(time.perf_counter() - begun, 6)
                manifest.meta.update(_cost(cost, started))
                _keep_outcome(prediction, manifest, place, whole=not stop.is_set())
            finally:
                content = manifest.write(place.unfinished)
            # An archive gets its name when it holds its manifest, and then that does.
            if place.format == "fits":
                batch.close(manifest.extension() if place.kind == "fits" else content)
            else:
                sync_folder(place.path)
            if place.unfinished != place.manifest:
                publish(place.unfinished, place.manifest, overwrite=True)


def _keep_outcome(
    prediction: Prediction, manifest: Manifest, place: _Place, *, whole: bool
) -> None:
    """Say what the work took, to the user, the manifest and the catalogue.

    A prediction is compared with what was done of it only where that is the `whole`.
    """
    from swathe.predict import keep_outcome

    meta = manifest.meta
    log.info(
        "%s: took %s, predicted %s: %d bytes in %d requests",
        *(place.path, seconds_text(meta["actual_s"]), forecast_text(prediction.seconds)),
        *(meta["bytes_moved"], meta["requests"]),
    )
    meta.update(manifest.counts())
    summary = f"cut_many into {place.kind} in {place.format}"
    cuts = meta["ok"] - meta["done_before"] if whole else 0
    meta["notes"] += keep_outcome(prediction, meta, summary, cuts)


def _collect(
    batch: _swathe.Batch,
    manifest: Manifest,
    paths: dict[int, str],
    show: Callable[[int], None],
    place: _Place,
    stop: threading.Event,
) -> None:
    """Enter rows into the manifest as they are done; the batch has them in the order of paths.

    What is cut and not converted when it is to stop is not done.
    """
    todo = list(paths)
    done, saved = 0, time.monotonic()
    for columns in told(batch):
        for target, status, reason, size, version, sha256 in zip(*columns, strict=True):
            row = todo[target]
            if status == "ok" and place.format != "fits":
                if stop.is_set():
                    continue
                status, reason, size, sha256 = _converted(place, row, paths[row])
            manifest.status[row], manifest.reason[row] = status, reason
            manifest.bytes[row] = size
            manifest.source_version[row], manifest.sha256[row] = version, sha256
            manifest.path[row] = paths[row] if status == "ok" else ""
            done += 1
        show(done)
        if time.monotonic() - saved > CHECKPOINT_S:
            manifest.write(place.unfinished)
            saved = time.monotonic()


def _converted(place: _Place, row: int, path: str) -> tuple[str, str, int, str]:
    """Convert the cutout of a row; return its status, reason, bytes and SHA-256."""
    new = place.path / path
    try:
        convert(place.cut_into / f"{row}.fits", new, overwrite=place.overwrite)
    except (RegionError, OutputExistsError) as error:
        return "error", str(error), 0, ""
    return "ok", "", *Written.of(new)


def told(batch: _swathe.Batch) -> Iterator[Told]:
    """Give the columns of the rows done since the last time, perhaps none, until all are."""
    while (rows := batch.poll(POLL_S)) is not None:
        # Each attribute is a new list.
        yield (rows.target, rows.status, rows.reason, rows.bytes, rows.version, rows.sha256)


@contextmanager
def _interrupt_later(cancel: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C call `cancel`, and do what it does otherwise only at the end.

    An exception in between would lose the rows just told, and their results with them.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append((number, frame))
        cancel()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if caught:
        usual(*caught[0])


def _cost(cost: dict[str, Any], started: float) -> dict[str, Any]:
    """Give what the work cost, in seconds and bytes, as the manifest keeps it."""
    kept = {name: cost.pop(name) for name in ("bytes_moved", "requests", "notes")}
    del cost["from_peers"], cost["from_cache"]
    seconds = {f"{name}_s": round(value, 6) for name, value in cost.items()}
    return {**seconds, "total_s": round(time.perf_counter() - started, 6), **kept}
