"""Documents of CWL: the definition that one becomes, and how one that cannot run is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe.algorithms import cwl_process, static_check
from swathe.algorithms.cwl_header import cwl_header, has_scripts, runnable_document
from swathe.algorithms.cwl_process import short_name
from swathe.algorithms.definition import Algorithm, GranuleInput, Output
from swathe.algorithms.header import package_files, parse_source
from swathe.algorithms.read_definition import read_definition
from swathe.algorithms.read_resources import OperatorLimits
from swathe.core.errors import AlgorithmError
from tests.support import cwl
from tests.support.cwl import COUNT, environment
from tests.support.fits_frames import Runner

LIMITS = OperatorLimits(cpu=4)


def tool(**keys: Any) -> dict[str, Any]:
    """Return a tool with these keys besides, or instead of, those of every tool."""
    return {
        "cwlVersion": "v1.2",
        "class": "CommandLineTool",
        "id": "tool",
        "s:softwareVersion": "1",
        "baseCommand": "cat",
        "inputs": {"granules": "File"},
        "outputs": {"table": {"type": "File", "outputBinding": {"glob": "table.csv"}}},
        **keys,
    }


def hint(**keys: Any) -> dict[str, Any]:
    return {"hints": {"swathe:Algorithm": keys}}


def definition(document: dict[str, Any] | str) -> Algorithm:
    text = document if isinstance(document, str) else json.dumps(document)
    return read_definition(parse_source(text.encode(), "x.cwl"), LIMITS)


def fault(document: dict[str, Any] | str) -> str:
    with pytest.raises(AlgorithmError, match=r"^x\.cwl: ") as error:
        definition(document)
    return str(error.value)


def test_the_document_of_the_page_is_read() -> None:
    algorithm = definition(cwl.page_document())
    assert (algorithm.label, algorithm.resources.wall_s) == ("count-lines@1.0", 120)
    assert algorithm.granules[1].collection == "reports"


def test_a_tool_becomes_a_definition() -> None:
    algorithm = definition(COUNT)
    assert (algorithm.label, algorithm.language) == ("count-lines@1.0", "cwl")
    assert algorithm.description == "Count the lines of granules"
    assert algorithm.environment == "cwl"
    assert algorithm.inputs == {"granules": GranuleInput(least=1, most=5, group="all")}
    assert algorithm.outputs == {"table": Output("text/csv", ".csv")}
    factor, mode = algorithm.parameters["factor"], algorithm.parameters["mode"]
    assert (factor.type, factor.minimum, factor.default) == ("integer", 0, 2)
    assert factor.description == "factor of nothing"
    assert (mode.type, mode.enum, mode.default) == ("string", ("fast", "slow"), "slow")
    # An optional value without a default stays null; a container as a hint is told.
    assert list(algorithm.parameters) == ["factor", "mode"]
    assert algorithm.notes == (
        "DockerRequirement is a hint that is ignored: programs run in the sandbox",
    )


@pytest.mark.parametrize(
    ("port", "type_", "default"),
    [
        ("string", "string", None),
        ("long", "integer", None),
        ("double", "number", None),
        ({"type": "float", "default": 1}, "number", 1.0),
        ({"type": ["null", "boolean"], "default": False}, "boolean", False),
        ({"type": "string?", "default": "yes"}, "string", "yes"),
    ],
)
def test_a_single_value_is_a_parameter(port: Any, type_: str, default: Any) -> None:
    parameter = definition(tool(inputs={"granules": "File", "x-Y": port})).parameters["x-Y"]
    assert (parameter.type, parameter.default) == (type_, default)


@pytest.mark.parametrize(
    ("inputs", "own", "groups"),
    [
        ({"a": "File"}, {}, {"a": "each"}),
        ({"a": "File[]"}, {}, {"a": "all"}),
        ({"a": {"type": {"type": "array", "items": "File"}}, "b": "File"}, {}, {"a": "all"}),
        ([{"id": "#main/a", "type": "File"}, {"id": "b", "type": "File?"}], {}, {"a": "each"}),
        ({"a": "File", "b": "File"}, {"b": {"file": "b.nc"}}, {"a": "each"}),
        ({"a": "File[]", "b": "File[]?"}, {"b": {"group": "day"}, "a": {"file": "x"}}, None),
        ({"a": "File?", "b": "int"}, {}, {"a": "each"}),
        ({"a": "File[]"}, {"a": {"group": "orbit"}}, {"a": "orbit"}),
        ({"a": "File", "b": {"type": "Directory?"}}, {}, {"a": "each"}),
    ],
)
def test_the_list_or_the_only_file_has_the_granules(
    inputs: Any, own: dict[str, Any], groups: dict[str, str] | None
) -> None:
    document = tool(inputs=inputs, **hint(input=own))
    if groups is None:
        assert "inputs.a: expected File, File[] for granules" in fault(document)
        return
    name, granules = definition(document).granules
    assert {name: granules.group} == groups


def test_a_file_beside_the_granules_is_the_same_for_all_groups() -> None:
    algorithm = definition(tool(inputs={"granules": "File[]", "climatology": "File"}))
    assert algorithm.files["climatology"].file == "climatology"


@pytest.mark.parametrize(
    ("output", "media_type"),
    [
        ({"type": "stdout"}, "text/plain"),
        ({"type": "File", "format": "iana:text/csv"}, "text/csv"),
        ({"type": "File", "format": "http://edamontology.org/format_3650"}, "application/netcdf"),
        ({"type": "File", "outputBinding": {"glob": "*.TIFF"}}, "image/tiff"),
        ({"type": "File", "outputBinding": {"glob": ["a.fits", "b.fits"]}}, "application/fits"),
        ({"type": "File[]", "outputBinding": {"glob": "*.csv"}}, "application/zip"),
        ({"type": "Directory?", "outputBinding": {"glob": "."}}, "application/zip"),
    ],
)
def test_the_media_type_is_that_of_the_format_or_the_suffix(output: Any, media_type: str) -> None:
    spaces = {"iana": "https://www.iana.org/assignments/media-types/"}
    outputs = {"x": output, "log": "stderr"}
    algorithm = definition(tool(outputs=outputs, **{"$namespaces": spaces}))
    assert algorithm.outputs["x"].media_type == media_type
    assert algorithm.outputs["x"].is_optional == ("?" in str(output["type"]))


def test_a_hint_says_what_the_document_does_not() -> None:
    own = hint(
        name="other",
        version="3",
        environment="ocean",
        input={"granules": {"collection": "MOD11_L2", "arrays": ["LST"]}},
        output={"table": {"media_type": "application/netcdf", "checks": ["LST"]}},
        resources={"wall": "20 s"},
    )
    outputs = {"table": {"type": "File", "outputBinding": {"glob": "$(inputs.x)"}}}
    algorithm = definition(tool(outputs=outputs, **own))
    assert (algorithm.label, algorithm.environment) == ("other@3", "ocean")
    assert algorithm.granules[1].collection == "MOD11_L2"
    assert algorithm.outputs["table"].checks == ("LST",)
    assert algorithm.resources.wall_s == 20


def test_resources_are_those_that_the_tools_ask_for() -> None:
    sizes = {"ResourceRequirement": {"coresMin": 1.5, "ramMin": 2048, "outdirMin": "$(1)"}}
    times = {"ToolTimeLimit": {"timelimit": 1000}}
    resources = definition(tool(requirements={**sizes, **times})).resources
    assert (resources.cpu, resources.memory, resources.wall_s) == (2, (2048 + 256) << 20, 1060)
    assert definition(tool()).resources.output == resources.output
    sizes["ResourceRequirement"]["coresMin"] = 64
    assert "resources.cpu: expected a whole number from 1 to 4" in fault(tool(requirements=sizes))


def test_a_document_that_was_packed_has_full_names() -> None:
    own = {"class": "https://example.org/swathe#Algorithm", "name": "#main/sums", "version": "2"}
    main = tool(
        id="#main",
        inputs=[{"id": "#main/granules", "type": "File"}],
        outputs=[{"id": "#main/table", "type": "File", "outputBinding": {"glob": "a.csv"}}],
        hints=[own],
    )
    document = {"cwlVersion": "v1.2", "$graph": [main]}
    assert definition(document).label == "sums@2"
    content = json.loads(runnable_document(json.dumps(document).encode(), "x"))
    assert (content["document"]["$graph"][0]["hints"], content["main"]) == ([], "main")
    own.pop("version")
    main["https://schema.org/softwareVersion"] = main.pop("s:softwareVersion")
    assert definition(document).label == "sums@1"


def workflow(**steps: Any) -> dict[str, Any]:
    inner = {key: value for key, value in tool(id="cat").items() if key != "cwlVersion"}
    main = {
        "class": "Workflow",
        "id": "day",
        "inputs": {"granules": "File[]"},
        "outputs": {"table": {"type": "File", "outputSource": "cat/table"}},
        "steps": {"cat": {"run": "#cat", "in": {}, "out": ["table"]}, **steps},
    }
    return {"cwlVersion": "v1.2", "$graph": [inner, main], "s:softwareVersion": "1"}


def test_a_workflow_with_its_tools_is_one_algorithm() -> None:
    algorithm = definition(workflow(two={"run": tool(id="x"), "in": {}, "out": []}))
    assert (algorithm.label, algorithm.outputs["table"].media_type) == ("day@1", "text/csv")
    assert algorithm.granules[1].group == "all"


DOCKER = {"class": "DockerRequirement", "dockerPull": "alpine"}
NETWORK = {"class": "NetworkAccess", "networkAccess": True}


def with_steps(*steps: Any) -> dict[str, Any]:
    """Return a workflow whose steps are a list, with these besides the usual one."""
    document = workflow()
    main = document["$graph"][1]
    main["steps"] = [{"id": "cat", **main["steps"]["cat"]}, *steps]
    return document


REFUSALS = {
    "container": (tool(requirements=[DOCKER]), "no container: programs run in the sandbox"),
    "container of a step": (
        workflow(two={"run": "#cat", "requirements": [DOCKER]}),
        "requirements: expected no container",
    ),
    "container within a step": (
        workflow(two={"run": tool(requirements=[DOCKER])}),
        "requirements: expected no container",
    ),
    "software": (tool(requirements={"SoftwareRequirement": {}}), "no software to install"),
    "extension": (tool(requirements={"cwltool:MPIRequirement": {}}), "found MPIRequirement"),
    "network": (tool(requirements={"NetworkAccess": {"networkAccess": True}}), "no network"),
    "step elsewhere": (workflow(two={"run": "http://127.0.0.1/a.cwl"}), "steps.two.run: expected"),
    "step in a file": (workflow(two={"run": "../a.cwl"}), "a process of this document"),
    "step unknown": (workflow(two={"run": "#other"}), "found '#other'"),
    "step elsewhere by its end": (workflow(two={"run": "http://h/#cat"}), "found 'http://h/#cat'"),
    "step without a process": (workflow(two={}), "steps.two.run"),
    "step of a list without an id": (
        with_steps({"run": "/usr/x.cwl"}),
        "steps[1].id: expected one, as a text, found none",
    ),
    "step of a list that is a text": (with_steps("/usr/x.cwl"), "steps[1]: expected an object"),
    "step behind one of the same id": (
        with_steps({"id": "#day/a", "run": "/usr/x.cwl"}, {"id": "a", "run": "#cat"}),
        "steps: expected each id once, found 'a' 2 times",
    ),
    "steps of the same name": (
        workflow(**{"x/cat": {"run": "#cat"}}),
        "steps: expected each id once, found 'cat' 2 times",
    ),
    "container of a step of a list": (
        with_steps({"id": "a", "run": "#cat", "requirements": [DOCKER]}),
        "requirements: expected no container",
    ),
    "network of a step, hidden by another": (
        with_steps(
            {"id": "a", "run": "#cat", "requirements": [NETWORK, {"class": NETWORK["class"]}]}
        ),
        "requirements: expected each class once, found 'NetworkAccess' 2 times",
    ),
    "requirement without a class": (
        tool(requirements=[{"dockerPull": "alpine"}]),
        "requirements[0].class: expected one",
    ),
    "outputs of the same id": (
        tool(outputs=[{"id": "a", "type": "stdout"}, {"id": "x/a", "type": "stdout"}]),
        "outputs: expected each id once",
    ),
    "import": (tool(inputs={"$import": "a.yaml"}), "$import: expected the content itself"),
    "include": (tool(doc={"$include": "/etc/passwd"}), "$include: expected the content itself"),
    "file elsewhere": (
        tool(inputs={"a": {"type": "File", "default": {"class": "File", "path": "/etc/passwd"}}}),
        "path: expected a literal with contents",
    ),
    "version": (tool(cwlVersion="draft-3"), "cwlVersion: expected one of v1.0, v1.1, v1.2"),
    "class": (tool(**{"class": "Operation"}), "class: expected one of CommandLineTool"),
    "no class": ({"cwlVersion": "v1.2"}, "class: expected one of"),
    "graph of numbers": ({"cwlVersion": "v1.2", "$graph": [1, "x"]}, "class: expected one of"),
    "empty graph": (
        tool(**{"$graph": []}),
        "$graph: expected a list of processes, found []",
    ),
    "graph that is a number": (tool(**{"$graph": 3}), "$graph: expected a list of processes"),
    "graph of one without an id": (
        {"cwlVersion": "v1.2", "$graph": [{**tool(**hint(name="x")), "id": None}]},
        "$graph[0].id: expected one, as a text, found ",
    ),
    "graph with one beside processes": (
        {"cwlVersion": "v1.2", "$graph": [tool(id="main"), "x"]},
        "$graph[1]: expected an object, found 'x'",
    ),
    "graph of twins": (
        {"cwlVersion": "v1.2", "$graph": [tool(id="main"), tool(id="#a"), tool(id="a")]},
        "$graph: expected each id once, found 'a' 2 times",
    ),
    "graph of two": (
        {"cwlVersion": "v1.2", "$graph": [tool(id="a"), tool(id="b")]},
        "$graph: expected one process with the id main",
    ),
    "no software version": (tool(**{"s:softwareVersion": None}), "version: expected a version"),
    "number as a version": (tool(**{"s:softwareVersion": 1.0}), "found 1.0"),
    "no name": (tool(id="#"), "name: expected a name of lower-case letters"),
    "no granules": (tool(inputs={"x": "int"}), "inputs: expected one of File or File[]"),
    "two files": (tool(inputs={"a": "File", "b": "File"}), "that says which, found a, b"),
    "folder": (tool(inputs={"a": "File", "b": "Directory"}), "inputs.b: expected File, File[]"),
    "record": (tool(inputs={"a": "File", "b": {"type": "record"}}), "inputs.b: expected File"),
    "list of texts": (tool(inputs={"a": "File", "b": "string[]"}), "found string[]"),
    "nested list": (tool(inputs={"a": "File", "b": "File[][]"}), "inputs.b: expected File"),
    "day of one file": (
        tool(**hint(input={"granules": {"group": "day"}})),
        "inputs.granules: expected File[] for a group",
    ),
    "neighbours in a list": (
        tool(
            inputs={"a": "File[]"}, **hint(input={"a": {"group": "day", "window": {"before": 1}}})
        ),
        "swathe:Algorithm.input.a.window: expected none",
    ),
    "neighbours of one file": (
        tool(**hint(input={"granules": {"window": {"before": 1}}})),
        "swathe:Algorithm.input.granules.window: expected none",
    ),
    "secondary files": (
        tool(inputs={"a": {"type": "File", "secondaryFiles": [".idx"]}}),
        "inputs.a.secondaryFiles: expected none",
    ),
    "value as an output": (tool(outputs={"a": "int"}), "outputs.a: expected File, File[]"),
    "output without a type": (tool(outputs={"a": "File"}), "outputs.a: expected a format"),
    "output of another type": (
        tool(outputs={"a": {"type": "stdout"}}, stdout="a.exe"),
        "outputs.a: expected a format",
    ),
    "reserved output": (
        tool(outputs={"Result": {"type": "stdout"}}),
        "outputs.Result: expected a name that is not reserved",
    ),
    "no output": (tool(outputs={}), "outputs: expected at least one output"),
    "bad name": (tool(inputs={"a": "File", "b c": "int"}), "a name of letters, digits"),
    "inputs as a number": (tool(inputs=5), "inputs: expected a map, or a list of objects with id"),
    "unknown key of the hint": (tool(**hint(nmae="x")), "swathe:Algorithm.nmae: expected one of"),
    "unknown name in the hint": (
        tool(**hint(parameter={"x": {"minimum": 1}})),
        "swathe:Algorithm.parameter.x: expected one of the document's parameters",
    ),
    "values of the wrong kind in the hint": (
        tool(**hint(input={"granules": 5}, output=7)),
        "swathe:Algorithm.output: expected a table",
    ),
    "default of another type": (
        tool(inputs={"a": "File", "b": {"type": "int", "default": "x"}}),
        "parameters.b.default: expected a whole number",
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_a_run_cannot_have_is_refused(kind: str) -> None:
    document, message = REFUSALS[kind]
    assert message in fault(document)


def test_all_errors_are_told_at_once() -> None:
    network = {"class": "NetworkAccess", "networkAccess": True}
    text = fault(tool(requirements=[DOCKER, network], inputs={"a": "Directory"}))
    assert text.startswith("x.cwl: 4 errors\n")
    assert "inputs.a: expected File" in text


def many_outputs(**keys: Any) -> str:
    """Return a document with 9,990 outputs, which is just short enough."""
    outputs = {str(number): 0 for number in range(9_990)}
    return json.dumps(tool(**keys, outputs=outputs), separators=(",", ":"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that processes were asked for, each time that one was."""
    names: list[str] = []

    def count(identifier: Any) -> str:
        names.append(str(identifier))
        return short_name(identifier)

    monkeypatch.setattr(cwl_process, "short_name", count)
    return names


def test_too_many_outputs_are_refused_before_they_become_ports(names: list[str]) -> None:
    assert fault(many_outputs()) == "x.cwl: outputs: expected at most 50, found 9990"
    assert len(names) < 10_000
    assert "inputs: expected at most 50, found 51" in fault(
        tool(inputs={f"x{number}": "int" for number in range(51)})
    )


def test_a_process_that_many_outputs_come_from_is_read_once(names: list[str]) -> None:
    inner = json.loads(many_outputs(id="cat"))
    inner |= {"class": "Workflow", "steps": {"x": {"run": "#cat"}}}
    inner["outputs"]["0"] = {"type": "File", "outputSource": "x/0"}
    main = {**workflow()["$graph"][1], "outputs": {}}
    for number in range(50):
        main["outputs"][f"o{number}"] = {"type": "File", "outputSource": "cat/0"}
    values = {"cwlVersion": "v1.2", "$graph": [inner, {**main, "id": "main"}]}
    with pytest.raises(AlgorithmError, match=r"outputs\.o49: expected a format"):
        cwl_header(values, "x")
    assert len(names) < 30_000


def test_what_a_step_asks_for_counts() -> None:
    needs = {"ResourceRequirement": {"ramMin": 2048}, "InlineJavascriptRequirement": {}}
    document = workflow(two={"run": "#cat", "in": {}, "out": [], "requirements": needs})
    assert definition(document).resources.memory == (2048 + 256) << 20
    assert has_scripts(runnable_document(json.dumps(document).encode(), "x"))
    assert not has_scripts(runnable_document(json.dumps(workflow()).encode(), "x"))
    assert definition(with_steps({"id": "a", "run": "#cat"})).label == "day@1"


def test_no_more_errors_are_told_than_can_be_read() -> None:
    text = ",".join(f'"{number}":0' for number in range(9_000))
    document = tool(**{"$HINT": 0})
    source = json.dumps(document).replace(
        '"$HINT": 0', f'"hints":{{"swathe:Algorithm":{{{text}}}}}'
    )
    with pytest.raises(AlgorithmError, match="9000 errors") as error:
        definition(source)
    assert (len(error.value.faults), error.value.faults[-1]) == (51, "and 8950 more")


def test_what_runs_is_what_was_checked() -> None:
    schemas = COUNT + "$schemas: ['https://schema.org/x.rdf']\n"
    content = json.loads(runnable_document(schemas.encode(), "x"))
    assert (content["main"], content["lists"]) == ("", ["granules"])
    document = content["document"]
    assert "$schemas" not in document
    assert list(document["hints"]) == ["DockerRequirement"]
    assert document["inputs"]["granules"] == {"type": "File[]", "inputBinding": {"position": 1}}
    document = tool(hints=[{"class": "swathe:Algorithm", "name": "b"}, DOCKER])
    content = json.loads(runnable_document(json.dumps(document).encode(), "x"))
    assert content["document"]["hints"] == [DOCKER]
    content = json.loads(runnable_document(json.dumps(workflow()).encode(), "x"))
    assert (content["main"], content["lists"]) == ("day", ["granules"])
    assert list(package_files(COUNT.encode(), "x")) == ["algorithm.cwl"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "count.cwl"
    path.write_text(COUNT)
    return path


@pytest.fixture
def cwltool(run: Runner) -> Iterator[None]:
    with environment("cwltool"):
        yield


def test_a_document_needs_an_environment_with_cwltool(source: Path, run: Runner) -> None:
    answer = run("algorithm", "check", source, code=2)
    assert "there is no environment 'cwl'" in answer
    assert "pip install cwltool" in answer
    with environment("numpy"):
        answer = run("algorithm", "check", source, code=2)
    assert "environment cwl: expected cwltool in it, found none; pip install cwltool" in answer


@pytest.mark.usefixtures("cwltool")
def test_a_document_is_checked_and_added_by_the_commands(source: Path, run: Runner) -> None:
    answer = run("algorithm", "check", source)
    assert answer.startswith("count-lines@1.0 Count the lines of granules")
    assert "note: DockerRequirement is a hint that is ignored" in answer
    assert run("algorithm", "add", source).startswith("count-lines@1.0: ")
    version = swathe.algorithms.show("count-lines")
    assert (version.source.decode(), version.definition.language) == (COUNT, "cwl")
    assert json.loads(run("algorithm", "show", "count-lines", "--json"))["definition"]["notes"]
    run("algorithm", "remove", "count-lines")


@pytest.mark.usefixtures("cwltool")
def test_javascript_is_refused_where_there_is_no_node(
    source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source.write_text(json.dumps(tool(requirements={"InlineJavascriptRequirement": {}})))
    monkeypatch.setattr(static_check, "NODE_FOLDERS", (tmp_path,))
    with pytest.raises(AlgorithmError, match=r"InlineJavascriptRequirement: expected Node\.js"):
        swathe.check_algorithm(source)
    (tmp_path / "node").touch()
    assert swathe.check_algorithm(source).label == "tool@1"
