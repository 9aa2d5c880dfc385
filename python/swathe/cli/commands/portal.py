"""The commands `swathe portal`: jobs on a remote portal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from swathe.cli.options import Json, Overwrite, Quiet, planes_of
from swathe.cli.output import print_json, print_table
from swathe.core.format import seconds_text, size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.client.portal import RemotePortal

VARIABLE = "SWATHE_PORTAL"
ENDED = ("COMPLETED", "ERROR", "ABORTED")
app = typer.Typer(
    help="Submit jobs to a portal, follow them, fetch their results. The token is $SWATHE_TOKEN.",
    no_args_is_help=True,
)

Url = Annotated[str | None, typer.Option(help="URL of the portal; else $SWATHE_PORTAL.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command()
def submit(
    targets: Annotated[
        Path,
        typer.Argument(
            help="Table (CSV, ECSV, VOTable, Parquet) of files STORE:path, or of sky positions."
        ),
    ],
    url: Url = None,
    name: Annotated[str, typer.Option(help="Name of the job.")] = "",
    operation: Annotated[
        Literal["cut", "stack"] | None,
        typer.Option(help="Operation: cut each target, or stack all; else cut."),
    ] = None,
    mode: Annotated[
        Literal["trim", "partial", "strict"] | None,
        typer.Option(
            help="At the edge of an image: trim the region, fill it (partial), or fail (strict)."
        ),
    ] = None,
    fill: Annotated[
        float | None,
        typer.Option(help="Physical value of pixels outside the image; else NaN, BLANK or 0."),
    ] = None,
    planes: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:LAST",
            help="Planes of a cube, zero-based, FIRST <= p < LAST; or one plane.",
        ),
    ] = None,
    format_: Annotated[
        Literal["fits", "npy", "png", "rgb"] | None,
        typer.Option("--format", help="Format of the results."),
    ] = None,
    band: Annotated[
        list[str] | None,
        typer.Option(help="Band of the images; may be repeated."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of the images, for sky positions.")
    ] = None,
    stack: Annotated[
        Literal["mean", "median", "sigma-clipped", "weighted"] | None,
        typer.Option(help="Way to combine the pixels of a stack; else mean."),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Show the predicted cost; do not submit.")
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
    set_options = {key: value for key, value in options.items() if value is not None}
    with _connected(url) as portal:
        if estimate:
            _show_estimate(portal.estimate(targets, **set_options), as_json)
            return
        job = portal.submit(targets, name=name, **set_options)
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
    failed: Annotated[
        bool, typer.Option("--failed", help="List the rows without a result.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show the state of a job."""
    with _connected(url) as portal:
        remote_job = portal.job(job)
        state = remote_job.wait(progress=not quiet) if wait else remote_job.status()
        rows = [
            row
            for kind in ("no-overlap", "missing", "error")
            if failed and state["counts"].get(kind)
            for row in remote_job.rows(kind)
        ]
    if as_json:
        print_json({**state, "failed": rows} if failed else state)
    else:
        _show(state)
        for row in rows:
            typer.echo(f"  {row['id']}: {row['status']}: {row['reason']}")
    if wait:
        _exit_as(state)


@app.command()
def fetch(
    job: JobId,
    output: Annotated[Path, typer.Argument(help="Output: a folder, or *.zip, *.tar or *.fits.")],
    url: Url = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Wait until a job has ended, and fetch its results. Complete files are not fetched again."""
    with _connected(url) as portal:
        remote_job = portal.job(job)
        table = remote_job.fetch(output, overwrite=overwrite, progress=not quiet)
        state = remote_job.status()
    if as_json:
        print_json({**state, "output": str(output)})
    else:
        typer.echo(f"{output}: {state['counts'].get('ok', 0)} of {len(table)} rows")
    _exit_as(state)


@app.command()
def start(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Start a job that was submitted without starting it."""
    _change(job, url, as_json, "start", lambda status: status["phase"] == "PENDING")


@app.command()
def cancel(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Stop a job. Finished results are kept."""
    _change(job, url, as_json, "cancel", lambda status: status["phase"] not in ENDED)


@app.command()
def resume(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Retry the failed and unfinished rows of an ended job."""
    _change(
        job, url, as_json, "resume", lambda status: status["counts"].get("ok", 0) < status["rows"]
    )


@app.command()
def delete(
    job: JobId,
    url: Url = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a job with its manifest and all results. This cannot be undone."""
    with _connected(url) as portal:
        remote_job = portal.job(job)
        if not yes:
            rows = remote_job.status()["rows"]
            typer.confirm(
                f"Delete job {job}, {rows:,} rows, with its results?", abort=True, err=True
            )
        remote_job.delete()
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
    """Change a job, and show it. Print a message if there was nothing to change."""
    with _connected(url) as portal:
        remote_job = portal.job(job)
        applied = applies(remote_job.status())
        status = getattr(remote_job, action)()
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
    print_table(("job", "phase", "name", "rows", "created (UTC)"), rows)


def _connected(url: str | None) -> RemotePortal:
    from swathe.client.portal import connect

    url = url or os.environ.get(VARIABLE)
    if not url:
        raise typer.BadParameter(
            f"expected a URL, found none; give one, or set ${VARIABLE}", param_hint="--url"
        )
    return connect(url)


def _show_estimate(estimate: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(estimate)
        return
    cost = estimate["prediction"]
    typer.echo(
        f"{estimate['targets']} targets, {estimate['rows']} rows, {estimate['unmatched']} "
        "without an image"
    )
    if cost is not None:
        low, high = cost["interval_s"]
        low_text, high_text = seconds_text(low), seconds_text(high)
        typer.echo(f"  {seconds_text(cost['seconds'])} ({low_text} to {high_text})")
    typer.echo(f"  results: about {size_text(estimate['bytes_out'])}")
    for target, reason in estimate["faults"]:
        typer.echo(f"  {target}: {reason}", err=True)


def _show(state: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in state["counts"].items() if number)
    typer.echo(f"{state['id']}: {state['phase']}: {counts or 'no rows'}")
    predicted, actual = state["predicted"], state["actual"]
    if predicted and actual:
        took = seconds_text(actual["seconds"])
        typer.echo(f"  predicted {seconds_text(predicted['seconds'])}, took {took}")
    if state["error"]:
        typer.echo(f"  {state['error']}", err=True)
    for note in state["notes"]:
        typer.echo(f"  note: {note}", err=True)


def _exit_as(state: dict[str, Any]) -> None:
    """Exit with code 1 unless every row has a result, as `swathe cut` does."""
    if state["counts"].get("ok", 0) < state["rows"]:
        raise typer.Exit(1)
