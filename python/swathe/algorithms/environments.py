"""The public interface of environments of the operator: `swathe.algorithms.environments`.

>>> swathe.algorithms.environments.add("ocean-2026", "requirements.lock", "/opt/ocean/bin/python")
>>> swathe.algorithms.environments.show("ocean-2026").packages["xarray"]
'2026.1.0'
"""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from swathe.algorithms.box_python import SYSTEM, BoxPython
from swathe.algorithms.environment import Environment
from swathe.algorithms.read_definition import LONGEST_NAME, NAME, NAME_FORM
from swathe.algorithms.wheels import canonical_name
from swathe.catalog.catalog import Catalog, use_catalog
from swathe.catalog.records.algorithms import EnvironmentRecord
from swathe.core.errors import AlgorithmError, NoSuchAlgorithmError, NotFoundError
from swathe.core.inputs import read_regular
from swathe.core.value_errors import short_text

MOST_LOCK_BYTES = 10_000_000
PIN = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:\[[A-Za-z0-9,._-]{0,200}\])?"
    r" ?== ?([A-Za-z0-9.+!_-]{1,60})"
)
PIN_FORM = "a line as numpy==2.1.0"
QUESTION = """
import json, sys
from importlib.metadata import distributions
packages = {each.name: each.version for each in distributions()}
prefixes = sorted({sys.prefix, sys.base_prefix})
print(json.dumps([sys.version.split()[0], prefixes, packages]))
"""
ANSWER_S = 120.0
"""Longest time for the answer of an interpreter, in seconds."""

__all__ = ["add", "list", "remove", "show"]


def add(
    name: str, lock: str | os.PathLike[str], python: str | os.PathLike[str]
) -> EnvironmentRecord:
    """Add an environment that was made of a lock file, after comparing both.

    Args:
        name: name that algorithms use.
        lock: file of requirements, each with one version, as `pip freeze` writes it.
        python: interpreter of the environment, or its folder.

    Raises:
        NotFoundError: If there is no such file.
        AlgorithmError: If a line of the lock has no version, the interpreter does not answer, a
            package has another version than the lock, or the name is taken.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise AlgorithmError(f"name: expected {NAME_FORM}, found {short_text(name)}")
    content = _content(Path(lock))
    pins = dict(_pins(content, str(lock)))
    executable = _executable(Path(python))
    version, prefixes, packages = _answer(executable)
    for package, pin in pins.items():
        if packages.get(package) != pin:
            raise AlgorithmError(
                f"{executable}: expected {package} {pin}, as {lock} says, found "
                f"{packages.get(package, 'none')}"
            )
    folders = [each for each in prefixes if not Path(each).is_relative_to(SYSTEM)]
    record = EnvironmentRecord(
        name,
        str(executable),
        version,
        sha256(content).hexdigest(),
        tuple(folders),
        packages,
    )
    with Catalog.open() as catalog:
        return catalog.add_environment(record)


def list() -> builtins.list[EnvironmentRecord]:
    """Return all environments by name."""
    with Catalog.open() as catalog:
        return catalog.environments()


def show(name: str) -> EnvironmentRecord:
    """Return an environment, with its packages.

    Raises:
        NoSuchAlgorithmError: If there is none of this name.
    """
    with Catalog.open() as catalog:
        return catalog.environment(name)


def remove(name: str) -> None:
    """Remove an environment; its folder stays. Algorithms that name it cannot run.

    Raises:
        NoSuchAlgorithmError: If there is none of this name.
    """
    with Catalog.open() as catalog:
        catalog.remove_environment(name)


def environment_of(
    name: str, catalog: Catalog | None = None
) -> tuple[Environment, BoxPython | None]:
    """Return the environment of an algorithm, and its interpreter.

    Args:
        name: name of the environment; empty: that of this process, whose interpreter is `None`.
        catalog: the catalogue; by default that of this machine, if a name is given.

    Raises:
        AlgorithmError: If there is none of this name, or its interpreter is gone.
    """
    if not name:
        return Environment.here(), None
    try:
        with use_catalog(catalog) as own:
            record = own.environment(name)
    except NoSuchAlgorithmError as error:
        raise AlgorithmError(f"environment: {error.args[0]}") from error
    if not Path(record.python).is_file():
        raise AlgorithmError(f"environment {name}: expected {record.python}, found none")
    numbers = tuple(int(part) for part in re.findall(r"\d+", record.python_version)[:3])
    python = BoxPython(record.python, tuple(map(Path, record.folders)))
    return Environment(numbers, record.packages), python


def _content(path: Path) -> bytes:
    """Read a lock file."""
    try:
        content = read_regular(path, MOST_LOCK_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file") from error
    except OSError as error:
        raise AlgorithmError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MOST_LOCK_BYTES:
        raise AlgorithmError(f"{path}: expected at most {MOST_LOCK_BYTES:,} bytes, found more")
    return content


def _pins(content: bytes, label: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each package of a lock file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AlgorithmError(f"{label}: expected UTF-8, found byte {error.start}") from error
    is_rest = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        was_rest, is_rest = is_rest, line.endswith("\\")
        if was_rest or not line or line.startswith("--hash="):
            continue
        requirement = line.rstrip("\\").partition(";")[0].partition(" --hash=")[0].strip()
        match = PIN.fullmatch(requirement)
        if match is None:
            raise AlgorithmError(
                f"{label}: line {number}: expected {PIN_FORM}, found {short_text(line)}"
            )
        yield canonical_name(match[1]), match[2]


def _executable(path: Path) -> Path:
    """Return the interpreter at a path, or in a folder.

    Raises:
        NotFoundError: If there is none.
    """
    path = path.absolute()
    executable = path / "bin" / "python" if path.is_dir() else path
    if not executable.is_file():
        raise NotFoundError(f"{executable}: expected an interpreter of Python, found none")
    return executable


def _answer(executable: Path) -> tuple[str, builtins.list[str], Mapping[str, str]]:
    """Return version, folders and packages of an interpreter of the operator.

    Raises:
        AlgorithmError: If it is none, or fails.
    """
    command = [str(executable), "-I", "-B", "-c", QUESTION]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=ANSWER_S)
        values: Any = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise AlgorithmError(
            f"{executable}: expected an interpreter of Python, found another program: {error}"
        ) from error
    version, prefixes, packages = values
    return version, prefixes, {canonical_name(key): text for key, text in packages.items()}
