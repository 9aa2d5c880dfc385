"""The commands `swathe job`: jobs on a remote portal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from swathe.catalog.records.jobs import END_PHASES
from swathe.cli.operation_options import with_operations
from swathe.cli.options import (
    DecColumn,
    FileOfAll,
    Fill,
    Frame,
    Json,
    Mode,
    Overwrite,
    Planes,
    Quiet,
    RaColumn,
    TargetSize,
    TimeRange,
    Url,
    connect_portal,
    planes_of,
    size_of,
)
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.errors import NoSuchResultError
from swathe.core.format import (
    count_text,
    forecast_text,
    moment_text,
    seconds_text,
    size_text,
    time_left_text,
)
from swathe.core.row_record import WITHOUT_RESULT

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.client.job import RemoteJob
    from swathe.jobs.types import Estimate, Job, Row

app = typer.Typer(
    help="Submit jobs to a portal, follow them, fetch their results. The token is $SWATHE_TOKEN.",
    no_args_is_help=True,
)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]


@app.command()
@with_operations
def submit(
    *,
    results: dict[str, Any],
    targets: Annotated[
        Path,
        typer.Option(
            help="Table (FITS, VOTable, CSV, ECSV, TSV, Parquet) or text file with one target "
            "per line, of files STORE:path or of sky positions."
        ),
    ],
    url: Url = None,
    name: Annotated[str, typer.Option(help="Name of the job.")] = "",
    mode: Mode = "trim",
    fill: Fill = None,
    planes: Planes = None,
    bands: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Bands of the images, as g,r. For --format rgb three, red first, as i,r,g.",
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of the images, for sky positions.")
    ] = None,
    time: TimeRange = None,
    file: FileOfAll = None,
    size: TargetSize = None,
    frame: Frame = None,
    ra: RaColumn = None,
    dec: DecColumn = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Show the predicted cost; do not submit.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Submit a table of targets as a job, and print its id."""
    options: dict[str, Any] = {
        **results,
        "mode": mode,
        "fill": fill,
        "planes": planes_of(planes),
        "bands": bands,
        "dataset": dataset,
        "time": time,
        "file": file,
        "size": size_of(size),
        "frame": frame,
        "ra": ra,
        "dec": dec,
    }
    set_options = {key: value for key, value in options.items() if value is not None}
    with connect_portal(url) as portal:
        if estimate:
            _show_estimate(to_json(portal.estimate(targets, **set_options)), as_json)
            return
        job = portal.submit(targets, name=name, **set_options)
        status = to_json(job.wait(progress=not quiet) if wait else job.status())
    if as_json:
        print_json(status)
    elif wait:
        show_job(status)
    else:
        typer.echo(job.id)
    if wait:
        exit_as(status)


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
    with connect_portal(url) as portal:
        remote_job = portal.job(job)
        state = to_json(remote_job.wait(progress=not quiet) if wait else remote_job.status())
        rows = [
            to_json(row)
            for kind in WITHOUT_RESULT
            if failed and state["counts"].get(kind)
            for row in remote_job.rows(kind)
        ]
    if as_json:
        print_json({**state, "failed": rows} if failed else state)
    else:
        show_job(state)
        for row in rows:
            print_text(f"  {row['id']}: {row['status']}: {row['reason']}")
    if wait:
        exit_as(state)


@app.command()
def fetch(
    job: JobId,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Output: a folder, or *.zip, *.tar or *.fits."),
    ],
    unpack: Annotated[
        bool,
        typer.Option("--unpack", help="Groups of an order as folders GROUP beside GROUP.zip."),
    ] = False,
    url: Url = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Wait until a job has ended, and fetch its results. Complete files are not fetched again."""
    with connect_portal(url) as portal:
        remote_job = portal.job(job)
        table = remote_job.fetch(output, overwrite=overwrite, progress=not quiet, unpack=unpack)
        state = to_json(remote_job.status())
    if as_json:
        print_json({**state, "output": str(output)})
    else:
        print_text(
            f"{output}: {state['counts'].get('ok', 0):,} of {count_text(len(table), 'row')}, "
            f"{size_text(state['bytes'])}"
        )
    exit_as(state)


@app.command()
def log(
    job: JobId,
    groups: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GROUP", help="Groups of granules, by name; by default all that failed."
        ),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show what an algorithm wrote to its log for groups, and what it used.

    The exit code is 1 if the program of a group did not start.
    """
    with connect_portal(url) as portal:
        remote_job = portal.job(job)
        names = groups or [
            row.id
            for kind in WITHOUT_RESULT
            for row in remote_job.rows(kind)
            if not row.source  # else it is a granule
        ]
        if len(names) == 1:
            runs = [remote_job.log(names[0])]
        else:
            runs = [_log_of(remote_job, name) for name in names]
    if as_json:
        print_json(runs[0] if groups and len(names) == 1 else {"logs": runs})
    else:
        for run in runs:
            _print_log(run, has_heading=len(runs) > 1)
        if not runs:
            typer.echo(f"{job}: no group has failed", err=True)
    if not all("log" in run for run in runs):
        raise typer.Exit(1)


def _log_of(remote_job: RemoteJob, group: str) -> dict[str, Any]:
    """Return the log of a group; if its program did not start, the reason as its problem."""
    try:
        return remote_job.log(group)
    except NoSuchResultError as error:
        return {"group": group, "problem": str(error)}


def _print_log(run: dict[str, Any], *, has_heading: bool) -> None:
    if has_heading:
        print_text(f"--- {run['group']} ---")
    if run.get("log"):
        print_text(run["log"].rstrip("\n"))
    if run["problem"]:
        print_text(f"{run['group']}: {run['problem']}")
        return
    print_text(
        f"{run['group']}: {seconds_text(run['wall_s'])}, {size_text(run['memory_bytes'])} of "
        f"memory, {size_text(run['input_bytes'])} reduced to {size_text(run['output_bytes'])}"
    )


@app.command()
def start(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Start a job that was submitted without starting it."""
    _change(job, url, as_json, "start", lambda status: status["phase"] == "PENDING")


@app.command()
def cancel(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Stop a job. Finished results are kept."""
    _change(job, url, as_json, "cancel", lambda status: status["phase"] not in END_PHASES)


@app.command()
def resume(job: JobId, url: Url = None, as_json: Json = False) -> None:
    """Retry the failed and unfinished rows of an ended job."""
    _change(
        job, url, as_json, "resume", lambda status: status["counts"].get("ok", 0) < status["rows"]
    )


@app.command()
def remove(
    job: JobId,
    url: Url = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a job with its manifest and all results. This cannot be undone."""
    with connect_portal(url) as portal:
        remote_job = portal.job(job)
        if not yes:
            state = remote_job.status()
            total = count_text(sum(state.totals.values()), state.unit)
            typer.confirm(f"Remove job {job}, {total}, with its results?", abort=True, err=True)
        remote_job.delete()
    if as_json:
        print_json({"removed": job})
    else:
        typer.echo(f"{job}: removed")


def _change(
    job: str,
    url: str | None,
    as_json: bool,
    action: Literal["start", "cancel", "resume"],
    applies: Callable[[dict[str, Any]], bool],
) -> None:
    """Change a job, and show it. Print a message if there was nothing to change."""
    with connect_portal(url) as portal:
        remote_job = portal.job(job)
        does_apply = applies(to_json(remote_job.status()))
        status = to_json(getattr(remote_job, action)())
    if as_json:
        print_json({**status, "changed": does_apply})
        return
    show_job(status)
    if not does_apply:
        typer.echo(f"  nothing to {action}", err=True)


@app.command("list")
def list_jobs(
    url: Url = None,
    last: Annotated[int, typer.Option(min=1, max=1000, help="Number of jobs.")] = 20,
    as_json: Json = False,
) -> None:
    """List your jobs, the newest first."""
    with connect_portal(url) as portal:
        jobs = [to_json(job) for job in portal.jobs(last)]
    if as_json:
        print_json({"jobs": jobs})
        return
    created_at = [moment_text(datetime.fromisoformat(job["created_at"])) for job in jobs]
    rows = [
        (job["id"], job["phase"], job["name"], _total_text(job), moment)
        for job, moment in zip(jobs, created_at, strict=True)
    ]
    print_table(("job", "phase", "name", "rows", "created"), rows)


def _total_text(job: dict[str, Any]) -> str:
    """Return the number of groups or rows of a job."""
    if job["groups"]:
        return count_text(sum(job["groups"].values()), "group")
    return f"{job['rows']:,}"


def to_json(value: Job | Row | Estimate) -> dict[str, Any]:
    """Return an answer of the portal as JSON values."""
    from swathe.client.answers import as_json

    return as_json(value)


def _show_estimate(estimate: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(estimate)
        return
    cost = estimate["prediction"]
    typer.echo(
        f"{count_text(estimate['targets'], 'target')}, {count_text(estimate['rows'], 'row')}, "
        f"{estimate['unmatched']:,} without an image"
    )
    if cost is not None:
        median, low, high = map(seconds_text, (cost["median_s"], *cost["interval_s"]))
        typer.echo(f"  {median} ({low} to {high})")
    for note in estimate["staging"]:
        print_text(f"  {note}")
    typer.echo(f"  results: about {size_text(estimate['bytes_out'])}")
    for target, reason in estimate["faults"]:
        print_text(f"  {target}: {reason}", err=True)


def show_job(state: dict[str, Any]) -> None:
    """Print the state of a job."""
    totals = state["groups"] or state["counts"]
    counts = ", ".join(f"{number:,} {name}" for name, number in totals.items() if number)
    unit = "groups: " if state["groups"] else ""
    print_text(f"{state['id']}: {state['phase']}: {unit}{counts or 'no rows'}")
    prediction, actual = state["predicted"], state["actual"]
    if prediction and actual:
        forecast, took = forecast_text(prediction["median_s"]), seconds_text(actual["work_s"])
        so_far = " so far" if state["left"] else ""
        typer.echo(f"  predicted {forecast}, took {took}{so_far}")
    if state["left"]:
        typer.echo(f"  {time_left_text(**state['left'])}")
    if state["staging"]:
        from swathe.jobs.staging_progress import staging_text

        print_text(f"  {staging_text(state['staging'])}")
        for store, reason in state["staging"]["faults"].items():
            print_text(f"  {store}: asked again later: {reason}", err=True)
    if state["error"]:
        print_text(f"  {state['error']}", err=True)
    for note in state["notes"]:
        print_text(f"  note: {note}", err=True)


def exit_as(state: dict[str, Any]) -> None:
    """Exit with code 1 unless every row has a result, as `swathe cut` does."""
    if state["counts"].get("ok", 0) < state["rows"]:
        raise typer.Exit(1)
