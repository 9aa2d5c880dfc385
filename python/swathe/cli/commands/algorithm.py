"""The commands `swathe algorithm`: check a user's own reduction, and try it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from swathe.cli.options import Json, Overwrite, values_by_name
from swathe.cli.output import print_json, print_table, print_text
from swathe.cli.sandbox_options import Folders, Python, Users, box_settings
from swathe.cli.versions import (
    Portal,
    To,
    print_removal,
    print_version,
    print_versions,
    version_values,
)
from swathe.core.format import decimal_size_text, seconds_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swathe.algorithms.definition import Algorithm
    from swathe.algorithms.group_run import GroupRun

app = typer.Typer(help="Run your own reductions, confined, on granules.", no_args_is_help=True)

Source = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Source of the algorithm: *.py with a header, *.cwl, a package, or a folder.",
    ),
]

Name = Annotated[
    str, typer.Argument(metavar="NAME[@VERSION]", help="Algorithm; by NAME the newest version.")
]


@app.command()
def check(source: Source, as_json: Json = False) -> None:
    """Check an algorithm without running it: its header, its function run, its packages."""
    from swathe.algorithms.static_check import check_algorithm

    algorithm = check_algorithm(source)
    if as_json:
        print_json(asdict(algorithm))
    else:
        _show(algorithm)


@app.command()
def add(
    source: Source,
    url: To = None,
    as_json: Json = False,
) -> None:
    """Check an algorithm and add it to a portal. A version never changes."""
    from swathe import algorithms
    from swathe.cli.options import connect_portal

    record = algorithms.add(source) if url is None else connect_portal(url).add_algorithm(source)
    print_version(record, as_json=as_json)


@app.command("list")
def list_(url: Portal = None, as_json: Json = False) -> None:
    """List all versions of algorithms, by name, the newest of each first."""
    from swathe import algorithms
    from swathe.cli.options import connect_portal

    records = algorithms.list() if url is None else connect_portal(url).algorithms()
    print_versions(records, ("algorithm", "owner"), "algorithms", as_json=as_json)


@app.command()
def show(name: Name, url: Portal = None, as_json: Json = False) -> None:
    """Show a version of an algorithm: what it reads, writes and may use."""
    from swathe import algorithms
    from swathe.cli.options import connect_portal
    from swathe.client.answers import definition_of

    if url is None:
        version = algorithms.show(name)
        definition = version.definition
        values = {**version_values(version.record), "definition": asdict(definition)}
    else:
        portal = connect_portal(url)
        values = portal.algorithm(name)
        definition = definition_of(values, portal.url)
    if as_json:
        print_json(values)
        return
    _show(definition)
    print_text(f"owner: {values['owner']}")


@app.command()
def remove(name: Name, url: Portal = None, as_json: Json = False) -> None:
    """Remove a version of an algorithm, or by NAME all its versions."""
    from swathe import algorithms
    from swathe.cli.options import connect_portal

    if url is None:
        algorithms.remove(name)
    else:
        connect_portal(url).remove_algorithm(name)
    print_removal(name, as_json=as_json)


class TryCommand(TyperCommand):
    """A command whose option `--granules` takes several files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments after repeating the option before each of its files."""
        words: list[str] = []
        is_granule = False
        for word in args:
            if word.startswith("-"):
                is_granule = word == "--granules"
                words += [] if is_granule else [word]
            else:
                words += ["--granules", word] if is_granule else [word]
        return super().parse_args(ctx, words)


@app.command("try", cls=TryCommand)
def try_(
    source: Source,
    granules: Annotated[
        list[str], typer.Option("--granules", metavar="FILE...", help="Files of the granules.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="NAME=FILE", help="File of another input, by its name."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Value of a parameter; else its default."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the outputs, as DIR/GROUP/OUTPUT; else they are checked and removed.",
        ),
    ] = None,
    users: Users = None,
    python: Python = None,
    folders: Folders = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Try an algorithm on files of this machine, in the sandbox."""
    from swathe.algorithms.trial import try_algorithm

    if users is None and os.geteuid() == 0:
        raise typer.BadParameter(
            "root needs a user id for the runs, as 70000", param_hint="--users"
        )
    runs = try_algorithm(
        source,
        granules,
        files=values_by_name("--file", files),
        parameters=values_by_name("--set", values),
        output=output,
        overwrite=overwrite,
        settings=box_settings(users, python, folders),
        report=None if as_json else _report,
    )
    if as_json:
        print_json({"groups": [_record(run) for run in runs]})
    if any(run.problem for run in runs):
        raise typer.Exit(1)


def _report(run: GroupRun) -> None:
    """Print what became of a group; its log goes to standard error."""
    if run.log:
        print_text(f"log of {run.group}:", err=True)
        print_text(run.log.rstrip("\n"), err=True)
    if run.problem:
        print_text(f"{run.group}: {run.problem}")
        return
    reduction = run.input_bytes / max(run.output_bytes, 1)
    print_text(
        f"{run.group}: {size_text(run.input_bytes)} reduced to {size_text(run.output_bytes)} "
        f"(factor {reduction:.3g}) in {seconds_text(run.wall_s)}, "
        f"{size_text(run.memory_bytes)} of memory"
    )
    for name, path in run.outputs.items():
        print_text(f"  {name}: {path}")


def _record(run: GroupRun) -> dict[str, Any]:
    return {**asdict(run), "outputs": {name: str(path) for name, path in run.outputs.items()}}


def _show(algorithm: Algorithm) -> None:
    """Print a definition."""
    print_text(" ".join(filter(None, (algorithm.label, algorithm.description))))
    print_table(("argument", "kind", "definition"), _arguments(algorithm))
    resources = algorithm.resources
    cores = "1 core" if resources.cpu == 1 else f"{resources.cpu} cores"
    print_text(
        f"each run: {cores}, {decimal_size_text(resources.memory)} of memory, "
        f"{seconds_text(resources.wall_s)}, {decimal_size_text(resources.output)} of outputs"
    )
    for note in algorithm.notes:
        print_text(f"note: {note}")


def _arguments(algorithm: Algorithm) -> Iterator[tuple[str, str, str]]:
    """Yield name, kind and definition of each argument."""
    from swathe.algorithms.definition import FileInput
    from swathe.algorithms.parameters import requirement_of

    for name, each in algorithm.inputs.items():
        if isinstance(each, FileInput):
            yield name, "file", each.file
            continue
        count = str(each.least) if each.least == each.most else f"{each.least} to {each.most}"
        words = [f"{count} of {each.collection or 'any collection'}, group: {each.group}"]
        words += [", ".join(each.arrays)] if each.arrays else []
        neighbours = each.window
        if neighbours.before or neighbours.after:
            words.append(f"{neighbours.before} before, {neighbours.after} after")
        yield name, "granules", "; ".join(words)
    for name, output in algorithm.outputs.items():
        words = [output.media_type, *(["optional"] if output.is_optional else [])]
        words += [f"with {', '.join(output.checks)}"] if output.checks else []
        yield name, "output", "; ".join(words)
    for name, parameter in algorithm.parameters.items():
        default = "" if parameter.default is None else f"; default {parameter.default}"
        yield name, "parameter", f"{requirement_of(parameter)}{default}"
