"""Documents of CWL, and environments of the operator for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import swathe
from swathe.catalog import Catalog
from swathe.catalog.records.algorithms import EnvironmentRecord
from tests.support.box import is_open

INSTALL_S = 300
PAGE = Path(__file__).parents[2] / "docs" / "packages.md"
COUNT = """\
cwlVersion: v1.2
class: CommandLineTool
id: count_lines
label: Count the lines of granules
s:softwareVersion: "1.0"
$namespaces:
  s: https://schema.org/
  iana: https://www.iana.org/assignments/media-types/
  swathe: https://example.org/swathe#
hints:
  DockerRequirement: {dockerPull: "alpine:3"}
  swathe:Algorithm:
    input: {granules: {group: all, count: "1..5"}}
    parameter: {factor: {minimum: 0, maximum: 9}}
baseCommand: [wc, -l]
inputs:
  granules: {type: "File[]", format: iana:text/plain, inputBinding: {position: 1}}
  factor: {type: int, default: 2, label: factor of nothing}
  mode: {type: {type: enum, symbols: [fast, slow]}, default: slow}
  remark: string?
outputs:
  table: {type: stdout, format: iana:text/csv}
stdout: table
"""
"""A tool that counts the lines of a list of granules."""


def page_document() -> str:
    """Return the document that the page shows."""
    return PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]


def record(*packages: str) -> EnvironmentRecord:
    """Return the record of an environment that is only said to have these packages."""
    versions = dict.fromkeys(packages, "1")
    return EnvironmentRecord("cwl", sys.executable, "3.11.2", "0" * 64, (), versions)


@contextmanager
def environment(*packages: str) -> Iterator[None]:
    """Have an environment `cwl` in the catalogue of this process."""
    with Catalog.open() as catalog:
        catalog.add_environment(record(*packages))
    try:
        yield
    finally:
        swathe.algorithms.environments.remove("cwl")


@contextmanager
def real_environment() -> Iterator[Path]:
    """Install cwltool from PyPI into an environment `cwl`; skip where that is out of reach."""
    with TemporaryDirectory(prefix="swathe-cwl-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "cwl"
        python = sys.executable if is_open(Path(sys.executable)) else "/usr/bin/python3"
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        for command in (
            [python, "-m", "venv", str(home)],
            [*pip, "install", "--quiet", "--retries", "1", "--timeout", "15", "cwltool>=3.1"],
        ):
            answer = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
            if answer.returncode:
                last = (answer.stderr or answer.stdout).strip().rpartition("\n")[2]
                pytest.skip(f"no cwltool: {' '.join(command[1:4])}: {last[:200]}")
        lock = Path(folder) / "lock"
        lock.write_bytes(subprocess.run([*pip, "freeze"], capture_output=True, check=True).stdout)
        swathe.algorithms.environments.add("cwl", lock, home)
        try:
            yield home
        finally:
            swathe.algorithms.environments.remove("cwl")
