"""The commands `swathe portal`: jobs on a portal elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from swathe.cli.options import Json, Overwrite, Quiet, planes_of
from swathe.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.client.portal import RemotePortal

VARIABLE = "SWATHE_PORTAL"
ENDED = ("COMPLETED", "ERROR", "ABORTED")
app = typer.Typer(
    help="Submit jobs to a portal, watch them, fetch what they made. $SWATHE_TOKEN is the token.",
    no_args_is_help=True,
)

Url = Annotated[str | None, typer.Option(help="URL of the portal; else $SWATHE_PORTAL.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command()
def submit(
    targets: Annotated[
        Path, typer.Argument(help="A table (CSV, ECSV, VOTable, Parquet) of STORE:path or places.")
    ],
    url: Url = None,
    name: Annotated[str, typer.Option(help="Name of the job, to find it again.")] = "",
    operation: Annotated[
        Literal["cut", "stack"] | None, typer.Option(help="Each target cut, or all stacked.")
    ] = None,
    mode: Annotated[
        Literal["trim", "partial", "strict"] | None,
        typer.Option(help="At the edge of an image: trim, fill what is outside, or refuse."),
    ] = None,
    fill: Annotated[float | None, typer.Option(help="Value outside the image.")] = None,
    planes: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Planes of a cube, zero-based.")
    ] = None,
    format_: Annotated[
        Literal["fits", "npy", "png", "rgb"] | None,
        typer.Option("--format", help="Format of the results."),
    ] = None,
    band: Annotated[
        list[str] | None,
        typer.Option(help="Only images of this band; may be given more than once."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Only images of this dataset, for places in the sky.")
    ] = None,
    stack: Annotated[
        Literal["mean", "median", "sigma-clipped", "weighted"] | None,
        typer.Option(help="How pixels of a stack are combined."),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Show what the job will cost; submit nothing.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Submit a table of targets as a job, and print its id."""
    options: dict[str, Any] = {
        "operation": operation,
        "mode": mode,
        "fill": fill,
        "planes": planes_of(planes),
        "format": format_,
        "bands": band,
        "dataset": dataset,
        "stack": stack,
    }
    given = {key: value for key, value in options.items() if value is not None}
    with _connected(url) as portal:
        if estimate:
            _show_estimate(portal.estimate(targets, **given), as_json)
            return
        job = portal.submit(targets, name=name, **given)
        status = job.wait(progress=not quiet) if wait else job.status()
    if as_json:
        print_json(status)
    elif wait:
        _show(status)
    else:
        typer.echo(job.id)
    if wait:
        _exit_as(status)


@app.command()
def status(
    job: JobId,
    url: Url = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List the rows that failed.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show the state of a job."""
    with _connected(url) as portal:
        found = portal.job(job)
        told = found.wait(progress=not quiet) if wait else found.status()
        rows = [
            row
            for kind in ("no-overlap", "missing", "error")
            if failed and told["counts"].get(kind)
            for row in found.rows(kind)
        ]
    if as_json:
        print_json({**told, "failed": rows} if failed else told)
    else:
        _show(told)
        for row in rows:
            typer.echo(f"  {row['id']}: {row['status']}: {row['reason']}")
    if wait:
        _exit_as(told)


@app.command()
def fetch(
    job: JobId,
    output: Annotated[Path, typer.Argument(help="A folder, or *.zip, *.tar or *.fits.")],
    url: Url = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Wait for a job to end, and fetch its results. Files that are there already stay."""
    with _connected(url) as portal:
        found = portal.job(job)
        table = found.fetch(output, overwrite=overwrite, progress=not quiet)
        told = found.status()
    if as_json:
        print_json({**told, "output": str(output)})
    else:
        typer.echo(f"{output}: {told['counts'].get('ok', 0)} of {len(table)} rows")
    _exit_as(told)


@app.command()
def start(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Start a job that was submitted not to begin by itself."""
    _change(job, url, as_json, "start", lambda status: status["phase"] == "PENDING")


@app.command()
def cancel(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Stop a job; results that are there stay."""
    _change(job, url, as_json, "cancel", lambda status: status["phase"] not in ENDED)


@app.command()
def resume(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Work again on the rows of an ended job that failed or were not done."""
    _change(
        job, url, as_json, "resume", lambda status: status["counts"].get("ok", 0) < status["rows"]
    )


@app.command()
def delete(
    job: JobId,
    url: Url = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a job with its manifest and all its results. That cannot be undone."""
    with _connected(url) as portal:
        found = portal.job(job)
        if not yes:
            rows = found.status()["rows"]
            typer.confirm(
                f"Delete job {job}, {rows:,} rows, with its results?", abort=True, err=True
            )
        found.delete()
    if as_json:
        print_json({"id": job, "deleted": True})
    else:
        typer.echo(f"{job}: deleted")


def _change(
    job: str,
    url: str | None,
    as_json: bool,
    action: Literal["start", "cancel", "resume"],
    applies: Callable[[dict[str, Any]], bool],
) -> None:
    """Change a job, and show it; say where there was nothing to change."""
    with _connected(url) as portal:
        found = portal.job(job)
        applied = applies(found.status())
        status = getattr(found, action)()
    if as_json:
        print_json({**status, "changed": applied})
        return
    _show(status)
    if not applied:
        typer.echo(f"  nothing to {action}", err=True)


@app.command("list")
def list_jobs(
    url: Url = None,
    last: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs.")] = 20,
    as_json: Json = False,
) -> None:
    """List your jobs, the newest first."""
    with _connected(url) as portal:
        jobs = portal.jobs(last)
    if as_json:
        print_json({"jobs": jobs})
        return
    rows = [
        (job["id"], job["phase"], job["name"], str(job["rows"]), job["created_at"][:19])
        for job in jobs
    ]
    print_table(("job", "phase", "name", "rows", "made (UTC)"), rows)


def _connected(url: str | None) -> RemotePortal:
    from swathe.client.portal import connect

    url = url or os.environ.get(VARIABLE)
    if not url:
        raise typer.BadParameter(f"give one, or set ${VARIABLE}", param_hint="--url")
    return connect(url)


def _show_estimate(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    from swathe.core.format import size_text

    cost = told["prediction"]
    typer.echo(f"{told['targets']} targets, {told['rows']} rows, {told['unmatched']} of no image")
    if cost is not None:
        low, high = cost["interval_s"]
        typer.echo(f"  {cost['seconds']:.3g} s ({low:.3g} to {high:.3g})")
    typer.echo(f"  results: about {size_text(told['bytes_out'])}")
    for target, reason in told["faults"]:
        typer.echo(f"  {target}: {reason}", err=True)


def _show(told: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in told["counts"].items() if number)
    typer.echo(f"{told['id']}: {told['phase']}: {counts or 'no rows'}")
    predicted, actual = told["predicted"], told["actual"]
    if predicted and actual:
        typer.echo(f"  predicted {predicted['seconds']:.3g} s, took {actual['seconds']:.3g} s")
    if told["error"]:
        typer.echo(f"  {told['error']}", err=True)
    for note in told["notes"]:
        typer.echo(f"  note: {note}", err=True)


def _exit_as(told: dict[str, Any]) -> None:
    """End with 1 where not every row is done, as `swathe cut` does."""
    if told["counts"].get("ok", 0) < told["rows"]:
        raise typer.Exit(1)
