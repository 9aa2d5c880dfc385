"""Add, scan, mirror, list and remove the datasets of the catalogue: `swathe.datasets`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swathe.core.argument_checks import check_text, check_threads

if TYPE_CHECKING:
    import builtins
    import os
    from collections.abc import Collection

    from mocpy import MOC

    from swathe.catalog import Catalog, Dataset, Replica
    from swathe.core.argument_checks import Stage
    from swathe.datasets.mirror_plan import MirrorPlan
    from swathe.datasets.mirroring import MirrorReport
    from swathe.datasets.scan import ScanReport

CHANGING = "it is being written"
"""Reason why an object is left out for now."""


@dataclass(frozen=True)
class DatasetCondition:
    """A dataset, and which of its objects cannot be read.

    Attributes:
        dataset: the dataset.
        faults: name of the store, and replica in it, of each object with an error.
    """

    dataset: Dataset
    faults: builtins.list[tuple[str, Replica]]


def add(
    name: str,
    place: str,
    *,
    pattern: str | None = None,
    calib_level: int = 2,
    objects: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    stage: Stage | None = None,
    progress: bool = True,
) -> ScanReport:
    """Catalogue the images below a folder of a store, so that they can be searched.

    Call it again to continue after an interruption. If no object was read, no dataset is left.

    Example:
        >>> swathe.datasets.add("frames", "survey:", pattern="*.fit.fz").images
        6
        >>> swathe.find("10.0 -1.05", dataset="frames")

    Args:
        name: at least two of letters, digits, `_`, `.` and `-`.
        place: `STORE:PREFIX`, a store and a folder in it.
        pattern: shell pattern of the object names to include; with a `/`, of paths.
        calib_level: calibration level of the images (ObsCore), 0 (raw) to 4 (analysed).
        objects: text file with one object path of the store per line; by default the store is
            listed.
        threads: number of threads that read headers; by default 4 per core.
        stage: what to do about objects that are on tape only. By default they are entered without
            headers, and found by no search. With `wait` they are asked for, up to 1,000 at a time
            in the order of the tapes, and each is released when its headers are read.
        progress: whether to show a bar, if standard error is a terminal.

    Raises:
        DatasetError: If the name, the place or the pattern is invalid, or the name is taken.
        NoSuchStoreError: If there is no such store.
        NotFoundError, AccessError, SourceError: If the store cannot be listed.
        StagingError: If a staging service fails.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog
    from swathe.datasets.store_prefix import split_place
    from swathe.stores.listing import validate_pattern

    check_text("name", name)
    threads = check_threads(threads)
    store, prefix = split_place(place)
    pattern = validate_pattern(pattern)
    with Catalog.open() as catalog:
        dataset = catalog.add_dataset(name, store, prefix, pattern, calib_level)
        try:
            return update(catalog, dataset, objects, threads, progress, stage=stage)
        except BaseException:
            # Remove the dataset if no object was read; else keep it to continue later.
            if not catalog.replicas(name, store):
                catalog.remove_dataset(check_text("name", name))
            raise


def sync(
    name: str,
    *,
    objects: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    reread: bool = False,
    calib_level: int | None = None,
    stage: Stage | None = None,
    progress: bool = True,
) -> ScanReport:
    """Update a dataset: read new and changed objects, record vanished ones.

    Example:
        >>> report = swathe.datasets.sync("frames")
        >>> report.read, report.vanished, report.faults
        (0, 0, [])

    Args:
        name: name of the dataset.
        objects: as in `add`.
        threads: as in `add`.
        reread: whether to read all headers, also those of unchanged objects.
        calib_level: new calibration level, 0 to 4; by default unchanged.
        stage: as in `add`.
        progress: as in `add`.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
        NotFoundError, AccessError, SourceError: If the store cannot be listed.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog

    check_text("name", name)
    threads = check_threads(threads)
    with Catalog.open() as catalog:
        if calib_level is not None:
            catalog.set_calib_level(name, calib_level)
        dataset = catalog.dataset(name)
        return update(catalog, dataset, objects, threads, progress, reread, stage=stage)


def moc(name: str, *, order: int = 10) -> MOC:
    """Return the sky that the readable images of a dataset cover, as a MOC (IVOA).

    It needs `pip install 'swathe[moc]'`.

    Example:
        >>> swathe.datasets.moc("frames", order=9).sky_fraction

    Args:
        name: name of the dataset.
        order: HEALPix order of the smallest cells, 0 to 11; those of 10 have 3.4 arcminutes.

    Returns:
        An object of mocpy. A cell that an image touches belongs to it.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
        DatasetError: If none of its images is on the sky, or the order is invalid.
        OptionError: If mocpy is not installed.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog
    from swathe.datasets.sky_coverage import moc_of

    with Catalog.open() as catalog:
        return moc_of(catalog, check_text("name", name), order)


def update(
    catalog: Catalog,
    dataset: Dataset,
    objects: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
    reread: bool = False,
    changing: Collection[str] = (),
    stage: Stage | None = None,
) -> ScanReport:
    """Update a dataset of an open catalogue as `sync` does; leave out objects that are changing.

    Raises:
        NotFoundError, AccessError, SourceError: If the store cannot be listed.
        CatalogError: If the catalogue cannot be written.
    """
    import os
    from contextlib import ExitStack
    from pathlib import Path, PurePosixPath

    from swathe.core.errors import OptionError
    from swathe.core.progress import progress_bar
    from swathe.core.value_errors import short_text
    from swathe.datasets.scan import scan
    from swathe.datasets.zarr_folders import with_zarr_folders
    from swathe.stores.listing import UnlistedObject, list_objects, read_list
    from swathe.stores.staging.hold import TapeHold

    if objects is not None:
        paths = read_list(Path(os.fspath(objects)), dataset.prefix, dataset.pattern)
    else:
        every = list_objects(catalog.store(dataset.store), dataset.prefix, None)
        paths = with_zarr_folders(every, dataset.prefix, dataset.pattern)
    # A Zarr folder is changing with each of its objects.
    folders_too = {
        *changing,
        *(str(each) for path in changing for each in PurePosixPath(path).parents),
    }
    names = [
        UnlistedObject(each.path, CHANGING) if each.path in folders_too else each for each in paths
    ]
    if stage not in (None, "wait"):
        raise OptionError(f"stage: expected 'wait', found {short_text(stage)}")
    with ExitStack() as stack:
        hold = None if stage is None else stack.enter_context(TapeHold())
        show_count = stack.enter_context(progress_bar("cataloguing", progress, len(names)))
        return scan(
            catalog,
            dataset.name,
            names,
            threads=threads,
            reread=reread,
            hold=hold,
            show=lambda count, _total: show_count(count),
        )


def list() -> builtins.list[Dataset]:
    """Return all datasets of the catalogue, by name.

    Example:
        >>> [(each.name, each.granules) for each in swathe.datasets.list()]
        [('frames', 6)]

    Raises:
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        return catalog.datasets()


def show(name: str) -> DatasetCondition:
    """Return a dataset, and its objects with errors.

    Example:
        >>> swathe.datasets.show("frames").dataset.states
        {'survey': {'ok': 6}}

    Raises:
        NoSuchDatasetError: If there is no such dataset.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        dataset = catalog.dataset(check_text("name", name))
        faults = [
            (store, replica)
            for store in sorted(dataset.states)
            for replica in catalog.replicas(name, store)
            if replica.reason is not None
        ]
    return DatasetCondition(dataset, faults)


def remove(name: str) -> None:
    """Remove a dataset from the catalogue. Its files are kept.

    Example:
        >>> swathe.datasets.remove("frames")

    Raises:
        NoSuchDatasetError: If there is no such dataset.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        catalog.remove_dataset(check_text("name", name))


def plan_mirror(
    name: str, place: str, *, threads: int | None = None, overwrite: bool = False
) -> MirrorPlan:
    """Return what `mirror` would copy, and the predicted time; copy nothing.

    Example:
        >>> plan = swathe.datasets.plan_mirror("frames", "disk")
        >>> len(plan.copies), plan.bytes, plan.seconds
        (6, 7372800, 0.31)

    Args:
        name: name of the dataset.
        place: as in `mirror`.
        threads: as in `mirror`.
        overwrite: as in `mirror`.

    Raises:
        NoSuchDatasetError, NoSuchStoreError: If there is no such dataset or store.
        DatasetError: If the store cannot be written to, or holds the dataset itself.
        NotFoundError, AccessError, SourceError: If the store cannot be listed.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        return _plan(catalog, name, place, threads, overwrite)


def mirror(
    name: str,
    place: str,
    *,
    delete: bool = False,
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> MirrorReport:
    """Copy missing or outdated objects of a dataset to another store, and verify them.

    Call it again to continue after an interruption. Objects that changed since the last `sync` are
    not copied but reported: sync first.

    Example:
        >>> swathe.mirror("frames", "disk").copied
        6

    Args:
        name: name of the dataset.
        place: `STORE`, to have the same paths as in the first store; or `STORE:PREFIX`.
        delete: whether to delete copies of vanished objects.
        threads: number of objects copied in parallel; by default 8.
        overwrite: whether a copy may replace a file that is not the copy that was recorded.
        progress: whether to show a bar, if standard error is a terminal.

    Returns:
        Counts and bytes of the run. `faults` are the objects that could not be copied, each with
        its reason; one failed object does not stop the others.

    Raises:
        NoSuchDatasetError, NoSuchStoreError: If there is no such dataset or store.
        DatasetError: If the store cannot be written to, or holds the dataset itself.
        NotFoundError, AccessError, SourceError: If the store cannot be listed.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog
    from swathe.core.progress import progress_bar
    from swathe.datasets.mirror_plan import THREADS
    from swathe.datasets.mirroring import copy_objects

    threads = check_threads(threads)
    with Catalog.open() as catalog:
        plan = _plan(catalog, name, place, threads, overwrite)
        with progress_bar("copying", progress, len(plan.copies)) as show_count:
            return copy_objects(
                catalog,
                plan,
                delete=delete,
                threads=threads or THREADS,
                show=show_count,
            )


def _plan(
    catalog: Catalog, name: str, place: str, threads: int | None, overwrite: bool
) -> MirrorPlan:
    from swathe.datasets.mirror_plan import THREADS, plan_mirror
    from swathe.datasets.store_prefix import split_place

    check_text("name", name)
    threads = check_threads(threads)
    store, prefix = split_place(place) if ":" in check_text("place", place) else (place, None)
    return plan_mirror(
        catalog, name, store, prefix, threads=threads or THREADS, overwrite=overwrite
    )
