"""Environment that algorithms run in: an interpreter of Python, and its packages."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import distributions

from swathe.algorithms.definition import Algorithm
from swathe.algorithms.read_definition import PYTHON
from swathe.algorithms.wheels import canonical_name


@dataclass(frozen=True)
class Environment:
    """An interpreter of Python, and its packages.

    Attributes:
        python: version of Python, as `(3, 11, 2)`.
        packages: version of each package by its canonical name.
    """

    python: tuple[int, ...]
    packages: Mapping[str, str]

    @classmethod
    def here(cls) -> Environment:
        """Return that of this process."""
        names = ((each.name, each.version) for each in distributions())
        packages = {canonical_name(name): version for name, version in names}
        return cls(sys.version_info[:3], packages)

    def faults_of(self, algorithm: Algorithm, own: Collection[str] = ()) -> Iterator[str]:
        """Yield what an algorithm needs and the environment lacks.

        Args:
            algorithm: the algorithm.
            own: packages that it brings along.
        """
        text = ".".join(map(str, self.python))
        if not _matches(self.python, algorithm.requires_python):
            yield f"requires-python: expected {algorithm.requires_python}, found {text}"
        for name in algorithm.dependencies:
            if name not in self.packages and name not in own:
                alike = get_close_matches(name, self.packages, 1)
                hint = f"; is it {alike[0]}?" if alike else ""
                yield f"dependencies: expected packages of the environment, found {name!r}{hint}"


def _matches(version: tuple[int, ...], requirement: str) -> bool:
    """Check whether a version fulfils all parts of a requirement, as `>=3.11,<4`."""
    for part in filter(None, requirement.split(",")):
        match = PYTHON.fullmatch(part.strip())
        assert match is not None, "a definition has no other"
        numbers = tuple(map(int, match[2].split(".")))
        bound = numbers + (0,) * (3 - len(numbers))
        begins_alike = version[: len(numbers)] == numbers
        is_met = {
            ">=": version >= bound,
            "<=": version <= bound,
            ">": version > bound,
            "<": version < bound,
            "==": begins_alike,
            "!=": not begins_alike,
            "~=": version >= bound and version[: len(numbers) - 1] == numbers[:-1],
        }[match[1]]
        if not is_met:
            return False
    return True
