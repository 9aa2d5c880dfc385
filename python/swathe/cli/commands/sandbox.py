"""The commands `swathe sandbox`: check this machine, run one program confined."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_line, print_table, print_text
from swathe.cli.sandbox_options import Folders, Python, Users, box_settings
from swathe.cli.units import size_option, time_option
from swathe.sandbox import Input, Limits, Output, Report, Request

app = typer.Typer(
    help="Check whether this machine can confine users' programs, and run one confined.",
    no_args_is_help=True,
)


class ModeName(StrEnum):
    """How a program is confined."""

    AUTO = "auto"
    BWRAP = "bwrap"
    LANDLOCK = "landlock"


@app.command()
def check(
    users: Users = None,
    python: Python = None,
    folders: Folders = None,
    as_json: Json = False,
) -> None:
    """Check which sandboxes hold on this machine, and whether programs can start Python in one.

    The exit code is 1 if none holds, or the interpreter does not start.
    """
    from swathe import sandbox
    from swathe.core.errors import OptionError, SandboxUnavailableError

    settings = box_settings(users, python, folders)
    result = sandbox.check(users)
    problem = ""
    if result.holds:
        try:
            settings.check_python()
        except (OptionError, SandboxUnavailableError) as error:
            problem = str(error)
    executable = settings.python.executable
    if as_json:
        interpreter = {"path": executable, "problem": problem}
        print_json(asdict(result) | {"holds": result.holds, "python": interpreter})
    else:
        rows = [
            (each.mode, "holds" if each.holds else "does not hold", each.version, each.reason)
            for each in result.modes
        ]
        print_table(("mode", "state", "version", "reason"), rows)
        verdict = "run" if result.holds else "refused"
        print_line(f"Linux {result.kernel}, user {result.uid}: users' programs are {verdict} here")
        if problem:
            print_line(f"those in Python fail: {problem}; name another interpreter with --python")
        elif result.holds:
            print_line(f"those in Python run with {executable}")
    if problem or not result.holds:
        raise typer.Exit(1)


@app.command()
def run(
    command: Annotated[
        list[str],
        typer.Argument(
            help="Program and arguments, after --; {in}, {out} and {tmp} stand for its folders."
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="File to read: NAME=PATH, or a path; may be repeated."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", help="Name of a file that it writes; may be repeated."),
    ] = None,
    folder: Annotated[
        Path, typer.Option("-o", "--results", help="Folder for its outputs; it is created.")
    ] = Path(),
    show: Annotated[
        list[Path] | None,
        typer.Option("--show", help="Folder that it sees, read-only; may be repeated."),
    ] = None,
    mode: Annotated[ModeName, typer.Option(help="Sandbox to use.")] = ModeName.AUTO,
    users: Users = None,
    cpu: Annotated[float | None, time_option(help="CPU time limit; else 60s.")] = None,
    wall: Annotated[float | None, time_option(help="Elapsed time limit; else 120s.")] = None,
    memory: Annotated[int | None, size_option(help="Memory limit; else 1GiB.")] = None,
    as_json: Json = False,
) -> None:
    """Run a program in a sandbox and copy its outputs; exit code 1 if it fails."""
    from swathe import sandbox

    limits: dict[str, Any] = {"cpu_s": cpu, "wall_s": wall, "memory_bytes": memory}
    folder.mkdir(parents=True, exist_ok=True)
    request = Request(
        command,
        inputs=[_input(text) for text in inputs or ()],
        outputs=[Output(name) for name in outputs or ()],
        folders=[path.absolute() for path in show or ()],
        limits=replace(
            Limits(), **{name: value for name, value in limits.items() if value is not None}
        ),
        mode=mode.value,
        users=users,
    )
    report = sandbox.run(request, folder)
    if as_json:
        print_json(asdict(report) | {"outputs": _outputs_json(report)})
    else:
        for text, is_error in ((report.stdout.text, False), (report.stderr.text, True)):
            if text:
                print_text(text.rstrip("\n"), err=is_error)
        print_line(
            f"{report.status} {report.message or 'done'} ({report.mode}, {report.wall_s:.3f} s, "
            f"CPU {report.cpu_s:.3f} s)",
            err=True,
        )
    if report.status != "OK":
        raise typer.Exit(1)


def _input(text: str) -> Input:
    name, is_named, path = text.partition("=")
    return Input(name, path) if is_named else Input(Path(text).name, text)


def _outputs_json(report: Report) -> dict[str, dict[str, object]]:
    return {name: asdict(each) | {"path": str(each.path)} for name, each in report.outputs.items()}
