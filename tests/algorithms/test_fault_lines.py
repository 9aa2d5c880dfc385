"""Lines of a source that its errors are about."""

from __future__ import annotations

import pytest

from swathe.algorithms.environment import Environment
from swathe.algorithms.fault_lines import fault_lines
from swathe.algorithms.header import parse_source
from swathe.algorithms.read_definition import read_definition
from swathe.core.errors import AlgorithmError
from tests.support.algorithms import LST, with_line


def line_of(source: str) -> tuple[str, str]:
    """Return the error of a source, and the text of its line."""
    with pytest.raises(AlgorithmError) as raised:
        definition = read_definition(parse_source(source.encode(), "lst.py"))
        faults = list(Environment((3, 12, 1), {"numpy": "2"}).faults_of(definition))
        raise AlgorithmError(f"lst.py: {faults[0]}")
    fault = str(raised.value).removeprefix("lst.py: ")
    (line,) = fault_lines(source, [fault])
    return fault, "" if line is None else source.split("\n")[line - 1]


@pytest.mark.parametrize(
    "line",
    [
        'name = "Bad Name"',
        'inputs.granules = {collection = "MOD11_L2", group = "week"}',
        'parameters.least = {type = "int"}',
        'colour = "red"',
        'resources = {cpu = 1, memory = "much"}',
        "outputs = 3 4",
    ],
)
def test_error_of_a_key_has_its_line(line: str) -> None:
    fault, text = line_of(with_line(line))
    assert text == f"# {line}", fault


def test_error_within_a_table_has_the_line_of_its_key() -> None:
    source = LST.replace(
        "# resources = {", '# [tool.swathe.algorithm.resources]\n# cpu = "x"\n# spare = {'
    )
    assert fault_lines(source, ["resources.cpu: expected ..."]) == [13]
    assert fault_lines(source, ["resources.wall: expected ..."]) == [12]


def test_errors_of_the_environment_and_of_run_have_lines() -> None:
    assert line_of(LST)[1].startswith("# dependencies")  # no netCDF4 there
    faults = ["run: expected the arguments a", "line 3: invalid syntax", "version: none"]
    assert fault_lines(LST, faults) == [14, 3, 6]
    assert fault_lines("import os\n", ["run: expected ...", "expected a comment"]) == [None, None]
