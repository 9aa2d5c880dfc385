"""The operations, and the options that choose one.

Each module of `swathe.operations.kinds` holds one operation, `OPERATION`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from swathe.core.errors import OptionError
from swathe.core.value_errors import short_text
from swathe.operations import kinds
from swathe.operations.operation import (
    ConvertingOperation,
    GroupingOperation,
    Operation,
    OperationOption,
    ProgramOperation,
    ResultFormat,
)

if TYPE_CHECKING:
    from pathlib import Path

    from swathe.files.array_cutout import ArrayCutout
    from swathe.files.cutout import Cutout

DEFAULT = "cut"


@cache
def operations() -> dict[str, Operation]:
    """Return the operations by name, the default first."""
    names = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__))
    modules = [import_module(f"{kinds.__name__}.{name}") for name in names]
    every: list[Operation] = [module.OPERATION for module in modules]
    return {each.name: each for each in sorted(every, key=lambda each: each.name != DEFAULT)}


def operation_of(name: str) -> Operation:
    """Return the operation of a name.

    Raises:
        OptionError: If there is none.
    """
    try:
        return operations()[name]
    except (KeyError, TypeError):
        raise OptionError(
            f"operation: expected one of {', '.join(operations())}, found {short_text(name)}"
        ) from None


def formats() -> dict[str, str]:
    """Return the titles of all formats by name, those of the default operation first."""
    every = [each for kind in operations().values() for each in kind.formats]
    return {each.name: each.title for each in every}


def own_options() -> dict[str, tuple[Operation, OperationOption]]:
    """Return the options that single operations have, by name."""
    return {each.name: (kind, each) for kind in operations().values() for each in kind.options}


@dataclass(frozen=True)
class ResultOptions:
    """Options of a job that define its results.

    Attributes:
        operation: name of the operation.
        format: name of the format of the results.
        bands: names of bands, in the order in which the operation uses them.
        own: values of the options that only this operation has.
    """

    operation: str = DEFAULT
    format: str = "fits"
    bands: tuple[str, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def read(
        cls,
        operation: str | None = None,
        file_format: str | None = None,
        bands: Sequence[str] = (),
        own: Mapping[str, Any] | None = None,
    ) -> ResultOptions:
        """Check names and values, and fill in defaults.

        A format that only one operation makes chooses that operation: `rgb` needs no other word.

        Raises:
            OptionError: If an option does not fit; names it.
        """
        for name, value in (("operation", operation), ("format", file_format)):
            if not isinstance(value, str | None):
                raise OptionError(f"{name}: expected a name, found {short_text(value)}")
        kind = operation_of(operation or DEFAULT)
        names = [each.name for each in kind.formats]
        if operation in (None, DEFAULT) and file_format and file_format not in names:
            kind = _maker_of(file_format)
            names = [each.name for each in kind.formats]
        if (file_format or names[0]) not in names:
            raise OptionError(
                f"format: expected {' or '.join(names)} for operation {kind.name}, "
                f"found {short_text(file_format)}"
            )
        values = _own_values(kind, own or {})
        return cls(kind.name, file_format or names[0], tuple(bands), values)

    @cached_property
    def kind(self) -> Operation:
        """Return the operation."""
        return operation_of(self.operation)

    def convert(self, cutout: Cutout, name: Path, should_stop: Callable[[], bool]) -> bytes:
        """Return a result of one image, as `ConvertingOperation.convert` does."""
        kind = self.kind
        assert isinstance(kind, ConvertingOperation)
        return kind.convert(cutout, name, self.own, should_stop)

    def convert_array(
        self, cutout: ArrayCutout, name: Path, should_stop: Callable[[], bool]
    ) -> bytes:
        """Return a result of one array, as `ConvertingOperation.convert_array` does."""
        kind = self.kind
        assert isinstance(kind, ConvertingOperation)
        return kind.convert_array(cutout, name, self.own, should_stop)

    @property
    def grouping(self) -> GroupingOperation:
        """Return the operation, which is known to make results from groups of targets."""
        kind = self.kind
        assert isinstance(kind, GroupingOperation)
        return kind

    @cached_property
    def file_format(self) -> ResultFormat:
        """Return the format of the results."""
        return next(each for each in self.kind.formats if each.name == self.format)

    @property
    def suffix(self) -> str:
        """Return the suffix of the results' files."""
        return self.file_format.suffix

    @property
    def is_combined(self) -> bool:
        """Check whether results are made from several images or granules."""
        return self.kind.is_combined

    @property
    def is_plain(self) -> bool:
        """Check whether the files that the engine cuts are the results."""
        return self.file_format.is_plain


def _maker_of(file_format: str) -> Operation:
    """Return the first operation that makes a format; one that runs a program is named.

    Raises:
        OptionError: If no operation makes it.
    """
    kinds = [each for each in operations().values() if not isinstance(each, ProgramOperation)]
    for kind in kinds:
        if any(each.name == file_format for each in kind.formats):
            return kind
    if file_format == "zarr":
        raise OptionError(
            "format: expected one file for each result, found 'zarr', which is a folder: choose nc"
        )
    names = dict.fromkeys(each.name for kind in kinds for each in kind.formats)
    raise OptionError(
        f"format: expected one of {', '.join(names)}, found {short_text(file_format)}"
    )


def _own_values(kind: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an operation's own options, defaults included.

    Raises:
        OptionError: If a value is wrong, or the operation has no such option.
    """
    own = {each.name: each for each in kind.options}
    for name in values:
        if name not in own:
            others = own_options()
            if name not in others:
                names = ", ".join(others) or "none"
                raise OptionError(f"{str(name)[:50]}: expected an option ({names}), found another")
            raise OptionError(
                f"{name}: expected operation {others[name][0].name}, found {kind.name}"
            )
    return {
        name: each.read(values[name]) if name in values else each.default
        for name, each in own.items()
    }
