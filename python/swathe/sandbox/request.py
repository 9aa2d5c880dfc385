"""What runs in a sandbox: a program, what it may read, what it should write, its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from swathe.core.errors import OptionError

Mode = Literal["auto", "bwrap", "landlock"]
"""How programs are confined: by bubblewrap, by Landlock, or by the first of them that works."""


@dataclass(frozen=True)
class Limits:
    """Limits of a program and all that it starts.

    Attributes:
        cpu_s: CPU time of all processes together, in seconds.
        wall_s: elapsed time, in seconds.
        memory_bytes: memory of all processes together, in bytes.
        processes: number of processes and threads at the same time.
        files: number of files that a process has open at the same time, besides its inputs.
        inodes: number of files and folders that it may have below its output folder.
        output_bytes: size of all files below its output folder, in bytes.
        temporary_bytes: size of its temporary files (`$TMPDIR`), in bytes.
        log_bytes: bytes of standard output, and of standard error, that the report keeps.
    """

    cpu_s: float = 60.0
    wall_s: float = 120.0
    memory_bytes: int = 1 << 30
    processes: int = 64
    files: int = 256
    inodes: int = 1000
    output_bytes: int = 200_000_000
    temporary_bytes: int = 100_000_000
    log_bytes: int = 65_536


@dataclass(frozen=True)
class Input:
    """A file or folder that the program reads as `$SWATHE_IN/NAME` (`/in/NAME` under bubblewrap).

    Attributes:
        name: name in the box.
        path: path of the file or folder; or give `descriptor`.
        descriptor: file descriptor of the file or folder, open for reading.
    """

    name: str
    path: str | Path | None = None
    descriptor: int | None = None


@dataclass(frozen=True)
class Output:
    """A file that the program writes as `$SWATHE_OUT/NAME` (`/out/NAME` under bubblewrap).

    Attributes:
        name: name in the box, and in the folder of results.
        bytes: largest size, in bytes; by default that of all outputs.
        is_optional: whether the program may leave it out.
    """

    name: str
    bytes: int | None = None
    is_optional: bool = False


MOST_USER = (1 << 31) - 1


@dataclass(frozen=True)
class UserIds:
    """User ids for programs, if this process is root: each job takes a free one of them.

    The group id is the same number. Nothing else on the machine may run under these ids: all
    their processes are killed when a job ends.

    Attributes:
        first: first user id.
        count: number of user ids, so of jobs at the same time.
    """

    first: int
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> UserIds:
        """Parse `FIRST` or `FIRST:COUNT`.

        Raises:
            ValueError: If it is neither, or names root or no id.
        """
        first, _, count = text.partition(":")
        ids = cls(int(first), int(count or 1))
        if not 0 < ids.first < ids.first + ids.count <= MOST_USER + 1:
            raise ValueError(f"expected user ids from 1 to {MOST_USER:,}, found {text[:40]!r}")
        return ids


@dataclass(frozen=True)
class Request:
    """A program to run in a sandbox.

    Attributes:
        command: program and arguments. The program is looked up in `/usr/bin` in the box; `{in}`,
            `{out}` and `{tmp}` stand for its folders.
        inputs: files and folders that it reads.
        outputs: files that it writes. Nothing else that it writes is kept.
        folders: folders that it sees read-only, at the same place as outside: an environment of
            the operator, never one in which users can write.
        environment: variables besides those that are always set; only harmless names, as
            `OMP_NUM_THREADS` or `SWATHE_...`, are accepted.
        limits: limits of all its processes together.
        mode: how it is confined.
        users: user ids for it, if this process is root; root without them refuses.
        work: folder for temporary files of the job; by default that of the system.
    """

    command: Sequence[str]
    inputs: Sequence[Input] = ()
    outputs: Sequence[Output] = ()
    folders: Sequence[str | Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    mode: Mode = "auto"
    users: UserIds | None = None
    work: str | Path | None = None

    def to_json(self, collect: str | Path | None) -> dict[str, Any]:
        """Return the request as `swathe-sandbox` reads it.

        Args:
            collect: folder into which outputs are copied.

        Raises:
            OptionError: If an input has neither a path nor a descriptor, or both.
        """
        return {
            "command": list(self.command),
            "inputs": [_input_json(each) for each in self.inputs],
            "outputs": [
                {"name": each.name, "bytes": each.bytes, "optional": each.is_optional}
                for each in self.outputs
            ],
            "folders": [_full_path(each) for each in self.folders],
            "environment": dict(self.environment),
            "limits": asdict(self.limits),
            "mode": self.mode,
            "users": None if self.users is None else asdict(self.users),
            "work": None if self.work is None else _full_path(self.work),
            "collect": None if collect is None else _full_path(collect),
        }


def _input_json(each: Input) -> dict[str, Any]:
    if (each.path is None) == (each.descriptor is None):
        raise OptionError(f"input {each.name}: expected a path or a descriptor, found both or none")
    if each.path is None:
        return {"name": each.name, "descriptor": each.descriptor}
    return {"name": each.name, "path": _full_path(each.path)}


def _full_path(path: str | Path) -> str:
    return str(Path(path).absolute())
