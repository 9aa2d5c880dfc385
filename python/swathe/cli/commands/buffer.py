"""The command `swathe buffer`."""

from __future__ import annotations

from typing import Annotated

import typer

from swathe.cli.options import Json, Measured, Overwrite, Plot, Seed
from swathe.cli.output import print_json, print_table, rate_text
from swathe.core.format import megabytes


def buffer(
    store: Measured,
    object_: Annotated[str | None, typer.Option("--object", help="What of it to read.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often with each size.")] = 7,
    budget_s: Annotated[float, typer.Option(min=0.1, help="Seconds it may take.")] = 30.0,
    budget_mb: Annotated[float, typer.Option(min=0.1, help="MB it may move.")] = 1000.0,
    seed: Seed = None,
    plot: Plot = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the best size of a read buffer: an object read with 1 KiB to 16 MiB at a time."""
    from swathe.catalog import Catalog
    from swathe.costs.probing.read_buffer import study_buffer
    from swathe.costs.probing.resolve_target import find_place
    from swathe.costs.probing.save import keep_buffer

    place = find_place(store, [] if object_ is None else [object_])
    if plot is not None:
        from swathe.costs.plots import plot_path

        plot_path(plot, overwrite=overwrite, sources=place.files)
    if place.is_local:
        with Catalog.open() as catalog:
            catalog.check_writable()  # what is found is to be kept
    study = study_buffer(
        place,
        repeats=repeats,
        budget_s=budget_s,
        budget_bytes=round(budget_mb * 1e6),
        seed=seed,
        tell=lambda text: typer.echo(text, err=True),
    )
    kept = None
    if place.is_local:
        with Catalog.open() as catalog:
            kept = keep_buffer(catalog, place.root, study)
    if plot is not None:
        from swathe.costs.plots import buffer_figure, save

        drawn = buffer_figure(study, f"{study.object} from {study.host}")
        save(drawn, plot, overwrite=overwrite)
    table = study.table()
    if as_json:
        rows = [dict(zip(table.colnames, row, strict=True)) for row in table.as_array().tolist()]
        print_json({**study.summary(), "kept": kept, "rows": rows})
        return
    typer.echo(f"{study.object} from {study.host}")
    print_table(
        ("buffer, bytes", "s", "80 %", "MB/s", "read", ""),
        [
            (
                f"{row['buffer']}",
                f"{row['seconds']:.4g}",
                f"{row['low']:.4g} to {row['high']:.4g}",
                rate_text(row["rate"]),
                # Of the rest the time is as of this part.
                f"{row['part']:.2%}" if row["part"] < 0.01 else f"{row['part']:.0%}",
                "chosen" if row["buffer"] == study.chosen else "alike" if row["within"] else "",
            )
            for row in table
        ],
    )
    typer.echo(
        f"best {study.best}, within 5 % or the noise: {study.low} to {study.high}, chosen "
        f"{study.chosen} bytes; {megabytes(study.bytes_moved)} in {study.took_s:.1f} s "
        f"({study.cache})"
    )
    if kept:
        typer.echo(f"files of this store are read by at most {kept} bytes at a time from now on")
    elif place.is_local:
        typer.echo("not kept: the store was not probed; see swathe probe")
    else:
        typer.echo("requests to servers are not of one size: each read is planned")
