"""The header of an algorithm: found as PEP 723 says, and all its errors at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swathe.algorithms.definition import FileInput, GranuleInput, Window
from swathe.algorithms.header import blocks_of, parse_source
from swathe.algorithms.parameters import parse_value, values_of
from swathe.algorithms.read_definition import read_definition
from swathe.core.errors import AlgorithmError
from tests.support.algorithms import LST, header, with_line

PEP_723 = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
LINES = ("# /// script", "# /// test", "# ///", "#", "# a = 1", "#a", "", "x = 1", "# /// script ")


@given(st.lists(st.sampled_from(LINES), max_size=12).map("\n".join))
def test_blocks_are_those_of_the_expression_of_the_pep(text: str) -> None:
    expected = [
        (match["type"], re.sub(r"(?m)^# ?", "", match["content"]))
        for match in PEP_723.finditer(text)
    ]
    assert list(blocks_of(text)) == expected


def test_many_openings_without_an_end_take_linear_time() -> None:
    assert list(blocks_of("# /// script\n# a\n" * 60_000)) == []


def test_the_definition_of_the_issue_is_read() -> None:
    algorithm = read_definition(parse_source(LST.encode(), "lst.py"))
    assert algorithm.label == "lst-quarter-degree@1.2"
    assert algorithm.inputs == {
        "granules": GranuleInput("MOD11_L2", ("LST", "QC"), 1, 288, "day", Window(1, 0)),
        "climatology": FileInput("clim.nc"),
    }
    assert algorithm.outputs["grid"].checks == ("LST", "count")
    assert algorithm.outputs["grid"].suffix == ".nc"
    assert algorithm.outputs["log"].is_optional
    assert algorithm.parameters["min_quality"].default == 1
    resources = algorithm.resources
    assert (resources.memory, resources.wall_s, resources.output) == (10**9, 600, 2 * 10**8)
    assert algorithm.dependencies == ("numpy", "netcdf4")
    assert algorithm.arguments == ["granules", "climatology", "grid", "log", "min_quality"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n", "expected a comment that begins with '# /// script'"),
        (LST + "\n" + LST, "found 2 of them"),
        (header("name = "), "lst.py, header: is not valid TOML"),
        (header("[tool.other]"), "lst.py: tool.swathe: expected a table, found none"),
        (header("x" + ".a" * 1000 + " = 1"), "keys of at most 100 parts"),
        (header("x = " + "[" * 5000), "nested too deep"),
    ],
)
def test_a_source_without_a_sound_header_is_refused(source: str, said: str) -> None:
    with pytest.raises(AlgorithmError, match=r"^lst\.py") as error:
        read_definition(parse_source(source.encode(), "lst.py"))
    assert said in str(error.value)


def test_a_source_that_is_no_text_or_too_long_is_refused() -> None:
    with pytest.raises(AlgorithmError, match="expected UTF-8, found byte 2"):
        parse_source(b"# \xff", "lst.py")
    with pytest.raises(AlgorithmError, match="expected at most"):
        parse_source(b"#" * 1_000_001, "lst.py")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('name = "../x"', "name: expected a name of lower-case letters"),
        ('name = "LST"', "name: expected a name of lower-case letters"),
        (f'name = "{"x" * 10_000}"', "name: expected a name of lower-case letters"),
        ("version = 1.2", "version: expected a version as 1.2"),
        ('inputs.granules = {group = "week"}', "inputs.granules.group: expected one of each, day"),
        ('inputs.granules = {count = "2"}', "inputs.granules.count: expected 1 for groups of one"),
        ('inputs.granules = {group = "all", count = "9..2"}', "count: expected a range within"),
        ("inputs.granules = {window = {before = -1}}", "window.before: expected a whole number"),
        ("inputs.granules = {arrays = [1]}", "inputs.granules.arrays: expected texts"),
        ('inputs.granules = {file = "a.nc"}', "inputs: expected one input of granules, found none"),
        ('inputs.climatology = {file = "/etc/passwd"}', "climatology.file: expected the name of"),
        ('inputs.climatology = {file = "../clim.nc"}', "climatology.file: expected the name of"),
        ('inputs.class = {file = "a.nc"}', "inputs: expected the name of an argument"),
        ('outputs.grid = {media_type = "a/b"}', "outputs.grid.media_type: expected one of"),
        ("outputs.grid = {}", "outputs.grid.media_type: expected one of"),
        ('outputs.result = {media_type = "text/csv"}', "outputs.result: expected a name that is"),
        ('outputs.log = {media_type = "text/csv", checks = ["a"]}', "none for text/csv"),
        ('outputs.min_quality = {media_type = "text/csv"}', "min_quality: expected one input"),
        ('parameters.min_quality = {type = "float"}', "min_quality.type: expected one of"),
        ('parameters.q = {type = "number", default = nan}', "q.default: expected a finite number"),
        ('parameters.q = {type = "integer", minimum = 2, maximum = 1}', "q.maximum: expected"),
        ('parameters.q = {type = "integer", maximum = 3, default = 9}', "number to 3, found 9"),
        ('parameters.q = {type = "string", enum = ["a"], default = "b"}', "one of 'a', found 'b'"),
        ('resources = {memory = "1 TB"}', "resources.memory: expected 64 MiB to 4 GiB"),
        ('resources = {wall = "10"}', "resources.wall: expected a time with its unit"),
        ("resources = {gpu = 1}", "resources.gpu: expected one of cpu, memory, wall, output"),
        ('language = "perl"', "language: expected one of python"),
        ('mail = "me@x"', "mail: expected one of name, version"),
    ],
)
def test_a_key_that_does_not_fit_is_named(line: str, said: str) -> None:
    with pytest.raises(AlgorithmError) as error:
        read_definition(parse_source(with_line(line).encode(), "lst.py"))
    assert said in str(error.value)
    assert str(error.value).startswith("lst.py: ")


@pytest.mark.parametrize(
    "dependency",
    [
        "numpy>=2",
        "git+https://example.org/x.git",
        "https://example.org/x.whl",
        "./x",
        "-e .",
        "x @ file:///x",
        "numpy[all]",
    ],
)
def test_dependencies_are_plain_names(dependency: str) -> None:
    source = LST.replace('"netCDF4"', f'"{dependency}"')
    with pytest.raises(AlgorithmError, match="dependencies: expected the name of a package"):
        read_definition(parse_source(source.encode(), "lst.py"))


def test_all_errors_are_reported_at_once() -> None:
    source = LST.replace('"1.2"', '"1/2"').replace('"day"', '"week"').replace("maximum", "most")
    with pytest.raises(AlgorithmError) as error:
        read_definition(parse_source(source.encode(), "lst.py"))
    keys = [fault.partition(":")[0] for fault in error.value.faults]
    assert sorted(keys) == [
        "inputs.granules.group",
        "parameters.min_quality.most",
        "version",
    ]
    assert all(fault in str(error.value) for fault in error.value.faults)


def test_values_of_parameters_are_checked() -> None:
    parameters = read_definition(parse_source(LST.encode(), "lst.py")).parameters
    assert values_of(parameters, {}) == {"min_quality": 1}
    assert values_of(parameters, {"min_quality": 3}) == {"min_quality": 3}
    assert parse_value("min_quality", parameters["min_quality"], "2") == 2
    for value in (True, 1.5, "1", 4, 10**30, None):
        with pytest.raises(AlgorithmError, match="min_quality: expected a whole number from 0 to"):
            values_of(
                parameters, {"min_quality": value} if value is not None else {"min_quality": []}
            )
    with pytest.raises(AlgorithmError, match=r"expected the name of a parameter \(min_quality\)"):
        values_of(parameters, {"quality": 1})
    for text in ("", "two", "1e400", "9" * 100):
        with pytest.raises(AlgorithmError, match="min_quality: expected"):
            parse_value("min_quality", parameters["min_quality"], text)
