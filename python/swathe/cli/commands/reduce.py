"""The command `swathe reduce`: bin swaths and grids into the cells of a coarser grid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_text
from swathe.core.format import count_text, size_text
from swathe.operations.reduction.cell_statistics import DEFAULTS_TEXT, STATISTICS_TEXT


def reduce(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Files: paths, URLs or patterns.")
    ],
    grid: Annotated[
        str,
        typer.Option(
            help="Grid of the result: 0.25deg, 0.5x0.25deg (latitude x longitude), N80 (Gaussian), "
            "healpix64 or healpix64-ring."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the result: *.nc, *.fits or *.npy.")
    ],
    array: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Array to reduce, as /grid/lst or lst; default: the only one with two axes or "
            "more.",
        ),
    ] = None,
    statistics: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help=f"Statistics of a cell, separated by commas: {STATISTICS_TEXT}.",
        ),
    ] = DEFAULTS_TEXT,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Condition on arrays of the same file, as 'qa & 3 == 0'; other pixels are fill.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Number of threads; default: all cores.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Reduce swaths and grids to a coarser grid."""
    from swathe.operations.reduction import grid_result
    from swathe.operations.reduction.reduction import reduce as reduce_files

    grid_result.check_target(output, overwrite=overwrite, sources=files)
    names = tuple(name.strip() for name in statistics.split(","))
    result = reduce_files(
        files, grid=grid, statistics=names, array=array, where=where, threads=threads
    )
    result.write(output, overwrite=overwrite)
    shape = result["count"].shape
    pixels, valid = (int(result[name].sum()) for name in ("pixels", "count"))
    with_values = int((result["count"] > 0).sum())
    if as_json:
        print_json(
            {
                "path": str(output),
                "grid": str(result.grid),
                "shape": list(shape),
                "statistics": list(result.data),
                "pixels": pixels,
                "valid": valid,
                "outside": result.outside,
                "cells_with_values": with_values,
                "cells_of_fill": int(result.is_all_fill.sum()),
                "bytes_moved": result.bytes_moved,
                "requests": result.requests,
            }
        )
        return
    print_text(
        f"{output}: {' x '.join(map(str, shape))} cells, {with_values:,} with values; "
        f"{pixels:,} pixels in cells, {valid:,} of them valid; {result.outside:,} outside; "
        f"read {size_text(result.bytes_moved)} in {count_text(result.requests, 'request')}"
    )
