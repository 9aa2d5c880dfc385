"""Cut many regions: `swathe.cut_many`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.argument_checks import (
    check_fill,
    check_objective,
    check_text,
    check_texts,
    check_threads,
    check_unicode,
)
from swathe.core.errors import OptionError, OutputError
from swathe.core.host import cores
from swathe.core.outputs import make_folder, sole_writer
from swathe.core.value_errors import short_text
from swathe.files.planes import plane_span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swathe.core.argument_checks import Objective, Stage
    from swathe.core.box import Mode
    from swathe.costs.time_left import CutProgress
    from swathe.cutting.list_run import GivenList
    from swathe.cutting.output_paths import OutputPaths
    from swathe.files.manifest_file import LongManifest
    from swathe.files.manifest_table import ManifestTable
    from swathe.files.planes import Planes


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
    objective: Objective = "auto",
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | Callable[[CutProgress], object] = True,
    file: str | os.PathLike[str] | None = None,
    size: Any = None,
    frame: str | None = None,
    ra: str | None = None,
    dec: str | None = None,
    stage: Stage | None = None,
    **own_options: Any,
) -> ManifestTable | LongManifest:
    """Cut many regions; each file is opened and decompressed once for all of its targets.

    One bad target never stops the others. Ctrl-C stops the run within a second: finished results
    are kept, and the manifest says which targets are not done. The predicted time is logged
    (`swathe`, INFO) before any pixel is read, and the measured time at the end.

    Args:
        targets: an astropy Table or QTable, pandas DataFrame, mapping of columns, list of lines
            (`FILE RA Dec size`), SkyCoord, or the path of a FITS, VOTable, CSV, ECSV, TSV, text or
            Parquet table. It needs a column `file` and one of: (`x`, `y`, `height`, `width`: centre
            and size, as in `Cutout2D`), (`x0`, `y0`, `width`, `height`), or a sky position and a
            size. The columns `id` and `hdu` are optional. Arrays of other formats than FITS have a
            column `array`, their path, and columns named like axes, such as `time`, with an index
            or `first:last`; each row has its own. Units of columns are honoured. File names in a
            table file are relative to its folder. Or an iterator of dicts (column: value), of
            tuples (`file, x, y, height, width` or `file, ra, dec, size`) or of lines.
        output: folder, or a `.zip`, `.tar` or multi-extension `.fits` file; or `null:`, which only
            counts: the cutouts are made and dropped, and no manifest is written.
        stores: names of stores with replicas, or one name, with the same paths in each. The files
            are read from all of them, by the shares that `predict(stores=...)` shows; a store that
            lacks a file gets none of its targets. If a store slows or fails, the others take the
            files that it has not begun; `meta["notes"]` says so. The column `source` and
            `meta["stores"]` say from which each was read.
        mode: `trim`, `partial` or `strict`, as in `cut`.
        fill: physical value outside the image, with `partial`.
        planes: planes of cubes to keep along NAXIS3, zero-based, as in `cut`, but counted from the
            first and with an end, since files differ in length; by default all. An image without
            these planes is an `error`.
        operation: `cut` each target (default), `stack` them: one image of all, or of each name in a
            column `group`, or `rgb`. For stacks and pictures the targets are sky positions, each
            with one angle as size.
        format: format of the results: `fits`, `npy` (the physical pixels; of arrays the elements
            as stored), `png` (a preview of one plane), of arrays also `nc`, `h5`, `tif` and
            `asdf`, with coordinates and attributes as `cut` writes them, `source` (that of each
            file; the default of lists whose first part has arrays) or
            `rgb` (operation `rgb`: one picture of three images: the rows of a `group`, red first).
            A `.fits` file holds only `fits`, and a stack is `fits`.
        bands: three band names for `rgb`, red first. Each picture is made from the rows of its
            group with these names in the column `band`, in any order. Other rows are left out.
        threads: number of threads; by default the number of cores.
        objective: what plans keep small: `auto`, `latency` or `throughput`, as in `cut`. The
            threads of this run do not count as others.
        resume: whether to keep the results of an earlier run, by id and source, and do only the
            rest. Mode, fill and planes must be those of the earlier run; boxes are not compared.
        overwrite: whether to replace an archive of this name, or files with the names of this run's
            results. Other files in the folder are kept, and so is every file that is read.
        progress: whether to show a bar, if standard error is a terminal; or a function that is
            called about once a second with a `swathe.costs.time_left.CutProgress`: targets done,
            and the time left with its 80 % interval.
        file: file of targets that name none.
        size: size of sky targets without one: an angle or pixels, as in `cut`.
        frame: frame of positions, if not ICRS or the columns' own frame, such as `galactic`, `fk4`.
        ra: name of the column of right ascension or longitude, if that is ambiguous.
        dec: name of the column of declination or latitude.
        stage: what to do about objects that are on tape only, in stores whose objects are staged.
            By default their targets have the status `error`. With `wait` all are asked for,
            ordered by tape, and pinned until the end, however it ends; what is on disk is cut
            first, and the rest as it comes. Those that cannot be had are errors of their targets.
            Stacks, pictures of three bands and lists of arrays begin when all have come.
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

        A list may have any length. One of more than 100,000 targets is read and cut in parts of
        about 100,000. All targets of a file are planned together if the list is sorted by file; if
        not, `meta["notes"]` says how often a file was read again. Then a
        `swathe.files.manifest_file.LongManifest` is returned instead of a table: `meta`, the first
        failed targets as `failed`, and `tables()`, which yields the rows from the file.

    Raises:
        TargetsError: If the list cannot be read, or an iterator raises an error. The results before
            it are kept, and are in the manifest. Stacks, pictures of three bands and `.fits` take
            up to 100,000 targets.
        NoSuchStoreError: If there is no such store.
        OutputExistsError: If a result or manifest of this name exists, and neither `resume` nor
            `overwrite` is true.
        OptionError: If options do not fit together.
        OutputError: If results cannot be written at all, or an output is a file that is read.
        StagingError: If a staging service fails, or a tape is read for a day without progress.
        KeyboardInterrupt: After Ctrl-C, when the manifest is written.
    """
    from swathe.cutting.earlier_run import sources_before
    from swathe.cutting.list_run import GivenList
    from swathe.cutting.output_paths import OutputPaths
    from swathe.files.targets.target_list import choices_of
    from swathe.operations.registry import ResultOptions

    start_s = time.perf_counter()
    threads, fill = check_threads(threads), check_fill(fill)
    objective = check_objective(objective)
    check_text("mode", mode)
    output = Path(check_unicode("output", os.fsdecode(output)))
    result_options = ResultOptions.read(operation, format, _band_names(bands), own_options)
    result_options.kind.check_bands(result_options.bands, are_needed=False)
    if result_options.kind.reads_granules:
        raise OptionError(
            f"operation: expected one that cuts, found {result_options.operation!r}: "
            "use swathe.reduce, or a job of a portal"
        )
    if result_options.is_combined and (mode != "trim" or fill is not None):
        raise OptionError(
            f"mode: expected trim without a fill, found {mode!r}: what goes into a stack or rgb is "
            "cut larger, and pixels outside of images do not count"
        )
    output_paths = OutputPaths.of(output, result_options)
    if output_paths.is_null and resume:
        raise OutputError(f"{output_paths.path}: expected an output with results to resume")
    settings: dict[str, Any] = {
        "mode": mode,
        "fill": fill,
        "planes": None if planes is None else plane_span(planes),
        "threads": threads or cores(),
        "objective": objective,
        "stores": check_texts("stores", stores),
    }
    if stage not in (None, "wait"):
        raise OptionError(f"stage: expected 'wait', found {short_text(stage)}")
    target_list = GivenList(
        targets, choices_of(file=file, size=size, frame=frame, ra=ra, dec=dec), settings
    )
    if resume and settings["stores"]:
        target_list.before = sources_before(output_paths)
    if stage is None:
        return _cut(target_list, output_paths, progress, start_s, overwrite, resume, format)
    from swathe.stores.staging.hold import TapeHold

    with TapeHold() as target_list.hold:
        return _cut(target_list, output_paths, progress, start_s, overwrite, resume, format)


def _cut(
    target_list: GivenList,
    output_paths: OutputPaths,
    progress: bool | Callable[[CutProgress], object],
    start_s: float,
    overwrite: bool,
    resume: bool,
    file_format: str | None,
) -> ManifestTable | LongManifest:
    """Cut a list. Its first part tells whether its rows name arrays."""
    from swathe.cutting.list_run import ListRun
    from swathe.cutting.output_paths import OutputPaths
    from swathe.operations.array_results import FITS_SUFFIX
    from swathe.operations.registry import ResultOptions

    result_options, settings = output_paths.result_options, target_list.settings
    is_fits = result_options.is_plain
    target_list.takes_arrays = not result_options.is_combined
    target_list.suffix = FITS_SUFFIX if is_fits and file_format is not None else None
    pieces = target_list.pieces(result_options)
    first = next(pieces)
    if is_fits and target_list.suffixes:
        # The engine writes FITS of images only.
        from swathe.costs.format_costs import SOURCE

        output_paths = OutputPaths.of(output_paths.path, ResultOptions.read(file_format=SOURCE))
    target_list.takes_arrays &= not output_paths.result_options.is_plain
    output_paths = output_paths._replace(suffixes=target_list.suffixes)
    list_run = ListRun(output_paths, target_list, settings, progress, start_s, overwrite, resume)
    if output_paths.is_null:
        return list_run.cut(first, pieces)
    make_folder(output_paths.manifest.parent)
    with sole_writer(output_paths.manifest):
        return list_run.cut(first, pieces)


def _band_names(bands: Sequence[str] | str) -> tuple[str, ...]:
    """Return names of bands, also from text such as `i,r,g`."""
    names = bands.split(",") if isinstance(bands, str) else check_texts("bands", bands)
    return tuple(name.strip() for name in names if name.strip())
