"""The command `swathe order`: an algorithm runs on the granules of an archive that match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.commands.job import exit_as, show_job, to_json
from swathe.cli.options import (
    Json,
    OpenTimes,
    Quiet,
    Url,
    connect_portal,
    open_ends,
    values_by_name,
)
from swathe.cli.output import print_json, print_text
from swathe.core.format import count_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.client.portal import RemotePortal


def order(
    algorithm: Annotated[
        str, typer.Argument(metavar="NAME[@VERSION]", help="Algorithm; by NAME the newest version.")
    ],
    collection: Annotated[
        str, typer.Option(metavar="DATASET", help="Dataset to search; else that of the algorithm.")
    ] = "",
    time: OpenTimes = None,
    bbox: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(
            metavar="W S E N",
            help="Box of longitude and latitude on the Earth, degrees; W > E crosses the dateline.",
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Value of a parameter; else its default."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="NAME=STORE:PATH", help="File of another input, by its name."
        ),
    ] = None,
    url: Url = None,
    name: Annotated[str, typer.Option(help="Name of the job.")] = "",
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Groups and predicted cost only, without an order.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Granules read in place, and copied ones; with --estimate."),
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Run of the first group before all; it must succeed.")
    ] = False,
    register_as: Annotated[
        str,
        typer.Option(metavar="DATASET", help="New dataset of the portal for the outputs."),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Order an algorithm for the granules of a portal that match, and print the job's id."""
    if explain and not estimate:
        raise typer.BadParameter("goes with --estimate", param_hint="--explain")
    with connect_portal(url) as portal:
        choices: dict[str, Any] = {
            "collection": collection,
            "time": open_ends(time),
            "bbox": bbox,
            "parameters": parameters_of(portal, algorithm, values),
            "files": values_by_name("--file", files),
        }
        if estimate:
            cost = to_json(portal.estimate_order(algorithm, register_as=register_as, **choices))
            print_json(cost) if as_json else _show_estimate(cost, explain=explain)
            return
        if preview and not _preview(portal, algorithm, choices, quiet=quiet or as_json):
            raise typer.Exit(1)
        job = portal.order(algorithm, name=name, register_as=register_as, **choices)
        status = to_json(job.wait(progress=not quiet) if wait else job.status())
    if as_json:
        print_json(status)
    elif wait:
        show_job(status)
    else:
        typer.echo(job.id)
    if wait:
        exit_as(status)


def parameters_of(
    portal: RemotePortal, algorithm: str, texts: list[str] | None
) -> dict[str, str | int | float | bool]:
    """Return the values of parameters, in the types of the algorithm's definition.

    Raises:
        AlgorithmError: If a value does not fit.
    """
    from swathe.algorithms.definition import Parameter
    from swathe.algorithms.parameters import parse_value
    from swathe.core.errors import AlgorithmError

    choices = values_by_name("--set", texts)
    if not choices:
        return {}
    definition = portal.algorithm(algorithm)["definition"]["parameters"]
    for name in choices:
        if name not in definition:
            names = ", ".join(definition) or "none"
            raise AlgorithmError(f"--set {name[:60]}: expected a parameter ({names})")
    return {
        name: parse_value(name, Parameter(**definition[name]), text)
        for name, text in choices.items()
    }


def _preview(portal: RemotePortal, algorithm: str, choices: dict[str, Any], *, quiet: bool) -> bool:
    """Run the first group, and show what became of it; return whether it succeeded."""
    job = portal.order(algorithm, name=f"preview of {algorithm}", preview=True, **choices)
    job.wait(progress=not quiet)
    row = list(job.rows())[-1]
    if row.status != "ok":
        print_text(f"preview: {row.id}: {row.reason}", err=True)
        return False
    if not quiet:
        run = job.log(row.id)
        print_text(run["log"].rstrip("\n"), err=True)
        print_text(
            f"preview: {row.id}: {size_text(run['input_bytes'])} reduced to "
            f"{size_text(run['output_bytes'])} in {seconds_text(run['wall_s'])}, job {job.id}"
        )
    return True


def _show_estimate(cost: dict[str, Any], *, explain: bool) -> None:
    """Print the granules, groups and predicted cost of an order, and how it reads them."""
    print_text(
        f"{count_text(cost['targets'], 'granule')} in {count_text(cost['groups'], 'group')}, "
        f"{size_text(cost['read_bytes'])} to read"
    )
    for name, count in cost["matches"]:
        print_text(f"  {name}: {count_text(count, 'granule')}")
    if len(cost["matches"]) < cost["groups"]:
        print_text(f"  and {cost['groups'] - len(cost['matches']):,} more")
    prediction = cost["prediction"]
    if prediction is None:
        print_text("time: not known, there is no run of this version yet")
    else:
        median, low, high = map(seconds_text, (prediction["median_s"], *prediction["interval_s"]))
        print_text(
            f"time: {median} ({low} to {high}), from {count_text(cost['runs'], 'earlier run')}; "
            f"results: about {size_text(cost['bytes_out'])}"
        )
    for note in [*(cost["reading"] if explain else ()), *cost["staging"]]:
        print_text(f"  {note}")
    for name, reason in cost["faults"]:
        print_text(f"  {name}: {reason}", err=True)
