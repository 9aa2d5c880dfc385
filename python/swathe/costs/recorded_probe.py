"""Measure a store, and record its costs for later reads: `probe` and `probe_buffer`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from swathe.core.argument_checks import check_count, check_positive, check_text, check_texts

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from swathe.costs.probing.probe_result import Probe
    from swathe.costs.probing.read_buffer import BufferStudy

log = logging.getLogger(__name__)
MOST_BYTES = 1 << 62
MOST_REPEATS = 10_000


def probe(
    store: str,
    *,
    objects: Sequence[str] = (),
    quick: bool = False,
    write: bool = False,
    host: bool = False,
    max_time_s: float | None = None,
    max_bytes: int | None = None,
    seed: int | None = None,
    plot: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Probe:
    """Measure what a store costs from this machine: latency, bandwidth, useful parallel requests.

    The costs are recorded in the catalogue, and all later reads are planned from them. This machine
    is measured too, if it never was.

    Example:
        >>> costs = swathe.probe("survey", quick=True).profile.costs
        >>> costs.request[0], costs.total_bytes_per_s  # bytes and seconds; bytes per second
        ((4096, 0.021), 98300000.0)

    Args:
        store: name of a store, `NAME:path`, a URL, a folder or a file.
        objects: objects to read, or folders to list; by default large objects of the store.
        quick: whether to take some 5 seconds instead of 30, with fewer sizes.
        write: whether to measure writing too: objects are written and removed again.
        host: whether to measure this machine again: decoding, writing.
        max_time_s: time limit, seconds; by default 30, or 5 if `quick`.
        max_bytes: limit of bytes moved; by default 512 MiB, or 64 MiB if `quick`; eight times
            that for local stores.
        seed: seed of the order of reads; by default another one each time.
        plot: picture to draw: a `.png`, `.svg` or `.html` file.
        overwrite: whether an existing picture may be replaced.
        tell: function called with the budget, a text, before anything is measured; by default it is
            logged (`swathe`, INFO).

    Returns:
        The measured costs with their spread, the samples, and `compute`: seconds that this machine
        takes for each byte, cut and object. Of a striped store also `stripe`: what its servers give
        alone and together, and what bounds that.

    Raises:
        NotFoundError: If there is nothing to read.
        AccessError, SourceError: If the store cannot be read.
        RegionError: If an object is not of this store, or nothing can be written.
        OutputError: If writing fails.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog, this_host
    from swathe.costs.plots import plot_path, probe_figure, save
    from swathe.costs.probing.host import BUDGET_S, QUICK_BUDGET_S, measure_host
    from swathe.costs.probing.probe_stripe import measure_stripe
    from swathe.costs.probing.resolve_target import find_place, refusing_folders
    from swathe.costs.probing.save import keep_host, keep_probe
    from swathe.costs.probing.store_probe import measure_store

    check_text("store", store)
    objects = check_texts("objects", objects)
    if max_time_s is not None:
        max_time_s = check_positive("max_time_s", max_time_s)
    if max_bytes is not None:
        max_bytes = check_count("max_bytes", max_bytes, MOST_BYTES)
    seed = _check_seed(seed)
    place = find_place(store, objects)
    picture = None if plot is None else plot_path(plot, overwrite=overwrite, sources=place.files)
    with Catalog.open() as catalog:
        catalog.check_writable()  # the result is stored
        compute = None if host else catalog.compute(this_host())
    also = f"; then this machine, some {QUICK_BUDGET_S if quick else BUDGET_S:g} s"
    measure = measure_stripe if place.is_striped else measure_store
    with refusing_folders(place):
        result = measure(
            place,
            quick=quick,
            max_time_s=max_time_s,
            max_bytes=max_bytes,
            seed=seed,
            write=write,
            tell=lambda text: (tell or log.info)(text + also * (compute is None)),
        )
    with Catalog.open() as catalog:
        keep_probe(catalog, result)
        if compute is None:
            compute = keep_host(catalog, measure_host(quick))
    result.compute = compute
    if picture is not None:
        title = f"{result.label} from {result.host}"
        figure = probe_figure(result.samples, result.profile.costs, title)
        save(figure, picture, "\n".join(result.profile.notes), overwrite=overwrite)
    return result


def probe_buffer(
    store: str,
    *,
    object: str | None = None,  # noqa: A002 - as the option of the command
    repeats: int = 7,
    max_time_s: float = 30.0,
    max_bytes: int = 1_000_000_000,
    seed: int | None = None,
    plot: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    tell: Callable[[str], None] | None = None,
) -> BufferStudy:
    """Find the best read-buffer size: read an object in blocks of 1 KiB to 16 MiB.

    If the store is local and was probed, the size is recorded in the catalogue, and later reads
    from the store use it.

    Example:
        >>> swathe.probe_buffer("survey").choice
        262144

    Args:
        store: name of a store, `NAME:path`, a URL, a folder or a file.
        object: object to read; by default `probe_object` of the store, or a large one.
        repeats: number of reads per size.
        max_time_s: time limit, seconds.
        max_bytes: limit of bytes moved.
        seed: seed of the order of reads; by default another one each time.
        plot: picture to draw: a `.png`, `.svg` or `.html` file.
        overwrite: whether an existing picture may be replaced.
        tell: function called with the budget, a text, before anything is measured; by default it is
            logged (`swathe`, INFO).

    Returns:
        The time for each size, the best size, and the recorded one, `stored_bytes`, if any.

    Raises:
        NotFoundError: If there is nothing to read.
        AccessError, SourceError: If the store cannot be read.
        RegionError: If the object is not of this store.
        OutputError: If the picture cannot be written.
        CatalogError: If the catalogue cannot be written.
    """
    from swathe.catalog import Catalog
    from swathe.costs.plots import buffer_figure, plot_path, save
    from swathe.costs.probing.read_buffer import study_buffer
    from swathe.costs.probing.resolve_target import find_place, refusing_folders
    from swathe.costs.probing.save import keep_buffer

    check_text("store", store)
    objects = [] if object is None else [check_text("object", object)]
    repeats = check_count("repeats", repeats, MOST_REPEATS)
    max_time_s = check_positive("max_time_s", max_time_s)
    max_bytes = check_count("max_bytes", max_bytes, MOST_BYTES)
    seed = _check_seed(seed)
    place = find_place(store, objects)
    picture = None if plot is None else plot_path(plot, overwrite=overwrite, sources=place.files)
    if place.is_local:
        with Catalog.open() as catalog:
            catalog.check_writable()  # the result is stored
    with refusing_folders(place):
        study = study_buffer(
            place,
            repeats=repeats,
            max_time_s=max_time_s,
            max_bytes=max_bytes,
            seed=seed,
            tell=tell or log.info,
        )
    if place.is_local:
        with Catalog.open() as catalog:
            study.stored_bytes = keep_buffer(catalog, place.root, study)
    if picture is not None:
        figure = buffer_figure(study, f"{study.object} from {study.host}")
        save(figure, picture, overwrite=overwrite)
    return study


def _check_seed(value: int | None) -> int | None:
    """Return a seed, or `None` for another one each time."""
    return None if value is None else check_count("seed", value, (1 << 63) - 1, least=0)
