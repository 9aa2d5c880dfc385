"""Cut many regions: `swathe.cut_many`."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from swathe import _swathe, trace
from swathe.core.argument_checks import (
    check_fill,
    check_text,
    check_texts,
    check_threads,
    check_unicode,
)
from swathe.core.errors import OptionError
from swathe.core.format import forecast_text, harmless_text, seconds_text
from swathe.core.host import cores
from swathe.core.outputs import (
    make_folder,
    refuse_if_sources,
    remove_unfinished,
    sole_writer,
)
from swathe.cutting.earlier_run import (
    check_outputs,
    check_same_kind,
    check_same_pixels,
    keep_earlier,
    sources_before,
    sources_of,
)
from swathe.cutting.output_paths import CutWork, OutputPaths
from swathe.cutting.run import CutRun, log, run_cuts
from swathe.files.manifest import Manifest, read_manifest
from swathe.files.manifest_table import ManifestTable
from swathe.files.planes import plane_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astropy.table import Table

    from swathe._swathe import Mode
    from swathe.core.row_table import RowTable
    from swathe.costs.prediction import Prediction
    from swathe.files.planes import Planes
    from swathe.operations.registry import ResultOptions


MOST_INSPECTED = 16
"""Number of objects per store that a job's prediction inspects; the rest are assumed alike."""


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
) -> ManifestTable:
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
        stores: names of stores with replicas, or one name, with the same paths in each. The files
            are read from all of them, by the shares that `predict(stores=...)` shows; a store that
            lacks a file gets none of its targets. The column `source` and `meta["stores"]` say from
            which.
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
            rest. Mode, fill and planes must be those of the earlier run; boxes are not compared.
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
        The manifest, used as an astropy table (`.table` is one), one row per target in their
        order: id, status (`ok`, `no-overlap`,
        `missing`, `error`), reason, path (in the output), bytes, source, source_version, sha256.
        For stacks and `rgb`, the rows of targets have no path. After them comes a row for each
        result: its id is the group, its source_version a SHA-256 of its inputs. `meta` holds
        counts and seconds per stage. The manifest is written to the folder as `manifest.ecsv`;
        for `o.zip` as `o.manifest.ecsv` beside it, and as the last member of the archive (in
        `.fits`: as the extension MANIFEST).

    Raises:
        TargetsError: If the list cannot be read.
        NoSuchStoreError: If there is no such store.
        OutputExistsError: If a result or manifest of this name exists, and neither `resume` nor
            `overwrite` is true.
        OptionError: If options do not fit together.
        OutputError: If results cannot be written at all, or an output is a file that is read.
        KeyboardInterrupt: After Ctrl-C, when the manifest is written.
    """
    from swathe.costs.prediction import sky_of
    from swathe.costs.replicas import mix_targets
    from swathe.files.targets.target_list import choices_of, read_targets
    from swathe.operations.make_results import of_bands
    from swathe.operations.registry import ResultOptions

    started = time.perf_counter()
    threads, fill = check_threads(threads), check_fill(fill)
    check_text("mode", mode)
    output = Path(check_unicode("output", os.fsdecode(output)))
    result_options = ResultOptions.read(operation, format, _band_names(bands), own_options)
    result_options.kind.check_bands(result_options.bands, are_needed=False)
    if result_options.is_combined and (mode != "trim" or fill is not None):
        raise OptionError(
            f"mode: expected trim without a fill, found {mode!r}: what goes into a stack or rgb is "
            "cut larger, and pixels outside of images do not count"
        )
    output_paths = OutputPaths.of(output, result_options)
    choices = choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec)
    span = None if planes is None else plane_span(planes)
    mixed = None
    stores = check_texts("stores", stores)
    if stores:
        mixed = mix_targets(
            targets,
            stores,
            choices,
            mode=mode,
            planes=span,
            threads=threads or cores(),
            combined=result_options.is_combined,
            before=sources_before(output_paths) if resume else (),
        )
        rows = mixed.rows
    else:
        rows = read_targets(
            targets, sky_of, choices=choices, planes=span, combined=result_options.is_combined
        )
    files = rows.source.values if mixed is None else mixed.replicas
    if result_options.bands:
        rows = of_bands(rows, result_options.bands)
    make_folder(output_paths.manifest.parent)
    settings: dict[str, Any] = {
        "mode": mode,
        "fill": fill,
        "planes": span,
        "threads": threads,
        "shares": None if mixed is None else mixed.counts,
    }
    with sole_writer(output_paths.manifest):
        sources = partial(sources_of, targets, files)
        refuse_if_sources(output_paths.hidden(), sources)
        earlier = read_manifest(output_paths.latest_manifest) if resume else None
        if earlier is not None:
            check_same_kind(earlier, output_paths)
            check_same_pixels(earlier, output_paths, _pixel_options(settings))
        work = _work(rows, result_options, settings["planes"], earlier)
        check_outputs(output_paths, work, earlier, sources, overwrite)
        if output_paths.kind == "folder":
            remove_unfinished(output_paths.path)
        replaces = overwrite or (output_paths.kind == "folder" and earlier is not None)
        output_paths = output_paths._replace(overwrite=replaces)
        return _cut_into(output_paths, work, earlier, settings, progress, started)


def _work(
    rows: RowTable,
    result_options: ResultOptions,
    planes: tuple[int, int] | None,
    earlier: Table | None,
) -> CutWork:
    """Return the work to do; a resumed run uses the pixel size of the earlier run."""
    from swathe.operations.make_results import results_of

    if not result_options.is_combined:
        return CutWork(rows)
    before = None if earlier is None else earlier.meta.get("pixel_deg")
    return CutWork(*results_of(rows, result_options, planes, before))


def _cut_into(
    output_paths: OutputPaths,
    work: CutWork,
    earlier: Table | None,
    settings: dict[str, Any],
    progress: bool,
    started: float,
) -> ManifestTable:
    """Cut what an earlier run did not finish; return the whole manifest."""
    from swathe.costs.prediction import predict_job, read_at_once, to_engine_job

    shares, threads = settings["shares"], settings["threads"] or cores()
    meta = {
        "output": output_paths.path.name,
        **_pixel_options(settings),
        **_run_options(output_paths.result_options, work),
    }
    meta["swathe"] = _swathe.__version__
    if shares is not None:
        meta["stores"] = shares
    sources = work.rows.source.map(_swathe.redact_url).list()
    # A result from several images has no source of its own.
    sources += [""] * (len(work.ids) - len(sources))
    manifest = Manifest(work.ids, sources, meta)
    results, end = keep_earlier(manifest, work, earlier, output_paths)
    todo = work.inputs(results)
    waits = len(results) + (len(todo) if work.results is not None else 0)
    manifest.meta["done_before"] = len(work.ids) - waits
    todo = without_faults(manifest, work.rows, todo)
    if work.results is not None:
        without_faults(manifest, work.rows, work.results.unused_rows(len(work.rows)))
    names = {row: path for path, row in work.paths(output_paths).items()}
    paths = {row: names[row] for row in results}
    is_made = not output_paths.result_options.is_plain
    job = to_engine_job(
        work.rows.take(todo),
        [f"{row}.fits" if is_made else paths[row] for row in todo],
        output=str(output_paths.cut_into),
        kind="folder" if is_made else output_paths.kind,
        append=None if is_made else end,
        overwrite=output_paths.overwrite and not is_made,
        mode=settings["mode"],
        fill=settings["fill"],
        threads=threads,
    )
    try:
        prediction = predict_job(job, MOST_INSPECTED)
        if shares is not None:
            prediction = read_at_once(prediction, threads)
    except KeyboardInterrupt:
        if earlier is not None:
            manifest.write(output_paths.latest_manifest)
        elif output_paths.kind == "folder":
            manifest.write(output_paths.manifest)
        raise
    if earlier is None:
        # If the process is killed now, no older manifest describes these results, and they are
        # known to belong to this run.
        manifest.write(output_paths.unfinished)
    if todo:
        _tell_prediction(prediction, output_paths, len(todo))
    run = CutRun(output_paths, work, manifest, todo, paths, end)
    with (
        trace.scope.where_none(job=token_hex(4)),
        trace.event("JOB", rows=len(todo), predicted_s=round(prediction.median_s, 6)) as event,
    ):
        try:
            with output_paths.scratch():
                run_cuts(run, job, prediction, progress, started)
        except KeyboardInterrupt as error:
            finished = manifest.counts()["ok"]
            raise KeyboardInterrupt(
                f"{finished:,} of {len(work.ids):,} targets are done"
            ) from error
        event.add(bytes=int(sum(manifest.bytes)))
    return ManifestTable(manifest)


def _pixel_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that choose pixels, as the manifest records them; without absent ones."""
    fill, planes = settings["fill"], settings["planes"]
    options: dict[str, Any] = {"mode": settings["mode"]}
    if fill is not None:
        options["fill"] = float(fill)
    if planes is not None:
        options["planes"] = list(planes)
    return options


def _run_options(result_options: ResultOptions, work: CutWork) -> dict[str, Any]:
    """Return the options of the run, as the manifest records them."""
    options = {
        "operation": result_options.operation,
        "format": result_options.format,
        **result_options.own,
    }
    if result_options.bands:
        options["bands"] = list(result_options.bands)
    if work.results is not None:
        options |= {"images": len(work.rows), "pixel_deg": work.pixel_deg}
    return options


def without_faults(manifest: Manifest, rows: RowTable, todo: list[int]) -> list[int]:
    """Record why some rows cannot be cut; return the others."""
    faults = rows.faults()
    for row in todo:
        if row in faults:
            manifest.status[row], manifest.reason[row] = faults[row]
            manifest.source_version[row] = ""
    return [row for row in todo if row not in faults]


def _band_names(bands: Sequence[str] | str) -> tuple[str, ...]:
    """Return names of bands, also from text such as `i,r,g`."""
    names = bands.split(",") if isinstance(bands, str) else check_texts("bands", bands)
    return tuple(name.strip() for name in names if name.strip())


def _tell_prediction(prediction: Prediction, output_paths: OutputPaths, targets: int) -> None:
    low_s, high_s = prediction.interval_s
    spread = "" if high_s < 0.1 else f" ({seconds_text(low_s)} to {seconds_text(high_s)})"
    log.info(
        "%s: predicted %s%s for %d targets: %d bytes in %d requests",
        *(
            harmless_text(f"{output_paths.path}"),
            forecast_text(prediction.median_s),
            spread,
            targets,
        ),
        *(prediction.bytes, prediction.requests),
    )
