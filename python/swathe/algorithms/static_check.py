"""Check an algorithm without running it: its header, its function `run`, and its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from swathe.algorithms.box_python import BoxPython
from swathe.algorithms.compiler import compiler_version
from swathe.algorithms.cwl_header import DOCUMENT, has_scripts, runnable_document
from swathe.algorithms.cwl_process import SCRIPT
from swathe.algorithms.definition import Algorithm
from swathe.algorithms.environment import Environment
from swathe.algorithms.environments import environment_of
from swathe.algorithms.header import MAIN, Source, read_source
from swathe.algorithms.header_table import fault_error
from swathe.algorithms.libraries import OWNER, libraries_of
from swathe.algorithms.read_definition import read_definition
from swathe.algorithms.read_resources import OperatorLimits
from swathe.algorithms.wheels import packages_of, wheel_faults
from swathe.catalog.catalog import Catalog
from swathe.core.confined import ConfinedProcess, ProcessLimits
from swathe.core.errors import AlgorithmError
from swathe.core.value_errors import short_text

SIGNATURE = "swathe.algorithms.run_signature"
LIMITS = ProcessLimits(memory_mb=1024, cpu_s=10, wall_s=60.0, answer_mb=1, files=16, file_mb=0)
"""Python takes up to 500 bytes of memory for a byte of source."""
CWLTOOL = "cwltool"
ADVICE = "pip install cwltool into a Python of its own, then swathe environment add"
NODE_NAMES, NODE_FOLDERS = ("node", "nodejs"), (Path("/usr/bin"),)
"""Node.js, which evaluates JavaScript of CWL, and where runs look for it."""


def check_algorithm(path: str | os.PathLike[str]) -> Algorithm:
    """Check an algorithm without running it.

    Example:
        >>> swathe.check_algorithm("lst.py").label
        'lst-quarter-degree@1.2'

    Args:
        path: file of its source, a package, or a folder to pack.

    Returns:
        Its definition.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If its header is invalid, its function `run` has not the arguments that the
            header names, or a package, a library or an environment that it needs is missing; with
            all such errors.
        LimitError: If its source is too complex to be parsed.
    """
    with closing(ConfinedProcess(places=1, imports=(SIGNATURE,))) as process:
        return checked_definition(read_source(Path(path)), process)


def checked_definition(
    source: Source,
    process: ConfinedProcess,
    limits: OperatorLimits | None = None,
    catalog: Catalog | None = None,
    owner: str = OWNER,
) -> Algorithm:
    """Return the definition of an algorithm that can be run.

    Args:
        source: its source.
        process: process that parses it, with `SIGNATURE` imported.
        limits: largest resources of a run; by default those of this machine.
        catalog: catalogue with libraries and environments; by default that of this machine.
        owner: user whose libraries it may use.

    Raises:
        AlgorithmError, LimitError: As in `check_algorithm`.
    """
    algorithm = read_definition(source, limits)
    faults = [*_file_faults(algorithm, source)]
    if algorithm.build is None and MAIN in source.files:
        faults += _signature_faults(algorithm, _signature(source, process))
    paths = [*source.files]
    try:
        libraries = libraries_of(algorithm, catalog, owner)
        paths += (path for library in libraries.values() for path in library.files)
    except AlgorithmError as error:
        faults.append(str(error))
    try:
        environment, python = environment_of(algorithm.environment, catalog)
        faults += environment.faults_of(algorithm, packages_of(paths))
        faults += _cwl_faults(source, algorithm, environment, python)
    except AlgorithmError as error:
        is_cwl = algorithm.language == "cwl"
        faults.append(f"{error}; CWL needs one with cwltool: {ADVICE}" if is_cwl else str(error))
    if faults:
        raise fault_error(source.label, faults)
    return algorithm


def _file_faults(algorithm: Algorithm, source: Source) -> Iterator[str]:
    """Yield what a package lacks, or has in a form that cannot be used."""
    if algorithm.language == "cwl":
        return
    if algorithm.build is None:
        if MAIN not in source.files:
            yield f"expected {MAIN} with a function 'def run(...)', found none"
    else:
        for path in algorithm.build.sources:
            if path not in source.files:
                yield f"build.sources: expected files of the package, found {short_text(path)}"
        try:
            compiler_version(algorithm.language)
        except AlgorithmError as error:
            yield str(error)
    yield from wheel_faults(source.files)


def _cwl_faults(
    source: Source, algorithm: Algorithm, environment: Environment, python: BoxPython | None
) -> Iterator[str]:
    """Yield what a document of CWL needs and its environment lacks."""
    if algorithm.language != "cwl":
        return
    if CWLTOOL not in environment.packages:
        yield f"environment {algorithm.environment}: expected {CWLTOOL} in it, found none; {ADVICE}"
    folders = [*NODE_FOLDERS, *([Path(python.executable).parent] if python else [])]
    is_there = any((folder / name).is_file() for folder in folders for name in NODE_NAMES)
    content = runnable_document(source.files[DOCUMENT], source.label)
    if has_scripts(content) and not is_there:
        yield (
            f"{SCRIPT}: expected Node.js as one of {', '.join(NODE_NAMES)} in "
            f"{', '.join(map(str, folders))}, found none"
        )


def _signature(source: Source, process: ConfinedProcess) -> dict[str, Any]:
    """Return what `run_signature` says of a source."""
    with TemporaryDirectory(prefix="swathe-algorithm-") as folder:
        path = Path(folder) / "algorithm.py"
        path.write_bytes(source.files[MAIN])
        answer = process.run(
            source.label,
            f"{SIGNATURE}:run_signature",
            {"path": str(path)},
            LIMITS,
            library="Python's parser",
        )
    signature: dict[str, Any] = json.loads(answer)
    return signature


def _signature_faults(algorithm: Algorithm, signature: dict[str, Any]) -> Iterator[str]:
    """Yield how the arguments of `run` differ from those of the definition."""
    if "fault" in signature:
        yield signature["fault"]
        return
    names = algorithm.arguments
    missing = [each for each in names if each not in signature["arguments"]]
    if missing and not signature["takes_any"]:
        yield f"run: expected the arguments {', '.join(names)}, found none for {', '.join(missing)}"
    others = [each for each in signature["mandatory"] if each not in names]
    if others:
        yield (
            f"run: expected the arguments {', '.join(names)}, found {', '.join(others)} too, "
            "which is no input, output or parameter"
        )
