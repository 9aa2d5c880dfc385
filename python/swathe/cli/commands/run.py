"""The commands `swathe run`: an application's arrays over several stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import seconds_text, size_text

if TYPE_CHECKING:
    from swathe.runs.run_prediction import RunPrediction

app = typer.Typer(help="Write the arrays of an application to several stores.")
TITLES = (
    *("NAME", "AMODE", "NDIMS", "ETYPE", "PATTERN", "DIMS", "LOCATION", "FREQUENCY"),
    *("DUMPS", "SIZE", "SECONDS"),
)


@app.command()
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="Settings of the run: its arrays.")
    ],
    default: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="Store of arrays without a location. By default the one of tier tape with most "
            "room, else the one with most room.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict how long writing takes, array by array, and how many bytes each store gets."""
    from swathe.runs import predict as predict_run

    prediction = predict_run(file, default=default)
    if as_json:
        print_json(_record(prediction))
        return
    print_table(TITLES, ([_cell(value) for value in row] for row in _rows(prediction)))
    low_s, high_s = prediction.interval_s
    print_text(
        f"total {seconds_text(prediction.seconds)} ({seconds_text(low_s)} to "
        f"{seconds_text(high_s)})"
    )
    for store, size in prediction.bytes_by_store.items():
        print_text(f"{store}: {size_text(size)}")
    for each in prediction.arrays:
        if each.exceeds_limit:
            print_text(
                f"swathe: warning: {each.name} takes longer than its within_s, "
                f"{seconds_text(each.array.within_s or 0.0)}",
                err=True,
            )
    for store in prediction.unmeasured:
        print_text(
            f"swathe: warning: writing to {store} was not measured; see: swathe probe {store} "
            "--write",
            err=True,
        )


def _rows(prediction: RunPrediction) -> list[list[object]]:
    return [
        [
            *(row[name] for name in ("name", "amode", "ndims", "etype", "pattern", "dims")),
            *(row["location"], row["frequency"], row["dumps"]),
            *(size_text(row["bytes"]), f"{row['seconds']:.6g}"),
        ]
        for row in prediction.rows()
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _record(prediction: RunPrediction) -> dict[str, object]:
    return {
        "name": prediction.run.name,
        "iterations": prediction.run.iterations,
        "ranks": prediction.run.ranks,
        "arrays": prediction.rows(),
        "seconds": prediction.seconds,
        "interval_s": list(prediction.interval_s),
        "bytes_by_store": prediction.bytes_by_store,
        "unmeasured": list(prediction.unmeasured),
    }
