"""Documents of CWL that run by cwltool, in the sandbox."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import swathe
from swathe.algorithms.group_run import BoxSettings, GroupRun
from tests.support import cwl

SUMS = """\
cwlVersion: v1.2
$graph:
- class: Workflow
  id: sums
  s:softwareVersion: 2.0.1
  requirements: {ScatterFeatureRequirement: {}}
  inputs:
    images: File[]
    factor: {type: float, default: 1.5}
  outputs:
    sum: {type: File, outputSource: add/sum}
    parts: {type: "File[]", outputSource: double/double}
  steps:
    double:
      run: "#double"
      scatter: image
      in: {image: images, factor: factor}
      out: [double]
    add:
      run: "#add"
      in: {doubles: double/double}
      out: [sum]
- class: CommandLineTool
  id: double
  requirements:
    InitialWorkDirRequirement:
      listing:
      - entryname: double.py
        entry: |
          import sys
          print(float(open(sys.argv[1]).read()) * float(sys.argv[2]))
  baseCommand: [python3, double.py]
  inputs:
    image: {type: File, inputBinding: {position: 1}}
    factor: {type: float, inputBinding: {position: 2}}
  outputs: {double: stdout}
  stdout: $(inputs.image.nameroot).txt
- class: CommandLineTool
  id: add
  baseCommand: [awk, "{sum += $1} END {print sum}"]
  inputs: {doubles: {type: "File[]", inputBinding: {position: 1}}}
  outputs: {sum: stdout}
  stdout: sum.csv
$namespaces: {s: "https://schema.org/"}
"""
WHOLE = """\
cwlVersion: v1.2
class: Workflow
s:softwareVersion: "3"
$namespaces: {s: "https://schema.org/", swathe: "https://example.org/swathe#"}
hints: {"swathe:Algorithm": {name: whole, input: {all: {group: all}}}}
inputs: {all: "File[]"}
outputs: {lines: {type: File, outputSource: count/table}}
steps: {count: {run: count.cwl, in: {granules: all}, out: [table]}}
"""
"""A workflow whose tool is another file."""
TOOL = """\
cwlVersion: v1.2
class: CommandLineTool
id: tool
s:softwareVersion: "1"
$namespaces: {s: "https://schema.org/"}
baseCommand: [/bin/sh, -c]
arguments: ["%s"]
inputs: {granule: File}
outputs:
  table: {type: File, outputBinding: {glob: table.csv}}
  more: {type: "Directory?", outputBinding: {glob: more}}
"""


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[Path]:
    with cwl.real_environment() as home:
        yield home


@pytest.fixture
def granules(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for number, path in enumerate(paths, 1):
        path.write_text(f"{number}\n" * number)
    return paths


def attempt(
    text: str, granules: list[Path], settings: BoxSettings, **parameters: object
) -> GroupRun:
    """Run a document on granules of one group, and keep its outputs."""
    source = granules[0].parent / "tool.cwl"
    source.write_text(text)
    (run,) = swathe.try_algorithm(
        source,
        granules,
        parameters=parameters,
        output=granules[0].parent / "results",
        settings=settings,
    )
    return run


def test_a_tool_gets_granules_by_their_names(granules: list[Path], settings: BoxSettings) -> None:
    run = attempt(cwl.COUNT, granules, settings, factor="3")
    assert run.problem == ""
    words = run.outputs["table"].read_text().split()
    assert [*words[:1], Path(words[1]).name, words[-2]] == ["1", "a.txt", "6"]
    assert (run.outputs["table"].name, run.input_bytes) == ("table.csv", 12)
    assert "count_lines" in run.log


def test_the_document_of_the_page_runs(granules: list[Path], settings: BoxSettings) -> None:
    run = attempt(cwl.page_document(), granules, settings, longest="true")
    assert run.problem == ""
    assert run.outputs["table"].read_text().splitlines()[-1].split() == ["6", "1", "total"]


def test_a_workflow_runs_its_steps(granules: list[Path], settings: BoxSettings) -> None:
    for path in granules:
        path.write_text("2")
    run = attempt(SUMS, granules, settings, factor="2.5")
    assert run.problem == "", run.log
    assert run.outputs["sum"].read_text() == "15\n"
    with zipfile.ZipFile(run.outputs["parts"]) as archive:
        assert sorted(archive.namelist()) == ["a.txt", "b.txt", "c.txt"]
        assert archive.read("b.txt") == b"5.0\n"


def test_a_workflow_of_several_files_runs_when_it_was_packed(
    granules: list[Path], settings: BoxSettings, environment: Path
) -> None:
    folder = granules[0].parent
    (folder / "count.cwl").write_text(cwl.page_document())
    (folder / "whole.cwl").write_text(WHOLE)
    command = [str(environment / "bin" / "cwltool"), "--pack", str(folder / "whole.cwl")]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    run = attempt(answer.stdout, granules, settings)
    assert (run.problem, run.outputs["lines"].name) == ("", "lines.csv")
    assert swathe.check_algorithm(folder / "tool.cwl").label == "whole@3"


def test_a_folder_becomes_a_zip_and_an_optional_output_may_be_missing(
    granules: list[Path], settings: BoxSettings
) -> None:
    make = "echo 1 >table.csv; mkdir -p more/sub; echo 2 >more/sub/two.txt"
    run = attempt(TOOL % make, granules[:1], settings)
    assert run.problem == "", run.log
    with zipfile.ZipFile(run.outputs["more"]) as archive:
        assert archive.namelist() == ["sub/two.txt"]
    shutil.rmtree(granules[0].parent / "results")
    run = attempt(TOOL % "echo 1 >table.csv", granules[:1], settings)
    assert (run.problem, list(run.outputs)) == ("", ["table"])


def test_outputs_may_share_files(granules: list[Path], settings: BoxSettings) -> None:
    more = """\
  again: {type: File, outputBinding: {glob: table.csv}}
  list: {type: "File[]", outputBinding: {glob: "*.csv"}}
  all: {type: Directory, outputBinding: {glob: .}}
  none: {type: "File[]?", outputBinding: {glob: "*.nc"}}
"""
    run = attempt(TOOL % "echo 1 >table.csv; echo 2 >b.csv" + more, granules[:1], settings)
    assert run.problem == "", run.log
    assert sorted(run.outputs) == ["again", "all", "list", "table"]
    assert run.outputs["again"].read_bytes() == run.outputs["table"].read_bytes() == b"1\n"
    for name in ("list", "all"):
        with zipfile.ZipFile(run.outputs[name]) as archive:
            assert sorted(archive.namelist()) == ["b.csv", "table.csv"]


def test_javascript_is_evaluated_where_there_is_node(
    granules: list[Path], settings: BoxSettings
) -> None:
    if not any(Path("/usr/bin", name).is_file() for name in ("node", "nodejs")):
        pytest.skip("no Node.js in /usr/bin")
    script = "requirements: {InlineJavascriptRequirement: {}}\n"
    make = TOOL % "echo $(inputs.granule.basename.length + 36) >table.csv"
    run = attempt(script + make, granules[:1], settings)
    assert run.problem == "", run.log
    assert run.outputs["table"].read_text() == "41\n"


@pytest.mark.parametrize(
    ("make", "problem", "log"),
    [
        ("echo no band >&2; exit 3", "exited with status: 3", "no band"),
        ("true", "Did not find output file with glob pattern", ""),
        ("ln -s /etc/passwd table.csv", "", ""),
        ("cat /etc/shadow >table.csv", "exited with status", "/etc/shadow"),
        ("echo x >$HOME/../escape; echo x >/usr/x", "exited with status", "/usr/x"),
        ("while true; do :; done", " 5 s", ""),
        ("printf '\\\\0' >table.csv", "output table: expected text/csv, found b'", ""),
    ],
)
def test_a_run_that_fails_says_why(
    make: str, problem: str, log: str, granules: list[Path], settings: BoxSettings
) -> None:
    limits = "hints: {swathe:Algorithm: {resources: {wall: 5 s}}}\n$namespaces: {"
    text = (TOOL % make).replace(
        "$namespaces: {", f"{limits}swathe: 'https://example.org/swathe#', "
    )
    run = attempt(text if "while" in make else TOOL % make, granules[:1], settings)
    assert run.problem
    assert problem in run.problem
    assert log in run.log
    assert (run.outputs, list((granules[0].parent / "results").rglob("*"))) == ({}, [])


def test_a_tool_reaches_no_network(granules: list[Path], settings: BoxSettings) -> None:
    ask = "python3 -c 'import socket; socket.create_connection((chr(49), 80), 2)'"
    run = attempt(TOOL % ask, granules[:1], settings)
    assert "exited with status: 1" in run.problem
    assert "Operation not permitted" in run.log


def test_an_environment_that_lost_cwltool_is_a_failure(
    granules: list[Path], settings: BoxSettings, environment: Path
) -> None:
    (package,) = environment.glob("lib/python3*/site-packages/cwltool")
    elsewhere = package.rename(package.with_name("elsewhere"))
    try:
        run = attempt(cwl.COUNT, granules, settings)
    finally:
        elsewhere.rename(package)
    assert "No module named 'cwltool'" in run.problem


def test_a_group_of_one_file_is_a_run_each(granules: list[Path], settings: BoxSettings) -> None:
    source = granules[0].parent / "tool.cwl"
    source.write_text(TOOL % "cat $(inputs.granule.path) >table.csv")
    runs = swathe.try_algorithm(
        source, granules, output=granules[0].parent / "results", settings=settings
    )
    assert [run.outputs["table"].read_text()[0] for run in runs] == ["1", "2", "3"]
