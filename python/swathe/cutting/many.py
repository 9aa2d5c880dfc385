"""Cut many regions: `swathe.cut_many`."""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe import _swathe, trace
from swathe.core.errors import OutputError, OutputExistsError
from swathe.core.format import forecast_text, seconds_text
from swathe.core.host import cores
from swathe.core.outputs import (
    check_new,
    make_folder,
    publish,
    refuse_if_sources,
    remove_unfinished,
    sole_writer,
    unfinished_results,
)
from swathe.core.progress import progress_bar
from swathe.cutting.resume import whole_members
from swathe.files.manifest import FAILED, MANIFEST, Manifest, manifest_path, read_manifest
from swathe.files.planes import plane_span
from swathe.stores.registry import local_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    from astropy.table import Table

    from swathe._swathe import Mode, OutputKind
    from swathe.costs.prediction import Prediction
    from swathe.files.planes import Planes
    from swathe.files.targets.target_list import Targets
    from swathe.operations.make_results import CombinedResults, Maker, RowOutcome
    from swathe.operations.registry import ResultOptions

    Told = tuple[list[int], list[str], list[str], list[int], list[str], list[str]]

log = logging.getLogger(__name__)

UNCONVERTED = ".swathe-cut-many.part"
"""Folder of cutouts from which results are made; for an archive it is `.NAME.cut.part`."""
POLL_S = 0.1
LOOKED_INTO = 16
"""Number of objects per store that a job's prediction inspects; the rest are assumed alike."""
CHECKPOINT_S = 10.0
"""Interval at which the manifest is written during a run, in case the process is killed."""


class _OutputPaths(NamedTuple):
    """Output of a run, and its manifest.

    Attributes:
        path: folder or archive.
        kind: kind of the output.
        manifest: final name of the manifest.
        unfinished: name of the manifest during the run. An archive has a separate file, since it
            has a hidden name until it is complete.
        making: options of the results.
        overwrite: whether existing files with the names of results are replaced.
    """

    path: Path
    kind: OutputKind
    manifest: Path
    unfinished: Path
    making: ResultOptions
    overwrite: bool = False

    @classmethod
    def of(cls, path: Path, making: ResultOptions) -> _OutputPaths:
        """Return the place of an output.

        Raises:
            OutputError: if the output cannot hold such results.
        """
        kind = output_kind(path)
        if making.format != "fits" and kind == "fits":
            raise OutputError(
                f"{path}: expected a folder, *.zip or *.tar for format {making.format}, found "
                f"*{path.suffix}, which holds fits"
            )
        manifest = manifest_path(path, kind)
        if kind == "folder":
            return cls(path, kind, manifest, manifest, making)
        hidden = path.with_name(f".{path.name}.{MANIFEST}.part")
        return cls(path, kind, manifest, hidden, making)

    @property
    def cut_into(self) -> Path:
        """Return the folder the engine cuts to: the output, or a folder of intermediate files."""
        if self.making.is_plain:
            return self.path
        if self.kind == "folder":
            return self.path / UNCONVERTED
        return self.path.with_name(f".{self.path.name}.cut.part")

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Make the folder of intermediate files if it is needed, and remove it at the end."""
        if self.making.is_plain:
            yield
            return
        # A killed run may have left it; a link of that name is not our folder.
        shutil.rmtree(self.cut_into, ignore_errors=True)
        try:
            self.cut_into.mkdir(parents=True)
        except OSError as error:
            raise OutputError(
                f"{self.cut_into}: cannot make the folder: {error.strerror}"
            ) from error
        try:
            yield
        finally:
            shutil.rmtree(self.cut_into, ignore_errors=True)

    def member(self, name: str) -> str:
        """Return the path of a result in the output."""
        return name if self.kind == "fits" else name + self.making.suffix

    @property
    def part(self) -> Path:
        """Return the path of the archive while it is written."""
        return self.path.with_name(f".{self.path.name}.part")

    def hidden(self) -> Iterator[Path]:
        """Yield the existing files among those that a run writes, and then replaces or removes."""
        if self.kind == "folder":
            yield from unfinished_results(self.path)
        else:
            yield from filter(os.path.lexists, (self.part, self.unfinished))
        if not self.making.is_plain:
            yield from self.cut_into.rglob("*")

    @property
    def archive(self) -> Path:
        """Return the archive, complete or unfinished."""
        return self.part if self.part.exists() else self.path

    @property
    def latest_manifest(self) -> Path:
        """Return the manifest of the last run."""
        return self.unfinished if self.unfinished.exists() else self.manifest


@dataclass(frozen=True)
class _CutWork:
    """Targets of a run, and the results made from several of them.

    Attributes:
        read: targets.
        results: results from several images; their rows of the manifest follow the targets' rows.
        pixel_deg: pixel size of these results.
    """

    read: Targets
    results: CombinedResults | None = None
    pixel_deg: float | None = None

    @property
    def first(self) -> int:
        """Return the row of the manifest of the first result."""
        return 0 if self.results is None else len(self.read)

    @property
    def ids(self) -> list[str]:
        """Return the ids of all rows of the manifest."""
        return self.read.ids if self.results is None else [*self.read.ids, *self.results.ids]

    def paths(self, place: _OutputPaths) -> dict[str, int]:
        """Return the rows of the manifest by path of their result."""
        names = self.read.names if self.results is None else self.results.names
        return {place.member(name): self.first + at for at, name in enumerate(names)}

    def inputs(self, rows: list[int]) -> list[int]:
        """Return the targets from which results are made, given the results' rows."""
        if self.results is None:
            return rows
        return self.results.rows_of([row - self.first for row in rows])


def cut_many(
    targets: Any,
    output: str | os.PathLike[str],
    *,
    stores: Sequence[str] = (),
    mode: Mode = "trim",
    fill: float | None = None,
    planes: Planes | None = None,
    operation: str | None = None,
    format: str | None = None,  # noqa: A002 - as jobs of a portal call it
    bands: Sequence[str] | str = (),
    threads: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
    **own_options: Any,
) -> Table:
    """Cut many regions; each file is opened and decompressed once for all of its targets.

    One bad target never stops the others. Ctrl-C stops the run within a second: finished results
    are kept, and the manifest says which targets are not done. The predicted time is logged
    (`swathe`, INFO) before any pixel is read, and the measured time at the end.

    Args:
        targets: an astropy Table or QTable, pandas DataFrame, mapping of columns, list of lines
            (`FILE RA Dec size`), SkyCoord, or the path of a FITS, VOTable, CSV, ECSV, TSV, text or
            Parquet table. It needs a column `file` and one of: (`x`, `y`, `height`, `width`: centre
            and size, as in `Cutout2D`), (`x0`, `y0`, `width`, `height`), or a sky position and a
            size. The columns `id` and `hdu` are optional. Units of columns are honoured. File names
            in a table file are relative to its folder.
        output: folder, or a `.zip`, `.tar` or multi-extension `.fits` file.
        stores: names of stores with replicas, with the same paths in each. The files are read from
            all of them, by the shares that `predict(stores=...)` shows; a store that lacks a file
            gets none of its targets. The column `source` and `meta["stores"]` say from which.
        mode: `trim`, `partial` or `strict`, as in `cut`.
        fill: physical value outside the image, with `partial`.
        planes: planes of cubes to keep along NAXIS3, zero-based, as in `cut`, but counted from the
            first and with an end, since files differ in length; by default all. An image without
            these planes is an `error`.
        operation: `cut` each target (default), `stack` them: one image of all, or of each name in a
            column `group`, or `rgb`. For stacks and pictures the targets are sky positions, each
            with one angle as size.
        format: format of the results: `fits`, `npy` (the physical pixels), `png` (a preview of one
            plane) or `rgb` (operation `rgb`: one picture of three images: the rows of a `group`,
            red first). A `.fits` file holds only `fits`, and a stack is `fits`.
        bands: three band names for `rgb`, red first. Each picture is made from the rows of its
            group with these names in the column `band`, in any order. Other rows are left out.
        threads: number of threads; by default the number of cores.
        resume: whether to keep the results of an earlier run, by id and source, and do only the
            rest.
        overwrite: whether to replace an archive of this name, or files with the names of this run's
            results. Other files in the folder are kept, and so is every file that is read.
        progress: whether to show a bar, if standard error is a terminal.
        file: file of targets that name none.
        size: size of sky targets without one: an angle or pixels, as in `cut`.
        frame: frame of positions, if not ICRS or the columns' own frame, such as `galactic`, `fk4`.
        ra: name of the column of right ascension or longitude, if that is ambiguous.
        dec: name of the column of declination or latitude.
        **own_options: options of the operation. A stack has one: `stack`, the way to combine
            pixels: `mean` (default), `median`, `sigma-clipped` or `weighted`.

    Returns:
        The manifest, one row per target in their order: id, status (`ok`, `no-overlap`,
        `missing`, `error`), reason, path (in the output), bytes, source, source_version, sha256.
        For stacks and `rgb`, the rows of targets have no path. After them comes a row for each
        result: its id is the group, its source_version a SHA-256 of its inputs. `meta` holds
        counts and seconds per stage. The manifest is written to the folder as `manifest.ecsv`;
        for `o.zip` as `o.manifest.ecsv` beside it, and as the last member of the archive (in
        `.fits`: as the extension MANIFEST).

    Raises:
        TargetsError: if the list cannot be read.
        NoSuchStoreError: if there is no such store.
        OutputExistsError: if a result or manifest of this name exists, and neither `resume` nor
            `overwrite` is true.
        OutputError: if results cannot be written at all, or an output is a file that is read.
        KeyboardInterrupt: after Ctrl-C, when the manifest is written.
    """
    from swathe.costs.prediction import sky_of
    from swathe.costs.replicas import mix_targets
    from swathe.files.targets.target_list import choices_of, read_targets
    from swathe.operations.make_results import of_bands
    from swathe.operations.registry import ResultOptions

    started = time.perf_counter()
    making = ResultOptions.read(operation, format, _band_names(bands), own_options)
    making.kind.check_bands(making.bands, are_needed=False)
    if making.is_combined and (mode != "trim" or fill is not None):
        raise OutputError(
            f"mode: expected trim without a fill, found {mode!r}: what goes into a stack or rgb is "
            "cut larger, and pixels outside of images do not count"
        )
    place = _OutputPaths.of(Path(output), making)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    span = None if planes is None else plane_span(planes)
    mixed = None
    if stores:
        mixed = mix_targets(
            targets,
            stores,
            choices,
            mode=mode,
            planes=span,
            threads=threads or cores(),
            combined=making.is_combined,
            before=_sources_before(place) if resume else (),
        )
        target_list = mixed.targets
    else:
        target_list = read_targets(targets, sky_of, choices=choices, combined=making.is_combined)
    files = target_list.files if mixed is None else mixed.replicas
    if making.bands:
        target_list = of_bands(target_list, making.bands)
    make_folder(place.manifest.parent)
    settings: dict[str, Any] = {
        "mode": mode,
        "fill": fill,
        "planes": span,
        "threads": threads,
        "shares": None if mixed is None else mixed.counts,
    }
    with sole_writer(place.manifest):
        sources = partial(_sources, targets, files)
        refuse_if_sources(place.hidden(), sources)
        earlier = read_manifest(place.latest_manifest) if resume else None
        if earlier is not None:
            _check_same_kind(earlier, place)
        work = _work(target_list, making, settings["planes"], earlier)
        _check_place(place, work, earlier, sources, overwrite)
        if place.kind == "folder":
            remove_unfinished(place.path)
        replaces = overwrite or (place.kind == "folder" and earlier is not None)
        place = place._replace(overwrite=replaces)
        return _cut_into(place, work, earlier, settings, progress, started)


def _work(
    target_list: Targets,
    making: ResultOptions,
    planes: tuple[int, int] | None,
    earlier: Table | None,
) -> _CutWork:
    """Return the work to do; a resumed run uses the pixel size of the earlier run."""
    from swathe.operations.make_results import results_of

    if not making.is_combined:
        return _CutWork(target_list)
    before = None if earlier is None else earlier.meta.get("pixel_deg")
    return _CutWork(
        target_list,
        *results_of(target_list, making, planes, _scale_deg if before is None else before),
    )


def _scale_deg(target_list: Targets) -> float | None:
    """Return the pixel size in degrees of the first readable image."""
    from swathe.costs.prediction import sky_of

    for row in range(len(target_list)):
        if row not in target_list.faults:
            scales = sky_of(
                target_list.files[target_list.file[row]], target_list.hdus[target_list.hdu[row]]
            ).scales
            return math.sqrt(scales[0] * scales[1])
    return None


def _cut_into(
    place: _OutputPaths,
    work: _CutWork,
    earlier: Table | None,
    settings: dict[str, Any],
    progress: bool,
    started: float,
) -> Table:
    """Cut what an earlier run did not finish; return the whole manifest."""
    from swathe.costs.prediction import predict_job, read_at_once, to_engine_job

    target_list = work.read
    settings = dict(settings)
    shares = settings.pop("shares")
    meta = {"output": place.path.name, "mode": settings["mode"], **_run_options(place.making, work)}
    meta["swathe"] = _swathe.__version__
    if shares is not None:
        meta["stores"] = shares
    shown = [_swathe.shown(file) for file in target_list.files]
    sources = [shown[file] for file in target_list.file.tolist()]
    # A result from several images has no source of its own.
    sources += [""] * (len(work.ids) - len(sources))
    manifest = Manifest(work.ids, sources, meta)
    results, end = _keep_earlier(manifest, work, earlier, place)
    todo = work.inputs(results)
    waits = len(results) + (len(todo) if work.results is not None else 0)
    manifest.meta["done_before"] = len(work.ids) - waits
    todo = _without_faults(manifest, target_list, todo)
    names = {row: path for path, row in work.paths(place).items()}
    paths = {row: names[row] for row in results}
    settings = {**settings, "threads": settings["threads"] or cores()}
    is_made = not place.making.is_plain
    job = to_engine_job(
        target_list,
        todo,
        [f"{row}.fits" if is_made else paths[row] for row in todo],
        output=str(place.cut_into),
        kind="folder" if is_made else place.kind,
        append=None if is_made else end,
        overwrite=place.overwrite and not is_made,
        **settings,
    )
    try:
        prediction = predict_job(job, LOOKED_INTO)
        if shares is not None:
            prediction = read_at_once(prediction, settings["threads"])
    except KeyboardInterrupt:
        if earlier is not None:
            manifest.write(place.latest_manifest)
        elif place.kind == "folder":
            manifest.write(place.manifest)
        raise
    if earlier is None:
        # If the process is killed now, no older manifest describes these results, and they are
        # known to belong to this run.
        manifest.write(place.unfinished)
    if todo:
        _tell_prediction(prediction, place, len(todo))
    run = _CutRun(place, work, manifest, todo, paths, end)
    with (
        trace.scope.where_none(job=token_hex(4)),
        trace.event("JOB", rows=len(todo), predicted_s=round(prediction.median_s, 6)) as event,
    ):
        try:
            with place.scratch():
                _run(run, job, prediction, progress, started)
        except KeyboardInterrupt as error:
            finished = manifest.counts()["ok"]
            raise KeyboardInterrupt(
                f"{finished:,} of {len(work.ids):,} targets are done"
            ) from error
        event.add(bytes=int(sum(manifest.bytes)))
    return manifest.table()


def _run_options(making: ResultOptions, work: _CutWork) -> dict[str, Any]:
    """Return the options of the run, as the manifest records them."""
    options = {"operation": making.operation, "format": making.format, **making.own}
    if making.bands:
        options["bands"] = list(making.bands)
    if work.results is not None:
        options |= {"images": len(work.read), "pixel_deg": work.pixel_deg}
    return options


def output_kind(path: Path) -> OutputKind:
    """Return the kind of an output from its name.

    Raises:
        OutputError: if files with this suffix are not supported.
    """
    match path.suffix.lower():
        case ".zip":
            return "zip"
        case ".tar":
            return "tar"
        case ".fits" | ".fit" | ".fts":
            return "fits"
        case ".gz" | ".bz2" | ".tgz" | ".fz" | ".7z" | ".csv" | ".png" | ".npy":
            raise OutputError(f"{path}: expected a folder, *.zip, *.tar or *.fits as output")
        case _:
            return "folder"


def _check_place(
    place: _OutputPaths,
    work: _CutWork,
    earlier: Table | None,
    sources: Callable[[], Iterable[str]],
    overwrite: bool,
) -> None:
    """Check that no result or manifest replaces a source, or a file that must be kept.

    Args:
        place: output of the run.
        work: targets and results of the run.
        earlier: manifest of the resumed run, whose own results may be replaced.
        sources: function that returns the local files that are read.
        overwrite: whether other existing files are replaced.

    Raises:
        OutputExistsError: if a file exists and `overwrite` is false.
        OutputError: if an output is a source.
    """
    resumes = earlier is not None
    is_broken_off = place.kind != "folder" and place.part.exists()
    if is_broken_off and not (resumes or overwrite):
        raise OutputExistsError(
            f"{place.path}: an interrupted run left {place.part.name}; give --resume to "
            "continue it, or --overwrite to begin anew"
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
        results = list(work.paths(place))
        check_new(place.path, own.intersection(results), overwrite=True, sources=sources)
        others = [result for result in results if result not in own]
        check_new(place.path, others, overwrite=overwrite, sources=sources)
    except OutputExistsError as error:
        raise OutputExistsError(f"{error}, or --resume to do only the rest") from None


def _check_same_kind(earlier: Table, place: _OutputPaths) -> None:
    """Check that the earlier run had the same kind of results: from one image, or from several.

    Raises:
        OutputError: if it had not.
    """
    from swathe.operations.registry import operation_of

    making, meta = place.making, earlier.meta
    was = meta.get("operation", "cut"), meta.get("format", "fits")
    if operation_of(was[0]).is_combined != making.is_combined:
        raise OutputError(
            f"{place.latest_manifest}: expected a run of operation {making.operation} and format "
            f"{making.format} to resume, found {was[0]} and {was[1]}; give another output"
        )


def _results(earlier: Table) -> Table:
    """Return the rows of a manifest that are results; for stacks and rgb the last ones."""
    return earlier[int(earlier.meta.get("images", 0)) :]


def _own_results(earlier: Table, place: _OutputPaths) -> set[str]:
    """Return the paths of an earlier run's results, including those not made yet."""
    return {place.member(name) for name in _names_of(_results(earlier))}


def _sources(targets: Any, files: Iterable[str]) -> list[str]:
    """Return the local files that are read: images, and the table of targets."""
    paths = local_paths(files)
    if isinstance(targets, str | os.PathLike):
        paths.append(os.fsdecode(targets))
    return paths


def _sources_before(place: _OutputPaths) -> set[str]:
    """Return what an earlier run has read successfully."""
    earlier = read_manifest(place.latest_manifest)
    if earlier is None:
        return set()
    return set(map(str, earlier["source"][earlier["status"] == "ok"]))


def _keep_earlier(
    manifest: Manifest, work: _CutWork, earlier: Table | None, place: _OutputPaths
) -> tuple[list[int], int | None]:
    """Copy the outcome of an earlier run into the manifest: its results and its errors.

    Returns:
        The rows whose results are to be made, and the length in bytes up to which an archive is
        kept; `None` to begin anew.
    """
    rows = work.paths(place)
    if earlier is None:
        return list(rows.values()), None
    end = None
    results = _results(earlier)
    whole = _take_inputs(manifest, work, earlier)
    _keep_failed(
        manifest, {name: rows.get(place.member(name)) for name in _names_of(results)}, results
    )
    finished = {}
    for earlier_row in results[results["status"] == "ok"]:
        row = rows.get(str(earlier_row["path"]))
        if row is not None and _is_same(manifest, work, row, earlier_row, whole):
            finished[str(earlier_row["path"])] = earlier_row
    sizes = {path: int(earlier_row["bytes"]) for path, earlier_row in finished.items()}
    if place.kind == "folder":
        sound = {path for path, size in sizes.items() if _has_size(place.path / path, size)}
    else:
        extensions = place.making.kind.hdus
        sound, end = whole_members(place.archive, place.kind, sizes, rows, extensions)
    todo = []
    for path, row in rows.items():
        if path not in sound or path not in finished:
            todo.append(row)
            continue
        earlier_row = finished[path]
        manifest.status[row], manifest.reason[row], manifest.path[row] = "ok", "", path
        manifest.bytes[row] = int(earlier_row["bytes"])
        manifest.source_version[row] = str(earlier_row["source_version"])
        manifest.sha256[row] = str(earlier_row["sha256"])
    for row in work.inputs(todo) if work.results is not None else ():
        if manifest.status[row] == "ok":
            manifest.status[row], manifest.reason[row] = "error", "interrupted"
            manifest.source_version[row] = ""
    return todo, end


def _is_same(
    manifest: Manifest, work: _CutWork, row: int, earlier_row: Any, whole: set[int]
) -> bool:
    """Check whether an earlier result has the same source, or the same inputs."""
    if work.results is None:
        return str(earlier_row["source"]) == manifest.source[row]
    result = row - work.first
    is_whole = whole.issuperset(work.results.inputs[result])
    return is_whole and str(earlier_row["source_version"]) == work.results.digests[result]


def _take_inputs(manifest: Manifest, work: _CutWork, earlier: Table) -> set[int]:
    """Copy the outcome of images of combined results; return those that need not be cut again."""
    if work.results is None:
        return set()
    images = earlier[: int(earlier.meta.get("images", 0))]
    by_name = {name: row for row, name in enumerate(work.read.names)}
    rows = {name: by_name.get(name) for name in _names_of(images)}
    _keep_failed(manifest, rows, images)
    whole = set()
    for row, earlier_row in zip(rows.values(), images, strict=True):
        if row is None or str(earlier_row["source"]) != manifest.source[row]:
            continue
        if earlier_row["status"] == "ok":
            manifest.status[row], manifest.reason[row] = "ok", ""
            manifest.source_version[row] = str(earlier_row["source_version"])
        if earlier_row["status"] in ("ok", "no-overlap"):
            whole.add(row)
    return whole


def _names_of(earlier: Table) -> list[str]:
    """Return the names of results from their ids, since a failed one has no path."""
    from swathe.files.targets.target_list import unique_names

    return unique_names(earlier["id"].tolist())


def _keep_failed(manifest: Manifest, rows: dict[str, int | None], earlier: Table) -> None:
    """Copy the reasons of failed rows of an earlier run; `rows` are in its order."""
    columns = (earlier[name].tolist() for name in ("status", "reason", "source", "source_version"))
    for row, status, reason, source, version in zip(rows.values(), *columns, strict=True):
        if status in FAILED and row is not None and source == manifest.source[row]:
            # It is valid until the row is tried again: this run may be stopped before that.
            manifest.status[row], manifest.reason[row] = status, reason
            manifest.source_version[row] = version


def _without_faults(manifest: Manifest, targets: Targets, todo: list[int]) -> list[int]:
    """Record why some rows cannot be cut; return the others."""
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


def _band_names(bands: Sequence[str] | str) -> tuple[str, ...]:
    """Return names of bands, also from text such as `i,r,g`."""
    names = bands.split(",") if isinstance(bands, str) else bands
    return tuple(name.strip() for name in names if name.strip())


def _tell_prediction(prediction: Prediction, place: _OutputPaths, targets: int) -> None:
    low_s, high_s = prediction.interval_s
    spread = "" if high_s < 0.1 else f" ({seconds_text(low_s)} to {seconds_text(high_s)})"
    log.info(
        "%s: predicted %s%s for %d targets: %d bytes in %d requests",
        *(place.path, forecast_text(prediction.median_s), spread, targets),
        *(prediction.bytes, prediction.requests),
    )


class _CutRun(NamedTuple):
    """A run.

    Attributes:
        place: output of the run.
        work: targets and results.
        manifest: outcome of each row.
        todo: targets to cut.
        paths: paths of the results to make, by row of the manifest.
        end: length in bytes up to which an archive is kept.
    """

    place: _OutputPaths
    work: _CutWork
    manifest: Manifest
    todo: list[int]
    paths: dict[int, str]
    end: int | None

    def output(self) -> _swathe.Output | None:
        """Open the output if results are made here; otherwise the engine opens it.

        Raises:
            OutputError: if it cannot be opened.
        """
        from swathe.costs.prediction import to_engine_job

        place = self.place
        if place.making.is_plain:
            return None
        settings = {"kind": place.kind, "append": self.end, "overwrite": place.overwrite}
        return to_engine_job(
            self.work.read, [], None, None, output=str(place.path), **settings
        ).open()

    def maker(self, output: _swathe.Output | None, stopped: Callable[[], bool]) -> Maker:
        """Return the maker of the results."""
        from swathe.operations.make_results import AsCut, Bench, Combiner, Converter

        if output is None:
            return AsCut()
        place, work = self.place, self.work
        bench = Bench(place.cut_into, output, place.path, place.kind, self.paths, stopped)
        if work.results is None:
            return Converter(bench, place.making)
        todo = [row - work.first for row in self.paths]
        faults = work.read.faults
        return Combiner(bench, place.making, work.results, todo, work.first, faults, work.ids)


def _run(
    run: _CutRun, job: _swathe.Job, prediction: Prediction, progress: bool, started: float
) -> None:
    """Run the job. However it ends, the manifest is written and says which rows are done."""
    place, manifest = run.place, run.manifest
    begun = time.perf_counter()
    output = run.output()
    batch = job.start()
    stop = threading.Event()

    def cancel() -> None:
        stop.set()
        batch.cancel()

    with (
        _interrupt_later(cancel),
        progress_bar("cutting", progress, len(run.todo)) as show,
    ):
        try:
            _collect(batch, run, run.maker(output, stop.is_set), show)
        except BaseException:
            batch.cancel()
            raise
        finally:
            try:
                cost = batch.finish()
                manifest.meta["predicted_s"] = round(prediction.median_s, 6)
                manifest.meta["actual_s"] = round(time.perf_counter() - begun, 6)
                manifest.meta.update(_cost(cost, started))
                _keep_outcome(prediction, manifest, place, whole=not stop.is_set())
            finally:
                content = manifest.write(place.unfinished)
            # The archive gets its name when it holds the manifest; the manifest file comes last.
            last = manifest.extension() if place.kind == "fits" else content
            (batch if output is None else output).close(last)
            if place.unfinished != place.manifest:
                publish(place.unfinished, place.manifest, overwrite=True)


def _keep_outcome(
    prediction: Prediction, manifest: Manifest, place: _OutputPaths, *, whole: bool
) -> None:
    """Report the cost of the work to the user, the manifest and the catalogue.

    A prediction is compared with the cost only if the `whole` of it was done.
    """
    from swathe.costs.prediction import record_outcome

    meta = manifest.meta
    log.info(
        "%s: took %s, predicted %s: %d bytes in %d requests",
        *(place.path, seconds_text(meta["actual_s"]), forecast_text(prediction.median_s)),
        *(meta["bytes_moved"], meta["requests"]),
    )
    meta.update(manifest.counts())
    making = place.making
    summary = f"cut_many into {place.kind} in {making.format}"
    # The time to combine images is not predicted.
    is_predicted = whole and not making.is_combined
    cuts = meta["ok"] - meta["done_before"] if is_predicted else 0
    meta["notes"] += record_outcome(prediction, meta, summary, cuts)


def _collect(batch: _swathe.Batch, run: _CutRun, maker: Maker, show: Callable[[int], None]) -> None:
    """Enter rows into the manifest when they are done; the batch numbers them as in `todo`."""
    from swathe.operations.make_results import RowOutcome

    count, saved = 0, time.monotonic()
    for ended in maker.begin():
        _enter(run, ended)
    for columns in completed_rows(batch):
        for target, status, reason, size, version, sha256 in zip(*columns, strict=True):
            told_of = RowOutcome(run.todo[target], status, reason, size, version, sha256)
            for ended in maker.take(told_of):
                _enter(run, ended)
            count += 1
        show(count)
        if time.monotonic() - saved > CHECKPOINT_S:
            run.manifest.write(run.place.unfinished)
            saved = time.monotonic()


def _enter(run: _CutRun, ended: RowOutcome) -> None:
    """Enter the outcome of a row."""
    manifest, row = run.manifest, ended.row
    manifest.status[row], manifest.reason[row] = ended.status, ended.reason
    manifest.bytes[row], manifest.sha256[row] = ended.bytes, ended.sha256
    manifest.source_version[row] = ended.version
    manifest.path[row] = run.paths.get(row, "") if ended.status == "ok" else ""


def completed_rows(batch: _swathe.Batch) -> Iterator[Told]:
    """Yield the columns of newly done rows, which may be empty, until all are done."""
    while (rows := batch.poll(POLL_S)) is not None:
        # Each attribute access makes a new list.
        yield (rows.target, rows.status, rows.reason, rows.bytes, rows.version, rows.sha256)


@contextmanager
def _interrupt_later(cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` on Ctrl-C, and raise KeyboardInterrupt only at the end.

    An exception in between would lose the rows just returned, and their results with them.
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
    """Return the cost of the work in seconds and bytes, as the manifest records it."""
    counters = {name: cost.pop(name) for name in ("bytes_moved", "requests", "notes")}
    del cost["from_peers"], cost["from_cache"]
    seconds = {f"{name}_s": round(value, 6) for name, value in cost.items()}
    return {**seconds, "total_s": round(time.perf_counter() - started, 6), **counters}
