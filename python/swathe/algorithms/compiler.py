"""Compile sources of users in the sandbox. What they include and link is theirs or the system's."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from swathe import sandbox
from swathe.algorithms.build_cache import build_folder
from swathe.algorithms.definition import Build
from swathe.core.errors import AlgorithmError
from swathe.sandbox.request import Mode

COMPILERS = {"c": "/usr/bin/gcc", "c++": "/usr/bin/g++", "fortran": "/usr/bin/gfortran"}
LIMITS = sandbox.Limits(
    cpu_s=120.0,
    wall_s=180.0,
    memory_bytes=1 << 30,
    processes=32,
    inodes=1000,
    output_bytes=100_000_000,
    temporary_bytes=250_000_000,
    log_bytes=16_384,
)
"""Limits of one build."""
HOME = "../in/"
"""Inputs, from the folder that the compiler starts in."""
PACKAGE = "package"
ERRORS = "errors.txt"
"""Name of what a compiler said of sources that it refuses, in their build."""
ERRORS_S = 600.0
"""Time for which they are not compiled again, in seconds."""
LINKER_REFUSAL = "ld returned 1 exit status"
# A line of the assembly that it was given, and not "Fatal error: can't write".
ASSEMBLER_REFUSAL = re.compile(r"\.s:\d+: Error: ")
# Others use the machine at that moment: the same sources may be compiled later.
SHORTAGE = re.compile(
    "Killed|memory exhausted|[Oo]ut of memory|Cannot allocate|No space left|vfork|"
    "Resource temporarily unavailable"
)
ELF = b"\x7fELF"
INCLUDES = {"fortran": ("-I/usr/include",)}
"""Where modules of Fortran are that the operator installed; compilers know other headers."""


@dataclass(frozen=True)
class Confinement:
    """How compilers are confined.

    Attributes:
        mode: kind of sandbox.
        users: user ids, if this process is root.
        limits: limits of one build.
    """

    mode: Mode = "auto"
    users: sandbox.UserIds | None = None
    limits: sandbox.Limits = LIMITS


@dataclass(frozen=True)
class Sources:
    """What a compiler gets, and what it is to make.

    Attributes:
        label: name in errors.
        build: sources and flags.
        files: files of the package by name.
        outputs: names of the files that are made, an object or a program first.
        folders: folders of headers, modules and objects by a name; they are inputs too.
        objects: objects that are linked, in these folders.
        headers: files that the build gets besides.
        options: words of the command before the sources.
        last_options: those behind them.
        places: folders of the operator that the compiler sees.
    """

    label: str
    build: Build
    files: Mapping[str, bytes]
    outputs: tuple[str, ...]
    folders: Mapping[str, Path]
    objects: tuple[str, ...] = ()
    headers: Mapping[str, bytes] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    last_options: tuple[str, ...] = ()
    places: tuple[Path, ...] = ()

    def key(self) -> str:
        """Return a checksum of all that decides what is made."""
        values = [
            compiler_version(self.build.language),
            self.build.sources,
            self.build.flags,
            self.outputs,
            # A build's folder has its checksum as its name.
            {name: folder.name for name, folder in self.folders.items()},
            self.objects,
            self.options,
            self.last_options,
            sorted(self.headers),
            [str(place) for place in self.places],
            {name: sha256(content).hexdigest() for name, content in sorted(self.files.items())},
        ]
        return sha256(json.dumps(values).encode()).hexdigest()


def compiler_version(language: str) -> str:
    """Return path and version of the compiler of a language.

    Raises:
        AlgorithmError: If this machine has none.
    """
    path = Path(COMPILERS[language])
    if not path.is_file():
        raise AlgorithmError(f"language {language}: expected the compiler {path}, found none")
    return _version(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _version(path: str, _mtime_ns: int) -> str:
    answer = subprocess.run([path, "--version"], capture_output=True, check=True, timeout=60)
    return f"{path} {answer.stdout.decode(errors='replace').partition(chr(10))[0]}"


def build(
    sources: Sources, confinement: Confinement, is_gone: Callable[[], bool] | None = None
) -> Path:
    """Return the folder of what a compiler made of sources: once for the same sources.

    Args:
        sources: what it gets.
        confinement: the sandbox.
        is_gone: asked every 0.1 s; if true, the compiler is killed.

    Raises:
        AlgorithmError: If the compiler refuses the sources, with what it says; or exceeds a limit.
        SandboxError: If the sandbox cannot be used.
        LimitError: If it was cancelled.
    """
    label = sources.label

    def make(folder: Path) -> None:
        errors = _compile(sources, folder, confinement, is_gone)
        if errors:
            (folder / ERRORS).write_text(errors)

    folder = build_folder(sources.key(), make, _is_old, is_gone)
    errors = folder / ERRORS
    if errors.is_file():
        raise AlgorithmError(f"{label}: the compiler refuses it\n{errors.read_text()}")
    return folder


def _is_old(folder: Path) -> bool:
    """Check whether sources were refused too long ago: the machine may have had no memory then."""
    errors = folder / ERRORS
    return errors.is_file() and time.time() - errors.stat().st_mtime > ERRORS_S


def _compile(
    sources: Sources,
    folder: Path,
    confinement: Confinement,
    is_gone: Callable[[], bool] | None,
) -> str:
    """Run the compiler; return what it says of sources that it refuses, else nothing.

    Raises:
        AlgorithmError: If it exceeds a limit, fails without a word on the sources, or makes no
            program of the machine.
    """
    with TemporaryDirectory(prefix="swathe-build-") as home:
        # Another user runs the compiler, and has to reach the files by their names.
        Path(home).chmod(0o711)
        write_files(sources.files, Path(home) / PACKAGE)
        inputs = [sandbox.Input(PACKAGE, Path(home) / PACKAGE)]
        for name, place in sources.folders.items():
            files = {path.name: path.read_bytes() for path in place.iterdir()}
            write_files(files, Path(home) / name)
            inputs.append(sandbox.Input(name, Path(home) / name))
        request = sandbox.Request(
            _command(sources),
            inputs=inputs,
            outputs=[sandbox.Output(name) for name in sources.outputs],
            folders=[str(place) for place in sources.places],
            limits=confinement.limits,
            mode=confinement.mode,
            users=confinement.users,
        )
        report = sandbox.run(request, folder, is_gone)
    text = (report.stdout.text + report.stderr.text).replace(f"{HOME}{PACKAGE}/", "")
    if report.status == "RE":
        for each in report.outputs.values():
            each.path.unlink()
        problems = "".join(f"{name}: {why}\n" for name, why in report.problems.items())
        if report.exit_code == 0 or _is_refusal(text, sources):
            return text or problems
        # The machine may be short of processes or memory: other runs try it again.
        raise AlgorithmError(f"{sources.label}: the compiler failed\n{text or report.message}")
    if report.status != "OK":
        raise AlgorithmError(f"{sources.label}: the compiler: {report.message}\n{text}")
    check_program(folder / sources.outputs[0], sources.label)
    for name, content in sources.headers.items():
        (folder / name).write_bytes(content)
    return ""


def _is_refusal(text: str, sources: Sources) -> bool:
    """Check whether a text is what a tool of a compiler says of sources, and not of the machine."""
    if SHORTAGE.search(text):
        return False
    return (
        LINKER_REFUSAL in text
        or ASSEMBLER_REFUSAL.search(text) is not None
        or any(
            re.search(rf"(?:^|[ /]){re.escape(name)}:[\d(]", text, re.M) for name in sources.files
        )
    )


def check_program(path: Path, label: str) -> None:
    """Check that a file is machine code, and no script.

    Raises:
        AlgorithmError: If it is not.
    """
    with path.open("rb") as file:
        start = file.read(len(ELF))
    if start != ELF:
        raise AlgorithmError(
            f"{label}: expected a program of this machine, found {start!r} at its start"
        )


def _command(sources: Sources) -> list[str]:
    """Return the command of a build."""
    flags = sources.build.flags
    includes = [f"-I{HOME}{PACKAGE}"]
    includes += [f"-I{HOME}{name}" for name in sources.folders]
    includes += INCLUDES.get(sources.build.language, ())
    plain = [
        flag.replace("-I", f"-I{HOME}{PACKAGE}/", 1) if flag.startswith("-I") else flag
        for flag in flags
        if not flag.startswith("-l")
    ]
    return [
        COMPILERS[sources.build.language],
        "-o",
        sources.outputs[0],
        *includes,
        *plain,
        *sources.options,
        *(f"{HOME}{PACKAGE}/{name}" for name in sources.build.sources),
        *(f"{HOME}{name}" for name in sources.objects),
        *sources.last_options,
        *(flag for flag in flags if flag.startswith("-l")),
    ]


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a package, readable by every user."""
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
