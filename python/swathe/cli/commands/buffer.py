"""The command `swathe buffer`: find the best read-buffer size."""

from __future__ import annotations

from typing import Annotated

import typer

from swathe.cli.options import Json, MeasureTarget, Overwrite, Plot, Seed
from swathe.cli.output import print_json, print_table
from swathe.cli.units import size_option, time_option
from swathe.core.format import number_text, seconds_text, size_text


def buffer(
    store: MeasureTarget,
    object_: Annotated[
        str | None,
        typer.Option(
            "--object", help="Object to read; else probe_object of the store, or a large one."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=10_000, help="Number of reads per size.")] = 7,
    max_time: Annotated[
        float, time_option(least_s=0.1, help="Maximum duration; by default 30s.")
    ] = 30.0,
    max_bytes: Annotated[
        int, size_option(least_bytes=100_000, help="Maximum transfer; by default 1GB.")
    ] = 1_000_000_000,
    seed: Seed = None,
    plot: Plot = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the best read-buffer size: read an object in blocks of 1 KiB to 16 MiB."""
    from swathe.costs.recorded_probe import probe_buffer

    study = probe_buffer(
        store,
        object=object_,
        repeats=repeats,
        max_time_s=max_time,
        max_bytes=max_bytes,
        seed=seed,
        plot=plot,
        overwrite=overwrite,
        tell=lambda text: typer.echo(text, err=True),
    )
    table = study.table()
    if as_json:
        rows = [dict(zip(table.colnames, row, strict=True)) for row in table.as_array().tolist()]
        print_json({**study.summary(), "rows": rows})
        return
    typer.echo(f"{study.object} from {study.host}")
    print_table(
        ("buffer, bytes", "s", "80 %", "MB/s", "read", ""),
        [
            (
                f"{row['buffer']}",
                f"{row['median_s']:.4g}",
                f"{row['low']:.4g} to {row['high']:.4g}",
                number_text(row["rate"] / 1e6),
                # Only this part is read; its time is scaled to the whole object.
                f"{row['part']:.2%}" if row["part"] < 0.01 else f"{row['part']:.0%}",
                "chosen" if row["buffer"] == study.choice else "alike" if row["within"] else "",
            )
            for row in table
        ],
    )
    typer.echo(
        f"best {study.best}, within 5 % or the noise: {study.low} to {study.high}, chosen "
        f"{study.choice} bytes; {size_text(study.bytes_moved)} in {seconds_text(study.took_s)} "
        f"({study.cache})"
    )
    if study.stored_bytes:
        typer.echo(f"reads from this store now use blocks of at most {study.stored_bytes} bytes")
    elif study.cache != "remote":
        typer.echo("not stored: the store was not probed; see swathe probe")
    else:
        typer.echo("not stored: requests to servers have no fixed size, as each read is planned")
