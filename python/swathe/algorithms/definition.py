"""Definition of an algorithm: what it is called, reads, writes, and may use. A pure value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from swathe.core.grouping import GroupBy

ParameterType: TypeAlias = Literal["integer", "number", "string", "boolean"]
PARAMETER_TYPES: tuple[ParameterType, ...] = get_args(ParameterType)
Scalar: TypeAlias = int | float | str | bool
Language: TypeAlias = Literal["python", "c", "c++", "fortran", "cwl"]
COMPILER_LANGUAGES: tuple[Language, ...] = ("c", "c++", "fortran")


@dataclass(frozen=True)
class Window:
    """Granules before and after those of a group, in time, which the run gets too.

    Attributes:
        before: number of granules before the first.
        after: number of granules after the last.
    """

    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class GranuleInput:
    """Granules of a collection.

    Attributes:
        collection: name of the dataset; empty: any granules.
        arrays: names of the arrays that the algorithm reads of each.
        least: smallest number of granules in a group.
        most: largest number of granules in a group.
        group: how granules form groups.
        window: neighbours in time, which do not count.
    """

    collection: str = ""
    arrays: tuple[str, ...] = ()
    least: int = 1
    most: int = 1
    group: GroupBy = "each"
    window: Window = Window()


@dataclass(frozen=True)
class FileInput:
    """One file that is the same for all groups.

    Attributes:
        file: name of the file.
    """

    file: str


@dataclass(frozen=True)
class Output:
    """File that a run writes.

    Attributes:
        media_type: media type of its content.
        suffix: suffix of its name, from the media type.
        checks: arrays that it must have, with at least one valid value each.
        is_optional: whether a run may leave it out.
    """

    media_type: str
    suffix: str
    checks: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True)
class Parameter:
    """Value that each order chooses.

    Attributes:
        type: type of the value.
        minimum: least value of a number.
        maximum: greatest value of a number.
        enum: possible values; empty: any.
        default: value if none is given; `None`: one must be given.
        description: noun phrase for forms.
    """

    type: ParameterType
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[Scalar, ...] = ()
    default: Scalar | None = None
    description: str = ""


@dataclass(frozen=True)
class Resources:
    """Limits of one run.

    Attributes:
        cpu: processor cores.
        memory: bytes of memory of all its processes together.
        wall_s: elapsed time.
        output: bytes of its outputs together.
    """

    cpu: int = 1
    memory: int = 1_000_000_000
    wall_s: float = 600.0
    output: int = 200_000_000


@dataclass(frozen=True)
class Build:
    """How sources are compiled.

    Attributes:
        language: language whose compiler links.
        sources: files of the package, in the order in which they are compiled.
        flags: flags of the compiler.
    """

    language: Language
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Algorithm:
    """Definition of an algorithm.

    Attributes:
        name: name, in lower case.
        version: version, as `1.2`.
        inputs: granules and files by the names of arguments of its function `run`.
        outputs: files that it writes, likewise.
        parameters: values, likewise.
        resources: limits of one run.
        dependencies: packages that it imports, by their canonical names.
        requires_python: versions of Python that it runs with, as `>=3.11`; empty: any.
        language: language of its source.
        build: how it is compiled; `None`: it is a function in Python.
        libraries: libraries that it uses: `swathe`, or those of its owner as `NAME@VERSION`.
        environment: name of an environment of the operator; empty: the portal's own.
        description: noun phrase for lists.
        notes: what its document of CWL asks for that is ignored.
    """

    name: str
    version: str
    inputs: Mapping[str, GranuleInput | FileInput]
    outputs: Mapping[str, Output]
    parameters: Mapping[str, Parameter]
    resources: Resources = Resources()
    dependencies: tuple[str, ...] = ()
    requires_python: str = ""
    language: Language = "python"
    build: Build | None = None
    libraries: tuple[str, ...] = ()
    environment: str = ""
    description: str = ""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name}@{self.version}"

    @property
    def arguments(self) -> list[str]:
        """Return the names of the arguments of its function: inputs, outputs, parameters."""
        return [*self.inputs, *self.outputs, *self.parameters]

    @property
    def granules(self) -> tuple[str, GranuleInput]:
        """Return the input that forms groups, with its name: the first of granules."""
        return next(
            (name, each) for name, each in self.inputs.items() if isinstance(each, GranuleInput)
        )

    @property
    def files(self) -> dict[str, FileInput]:
        """Return the inputs that are files, by name."""
        return {name: each for name, each in self.inputs.items() if isinstance(each, FileInput)}
