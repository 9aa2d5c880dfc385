"""The commands `swathe bench`: run experiments, each in its own output folder."""

from __future__ import annotations

import inspect
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from swathe.cli.options import Json, Overwrite, Quiet
from swathe.cli.output import print_json, print_table
from swathe.experiments.settings import KINDS, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.experiments.results.result import Study

app = typer.Typer(
    help="Run the experiments of the studies of 2000 to 2007. Each key of the TOML file, which "
    "has one section per experiment, is also a flag; flags override the file.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[
    Path | None, typer.Argument(metavar="FILE.toml", help="Settings file; flags override it.")
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for tables and figures.")
]
Scratch = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for temporary files.")]
SINGULAR = {"stores": "store", "methods": "method", "clients": "client", "sizes": "size"} | {
    "ways": "way",
    "mixes": "mix",
}
"""Flags of keys that are lists. Such a flag may be repeated, once for each value."""


def _command(name: str, run: Callable[[Any, Path | None, Callable[[str], None]], Study]) -> None:
    """Add the command of an experiment. Its flags are the fields of its settings."""
    kind = KINDS[name]

    def command(**values: Any) -> None:
        from swathe.experiments.results.report import keep, ready

        file, output, scratch = values.pop("file"), values.pop("output"), values.pop("scratch")
        quiet, as_json = values.pop("quiet"), values.pop("as_json")
        overwrite = values.pop("overwrite")
        settings = settings_of(kind, file, values)
        ready(output, name, overwrite=overwrite)
        study = run(settings, scratch, _silent if quiet else _say)
        folder = keep(study, output, overwrite=overwrite)
        _show(study, folder, as_json)

    parameters = [
        _parameter("file", File, None),
        _parameter("output", Output, inspect.Parameter.empty),
        *_flags(kind),
        _parameter("scratch", Scratch, None),
        _parameter("overwrite", Overwrite, False),
        _parameter("quiet", Quiet, False),
        _parameter("as_json", Json, False),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = inspect.getdoc(kind)
    app.command(name)(command)


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _flags(kind: type[Any]) -> list[inspect.Parameter]:
    types = get_type_hints(kind)
    flags = []
    for each in fields(kind):
        kind_of_value = types[each.name]
        default: Any = each.default
        many = get_origin(kind_of_value) is tuple
        one = get_args(kind_of_value)[0] if many else kind_of_value
        metavar = None
        if get_origin(one) is Literal:
            metavar = "|".join(get_args(one))
            # Typer takes no list of choices, so the settings check them.
            one = str if many else one
        usual = " ".join(map(str, default)) if many else str(default)
        default_text = f" [{usual}]" if usual else ""
        flag = "--" + (SINGULAR.get(each.name, each.name) if many else each.name).replace("_", "-")
        again = " May be repeated." if many else ""
        help_text = f"{each.metadata['help']}{again}{default_text}"
        option = typer.Option(flag, metavar=metavar, help=help_text)
        annotation = list[one] | None if many else one | None  # type: ignore[valid-type]
        flags.append(_parameter(each.name, Annotated[annotation, option], None))
    return flags


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _silent(_text: str) -> None:
    pass


def _show(study: Study, folder: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({"output": str(folder or ""), **study.meta, "rows": _rows(study)})
        return
    from swathe.experiments.results.report import number, titles

    for title, table in {study.title: study.table, **study.more}.items():
        typer.echo(f"\n{title}")
        rows = [[number(value) for value in row] for row in table.as_array().tolist()]
        print_table(titles(table), rows)
    typer.echo("")
    for text in study.sentences:
        typer.echo(text)
    for text in study.notes:
        typer.echo(f"  note: {text}", err=True)
    if folder is not None:
        typer.echo(f"{folder}/report.html")


def _rows(study: Study) -> list[dict[str, Any]]:
    return [
        {
            name: None if value != value else value
            for name, value in zip(study.table.colnames, row, strict=True)
        }
        for row in study.table.as_array().tolist()
    ]


def _single(settings: Any, scratch: Path | None, tell: Callable[[str], None]) -> Study:
    from swathe.experiments.single_experiment import single

    return single(settings, scratch, tell)


def _region(settings: Any, scratch: Path | None, tell: Callable[[str], None]) -> Study:
    from swathe.experiments.region_experiment import region

    return region(settings, scratch, tell)


def _ramp(settings: Any, scratch: Path | None, tell: Callable[[str], None]) -> Study:
    from swathe.experiments.ramp_experiment import ramp

    return ramp(settings, scratch, tell)


def _load(settings: Any, scratch: Path | None, tell: Callable[[str], None]) -> Study:
    from swathe.experiments.load_experiment import load

    return load(settings, scratch, tell)


def _buffer(settings: Any, scratch: Path | None, tell: Callable[[str], None]) -> Study:
    from swathe.experiments.buffer_experiment import buffer

    return buffer(settings, scratch, tell)


_command("single", _single)
_command("region", _region)
_command("ramp", _ramp)
_command("load", _load)
_command("buffer", _buffer)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="Folder of reference results.")],
    second: Annotated[Path, typer.Argument(help="Folder of new results.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")
    ] = None,
    tie: Annotated[
        float, typer.Option(min=0, max=10, help="Relative difference treated as no difference.")
    ] = 0.05,
    alpha: Annotated[
        float, typer.Option(min=1e-9, max=0.5, help="Probability of a false alarm over all cases.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 1,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit code 1 if a case is worse, 2 if there are too few samples to decide.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare two folders of results, case by case, for regressions."""
    from swathe.core.errors import SettingsError
    from swathe.experiments.results.compare import TOO_FEW, least_samples
    from swathe.experiments.results.compare import compare as compare_folders
    from swathe.experiments.results.report import keep, ready

    if output:
        ready(output, "compare", overwrite=overwrite)
    study = compare_folders(first, second, tie=tie, alpha=alpha, seed=seed)
    folder = keep(study, output, overwrite=overwrite) if output else None
    _show(study, folder, as_json)
    if fail_on_regression and any(study.table["verdict"] == "worse"):
        raise typer.Exit(1)
    few = sum(study.table["verdict"] == TOO_FEW)
    if fail_on_regression and few:
        raise SettingsError(
            f"{few} of {len(study.table)} cases have too few samples to detect a regression: "
            f"expected {least_samples(len(study.table), alpha)} of each case in both runs"
        )


@app.command()
def join(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Address of the leading ramp.")
    ],
    as_json: Json = False,
) -> None:
    """Run clients of a ramp that another host leads. Both need the same $SWATHE_BENCH_TOKEN."""
    from swathe.experiments.clients.remote_hosts import join as join_ramp

    runs = join_ramp(address, _say)
    if as_json:
        print_json({"ramp": address, "runs": [asdict(each) for each in runs]})
    else:
        typer.echo(f"{address}: {len(runs)} runs, {sum(each.clients for each in runs)} clients")
