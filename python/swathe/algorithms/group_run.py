"""Run an algorithm on one group of granules, in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from swathe import sandbox
from swathe.algorithms.box_python import BoxPython, obstacle
from swathe.algorithms.call_files import (
    GRANULES,
    JSON,
    NAMELIST,
    call_json,
    call_namelist,
    call_variables,
    granule_list,
)
from swathe.algorithms.compiler import PACKAGE, Confinement, write_files
from swathe.algorithms.cwl_header import DOCUMENT
from swathe.algorithms.definition import Algorithm, Scalar
from swathe.algorithms.environments import environment_of
from swathe.algorithms.groups import GranuleGroup
from swathe.algorithms.header import MAIN, package_files
from swathe.algorithms.libraries import OWNER, libraries_of
from swathe.algorithms.library import Library
from swathe.algorithms.output_check import CheckTime, output_fault
from swathe.algorithms.program import c_library, program
from swathe.algorithms.read_definition import SWATHE
from swathe.algorithms.wheels import SUFFIX
from swathe.catalog.catalog import Catalog
from swathe.core.errors import AlgorithmError, OptionError, SandboxUnavailableError
from swathe.core.host import cores
from swathe.sandbox.request import Mode

RUNNER, CWL_RUNNER = (Path(__file__).parent / name for name in ("box_main.py", "box_cwl.py"))
SPARE_USERS = 1
"""User ids that jobs leave to what users upload and try meanwhile."""
PROCESSES = 64
"""Processes and threads of a run: libraries start some of their own."""
LONGEST_SUFFIX = 10


@dataclass(frozen=True)
class BoxSettings:
    """How the sandbox of this machine is used.

    Attributes:
        python: interpreter.
        mode: how runs are confined.
        users: user ids for runs, if this process is root.
        programs: programs of jobs at the same time; 0 is as many as cores.
    """

    python: BoxPython = field(default_factory=BoxPython.here)
    mode: Mode = "auto"
    users: sandbox.UserIds | None = None
    programs: int = 0

    def check(self) -> None:
        """Check, by a small program, that this machine confines programs.

        Raises:
            SandboxUnavailableError: If it does not; says why for each mode.
            SandboxError: If the check itself failed.
        """
        modes = [
            each for each in sandbox.check(self.users).modes if self.mode in ("auto", each.mode)
        ]
        if not any(each.holds for each in modes):
            reasons = "; ".join(f"{each.mode}: {each.reason}" for each in modes)
            raise SandboxUnavailableError(f"programs of users are not run here: {reasons}")

    def check_python(self) -> None:
        """Check, by a run that does nothing, that programs can start the interpreter.

        Raises:
            SandboxUnavailableError: If they cannot; says what keeps them from it.
            OptionError: If there is no such interpreter.
            SandboxError: If the sandbox failed.
        """
        request = sandbox.Request(
            [self.python.executable, "-I", "-B", "-c", ""],
            folders=self.python.folders,
            limits=sandbox.Limits(processes=PROCESSES),
            mode=self.mode,
            users=self.users,
        )
        report = _run(request)
        if report.status != "OK":
            last = report.stderr.text.strip().rpartition("\n")[2]
            raise SandboxUnavailableError(
                f"{self.python.executable}: {report.message}{last and f': {last}'}"
            )


def program_lanes(settings: BoxSettings | None = None) -> int:
    """Return how many programs of jobs run at the same time in one process.

    That is the number of the settings, else of the cores; or that of the user ids without
    SPARE_USERS if there are fewer.
    """
    lanes = (settings.programs if settings else 0) or cores()
    if settings is None or settings.users is None:
        return lanes
    return max(1, min(lanes, settings.users.count - SPARE_USERS))


@dataclass(frozen=True)
class GroupRun:
    """What became of one group.

    Attributes:
        group: name of the group.
        problem: why it failed, in a sentence; empty if it did not.
        log: what the run wrote to standard output and error, with the traceback.
        outputs: files that it wrote, by name of the output.
        input_bytes: size of its granules.
        output_bytes: size of its outputs.
        wall_s: elapsed time in seconds.
        cpu_s: CPU time in seconds.
        memory_bytes: most memory of all its processes.
    """

    group: str
    problem: str = ""
    log: str = ""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    input_bytes: int = 0
    output_bytes: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0


@dataclass(frozen=True)
class AlgorithmCall:
    """An algorithm with the inputs and values that are the same for all groups.

    Attributes:
        algorithm: its definition.
        source: its source.
        files: files of its inputs by name.
        values: values of its parameters.
        libraries: libraries of its owner that it names, by `NAME@VERSION`.
        python: interpreter of its environment; `None`: that of the settings.
    """

    algorithm: Algorithm
    source: bytes
    files: Mapping[str, Path]
    values: Mapping[str, Scalar]
    libraries: Mapping[str, Library] = field(default_factory=dict)
    python: BoxPython | None = None


def algorithm_call(
    algorithm: Algorithm,
    source: bytes,
    files: Mapping[str, Path],
    values: Mapping[str, Scalar],
    catalog: Catalog | None = None,
    owner: str = OWNER,
) -> AlgorithmCall:
    """Return a call, with the libraries and the environment that the algorithm names.

    Args:
        algorithm: its definition.
        source: its source.
        files: files of its inputs by name.
        values: values of its parameters.
        catalog: the catalogue; by default that of this machine, if it names any.
        owner: owner of the algorithm.

    Raises:
        AlgorithmError: If a library or the environment is missing.
    """
    libraries = libraries_of(algorithm, catalog, owner)
    # What packages this process has takes long to read, and is not needed.
    python = environment_of(algorithm.environment, catalog)[1] if algorithm.environment else None
    return AlgorithmCall(algorithm, source, files, values, libraries, python)


def run_group(
    call: AlgorithmCall,
    group: GranuleGroup,
    collect: Path,
    settings: BoxSettings,
    is_gone: Callable[[], bool] | None = None,
) -> GroupRun:
    """Run an algorithm on a group; return what became of it.

    Args:
        call: the algorithm, with its values.
        group: the granules.
        collect: empty folder for its outputs.
        settings: the sandbox.
        is_gone: asked every 0.1 s; if true, the run is killed.

    Raises:
        SandboxError: If the sandbox cannot be used, which is no fault of the algorithm.
        LimitError: If it was cancelled.
    """
    algorithm = call.algorithm
    problem = group.problem(algorithm.granules[1])
    if problem is not None:
        return GroupRun(group.name, problem)
    with TemporaryDirectory(prefix="swathe-algorithm-") as folder:
        # Another user runs the program, and has to reach the files by their names.
        Path(folder).chmod(0o711)
        try:
            start = _start(call, Path(folder), settings, is_gone)
        except AlgorithmError as error:
            problem, _, log = str(error).partition("\n")
            return GroupRun(group.name, problem, log)
        request = _request(call, group, Path(folder), settings, start)
        report = _run(request, collect, is_gone)
    return _outcome(algorithm, group, report, CheckTime(is_gone))


def _run(
    request: sandbox.Request,
    collect: Path | None = None,
    is_gone: Callable[[], bool] | None = None,
) -> sandbox.Report:
    """Run a program as `sandbox.run` does.

    Raises:
        SandboxUnavailableError: Also if the user of the program cannot reach its files.
    """
    try:
        return sandbox.run(request, collect, is_gone)
    except (OptionError, SandboxUnavailableError) as error:
        places = (Path(request.command[0]), *map(Path, request.folders))
        problem = request.users and obstacle(places, request.users.first)
        if not problem:
            raise
        raise SandboxUnavailableError(problem) from error


def prepare(
    call: AlgorithmCall, settings: BoxSettings, is_gone: Callable[[], bool] | None = None
) -> Path | None:
    """Compile an algorithm, if it is to be, as its first run would; return its program.

    Raises:
        AlgorithmError: If a compiler refuses it, with what it says; or the call lacks a library or
            the environment that it names.
        SandboxError, LimitError: As in `run_group`.
    """
    missing = set(call.algorithm.libraries) - {SWATHE} - call.libraries.keys()
    if missing:
        raise AlgorithmError(f"libraries: expected {', '.join(sorted(missing))}, found none")
    if call.algorithm.environment and call.python is None:
        raise AlgorithmError(f"environment {call.algorithm.environment}: expected it, found none")
    if call.algorithm.build is None:
        return None
    confinement = Confinement(settings.mode, settings.users)
    files = package_files(call.source, call.algorithm.label)
    return program(call.algorithm, files, call.libraries, confinement, is_gone)


def _outcome(
    algorithm: Algorithm, group: GranuleGroup, report: sandbox.Report, check_time: CheckTime
) -> GroupRun:
    """Return what became of a group by the report of the sandbox, and by its outputs."""
    problem = ""
    if report.status != "OK":
        last = report.stderr.text.strip().rpartition("\n")[2]
        is_told = last and report.exit_code
        problem = f"{report.message}: {last}" if is_told else report.message
    names = {f"{name}{each.suffix}": name for name, each in algorithm.outputs.items()}
    outputs = {names[file]: each for file, each in report.outputs.items()}
    if not problem:
        for name, each in outputs.items():
            fault = output_fault(each.path, algorithm.outputs[name], check_time)
            if fault is not None:
                problem = f"output {name}: {fault}"
                break
    return GroupRun(
        group=group.name,
        problem=problem,
        log=report.stdout.text + report.stderr.text,
        outputs={name: each.path for name, each in outputs.items()},
        input_bytes=sum(Path(each.path).stat().st_size for each in group.granules),
        output_bytes=sum(each.bytes for each in outputs.values()),
        wall_s=report.wall_s,
        cpu_s=report.cpu_s,
        memory_bytes=report.max_rss_bytes,
    )


@dataclass(frozen=True)
class _Start:
    """How a run starts.

    Attributes:
        command: program and arguments.
        folders: folders that it sees at their own place.
        inputs: inputs besides granules and files.
        paths: folders and wheels of modules of Python, those of the package relative to the inputs.
    """

    command: list[str]
    folders: tuple[Path, ...]
    inputs: tuple[sandbox.Input, ...] = ()
    paths: tuple[str, ...] = ()


def _start(
    call: AlgorithmCall, folder: Path, settings: BoxSettings, is_gone: Callable[[], bool] | None
) -> _Start:
    """Return how a run starts; its program or its modules are written to a folder.

    Raises:
        AlgorithmError, SandboxError, LimitError: As in `prepare`.
    """
    binary = prepare(call, settings, is_gone)
    if binary is not None:
        home = folder / "program"
        write_files({binary.name: binary.read_bytes()}, home)
        (home / binary.name).chmod(0o755)
        places = (home, c_library()) if SWATHE in call.algorithm.libraries else (home,)
        return _Start([str(home / binary.name)], places)
    packages = {PACKAGE: package_files(call.source, call.algorithm.label)}
    packages |= {f"library-{each.name}": each.files for each in call.libraries.values()}
    paths = []
    for name, files in packages.items():
        write_files(files, folder / name)
        paths += [name, *(f"{name}/{path}" for path in files if path.endswith(SUFFIX))]
    python = call.python or settings.python
    runner = CWL_RUNNER if call.algorithm.language == "cwl" else RUNNER
    return _Start(
        [python.executable, "-I", "-B", str(runner)],
        (*python.folders, runner.parent),
        tuple(sandbox.Input(name, folder / name) for name in packages),
        (*paths, *map(str, python.paths)),
    )


def _request(
    call: AlgorithmCall, group: GranuleGroup, folder: Path, settings: BoxSettings, start: _Start
) -> sandbox.Request:
    """Return the request of a run; what it reads besides granules is written to a folder."""
    algorithm = call.algorithm
    inputs = [*start.inputs]
    granules: list[dict[str, Any]] = []
    for role, each in group.roles:
        name = f"granule-{len(granules):05}{plain_suffix(each.path)}"
        inputs.append(sandbox.Input(name, each.path))
        times = {
            key: None if at is None else at.isoformat()
            for key, at in (("start", each.start), ("end", each.end))
        }
        granules.append({"file": name, "id": each.id, "role": role, **times})
    files = {name: f"file-{name}{plain_suffix(str(path))}" for name, path in call.files.items()}
    inputs += [sandbox.Input(file, call.files[name]) for name, file in files.items()]
    values: dict[str, Any] = {
        "granules": {algorithm.granules[0]: granules},
        "files": files,
        "outputs": {name: f"{name}{each.suffix}" for name, each in algorithm.outputs.items()},
        "parameters": dict(call.values),
    }
    variables: dict[str, str] = {}
    if algorithm.build is None:
        main = DOCUMENT if algorithm.language == "cwl" else MAIN
        own = {"source": f"{PACKAGE}/{main}", "paths": start.paths}
        texts = {JSON: call_json({**own, **values})}
    else:
        texts = {
            JSON: call_json(values),
            NAMELIST: call_namelist(values),
            GRANULES: granule_list(values),
        }
        variables = call_variables(values)
    for name, content in texts.items():
        (folder / name).write_bytes(content)
        inputs.append(sandbox.Input(name, folder / name))
    resources = algorithm.resources
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(resources.cpu))
    return sandbox.Request(
        start.command,
        inputs=inputs,
        outputs=[
            sandbox.Output(f"{name}{each.suffix}", is_optional=each.is_optional)
            for name, each in algorithm.outputs.items()
        ],
        folders=sorted(set(start.folders)),
        environment={**threads, **variables},
        limits=sandbox.Limits(
            cpu_s=resources.cpu * resources.wall_s,
            wall_s=resources.wall_s,
            memory_bytes=resources.memory,
            processes=PROCESSES,
            output_bytes=resources.output,
        ),
        mode=settings.mode,
        users=settings.users,
    )


def plain_suffix(path: str) -> str:
    """Return the suffix of a file, if it is plain: some libraries choose by it."""
    suffix = Path(path).suffix
    plain = suffix[1:].isascii() and suffix[1:].isalnum() and len(suffix) <= LONGEST_SUFFIX
    return suffix if plain else ""
