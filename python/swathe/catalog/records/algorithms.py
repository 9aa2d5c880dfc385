"""Records of algorithms, and of what they use: libraries of users, environments of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

MOST_LOG = 16_384
"""Bytes of a log that are kept: its start and its end."""
CUT = "\n[...]\n"


@dataclass(frozen=True)
class AlgorithmRecord:
    """A version of an algorithm, without its source.

    Attributes:
        name: name of the algorithm.
        version: version, which never changes.
        owner: user who added it.
        sha256: checksum of its source, in hexadecimal digits.
        bytes: size of its source.
        description: line for lists.
        added_at: UTC.
    """

    name: str
    version: str
    owner: str
    sha256: str
    bytes: int
    description: str
    added_at: datetime

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class GroupRunRecord:
    """What became of one group of granules on which an algorithm ran.

    Attributes:
        row: number of its row in the job.
        group: name of the group.
        algorithm: version that ran, `NAME@VERSION`.
        problem: why it failed; empty if it did not.
        log: what it wrote to standard output and error; of a long one start and end.
        input_bytes: size of its granules.
        output_bytes: size of its outputs.
        wall_s: elapsed time in seconds.
        cpu_s: CPU time in seconds.
        memory_bytes: most memory of all its processes.
        ended_at: UTC.
    """

    row: int
    group: str
    algorithm: str
    problem: str
    log: str
    input_bytes: int
    output_bytes: int
    wall_s: float
    cpu_s: float
    memory_bytes: int
    ended_at: datetime


def short_log(text: str, most: int) -> str:
    """Return a log without its middle if it has more than `most` bytes."""
    content = text.encode()
    if len(content) <= most:
        return text
    half = max(1, (most - len(CUT)) // 2)
    first, last = content[:half], content[-half:]
    return first.decode(errors="ignore") + CUT + last.decode(errors="ignore")


class GroupTiming(NamedTuple):
    """How long a run of a version took, and the sizes of its inputs and outputs."""

    input_bytes: int
    output_bytes: int
    wall_s: float


@dataclass(frozen=True)
class LibraryRecord:
    """A version of a library of a user, without its source.

    Attributes:
        name: name of the library.
        version: version, which never changes.
        owner: user who added it, and whose algorithms may use it.
        language: language of its sources.
        sha256: checksum of its package, in hexadecimal digits.
        bytes: size of its package.
        description: line for lists.
        added_at: UTC.
    """

    name: str
    version: str
    owner: str
    language: str
    sha256: str
    bytes: int
    description: str
    added_at: datetime

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class EnvironmentRecord:
    """An interpreter of Python that the operator made of a lock file.

    Attributes:
        name: name that algorithms use.
        python: path of the interpreter.
        python_version: version of Python, as `3.11.2`.
        lock_sha256: checksum of the lock file, in hexadecimal digits.
        folders: folders that a run sees: those of the interpreter.
        packages: version of each package by its canonical name.
        added_at: UTC; `None` before it is added.
    """

    name: str
    python: str
    python_version: str
    lock_sha256: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    added_at: datetime | None = None
