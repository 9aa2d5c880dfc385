"""Program of a compiled algorithm: built in the sandbox, with the libraries that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from swathe.algorithms.compiler import Confinement, Sources, build
from swathe.algorithms.definition import Algorithm
from swathe.algorithms.library import Library
from swathe.algorithms.read_definition import SWATHE
from swathe.core.errors import AlgorithmError

PROGRAM, OBJECT = "program", "library.o"
PREFIX_VARIABLE = "SWATHE_C_PREFIX"
PREFIXES = ("/usr/local", "/usr")
"""Where `make install-c` may have put libswathe."""


def program(
    algorithm: Algorithm,
    files: Mapping[str, bytes],
    libraries: Mapping[str, Library],
    confinement: Confinement,
    is_gone: Callable[[], bool] | None = None,
) -> Path:
    """Return the program of an algorithm. It is compiled once for the same sources.

    Args:
        algorithm: its definition, with a build.
        files: files of its package by name.
        libraries: libraries by `NAME@VERSION`; all that it names.
        confinement: how compilers are confined.
        is_gone: asked every 0.1 s; if true, the compiler is killed.

    Raises:
        AlgorithmError: If a compiler refuses the sources, or a library is missing.
        SandboxError: If the sandbox cannot be used.
        LimitError: If it was cancelled.
    """
    assert algorithm.build is not None, "it is compiled"
    folders = {}
    for label in algorithm.libraries:
        if label != SWATHE:
            library = libraries[label]
            folders[f"library-{library.name}"] = library_folder(library, confinement, is_gone)
    home = c_library() if SWATHE in algorithm.libraries else None
    options: tuple[str, ...] = ()
    if home is not None:
        options = (f"-I{home}/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib")
    sources = Sources(
        label=algorithm.label,
        build=algorithm.build,
        files=files,
        outputs=(PROGRAM,),
        folders=folders,
        objects=tuple(f"{name}/{OBJECT}" for name in folders),
        options=options,
        last_options=() if home is None else ("-lswathe",),
        places=() if home is None else (home,),
    )
    return build(sources, confinement, is_gone) / PROGRAM


def library_folder(
    library: Library, confinement: Confinement, is_gone: Callable[[], bool] | None = None
) -> Path:
    """Return the folder of a library that is compiled: an object, its headers and modules.

    Raises:
        AlgorithmError, SandboxError, LimitError: As in `program`; also if it is of Python.
    """
    if library.build is None:
        raise AlgorithmError(f"{library.label}: expected a library that is compiled, found Python")
    sources = Sources(
        label=library.label,
        build=library.build,
        files=library.files,
        outputs=(OBJECT, *(f"{name}.mod" for name in library.modules)),
        folders={},
        headers={PurePosixPath(path).name: library.files[path] for path in library.headers},
        # One object of all sources, which algorithms link.
        options=("-r", "-nostdlib"),
    )
    return build(sources, confinement, is_gone)


def c_library() -> Path:
    """Return the folder that the operator installed libswathe in.

    It is `$SWATHE_C_PREFIX`, else `/usr/local` or `/usr`.

    Raises:
        AlgorithmError: If there is none.
    """
    own = os.environ.get(PREFIX_VARIABLE, "")
    prefixes = (own,) if own else PREFIXES
    for prefix in map(Path, prefixes):
        if (prefix / "include" / "swathe.h").is_file() and (
            prefix / "lib" / "libswathe.so"
        ).exists():
            return prefix
    raise AlgorithmError(
        f"libraries: expected libswathe in {' or '.join(prefixes)}, found none; the operator "
        "installs it with: make install-c"
    )
