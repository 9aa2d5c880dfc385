"""Try an algorithm on this machine, in the same sandbox as elsewhere, without a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from swathe.algorithms.group_run import BoxSettings, GroupRun, algorithm_call, prepare, run_group
from swathe.algorithms.groups import groups_of
from swathe.algorithms.header import read_source
from swathe.algorithms.local_granules import local_granules
from swathe.algorithms.parameters import parse_value, values_of
from swathe.algorithms.static_check import check_algorithm
from swathe.core.errors import AlgorithmError, NotFoundError, OutputExistsError
from swathe.core.outputs import make_folder, publish


def try_algorithm(
    source: str | os.PathLike[str],
    granules: Iterable[str | os.PathLike[str]],
    *,
    files: Mapping[str, str | os.PathLike[str]] | None = None,
    parameters: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    settings: BoxSettings | None = None,
    report: Callable[[GroupRun], None] | None = None,
) -> list[GroupRun]:
    """Run an algorithm on files of this machine, group by group, in the sandbox.

    Example:
        >>> runs = swathe.try_algorithm("lst.py", ["a.hdf", "b.hdf"], output="results/")
        >>> runs[0].outputs["grid"]
        PosixPath('results/2005-05-01/grid.nc')

    Args:
        source: file of its source, a package, or a folder to pack.
        granules: files that it reads; they form groups as its definition says.
        files: files of its other inputs, by name.
        parameters: values of its parameters; texts are read as in the shell. Defaults otherwise.
        output: folder for its outputs: `GROUP/OUTPUT`. By default they are checked and removed.
        overwrite: whether to replace outputs that exist.
        settings: interpreter and sandbox; by default those of this process.
        report: called with each group when it has ended.

    Returns:
        What became of each group, in order. A group that failed has a `problem`.

    Raises:
        AlgorithmError: If the definition is invalid, or granules, files or values do not fit it.
        NotFoundError: If a file does not exist.
        OutputExistsError: If an output exists, and `overwrite` is false.
        SandboxUnavailableError: If this machine cannot confine programs.
    """
    path = Path(source)
    algorithm = check_algorithm(path)
    call = algorithm_call(
        algorithm,
        read_source(path).content,
        _files(algorithm.files, files or {}),
        values_of(
            algorithm.parameters,
            {
                name: parse_value(name, algorithm.parameters[name], value)
                if isinstance(value, str) and name in algorithm.parameters
                else value
                for name, value in (parameters or {}).items()
            },
        ),
    )
    settings = settings or BoxSettings()
    prepare(call, settings)
    of_input = algorithm.granules[1]
    groups = groups_of(local_granules(granules, of_input), of_input)
    if not groups:
        raise AlgorithmError(f"{path}: expected granules, found none")
    names = [f"{name}{each.suffix}" for name, each in algorithm.outputs.items()]
    folder = None if output is None else make_folder(Path(output))
    if folder is not None and not overwrite:
        for group in groups:
            for file in (folder / group.name / name for name in names):
                if file.exists():
                    raise OutputExistsError(f"{file}: exists; choose another folder, or overwrite")
    runs = []
    for group in groups:
        with TemporaryDirectory(prefix=".swathe-", dir=folder) as collect:
            run = run_group(call, group, Path(collect), settings)
            run = _keep(run, folder, overwrite=overwrite)
        runs.append(run)
        if report is not None:
            report(run)
    return runs


def _files(
    inputs: Mapping[str, object], files: Mapping[str, str | os.PathLike[str]]
) -> dict[str, Path]:
    """Return the files of all inputs that are files.

    Raises:
        AlgorithmError: If one is missing, or belongs to no input.
        NotFoundError: If it does not exist.
    """
    names = ", ".join(inputs) or "none"
    if inputs.keys() != files.keys():
        others = ", ".join(files) or "none"
        raise AlgorithmError(f"files: expected one for each input ({names}), found {others}")
    paths = {name: Path(path).resolve() for name, path in files.items()}
    for name, path in paths.items():
        if not path.is_file():
            raise NotFoundError(f"{name}: expected a file, found none at {path}")
    return paths


def _keep(run: GroupRun, folder: Path | None, *, overwrite: bool) -> GroupRun:
    """Return a run whose outputs are in their folder; those of a run that failed are removed."""
    if folder is None or run.problem:
        return replace(run, outputs={})
    home = make_folder(folder / run.group)
    outputs = {}
    for name, file in run.outputs.items():
        outputs[name] = home / file.name
        publish(file, outputs[name], overwrite=overwrite)
    return replace(run, outputs=outputs)
